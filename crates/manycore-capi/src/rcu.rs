//! `manycore/rcu.h`: grace periods, over [`manycore::reclaim`].

use core::cell::{Cell, RefCell, UnsafeCell};
use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Once;
use std::time::Duration;

use manycore::reclaim::{self, Barriers, Domain, Guard, Handle, QsbrHandle};
use manycore::sync::thread;

use crate::stall::{Report, Stall};
use manycore_capi_base::process::in_children;
use manycore_capi_base::status::{Status, fatal};

/// A domain: `manycore_rcu_t`.
pub struct Rcu {
    domain: Domain,
    /// The number of registered threads. It is [`ENDED`] or more once the domain is being
    /// destroyed.
    threads: AtomicUsize,
}

/// More than there can be threads.
const ENDED: usize = usize::MAX / 2;

/// A registered thread: `manycore_rcu_thread_t`. Only that thread uses it, and only by shared
/// references: the guard refers to the handle, and a destructor of the program's may use the
/// registration that runs it.
pub struct Thread {
    /// A guard of the handle below, and so declared before it.
    guard: Cell<Option<Guard<'static>>>,
    depth: Cell<usize>,
    /// Exchanged by [`exchange`](Self::exchange) only.
    handle: UnsafeCell<Kind>,
    rcu: &'static Rcu,
    /// The thread's number.
    thread: u32,
    /// Whether it waits, reports a quiescent state, or ends with its thread. Meanwhile callbacks of
    /// the program's may be running.
    is_busy: Cell<bool>,
}

/// Keeps a registration busy until this is dropped, even if a destructor throws. The registration
/// does not end meanwhile.
struct Busy<'a>(&'a Thread);

impl<'a> Busy<'a> {
    fn new(thread: &'a Thread) -> Self {
        thread.is_busy.set(true);
        Self(thread)
    }
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.is_busy.set(false);
    }
}

enum Kind {
    Epoch(Handle<'static>),
    Qsbr(QsbrHandle<'static>),
    /// As the last, while it is offline.
    Offline,
}

/// The header of an object that is to be destroyed: `manycore_rcu_head_t`, a part of the program's
/// object.
#[repr(C)]
pub struct Head {
    destroy: Option<unsafe extern "C-unwind" fn(*mut Head)>,
    extra: *mut c_void,
}

/// `manycore_rcu_config_t`. Zero is the usual value of each member.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Config {
    size: usize,
    limit_bytes: usize,
    patience_ms: u64,
    fences: c_int,
    reserved: c_int,
    report: Option<Report>,
    context: *mut c_void,
}

const _: () = assert!(size_of::<Head>() == 16 && size_of::<Config>() == 48);

impl Config {
    fn resolve(&self) -> Result<reclaim::Config, Status> {
        if self.size != size_of::<Self>() {
            return Err(Status::Invalid);
        }
        let mut config = reclaim::Config::default();
        if self.limit_bytes != 0 {
            config.limit_bytes = self.limit_bytes;
        }
        if self.patience_ms != 0 {
            config.patience = Duration::from_millis(self.patience_ms);
        }
        if self.fences != 0 {
            config.barriers = Barriers::Fences;
        }
        config.on_stall = Stall::reporter(self.report, self.context).map(|report| {
            Box::new(move |stall: &reclaim::Stall| {
                report(Stall::new(stall.thread, stall.blocked_for, stall.held_bytes));
            }) as reclaim::OnStall
        });
        Ok(config)
    }
}

impl Thread {
    fn handle(&self) -> &Kind {
        // SAFETY: only `exchange` writes it, while no reference from here is in use (its contract).
        unsafe { &*self.handle.get() }
    }

    /// Exchanges the handle.
    ///
    /// # Safety
    ///
    /// The registration has no open section, and no function uses its handle.
    unsafe fn exchange(&self, handle: Kind) -> Kind {
        // SAFETY: no reference to the handle is in use (contract of this function), nor a guard,
        // which refers to it.
        core::mem::replace(unsafe { &mut *self.handle.get() }, handle)
    }

    /// A new section, or one that is nested in the open section; `None` if the thread is offline.
    fn pin(&self) -> Option<Guard<'_>> {
        match self.handle() {
            Kind::Epoch(handle) => Some(handle.pin()),
            Kind::Qsbr(online) => Some(online.pin()),
            Kind::Offline => None,
        }
    }

    fn begin(&self) {
        if self.depth.get() == 0 {
            let Some(guard) = self.pin() else {
                fatal("manycore_rcu_read_lock by a thread that is offline")
            };
            // SAFETY: the guard refers to the handle, which stays where it is, in a box, and is not
            // exchanged or dropped before the guard: see `exchange` and `drop`.
            let guard = unsafe { core::mem::transmute::<Guard<'_>, Guard<'static>>(guard) };
            self.guard.set(Some(guard));
        }
        self.depth.set(self.depth.get() + 1);
    }

    /// Ends the section. If it is the outermost one, destructors of the program's may run, which
    /// may use this.
    fn end(&self) {
        let depth = self.depth.get();
        if depth == 0 {
            fatal("manycore_rcu_read_unlock outside a section");
        }
        self.depth.set(depth - 1);
        if depth == 1 {
            drop(self.guard.take());
        }
    }

    /// Whether this registration runs a callback of the program's. The callback must neither end
    /// the registration nor wait.
    fn is_calling(&self) -> bool {
        self.is_busy.get() || matches!(self.handle(), Kind::Epoch(handle) if handle.is_destroying())
    }

    /// Called when the thread ends: ends its section as well, which may run destructors of the
    /// program's that use this.
    ///
    /// Makes the registration end with the calling thread, if not before.
    fn ends_with_thread(this: *mut Self) {
        static FORKS: Once = Once::new();
        in_children(&FORKS, forked);
        _ = EXIT.try_with(|exit| exit.0.borrow_mut().push(this));
    }
}

thread_local! {
    static EXIT: Exit = const { Exit(RefCell::new(Vec::new())) };
}

/// The thread's registrations, as long as they exist. Dropped when the thread ends in any way,
/// except by the end of the process.
struct Exit(RefCell<Vec<*mut Thread>>);

impl Drop for Exit {
    fn drop(&mut self) {
        let threads = self.0.take();
        // SAFETY: a registration is there while it is in the list, which had it until now: none of
        // them ends by a destructor that runs here, since it is busy.
        let all = threads.iter().map(|thread| unsafe { &**thread });
        all.clone().for_each(|thread| thread.is_busy.set(true));
        all.for_each(|thread| {
            thread.depth.set(0);
            drop(thread.guard.take());
        });
        // SAFETY: `register` has made each by a box, and their uses above are over.
        threads.into_iter().for_each(|thread| drop(unsafe { Box::from_raw(thread) }));
    }
}

/// Called in the child of a fork. The child has none of its parent's domains, and does not wait for
/// the parent's other threads.
extern "C" fn forked() {
    _ = EXIT.try_with(|exit| exit.0.take());
}

impl Drop for Thread {
    fn drop(&mut self) {
        self.guard.set(None);
        *self.handle.get_mut() = Kind::Offline;
        // Release: partner of the Acquire in `manycore_rcu_destroy`.
        self.rcu.threads.fetch_sub(1, Ordering::Release);
    }
}

fn status(result: Result<(), Status>) -> Status {
    result.err().unwrap_or(Status::Ok)
}

/// The calling thread's registration, outside sections and destructors.
///
/// # Safety
///
/// Null, or a registration.
unsafe fn outside<'a>(thread: *mut Thread) -> Result<&'a Thread, Status> {
    // SAFETY: `thread` is null or a registration that has not ended (contract of this function).
    let this = unsafe { here(thread) }?;
    if this.depth.get() > 0 || this.is_calling() { Err(Status::Busy) } else { Ok(this) }
}

/// The calling thread's registration.
///
/// # Safety
///
/// Null, or a registration.
unsafe fn here<'a>(thread: *mut Thread) -> Result<&'a Thread, Status> {
    // SAFETY: `thread` is null or a registration that has not ended (contract of this function);
    // references to one are shared only.
    let this = unsafe { thread.as_ref() }.ok_or(Status::Null)?;
    if this.thread == thread::id() { Ok(this) } else { Err(Status::NotOwner) }
}

/// See `manycore/rcu.h`, as for all of these.
///
/// # Safety
///
/// Null or a configuration; null or a pointer that may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn manycore_rcu_create(config: *const Config, out: *mut *mut Rcu) -> Status {
    if out.is_null() {
        return Status::Null;
    }
    // SAFETY: `config` is null or leads to a configuration (contract of this function).
    let config = match unsafe { config.as_ref() }.map(Config::resolve) {
        Some(Err(status)) => return status,
        Some(Ok(config)) => config,
        None => reclaim::Config::default(),
    };
    let rcu = Rcu { domain: Domain::new(config), threads: AtomicUsize::new(0) };
    // SAFETY: `out` is not null, and so may be written (contract of this function).
    unsafe { out.write(Box::into_raw(Box::new(rcu))) };
    Status::Ok
}

/// # Safety
///
/// Null, or from [`manycore_rcu_create`], and not destroyed yet.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn manycore_rcu_destroy(rcu: *mut Rcu) -> Status {
    // SAFETY: `rcu` is null or a domain that was not destroyed (contract of this function).
    let Some(this) = (unsafe { rcu.as_ref() }) else { return Status::Null };
    // Acquire: partner of the Release where threads leave. Relaxed on failure: nothing is done
    // then.
    let (done, failed) = (Ordering::Acquire, Ordering::Relaxed);
    if this.threads.compare_exchange(0, ENDED, done, failed).is_err() {
        return Status::Busy;
    }
    // SAFETY: `manycore_rcu_create` has made a box of it, which is destroyed once (contract of this
    // function). No thread is registered any more: the count was 0, and is so high now that none
    // can be.
    drop(unsafe { Box::from_raw(rcu) });
    Status::Ok
}

/// What is retired and not destroyed yet, in bytes.
///
/// # Safety
///
/// Null, or from [`manycore_rcu_create`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn manycore_rcu_held_bytes(rcu: *const Rcu) -> usize {
    // SAFETY: `rcu` is null or a domain that was not destroyed (contract of this function).
    unsafe { rcu.as_ref() }.map_or(0, |rcu| rcu.domain.held_bytes())
}

/// # Safety
///
/// Null or from [`manycore_rcu_create`]; null or a pointer that may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn manycore_rcu_register(rcu: *mut Rcu, out: *mut *mut Thread) -> Status {
    // SAFETY: `rcu` is null or from `create`, and `out` is null or may be written (contract of this
    // function).
    unsafe { register(rcu, out, |rcu| Kind::Epoch(rcu.domain.register())) }
}

/// # Safety
///
/// As of [`manycore_rcu_register`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn manycore_rcu_register_qsbr(
    rcu: *mut Rcu,
    out: *mut *mut Thread,
) -> Status {
    // SAFETY: `rcu` is null or from `create`, and `out` is null or may be written (contract of this
    // function).
    unsafe { register(rcu, out, |rcu| Kind::Qsbr(rcu.domain.register_qsbr())) }
}

/// # Safety
///
/// As of [`manycore_rcu_register`].
unsafe fn register(
    rcu: *mut Rcu,
    out: *mut *mut Thread,
    handle: impl FnOnce(&'static Rcu) -> Kind,
) -> Status {
    // SAFETY: `rcu` is null or a domain (contract of this function), which is not destroyed while a
    // thread is registered.
    let Some(rcu) = (unsafe { rcu.as_ref() }).filter(|_| !out.is_null()) else {
        return Status::Null;
    };
    // Relaxed, both: this is a count. A destructor that runs at the end of the domain finds the
    // mark, which its own thread has made.
    if rcu.threads.fetch_add(1, Ordering::Relaxed) >= ENDED {
        rcu.threads.fetch_sub(1, Ordering::Relaxed);
        return Status::Invalid;
    }
    let (handle, thread) = (handle(rcu), thread::id());
    let this = Box::into_raw(Box::new(Thread {
        guard: Cell::new(None),
        depth: Cell::new(0),
        is_busy: Cell::new(false),
        handle: UnsafeCell::new(handle),
        rcu,
        thread,
    }));
    Thread::ends_with_thread(this);
    // SAFETY: `out` is not null, and so may be written (contract of this function).
    unsafe { out.write(this) };
    Status::Ok
}

/// # Safety
///
/// Null, or a registration that has not ended.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn manycore_rcu_unregister(thread: *mut Thread) -> Status {
    // SAFETY: null, or a registration that has not ended (contract of this function).
    if let Err(status) = unsafe { outside(thread) } {
        return status;
    }
    _ = EXIT.try_with(|exit| exit.0.borrow_mut().retain(|other| *other != thread));
    // SAFETY: `register` has made it by a box, and the program does not use it any more (contract
    // of this function): no section is open by it, nor does a callback use it, as `outside` has
    // found.
    drop(unsafe { Box::from_raw(thread) });
    Status::Ok
}

/// # Safety
///
/// The calling thread's registration.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn manycore_rcu_read_lock(thread: *mut Thread) {
    // SAFETY: `thread` is null or the calling thread's registration, which has not ended (contract
    // of this function).
    match unsafe { thread.as_ref() } {
        Some(thread) => thread.begin(),
        None => fatal("manycore_rcu_read_lock with a null pointer"),
    }
}

/// # Safety
///
/// The calling thread's registration.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn manycore_rcu_read_unlock(thread: *mut Thread) {
    // SAFETY: `thread` is null or the calling thread's registration, which has not ended (contract
    // of this function).
    match unsafe { thread.as_ref() } {
        Some(thread) => thread.end(),
        None => fatal("manycore_rcu_read_unlock with a null pointer"),
    }
}

/// # Safety
///
/// Null or a registration; null or a part of an object that no thread finds any more, and with
/// which `destroy` may be called later.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn manycore_rcu_call(
    thread: *mut Thread,
    head: *mut Head,
    bytes: usize,
    destroy: Option<unsafe extern "C-unwind" fn(*mut Head)>,
) -> Status {
    /// # Safety
    ///
    /// A head whose object no thread has.
    unsafe fn run(head: *mut ()) {
        let head = head.cast::<Head>();
        // SAFETY: the object's head is valid and no thread has the object (contract of this
        // function); `manycore_rcu_call` has written the program's function into it.
        unsafe { (*head).destroy.map(|destroy| destroy(head)) };
    }
    // SAFETY: null, or a registration that has not ended (contract of this function).
    status(unsafe { here(thread) }.and_then(|thread| {
        if head.is_null() || destroy.is_none() {
            return Err(Status::Null);
        }
        let guard = thread.pin().ok_or(Status::NoSession)?;
        // SAFETY: the head is the object's, which no thread finds any more, and `destroy` may be
        // called with it later (contract of this function); so may `run`, since the function is in
        // the head.
        unsafe {
            (*head).destroy = destroy;
            guard.retire_with(head.cast(), bytes, run);
        }
        Ok(())
    }))
}

/// # Safety
///
/// Null, or a registration.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn manycore_rcu_synchronize(thread: *mut Thread) -> Status {
    // SAFETY: null, or a registration that has not ended (contract of this function).
    let thread = match unsafe { outside(thread) } {
        Ok(thread) => thread,
        Err(Status::Busy) => return Status::Deadlock,
        Err(status) => return status,
    };
    let _busy = Busy::new(thread);
    match thread.handle() {
        Kind::Epoch(handle) => handle.synchronize_outside(),
        // SAFETY: no section is open, as `outside` has found, and so there are no guards.
        Kind::Qsbr(online) => unsafe { online.synchronize_shared() },
        Kind::Offline => thread.rcu.domain.synchronize(),
    }
    Status::Ok
}

/// # Safety
///
/// Null, or a registration.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn manycore_rcu_quiescent(thread: *mut Thread) -> Status {
    // SAFETY: `thread` is null or a registration that has not ended (contract of this function).
    status(unsafe { outside(thread) }.and_then(|thread| {
        let Kind::Qsbr(online) = thread.handle() else { return Err(Status::Invalid) };
        let _busy = Busy::new(thread);
        // SAFETY: no section is open, as `outside` has found, and so there are no guards.
        unsafe { online.quiescent_shared() };
        Ok(())
    }))
}

/// # Safety
///
/// Null, or a registration.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn manycore_rcu_offline(thread: *mut Thread) -> Status {
    // SAFETY: `thread` is null or a registration that has not ended (contract of this function).
    status(unsafe { outside(thread) }.and_then(|thread| match thread.handle() {
        Kind::Qsbr(_) => {
            // SAFETY: no section is open and no callback runs, as `outside` has found.
            drop(unsafe { thread.exchange(Kind::Offline) });
            Ok(())
        }
        Kind::Epoch(_) | Kind::Offline => Err(Status::Invalid),
    }))
}

/// # Safety
///
/// Null, or a registration.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn manycore_rcu_online(thread: *mut Thread) -> Status {
    // SAFETY: `thread` is null or a registration that has not ended (contract of this function).
    status(unsafe { outside(thread) }.and_then(|thread| match thread.handle() {
        Kind::Offline => {
            let online = thread.rcu.domain.register_qsbr();
            // SAFETY: no section is open and no callback runs, as `outside` has found.
            drop(unsafe { thread.exchange(Kind::Qsbr(online)) });
            Ok(())
        }
        Kind::Epoch(_) | Kind::Qsbr(_) => Err(Status::Invalid),
    }))
}

#[cfg(test)]
mod tests {
    use core::ptr::null_mut;

    use super::*;

    /// An object whose destructor opens sections with the registration that runs it.
    #[repr(C)]
    struct Object {
        head: Head,
        thread: *mut Thread,
    }

    unsafe extern "C-unwind" fn destroy(head: *mut Head) {
        // SAFETY: the head is the first field of an object from a box; the registration is the
        // calling thread's.
        unsafe {
            let object = Box::from_raw(head.cast::<Object>());
            manycore_rcu_read_lock(object.thread);
            manycore_rcu_read_unlock(object.thread);
            assert_eq!(manycore_rcu_unregister(object.thread), Status::Busy);
        }
    }

    /// In the interpreter this fails if a function uses the registration exclusively while a
    /// destructor uses it.
    fn destructors_use_the_registration(
        register: unsafe extern "C" fn(*mut Rcu, *mut *mut Thread) -> Status,
        wait: unsafe extern "C" fn(*mut Thread) -> Status,
    ) {
        let (mut rcu, mut thread) = (null_mut(), null_mut());
        // SAFETY: in the order that the header asks for, in one thread.
        unsafe {
            assert_eq!(manycore_rcu_create(core::ptr::null(), &raw mut rcu), Status::Ok);
            assert_eq!(register(rcu, &raw mut thread), Status::Ok);
            for _ in 0..3 {
                manycore_rcu_read_lock(thread);
                let head = Head { destroy: None, extra: null_mut() };
                let object = Box::into_raw(Box::new(Object { head, thread }));
                let status = manycore_rcu_call(thread, object.cast(), 100, Some(destroy));
                assert_eq!(status, Status::Ok);
                manycore_rcu_read_unlock(thread);
                assert_eq!(wait(thread), Status::Ok);
            }
            assert_eq!(manycore_rcu_synchronize(thread), Status::Ok);
            assert_eq!(manycore_rcu_unregister(thread), Status::Ok);
            assert_eq!(manycore_rcu_destroy(rcu), Status::Ok);
        }
    }

    #[test]
    fn destructors_use_a_registration_with_sections() {
        destructors_use_the_registration(manycore_rcu_register, manycore_rcu_synchronize);
    }

    #[test]
    fn destructors_use_a_registration_that_is_quiescent() {
        destructors_use_the_registration(manycore_rcu_register_qsbr, manycore_rcu_quiescent);
    }
}
