//! `manycore/lock.h`: every lock of the library behind one type, chosen by name.
//!
//! ```text
//!        0        4        8            24
//! mutex  | kind   | owner  | the lock   |      or the address of one that is too large
//! rwlock | kind   | writer | the lock            |  32
//! ```

use core::cell::UnsafeCell;
use core::ffi::{CStr, c_char};
use core::sync::atomic::{AtomicU32, Ordering};
use core::time::Duration;
use std::ffi::CString;
use std::sync::OnceLock;

use manycore::lock::{self, Adaptive, INLINE_SIZE, PlainLock};
use manycore::sync::Deadline;
use manycore::{RawRwLock, for_each_lock, for_each_rw_lock};

use manycore_capi_base::process::holder;
use manycore_capi_base::status::Status;

// The thread that initialises or destroys a lock writes its kind; the program orders that before
// and after every use. A thread compares the owner with itself, and reads its own number there only
// if it wrote it: all accesses to both are Relaxed.
const RELAXED: Ordering = Ordering::Relaxed;

/// The kind of a lock that is all zero.
const USUAL: u32 = 0;
const DESTROYED: u32 = u32::MAX;

/// `manycore_mutex_t`.
#[repr(C)]
pub struct Mutex {
    kind: AtomicU32,
    owner: AtomicU32,
    /// In a cell, because the lock in these words consists of atomics, which this type does not
    /// show.
    lock: UnsafeCell<[u64; 2]>,
}

// SAFETY: the kind and the number are atomic; the words are a lock of that kind, or lead to one,
// and do not change once they are written. All kinds of locks are `Sync`.
unsafe impl Sync for Mutex {}

/// `manycore_rwlock_t`.
#[repr(C)]
pub struct RwLock {
    kind: AtomicU32,
    writer: AtomicU32,
    lock: UnsafeCell<[u64; 3]>,
}

// SAFETY: the kind and the number are atomic; the words are a lock of that kind, or lead to one,
// and do not change once they are written. All kinds of locks are `Sync`.
unsafe impl Sync for RwLock {}

const _: () = assert!(size_of::<Mutex>() == 24 && size_of::<RwLock>() == 32);

/// The operations on a lock of some type. Each is called with the address of a valid lock of this
/// type. To `release`, a caller passes a lock that it holds; to `end`, a result of `make` that no
/// thread uses any more.
struct Mutexes {
    name: &'static str,
    /// Makes one, if it does not fit into a [`Mutex`].
    make: Option<fn() -> *mut ()>,
    end: unsafe fn(*mut ()),
    acquire: unsafe fn(*const ()),
    try_acquire: unsafe fn(*const ()) -> bool,
    acquire_until: unsafe fn(*const (), Deadline) -> bool,
    release: unsafe fn(*const ()),
}

/// As [`Mutexes`], for reader-writer locks. To `release_read`, a caller passes a lock that it holds
/// for reading; to `release_write`, one that it holds for writing.
struct RwLocks {
    name: &'static str,
    make: Option<fn() -> *mut ()>,
    end: unsafe fn(*mut ()),
    acquire_read: unsafe fn(*const ()),
    try_acquire_read: unsafe fn(*const ()) -> bool,
    release_read: unsafe fn(*const ()),
    acquire_write: unsafe fn(*const ()),
    try_acquire_write: unsafe fn(*const ()) -> bool,
    release_write: unsafe fn(*const ()),
}

/// # Safety
///
/// From [`make`], and not used any more.
unsafe fn end<L>(lock: *mut ()) {
    // SAFETY: `make` has made a box of it, of this type, and no code uses it any more (contract of
    // this function).
    drop(unsafe { Box::from_raw(lock.cast::<L>()) });
}

impl Mutexes {
    /// The lock, if it is of the kind that is all zero. Its code is called directly, so that it is
    /// inlined into the caller. An indirect call would make an empty section a tenth longer.
    ///
    /// # Safety
    ///
    /// The lock is of this kind, and there.
    #[inline]
    unsafe fn usual<'a>(&self, lock: *const ()) -> Option<&'a Adaptive> {
        // SAFETY: `self` is the row of `Adaptive`, and the lock is a valid one (contract of this
        // function).
        core::ptr::eq(self, &raw const MUTEXES[USUAL as usize]).then(|| unsafe { &*lock.cast() })
    }

    const fn of<L: PlainLock>() -> Self {
        Self {
            name: L::INFO.name,
            make: if size_of::<L>() > INLINE_SIZE { Some(|| make(L::new())) } else { None },
            end: end::<L>,
            // SAFETY: the address leads to a valid `L` (see `Mutexes`).
            acquire: |lock| unsafe { (*lock.cast::<L>()).acquire() },
            // SAFETY: the address leads to a valid `L` (see `Mutexes`).
            try_acquire: |lock| unsafe { (*lock.cast::<L>()).try_acquire() },
            // SAFETY: the address leads to a valid `L` (see `Mutexes`).
            acquire_until: |lock, until| unsafe { (*lock.cast::<L>()).acquire_until(until) },
            // SAFETY: the address leads to a valid `L`, which the caller holds (see `Mutexes`).
            release: |lock| unsafe { (*lock.cast::<L>()).release() },
        }
    }
}

impl RwLocks {
    /// As of [`Mutexes`].
    ///
    /// # Safety
    ///
    /// The lock is of this kind, and there.
    #[inline]
    unsafe fn usual<'a>(&self, lock: *const ()) -> Option<&'a UsualRw> {
        // SAFETY: `self` is the row of `UsualRw`, and the lock is a valid one (contract of this
        // function).
        core::ptr::eq(self, &raw const RW_LOCKS[USUAL as usize]).then(|| unsafe { &*lock.cast() })
    }

    const fn of<L: RawRwLock>() -> Self {
        Self {
            name: L::INFO.name,
            make: if size_of::<L>() > INLINE_RW { Some(|| make(L::new())) } else { None },
            end: end::<L>,
            // SAFETY: the address leads to a valid `L` (see `RwLocks`).
            acquire_read: |lock| unsafe { (*lock.cast::<L>()).acquire_read() },
            // SAFETY: the address leads to a valid `L` (see `RwLocks`).
            try_acquire_read: |lock| unsafe { (*lock.cast::<L>()).try_acquire_read() },
            // SAFETY: the address leads to a valid `L`, which the caller holds in this way (see
            // `RwLocks`).
            release_read: |lock| unsafe { (*lock.cast::<L>()).release_read() },
            // SAFETY: the address leads to a valid `L` (see `RwLocks`).
            acquire_write: |lock| unsafe { (*lock.cast::<L>()).acquire_write() },
            // SAFETY: the address leads to a valid `L` (see `RwLocks`).
            try_acquire_write: |lock| unsafe { (*lock.cast::<L>()).try_acquire_write() },
            // SAFETY: the address leads to a valid `L`, which the caller holds in this way (see
            // `RwLocks`).
            release_write: |lock| unsafe { (*lock.cast::<L>()).release_write() },
        }
    }
}

fn make<L>(lock: L) -> *mut () {
    Box::into_raw(Box::new(lock)).cast()
}

/// The largest size of a reader-writer lock that is stored in an [`RwLock`] itself.
const INLINE_RW: usize = 24;
const _: () = assert!(size_of::<UsualRw>() <= INLINE_RW && align_of::<UsualRw>() <= 8);

macro_rules! mutexes {
    ($($lock:ident),* $(,)?) => {
        static MUTEXES: &[Mutexes] = &[Mutexes::of::<Adaptive>(), $(Mutexes::of::<lock::$lock>()),*];
    };
}
for_each_lock!(mutexes);

macro_rules! rw_locks {
    ($usual:ident, $($lock:ident),* $(,)?) => {
        type UsualRw = lock::$usual;
        static RW_LOCKS: &[RwLocks] =
            &[RwLocks::of::<UsualRw>(), $(RwLocks::of::<lock::$lock>()),*];
    };
}
for_each_rw_lock!(rw_locks);

fn find(mut names: impl Iterator<Item = &'static str>, wanted: &CStr) -> Result<usize, Status> {
    let is_wanted = |name: &'static str| name.as_bytes() == wanted.to_bytes();
    names.position(is_wanted).ok_or(Status::UnknownLock)
}

fn status(result: Result<(), Status>) -> Status {
    result.err().unwrap_or(Status::Ok)
}

/// # Safety
///
/// Null, or an object.
unsafe fn there<'a, T>(pointer: *const T) -> Result<&'a T, Status> {
    // SAFETY: `pointer` is null, or leads to an object (contract of this function).
    unsafe { pointer.as_ref() }.ok_or(Status::Null)
}

impl Mutex {
    /// The operations on it, and the lock's address.
    #[inline]
    fn resolve(&self) -> Result<(&'static Mutexes, *const ()), Status> {
        let methods = MUTEXES.get(self.kind.load(RELAXED) as usize).ok_or(Status::Invalid)?;
        Ok((methods, place(methods.make.is_some(), &self.lock)))
    }

    /// Acquires the lock by `acquire`, unless the calling thread holds it.
    #[inline]
    fn acquire(
        &self,
        otherwise: Status,
        acquire: impl FnOnce(&Mutexes, *const ()) -> bool,
    ) -> Result<(), Status> {
        let me = holder();
        let (methods, lock) = self.resolve()?;
        if self.owner.load(RELAXED) == me {
            return Err(Status::Deadlock);
        }
        if !acquire(methods, lock) {
            return Err(otherwise);
        }
        self.owner.store(me, RELAXED);
        Ok(())
    }

    fn release(&self) -> Result<(), Status> {
        let (methods, lock) = self.resolve()?;
        if self.owner.load(RELAXED) != holder() {
            return Err(Status::NotOwner);
        }
        self.owner.store(0, RELAXED);
        // SAFETY: `resolve` has found the lock of this kind; it is held by this thread, whose
        // number the owner was.
        unsafe {
            match methods.usual(lock) {
                Some(usual) => usual.release(),
                None => (methods.release)(lock),
            }
        }
        Ok(())
    }
}

/// The lock's address: that of these words, or the one that they contain.
#[inline]
fn place<const WORDS: usize>(is_elsewhere: bool, words: &UnsafeCell<[u64; WORDS]>) -> *const () {
    let first = words.get().cast::<u64>();
    if is_elsewhere {
        // SAFETY: written when the lock was made, and not changed before its end.
        core::ptr::with_exposed_provenance(unsafe { *first } as usize)
    } else {
        first.cast_const().cast()
    }
}

/// The name of a lock, by its index; null after the last one.
#[unsafe(no_mangle)]
pub extern "C" fn manycore_lock_name(number: usize) -> *const c_char {
    static NAMES: OnceLock<Vec<CString>> = OnceLock::new();
    let names = NAMES.get_or_init(|| {
        let c_string = |name| CString::new(name).expect("a name without zeroes");
        MUTEXES[1..].iter().map(|lock| c_string(lock.name)).collect()
    });
    names.get(number).map_or(core::ptr::null(), |name| name.as_ptr())
}

/// See `manycore/lock.h`, as for all of these.
///
/// # Safety
///
/// Null or a mutex that may be written; null or a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn manycore_mutex_init(mutex: *mut Mutex, name: *const c_char) -> Status {
    if mutex.is_null() {
        return Status::Null;
    }
    let mut kind = USUAL as usize;
    if !name.is_null() {
        // SAFETY: `name` is not null, and so a string (contract of this function).
        match find(MUTEXES.iter().map(|lock| lock.name), unsafe { CStr::from_ptr(name) }) {
            Ok(number) => kind = number,
            Err(status) => return status,
        }
    }
    let lock = MUTEXES[kind].make.map_or(0, |make| make().expose_provenance() as u64);
    let (kind, owner) = (AtomicU32::new(kind as u32), AtomicU32::new(0));
    // SAFETY: `mutex` is not null, and so may be written (contract of this function).
    unsafe { mutex.write(Mutex { kind, owner, lock: UnsafeCell::new([lock, 0]) }) };
    Status::Ok
}

/// # Safety
///
/// Null, or a mutex.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn manycore_mutex_destroy(mutex: *mut Mutex) -> Status {
    // SAFETY: `mutex` is null, or leads to one (contract of this function).
    status(unsafe { there(mutex) }.and_then(|mutex| {
        let (methods, lock) = mutex.resolve()?;
        if mutex.owner.load(RELAXED) != 0 {
            return Err(Status::Busy);
        }
        mutex.kind.store(DESTROYED, RELAXED);
        if methods.make.is_some() {
            // SAFETY: `make` has made a box of the lock of this kind; no thread holds it, and the
            // program does not use it any more.
            unsafe { (methods.end)(lock.cast_mut()) };
        }
        Ok(())
    }))
}

/// # Safety
///
/// Null, or a mutex.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn manycore_mutex_lock(mutex: *mut Mutex) -> Status {
    // SAFETY: `mutex` is null, or leads to one (contract of this function).
    status(unsafe { there(mutex) }.and_then(|mutex| {
        mutex.acquire(Status::Ok, |methods, lock| {
            // SAFETY: `resolve` has found the lock of this kind, which is valid as long as the
            // mutex.
            unsafe {
                match methods.usual(lock) {
                    Some(usual) => usual.acquire(),
                    None => (methods.acquire)(lock),
                }
            }
            true
        })
    }))
}

/// # Safety
///
/// Null, or a mutex.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn manycore_mutex_trylock(mutex: *mut Mutex) -> Status {
    // SAFETY: `mutex` is null, or leads to one (contract of this function).
    status(unsafe { there(mutex) }.and_then(|mutex| {
        // SAFETY: `resolve` has found the lock of this kind, which is valid as long as the mutex.
        mutex.acquire(Status::Busy, |methods, lock| unsafe { (methods.try_acquire)(lock) })
    }))
}

/// # Safety
///
/// Null, or a mutex.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn manycore_mutex_timedlock(mutex: *mut Mutex, nanoseconds: u64) -> Status {
    // SAFETY: `mutex` is null, or leads to one (contract of this function).
    status(unsafe { there(mutex) }.and_then(|mutex| {
        mutex.acquire(Status::TimedOut, |methods, lock| {
            let until = Deadline::after(Duration::from_nanos(nanoseconds));
            // SAFETY: `resolve` has found the lock of this kind, which is valid as long as the
            // mutex.
            unsafe { (methods.try_acquire)(lock) || (methods.acquire_until)(lock, until) }
        })
    }))
}

/// # Safety
///
/// Null, or a mutex.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn manycore_mutex_unlock(mutex: *mut Mutex) -> Status {
    // SAFETY: `mutex` is null, or leads to one (contract of this function).
    status(unsafe { there(mutex) }.and_then(Mutex::release))
}

impl RwLock {
    #[inline]
    fn resolve(&self) -> Result<(&'static RwLocks, *const ()), Status> {
        let methods = RW_LOCKS.get(self.kind.load(RELAXED) as usize).ok_or(Status::Invalid)?;
        Ok((methods, place(methods.make.is_some(), &self.lock)))
    }

    /// For an acquisition: not by the thread that writes.
    #[inline]
    fn resolve_for_me(&self) -> Result<(&'static RwLocks, *const ()), Status> {
        if self.writer.load(RELAXED) == holder() {
            return Err(Status::Deadlock);
        }
        self.resolve()
    }
}

/// # Safety
///
/// Null or a lock that may be written; null or a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn manycore_rwlock_init(rwlock: *mut RwLock, name: *const c_char) -> Status {
    if rwlock.is_null() {
        return Status::Null;
    }
    let mut kind = USUAL as usize;
    if !name.is_null() {
        // SAFETY: `name` is not null, and so a string (contract of this function).
        match find(RW_LOCKS.iter().map(|lock| lock.name), unsafe { CStr::from_ptr(name) }) {
            Ok(number) => kind = number,
            Err(status) => return status,
        }
    }
    let lock = RW_LOCKS[kind].make.map_or(0, |make| make().expose_provenance() as u64);
    let (kind, writer) = (AtomicU32::new(kind as u32), AtomicU32::new(0));
    // SAFETY: `rwlock` is not null, and so may be written (contract of this function).
    unsafe { rwlock.write(RwLock { kind, writer, lock: UnsafeCell::new([lock, 0, 0]) }) };
    Status::Ok
}

/// # Safety
///
/// Null, or a lock.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn manycore_rwlock_destroy(rwlock: *mut RwLock) -> Status {
    // SAFETY: `rwlock` is null, or leads to a lock (contract of this function).
    status(unsafe { there(rwlock) }.and_then(|rwlock| {
        let (methods, lock) = rwlock.resolve()?;
        // SAFETY: `resolve` has found the lock of this kind, which is valid.
        if !unsafe { (methods.try_acquire_write)(lock) } {
            return Err(Status::Busy);
        }
        // SAFETY: `try_acquire_write` has acquired it for this thread just now.
        unsafe { (methods.release_write)(lock) };
        rwlock.kind.store(DESTROYED, RELAXED);
        if methods.make.is_some() {
            // SAFETY: `make` has made a box of the lock of this kind; no thread holds it, and the
            // program does not use it any more.
            unsafe { (methods.end)(lock.cast_mut()) };
        }
        Ok(())
    }))
}

/// # Safety
///
/// Null, or a lock.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn manycore_rwlock_rdlock(rwlock: *mut RwLock) -> Status {
    // SAFETY: `rwlock` is null, or leads to a lock (contract of this function).
    status(unsafe { there(rwlock) }.and_then(|rwlock| {
        let (methods, lock) = rwlock.resolve_for_me()?;
        // SAFETY: `resolve` has found the lock of this kind, which is valid.
        unsafe {
            match methods.usual(lock) {
                Some(usual) => usual.acquire_read(),
                None => (methods.acquire_read)(lock),
            }
        }
        Ok(())
    }))
}

/// # Safety
///
/// Null, or a lock.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn manycore_rwlock_tryrdlock(rwlock: *mut RwLock) -> Status {
    // SAFETY: `rwlock` is null, or leads to a lock (contract of this function).
    status(unsafe { there(rwlock) }.and_then(|rwlock| {
        let (methods, lock) = rwlock.resolve_for_me()?;
        // SAFETY: `resolve` has found the lock of this kind, which is valid.
        unsafe { (methods.try_acquire_read)(lock) }.then_some(()).ok_or(Status::Busy)
    }))
}

/// # Safety
///
/// Null, or a lock that the calling thread has acquired for reading.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn manycore_rwlock_rdunlock(rwlock: *mut RwLock) -> Status {
    // SAFETY: `rwlock` is null, or leads to a lock (contract of this function).
    status(unsafe { there(rwlock) }.and_then(|rwlock| {
        let (methods, lock) = rwlock.resolve()?;
        // SAFETY: `resolve` has found the lock of this kind; this thread has acquired it for
        // reading (contract of this function).
        unsafe {
            match methods.usual(lock) {
                Some(usual) => usual.release_read(),
                None => (methods.release_read)(lock),
            }
        }
        Ok(())
    }))
}

/// # Safety
///
/// Null, or a lock.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn manycore_rwlock_wrlock(rwlock: *mut RwLock) -> Status {
    // SAFETY: `rwlock` is null, or leads to a lock (contract of this function).
    status(unsafe { there(rwlock) }.and_then(|rwlock| {
        let (methods, lock) = rwlock.resolve_for_me()?;
        // SAFETY: `resolve` has found the lock of this kind, which is valid.
        unsafe { (methods.acquire_write)(lock) };
        rwlock.writer.store(holder(), RELAXED);
        Ok(())
    }))
}

/// # Safety
///
/// Null, or a lock.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn manycore_rwlock_trywrlock(rwlock: *mut RwLock) -> Status {
    // SAFETY: `rwlock` is null, or leads to a lock (contract of this function).
    status(unsafe { there(rwlock) }.and_then(|rwlock| {
        let (methods, lock) = rwlock.resolve_for_me()?;
        // SAFETY: `resolve` has found the lock of this kind, which is valid.
        if !unsafe { (methods.try_acquire_write)(lock) } {
            return Err(Status::Busy);
        }
        rwlock.writer.store(holder(), RELAXED);
        Ok(())
    }))
}

/// # Safety
///
/// Null, or a lock.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn manycore_rwlock_wrunlock(rwlock: *mut RwLock) -> Status {
    // SAFETY: `rwlock` is null, or leads to a lock (contract of this function).
    status(unsafe { there(rwlock) }.and_then(|rwlock| {
        let (methods, lock) = rwlock.resolve()?;
        if rwlock.writer.load(RELAXED) != holder() {
            return Err(Status::NotOwner);
        }
        rwlock.writer.store(0, RELAXED);
        // SAFETY: `resolve` has found the lock of this kind; it is held by this thread, whose
        // number the writer was.
        unsafe { (methods.release_write)(lock) };
        Ok(())
    }))
}
