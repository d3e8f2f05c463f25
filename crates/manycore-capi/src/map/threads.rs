//! Each thread's access to each map, made when it first uses that.
//!
//! A thread that ends gives up its members; a map that is destroyed takes back the threads'
//! members. Both hold one lock, [`MAPS`], so that exactly one of them does it.

use core::cell::{Cell, RefCell, UnsafeCell};
use core::ptr::{NonNull, null_mut};
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use manycore::collections::bytes::{ByteMap, Handle};

use manycore_capi_base::status::Status;

/// `manycore_map_t`.
pub struct Map {
    /// A number that no other map ever has.
    id: u64,
    /// It comes from a box, which is freed after the handles that borrow it.
    map: NonNull<ByteMap>,
}

/// A thread's handle. Other threads read and drop it only while its thread does not use the map.
struct Member {
    handle: UnsafeCell<Handle<'static>>,
    /// Whether its thread is in a function, or in code that the function calls.
    is_inside: AtomicBool,
}

/// From boxes, each in one list.
struct Members(Vec<*mut Member>);

// SAFETY: a handle in no function's use may be dropped by another thread, which holds the lock.
unsafe impl Send for Members {}

/// The maps that are there, by their ids.
static MAPS: Mutex<BTreeMap<u64, Members>> = Mutex::new(BTreeMap::new());

fn maps() -> MutexGuard<'static, BTreeMap<u64, Members>> {
    // No code that holds this lock panics, so nothing under it is half done.
    MAPS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The map that the thread used last, and its handle. No map has the id 0.
type Last = (u64, *mut Member);

thread_local! {
    static LAST: Cell<Last> = const { Cell::new((0, null_mut())) };
    static ALL: All = const { All(RefCell::new(Vec::new())) };
}

/// What the thread has.
struct All(RefCell<Vec<Last>>);

impl Drop for All {
    fn drop(&mut self) {
        LAST.set((0, null_mut()));
        let mut maps = maps();
        for (id, member) in self.0.get_mut().drain(..) {
            let Some(members) = maps.get_mut(&id) else { continue };
            members.0.retain(|other| *other != member);
            // SAFETY: from a box. The map exists, so it has not dropped the member, and will not do
            // so any more. The member's thread is this one, which is in no function.
            drop(unsafe { Box::from_raw(member) });
        }
    }
}

impl Member {
    /// # Safety
    ///
    /// The map stays for as long as this.
    unsafe fn new(map: &Map) -> Self {
        // SAFETY: the map stays as long as this member (contract of this function), and frees the
        // box only when it ends.
        let map: &'static ByteMap = unsafe { map.map.as_ref() };
        Self { handle: UnsafeCell::new(map.handle()), is_inside: AtomicBool::new(false) }
    }

    /// Calls `f`, unless the thread is in such a call already.
    ///
    /// # Safety
    ///
    /// By its thread.
    #[inline]
    unsafe fn with<R>(
        &self,
        f: impl FnOnce(&mut Handle<'static>) -> Result<R, Status>,
    ) -> Result<R, Status> {
        // Relaxed, throughout: of one thread, or ordered by the program.
        if self.is_inside.load(Ordering::Relaxed) {
            return Err(Status::Busy);
        }
        self.is_inside.store(true, Ordering::Relaxed);
        // SAFETY: only this thread has it, and `is_inside` shows that no other call does.
        let result = f(unsafe { &mut *self.handle.get() });
        self.is_inside.store(false, Ordering::Relaxed);
        result
    }

    /// Whether its thread is in a function, or in a transaction, or keeps others out.
    ///
    /// # Safety
    ///
    /// Its thread does not use it now.
    unsafe fn is_busy(&self) -> bool {
        // Relaxed: see `with`.
        // SAFETY: the member's thread does not use the handle now (contract of this function).
        self.is_inside.load(Ordering::Relaxed) || unsafe { &*self.handle.get() }.keeps_others_out()
    }
}

impl Map {
    pub fn new(map: ByteMap) -> Self {
        static IDS: AtomicU64 = AtomicU64::new(0);
        // Relaxed: only for a number of its own.
        let id = IDS.fetch_add(1, Ordering::Relaxed) + 1;
        maps().insert(id, Members(Vec::new()));
        Self { id, map: NonNull::from(Box::leak(Box::new(map))) }
    }

    pub fn map(&self) -> &ByteMap {
        // SAFETY: the box is freed by `destroy` only, which consumes this `Map`.
        unsafe { self.map.as_ref() }
    }

    /// Calls `f` with the calling thread's access.
    #[inline]
    pub fn with<R>(
        &self,
        f: impl FnOnce(&mut Handle<'static>) -> Result<R, Status>,
    ) -> Result<R, Status> {
        let (id, mut member) = LAST.get();
        if id != self.id {
            member = self.member();
        }
        if member.is_null() {
            // Its thread ends, and no longer has any members. SAFETY: it is dropped before the map.
            let member = unsafe { Member::new(self) };
            // SAFETY: `member` has just been made, in this thread and for this call.
            return unsafe { member.with(f) };
        }
        // SAFETY: the map exists, and so does the member, which is this thread's.
        unsafe { (*member).with(f) }
    }

    /// The thread's access; null if the thread ends.
    #[cold]
    fn member(&self) -> *mut Member {
        ALL.try_with(|all| {
            let mut all = all.0.borrow_mut();
            let known = all.iter().find(|(id, _)| *id == self.id).copied();
            let last = known.unwrap_or_else(|| {
                let mut maps = maps();
                // Those of maps that are gone.
                all.retain(|(id, _)| maps.contains_key(id));
                // SAFETY: `destroy` drops the members before the map.
                let member = Box::into_raw(Box::new(unsafe { Member::new(self) }));
                maps.entry(self.id).or_insert(Members(Vec::new())).0.push(member);
                all.push((self.id, member));
                (self.id, member)
            });
            LAST.set(last);
            last.1
        })
        .unwrap_or(null_mut())
    }

    /// Destroys the map, unless a thread uses it.
    ///
    /// # Safety
    ///
    /// No other thread uses it now; and none uses it later if this succeeds.
    pub unsafe fn destroy(self: Box<Self>) -> Result<(), Box<Self>> {
        let mut maps = maps();
        let members = maps.entry(self.id).or_insert(Members(Vec::new()));
        // SAFETY: members in the list are there; no thread uses them (contract of this function).
        if members.0.iter().any(|member| unsafe { (**member).is_busy() }) {
            return Err(self);
        }
        for member in members.0.drain(..) {
            // SAFETY: `member` has made it by a box, and the lists of threads that still have its
            // address drop it only while the map exists.
            drop(unsafe { Box::from_raw(member) });
        }
        maps.remove(&self.id);
        // SAFETY: `new` has made it by a box, and the members, which borrowed it, are dropped.
        drop(unsafe { Box::from_raw(self.map.as_ptr()) });
        Ok(())
    }
}
