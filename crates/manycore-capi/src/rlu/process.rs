//! The one domain of a process, and the threads that take part in it.

use std::collections::BTreeMap;
use std::ptr::{NonNull, null_mut};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};
use manycore::mvrlu::{Domain, Handle};
use manycore::session::{Conflict, RawSession, View};
use manycore::sync::thread;

use super::ThreadData;
use super::config::{AnyClock, Config};
use manycore_capi_base::process::in_children;
use manycore_capi_base::status::Status;

/// A thread's handle of the domain. Several threads may use it, one after the other: the program
/// orders their uses.
pub type Session = Handle<'static, AnyClock>;

/// The state from `RLU_INIT`, or an earlier `RLU_ALLOC`, to `RLU_FINISH`. Null otherwise.
static PROCESS: AtomicPtr<Process> = AtomicPtr::new(null_mut());

pub struct Process {
    /// It comes from a box, which is freed after the handles that borrow it. This pointer frees it,
    /// since a pointer made from a reference must not.
    domain: NonNull<Domain<AnyClock>>,
    members: Mutex<Members>,
    /// Whether `RLU_INIT` is still to come: it has begun with an `RLU_ALLOC`.
    is_early: AtomicBool,
}

/// The members.
struct Members {
    /// Members by the address of the program's structure. A program may pass that to another
    /// thread, so it is not known to belong to any thread.
    by_address: BTreeMap<usize, *mut Member>,
    /// For objects that are made and freed outside a session.
    spare: Session,
}

/// A thread's part, which its structure leads to.
pub struct Member {
    pub handle: Session,
    /// The number of begins of the session without an end. Only its thread writes it.
    depth: AtomicU32,
    /// The conflict for which the session has to be aborted, if there was one.
    pub conflict: Option<Conflict>,
    /// How often in a row that happened.
    attempts: u32,
    /// The number of the thread that had the last session.
    thread: u32,
}

/// The process' state, if there is one.
pub fn get() -> Result<&'static Process, Status> {
    // Acquire: partner of the Release in `begin`.
    let process = PROCESS.load(Ordering::Acquire);
    // SAFETY: null, or a box that is there until `finish`, after which the program uses nothing of
    // it.
    unsafe { process.as_ref() }.ok_or(Status::NotInitialized)
}

/// As [`get`], for `RLU_ALLOC`: programs for RLU and MV-RLU may build their initial objects before
/// `RLU_INIT`.
pub fn get_or_begin() -> Result<&'static Process, Status> {
    if let Ok(process) = get() {
        return Ok(process);
    }
    let (clock, config) = Config::USUAL.resolve()?;
    // Another that has begun meanwhile will do.
    begin(Domain::new(clock, config), true);
    get()
}

/// `RLU_INIT`, or what comes early.
pub fn begin(domain: Domain<AnyClock>, is_early: bool) -> Status {
    static FORKS: Once = Once::new();
    in_children(&FORKS, forked);
    let domain = NonNull::from(Box::leak(Box::new(domain)));
    // SAFETY: the box is freed in `end`, after all that borrows it.
    let spare = unsafe { domain.as_ref() }.register();
    let members = Members { by_address: BTreeMap::new(), spare };
    let is_early = AtomicBool::new(is_early);
    let process = Process { domain, members: Mutex::new(members), is_early };
    let process = Box::into_raw(Box::new(process));
    // Release: partner of the Acquire in `get`. Relaxed on failure: nothing is followed.
    let done = Ordering::Release;
    match PROCESS.compare_exchange(null_mut(), process, done, Ordering::Relaxed) {
        Ok(_) => Status::Ok,
        Err(_) => {
            // SAFETY: `process` comes from the box above, and the compare-and-swap has not shown it
            // to others.
            end(unsafe { Box::from_raw(process) });
            Status::Already
        }
    }
}

/// `RLU_FINISH`.
pub fn finish() -> Result<(), Status> {
    let process = get()?;
    let members = process.members();
    // SAFETY: a member is valid as long as it is in the list, which is locked; by the header's
    // contract no other thread uses any now.
    if members.by_address.values().any(|member| unsafe { &**member }.is_open()) {
        return Err(Status::Busy);
    }
    drop(members);
    // Relaxed: the program sees to it that no other thread is about to use it.
    let process = PROCESS.swap(null_mut(), Ordering::Relaxed);
    // SAFETY: `begin` has made a box of it, which the swap has taken out of reach; by the header
    // the program's threads have done with it.
    end(unsafe { Box::from_raw(process) });
    Ok(())
}

/// All of it goes, the domain last.
fn end(process: Box<Process>) {
    let domain = process.domain;
    for member in process.members().by_address.values() {
        // SAFETY: `register` has made a box of each member, which is in the list once; the list is
        // dropped, too.
        drop(unsafe { Box::from_raw(*member) });
    }
    drop(process);
    // SAFETY: `begin` has made it by a box, and the handles that borrowed it are gone: the
    // members', and the spare one.
    drop(unsafe { Box::from_raw(domain.as_ptr()) });
}

/// Called in the child of a fork, which has neither the parent's threads nor its domain. It may
/// call `RLU_INIT` itself.
extern "C" fn forked() {
    PROCESS.store(null_mut(), Ordering::Relaxed); // Relaxed: there is one thread
    thread::local().extension.set(null_mut());
}

impl Process {
    pub fn domain(&self) -> &'static Domain<AnyClock> {
        // SAFETY: the box is freed in `end`, after which the program uses nothing of it.
        unsafe { self.domain.as_ref() }
    }

    /// Whether it had begun before its `RLU_INIT`, which comes now.
    pub fn end_early(&self) -> bool {
        self.is_early.swap(false, Ordering::Relaxed) // Relaxed: nothing is followed
    }

    fn members(&self) -> MutexGuard<'_, Members> {
        // No code that holds this lock panics, so nothing under it is half done.
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `RLU_THREAD_INIT`. A structure that is already in the list gets the same member again: it
    /// may be on the stack of another thread, at the address of one that an ended thread has left.
    pub fn register(&self, data: *mut ThreadData) -> Status {
        let mut members = self.members();
        let mut status = Status::Already;
        let member = *members.by_address.entry(data.addr()).or_insert_with(|| {
            status = Status::Ok;
            Box::into_raw(Box::new(Member::new(self.domain().register())))
        });
        // SAFETY: `data` may be written (contract of `manycore_rlu_thread_init`).
        unsafe { data.write(ThreadData { member, ..ThreadData::EMPTY }) };
        status
    }

    /// `RLU_THREAD_FINISH`: when the last thread has left, all objects are up to date.
    pub fn leave(&self, data: *mut ThreadData) -> Result<(), Status> {
        // Held for all of it: of two that leave, one comes last.
        let mut members = self.members();
        let member = *members.by_address.get(&data.addr()).ok_or(Status::NotRegistered)?;
        // SAFETY: the member is valid as long as it is in the list, which is locked; its thread is
        // the caller.
        if unsafe { &*member }.is_open() {
            return Err(Status::Busy);
        }
        members.by_address.remove(&data.addr());
        // SAFETY: `register` has made a box of it; it has been removed from the list and is in no
        // session.
        let mut member = unsafe { Box::from_raw(member) };
        member.handle.flush();
        // SAFETY: `data` is in the list, and so the caller's structure, which may be written
        // (contract of `manycore_rlu_thread_finish`).
        unsafe { (*data).member = null_mut() };
        Ok(())
    }

    /// Calls `f` with a handle that is in no session.
    pub fn with_spare<R>(&self, f: impl FnOnce(&mut Session) -> R) -> R {
        f(&mut self.members().spare)
    }
}

impl Member {
    fn new(handle: Session) -> Self {
        Self { handle, depth: AtomicU32::new(0), conflict: None, attempts: 0, thread: 0 }
    }

    /// Whether a session is open.
    #[inline]
    pub fn is_open(&self) -> bool {
        self.depth() > 0
    }

    fn depth(&self) -> u32 {
        self.depth.load(Ordering::Relaxed) // Relaxed: of the calling thread, or ordered by the program
    }

    fn set_depth(&self, depth: u32) {
        self.depth.store(depth, Ordering::Relaxed); // Relaxed: as above
    }

    /// Begins a session, or continues the open one. Returns whether it has begun one. The caller
    /// then [makes it current](make_current).
    #[inline]
    pub fn enter(&mut self) -> bool {
        let depth = self.depth();
        self.set_depth(depth + 1);
        if depth > 0 {
            return false;
        }
        if self.thread != thread::id() {
            self.pass_on();
        }
        // SAFETY: `depth` was 0, so that no session is open.
        unsafe { self.handle.begin(View::Snapshot) };
        true
    }

    /// The thread has begun to use it.
    #[cold]
    fn pass_on(&mut self) {
        _ = EXIT.try_with(|_| ()); // from here on, it is dropped when the thread ends
        self.handle.adopt();
        self.thread = thread::id();
    }

    /// Ends the innermost session. An open session is committed. If it has met a conflict, it is
    /// aborted, and this returns false.
    #[inline]
    pub fn leave(&mut self) -> bool {
        let depth = self.depth() - 1;
        self.set_depth(depth);
        if depth > 0 {
            return true;
        }
        self.is_current_no_more();
        // SAFETY: `depth` was not 0, so that the session is open; it is 0 now.
        let ended = unsafe { self.handle.commit() };
        self.conflict = None;
        if let Err(conflict) = ended {
            self.back_off(conflict);
            return false;
        }
        self.attempts = 0;
        true
    }

    /// Aborts the open session with everything in it, and waits a little before the next.
    pub fn abort(&mut self) {
        self.give_up();
        let conflict = self.conflict.take().unwrap_or(Conflict::Retry);
        self.back_off(conflict);
    }

    #[cold]
    fn back_off(&mut self, conflict: Conflict) {
        // SAFETY: `leave` and `abort`, which call this, have ended the session.
        unsafe { self.handle.back_off(conflict, self.attempts) };
        self.attempts += 1;
    }

    fn give_up(&mut self) {
        self.set_depth(0);
        self.is_current_no_more();
        // SAFETY: `depth` was not 0, so that the session is open; it is 0 now.
        unsafe { self.handle.abort() };
    }

    fn is_current_no_more(&self) {
        let current = &thread::local().extension;
        if core::ptr::eq(current.get().cast(), self) {
            current.set(null_mut());
        }
    }
}

/// Makes the member's session the calling thread's, unless it is in another one already. Takes the
/// pointer from the program's structure: one that is made from a reference becomes invalid when the
/// next function uses the member.
#[inline]
pub fn make_current(member: *mut Member) {
    let current = &thread::local().extension;
    if current.get().is_null() {
        current.set(member.cast());
    }
}

/// The member in whose session the calling thread is, if it is in one.
pub fn current() -> *mut Member {
    thread::local().extension.get().cast()
}

thread_local! {
    static EXIT: Exit = const { Exit };
}

/// Dropped when its thread ends in any way, except by the end of the process. The thread's session
/// ends with it.
struct Exit;

impl Drop for Exit {
    fn drop(&mut self) {
        // SAFETY: null, or a member in whose session this thread is: the member is not removed
        // before the session ends, and no other function uses it now.
        if let Some(member) = unsafe { current().as_mut() } {
            member.give_up();
        }
    }
}
