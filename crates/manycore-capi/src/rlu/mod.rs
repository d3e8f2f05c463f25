//! `manycore/rlu.h`: the macros `RLU_*` of the papers on RLU and MV-RLU, over [`manycore::mvrlu`].
//!
//! A macro without a result cannot report misuse. Then the process ends with one line that
//! describes it.

mod config;
mod process;

use core::ffi::{c_int, c_void};
use core::ptr::NonNull;
use std::ffi::CString;

use manycore::mvrlu::{Domain, object_of};
use manycore::session::{Conflict, RawSession, View};
use manycore::sync::thread;

use config::Config;
use manycore_capi_base::status::{Status, fatal};
use process::{Member, Session};

/// A thread's data, as the program has it: `rlu_thread_data_t`.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct ThreadData {
    member: *mut Member,
    /// The program sets this while no other thread is in a session: then objects are up to date
    /// after each commit.
    is_no_quiescence: c_int,
    reserved: c_int,
    more: [*mut c_void; 2],
}

impl ThreadData {
    const EMPTY: Self = Self {
        member: core::ptr::null_mut(),
        is_no_quiescence: 0,
        reserved: 0,
        more: [core::ptr::null_mut(); 2],
    };
}

/// What was done so far: `manycore_rlu_stats_t`.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub struct Stats {
    commits: u64,
    aborts: u64,
    versions: u64,
    hops: u64,
    periods: u64,
    forced: u64,
    written_back: u64,
    freed: u64,
    object_bytes: u64,
}

const _: () = assert!(size_of::<ThreadData>() == 32 && size_of::<Stats>() == 72);

fn stats() -> Result<Stats, Status> {
    let domain = process::get()?.domain();
    let stats = domain.stats();
    Ok(Stats {
        commits: stats.commits,
        aborts: stats.aborts,
        versions: stats.versions,
        hops: stats.hops,
        periods: stats.periods,
        forced: stats.forced,
        written_back: stats.written_back,
        freed: stats.freed,
        object_bytes: domain.object_bytes() as u64,
    })
}

/// The member to which a thread's data leads.
///
/// # Safety
///
/// Null, or a structure on which `RLU_THREAD_INIT` was done, or that is zero.
#[inline]
unsafe fn member<'a>(data: *mut ThreadData, what: &str) -> &'a mut Member {
    // SAFETY: `data` is null, or its pointer is null or leads to a member (contract of this
    // function), which one thread at a time uses, in one function at a time.
    match unsafe { data.as_ref().and_then(|data| data.member.as_mut()) } {
        Some(member) => member,
        None => fatal(&format!("{what} with a thread that RLU_THREAD_INIT does not know")),
    }
}

/// The member, in whose session the call is.
///
/// # Safety
///
/// As of [`member`].
#[inline]
unsafe fn member_in_session<'a>(data: *mut ThreadData, what: &str) -> &'a mut Member {
    // SAFETY: `data` is null or leads to the data of a thread that RLU_THREAD_INIT has begun
    // (contract of this function).
    let member = unsafe { member(data, what) };
    if !member.is_open() {
        fatal(&format!("{what} outside a session: RLU_READER_LOCK comes first"));
    }
    member
}

/// `RLU_INIT`: see `manycore/rlu.h`, as for all of these.
///
/// # Safety
///
/// Null, or a configuration.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn manycore_rlu_init(config: *const Config) -> Status {
    // SAFETY: `config` is null or leads to a configuration (contract of this function).
    let config = unsafe { config.as_ref() };
    if let Ok(process) = process::get() {
        // What an allocation has begun has the usual configuration.
        return if config.is_none() && process.end_early() { Status::Ok } else { Status::Already };
    }
    match config.unwrap_or(&Config::USUAL).resolve() {
        Ok((clock, config)) => process::begin(Domain::new(clock, config), false),
        Err(status) => status,
    }
}

/// `RLU_FINISH`. No other thread uses any of it meanwhile or later.
#[unsafe(no_mangle)]
pub extern "C" fn manycore_rlu_finish() -> Status {
    process::finish().err().unwrap_or(Status::Ok)
}

/// `RLU_PRINT_STATS`. It prints through the program's own standard output, so that its output
/// follows the program's earlier output.
#[unsafe(no_mangle)]
pub extern "C" fn manycore_rlu_print_stats() {
    let Ok(stats) = stats() else { return };
    let Stats { commits, aborts, versions, hops, periods, forced, .. } = stats;
    let text = format!(
        "commits {commits}, aborts {aborts}, versions {versions}\n\
         grace periods {periods}, hops over versions {hops}\n\
         waits for room {forced}, written back {}\n\
         objects freed {}, bytes of objects {}",
        stats.written_back, stats.freed, stats.object_bytes
    );
    let text = CString::new(text).expect("numbers and words");
    // SAFETY: `text` is a C string, which outlives the call.
    unsafe { libc::puts(text.as_ptr()) };
}

/// What was done so far.
///
/// # Safety
///
/// Null, or `size` bytes that may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn manycore_rlu_stats(out: *mut Stats, size: usize) -> Status {
    if out.is_null() {
        return Status::Null;
    }
    if size != size_of::<Stats>() {
        return Status::Invalid;
    }
    match stats() {
        Ok(stats) => {
            // SAFETY: `out` is not null, and so may be written (contract of this function).
            unsafe { out.write(stats) };
            Status::Ok
        }
        Err(status) => status,
    }
}

/// Stores this thread's last allocation in the second of the thread's two words.
fn note_own(data: *mut ThreadData) {
    let words = &thread::local().words;
    words.set([words.get()[0], data.expose_provenance() as u64]);
}

fn own() -> *mut ThreadData {
    core::ptr::with_exposed_provenance_mut(thread::local().words.get()[1] as usize)
}

/// `RLU_THREAD_ALLOC`.
#[unsafe(no_mangle)]
pub extern "C" fn manycore_rlu_thread_alloc() -> *mut ThreadData {
    let data = Box::into_raw(Box::new(ThreadData::EMPTY));
    note_own(data);
    data
}

/// `RLU_THREAD_FREE`. Null stands for the calling thread's last allocation.
///
/// # Safety
///
/// Null, or from `manycore_rlu_thread_alloc`, and not freed yet.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn manycore_rlu_thread_free(data: *mut ThreadData) -> Status {
    let data = if data.is_null() { own() } else { data };
    if data.is_null() {
        return Status::Null;
    }
    let left = process::get().and_then(|process| process.leave(data));
    if left == Err(Status::Busy) {
        return Status::Busy;
    }
    if data == own() {
        note_own(core::ptr::null_mut());
    }
    // SAFETY: `manycore_rlu_thread_alloc` has made a box of it, which was not freed (contract of
    // this function; for `own`, of the note that is taken back here).
    drop(unsafe { Box::from_raw(data) });
    Status::Ok
}

/// `RLU_THREAD_INIT`.
///
/// # Safety
///
/// Null, or a structure that may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn manycore_rlu_thread_init(data: *mut ThreadData) -> Status {
    if data.is_null() {
        return Status::Null;
    }
    process::get().map_or_else(|status| status, |process| process.register(data))
}

/// `RLU_THREAD_FINISH`.
///
/// # Safety
///
/// Null, or a structure that may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn manycore_rlu_thread_finish(data: *mut ThreadData) -> Status {
    if data.is_null() {
        return Status::Null;
    }
    process::get().and_then(|process| process.leave(data)).err().unwrap_or(Status::Ok)
}

/// `RLU_READER_LOCK`.
///
/// # Safety
///
/// As of [`member`], and no other thread uses it now.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn manycore_rlu_reader_lock(data: *mut ThreadData) {
    // SAFETY: `data` is null or leads to the data of a thread that RLU_THREAD_INIT has begun
    // (contract of this function); it is not null if there is a member.
    unsafe {
        if member(data, "RLU_READER_LOCK").enter() {
            process::make_current((*data).member);
        }
    }
}

/// `RLU_READER_UNLOCK`: 0 if the session has met a conflict, and so was aborted.
///
/// # Safety
///
/// As of [`manycore_rlu_reader_lock`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn manycore_rlu_reader_unlock(data: *mut ThreadData) -> c_int {
    // SAFETY: `data` is null or leads to the data of a thread that RLU_THREAD_INIT has begun
    // (contract of this function).
    let member = unsafe { member_in_session(data, "RLU_READER_UNLOCK") };
    let is_done = member.leave();
    // SAFETY: `data` is not null, or there would be no member.
    if unsafe { (*data).is_no_quiescence } != 0 && !member.is_open() {
        member.handle.flush();
    }
    c_int::from(is_done)
}

/// `RLU_ABORT`.
///
/// # Safety
///
/// As of [`manycore_rlu_reader_lock`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn manycore_rlu_abort(data: *mut ThreadData) {
    // SAFETY: `data` is null or leads to the data of a thread that RLU_THREAD_INIT has begun
    // (contract of this function).
    unsafe { member_in_session(data, "RLU_ABORT") }.abort();
}

/// `RLU_TRY_LOCK`: 1 if it has locked the object, and then `*pointer` is the copy.
///
/// # Safety
///
/// As of [`manycore_rlu_reader_lock`]; a pointer to a pointer to an object.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn manycore_rlu_try_lock(
    data: *mut ThreadData,
    pointer: *mut *mut c_void,
) -> c_int {
    // SAFETY: the contract of this function is that of `member`, in whose session the call is; the
    // pointer is null or leads to one that is null or an object found in the session.
    unsafe {
        let member = member_in_session(data, "RLU_TRY_LOCK");
        let object = pointer.as_ref().and_then(|object| NonNull::new(object.cast()));
        let Some(object) = object else { fatal("RLU_TRY_LOCK of a null pointer") };
        match member.handle.try_lock_bytes(object) {
            Ok(copy) => {
                *pointer = copy.as_ptr().cast();
                1
            }
            Err(conflict) => lost(member, conflict),
        }
    }
}

/// `RLU_TRY_LOCK_CONST`: 1 if it has locked the object.
///
/// # Safety
///
/// As of [`manycore_rlu_reader_lock`]; an object.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn manycore_rlu_try_lock_const(
    data: *mut ThreadData,
    object: *mut c_void,
) -> c_int {
    // SAFETY: the contract of this function is that of `member`, in whose session the call is;
    // `object` is null or was found in the session.
    unsafe {
        let member = member_in_session(data, "RLU_TRY_LOCK_CONST");
        let Some(object) = NonNull::new(object.cast()) else {
            fatal("RLU_TRY_LOCK_CONST of a null pointer")
        };
        member.handle.try_lock_const_bytes(object).map_or_else(|lock| lost(member, lock), |()| 1)
    }
}

/// Aborts the session; the abort waits until the reason for the conflict is gone.
fn lost(member: &mut Member, conflict: Conflict) -> c_int {
    member.conflict = Some(conflict);
    0
}

/// `RLU_ALLOC`: null if the object is too large.
#[unsafe(no_mangle)]
pub extern "C" fn manycore_rlu_alloc(size: usize) -> *mut c_void {
    // SAFETY: null, or a member in whose session this thread is: no other function uses it now, and
    // it does not leave before the session's end.
    let object = match unsafe { process::current().as_mut() } {
        Some(member) => member.handle.create_bytes(size),
        None => process::get_or_begin()
            .ok()
            .and_then(|process| process.with_spare(|spare| spare.create_bytes(size))),
    };
    object.map_or(core::ptr::null_mut(), |object| object.as_ptr().cast())
}

/// `RLU_FREE`: 1 if the object will be freed.
///
/// # Safety
///
/// As of [`manycore_rlu_reader_lock`], or null; an object to which no other one has a pointer after
/// the commit.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn manycore_rlu_free(data: *mut ThreadData, object: *mut c_void) -> c_int {
    let Some(object) = NonNull::new(object.cast()) else { return 1 };
    let member = match data.is_null() {
        true => process::current(),
        // SAFETY: `data` is null or leads to the data of a thread that RLU_THREAD_INIT has begun
        // (contract of this function).
        false => core::ptr::from_mut(unsafe { member(data, "RLU_FREE") }),
    };
    // SAFETY: null, or the member of this thread, which no other function uses now.
    match unsafe { member.as_mut() } {
        // SAFETY: the member's session is open, and after its commit no object has a pointer to
        // this one (contract of this function).
        Some(member) if member.is_open() => match unsafe { member.handle.free_bytes(object) } {
            Ok(()) => 1,
            Err(conflict) => lost(member, conflict),
        },
        // SAFETY: the member is in no session, and no object has a pointer to this one (contract of
        // this function).
        Some(member) => c_int::from(unsafe { free_at_once(&mut member.handle, object) }),
        None => process::get().map_or(0, |process| {
            // SAFETY: the spare handle is in no session, and no object has a pointer to this one
            // (contract of this function).
            c_int::from(process.with_spare(|spare| unsafe { free_at_once(spare, object) }))
        }),
    }
}

/// Frees an object in a session of its own, unless it was freed already.
///
/// # Safety
///
/// In no session; no object has a pointer to it.
unsafe fn free_at_once(handle: &mut Session, object: NonNull<u8>) -> bool {
    let mut attempts = 0;
    loop {
        // SAFETY: the handle is in no session and the object is there (contract of this function);
        // this session ends by its commit, whatever that returns, before the handle backs off.
        unsafe {
            handle.begin(View::Latest);
            let freed = handle.free_bytes(object);
            let Err(conflict) = handle.commit().and(freed) else { return true };
            if conflict == Conflict::Freed {
                return false;
            }
            handle.back_off(conflict, attempts);
        }
        attempts += 1;
    }
}

/// `RLU_ASSIGN_PTR`: stores in `*place` a pointer to the object of which this is a version, or
/// which this is.
///
/// # Safety
///
/// A pointer that may be written; null, or an object that was found in this session.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn manycore_rlu_assign_ptr(place: *mut *mut c_void, object: *mut c_void) {
    if place.is_null() {
        fatal("RLU_ASSIGN_PTR to a null pointer");
    }
    // SAFETY: `place` is not null, and so may be written (contract of this function); the object
    // was found in this session, or is null.
    unsafe { *place = the_object(object) };
}

/// `RLU_IS_SAME_PTRS`: 1 if both are null or belong to one object.
///
/// # Safety
///
/// As of [`manycore_rlu_assign_ptr`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn manycore_rlu_is_same(one: *mut c_void, other: *mut c_void) -> c_int {
    // SAFETY: each is null, or was found in this session (contract of this function).
    c_int::from(unsafe { the_object(one) == the_object(other) })
}

/// # Safety
///
/// As of [`manycore_rlu_assign_ptr`].
unsafe fn the_object(data: *mut c_void) -> *mut c_void {
    // SAFETY: `data` is not null, and so that of an object or of a version found in this session
    // (contract of this function).
    NonNull::new(data.cast()).map_or(data, |data| unsafe { object_of(data) }.as_ptr().cast())
}

/// `RLU_DEREF`, for objects that have versions, or null. Outside of a session, in a program with
/// only one thread left, it returns the last committed version.
///
/// # Safety
///
/// As of [`manycore_rlu_reader_lock`]; null, or an object that was found in this session.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn manycore_rlu_deref(
    data: *mut ThreadData,
    object: *mut c_void,
) -> *mut c_void {
    let Some(object) = NonNull::new(object.cast()) else { return object };
    // SAFETY: the contract of this function is that of `member`. The object was found in the
    // member's session; without a session, the program has no other thread that frees it. That
    // session ends by its abort.
    let seen = unsafe {
        let handle = member(data, "RLU_DEREF");
        if handle.is_open() {
            handle.handle.deref_bytes(object)
        } else {
            handle.handle.begin(View::Latest);
            let seen = handle.handle.deref_bytes(object);
            handle.handle.abort(); // it has only read
            seen
        }
    };
    seen.as_ptr().cast()
}

/// Writes back the versions that no session needs any more. If no session is open, the objects
/// themselves are then up to date.
///
/// # Safety
///
/// As of [`manycore_rlu_reader_lock`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn manycore_rlu_flush(data: *mut ThreadData) -> Status {
    // SAFETY: `data` is null or leads to the data of a thread that RLU_THREAD_INIT has begun
    // (contract of this function).
    let member = unsafe { member(data, "manycore_rlu_flush") };
    if member.is_open() {
        return Status::Busy;
    }
    member.handle.flush();
    Status::Ok
}

#[cfg(test)]
mod tests {
    use core::ptr::{null, null_mut};

    use super::*;

    /// In the interpreter this fails if an allocation finds its session by a pointer that conflicts
    /// with those that the other functions use.
    #[test]
    fn an_allocation_finds_the_session_of_its_thread() {
        // SAFETY: in the order that the header asks for, in one thread.
        unsafe {
            assert_eq!(manycore_rlu_init(null()), Status::Ok);
            let data = manycore_rlu_thread_alloc();
            assert_eq!(manycore_rlu_thread_init(data), Status::Ok);
            let first = manycore_rlu_alloc(8);
            manycore_rlu_reader_lock(data);
            manycore_rlu_reader_lock(data);
            let mut copy = first;
            assert_eq!(manycore_rlu_try_lock(data, &raw mut copy), 1);
            let second = manycore_rlu_alloc(8);
            manycore_rlu_assign_ptr(copy.cast(), second);
            assert_eq!(manycore_rlu_reader_unlock(data), 1);
            assert_eq!(manycore_rlu_reader_unlock(data), 1);
            manycore_rlu_reader_lock(data);
            let seen = manycore_rlu_deref(data, first);
            assert_eq!(*seen.cast::<*mut c_void>(), second);
            assert_eq!(manycore_rlu_free(null_mut(), second), 1);
            assert_eq!(manycore_rlu_reader_unlock(data), 1);
            assert_eq!(manycore_rlu_thread_free(data), Status::Ok);
            assert_eq!(manycore_rlu_finish(), Status::Ok);
        }
    }
}
