//! `manycore/rcu.h`: grace periods, over [`manycore::reclaim`].

use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicUsize, Ordering};

use manycore::reclaim::{self, Barriers, Domain, Guard, Handle, Online};
use manycore::sync::{clock, thread};

use crate::process;
use crate::stall::{Report, Stall};
use crate::status::{Status, fatal};

/// A domain: `manycore_rcu_t`.
pub struct Rcu {
    domain: Domain,
    /// How many threads are registered; [`ENDED`] and more once it is being destroyed.
    threads: AtomicUsize,
}

/// More than there can be threads.
const ENDED: usize = usize::MAX / 2;

/// A registered thread: `manycore_rcu_thread_t`.
pub struct Thread {
    /// Of the handle below, and so dropped before it.
    guard: Option<Guard<'static>>,
    depth: usize,
    handle: Kind,
    rcu: &'static Rcu,
    /// The thread's number.
    thread: u32,
    /// Whether it waits, is quiescent just now, or ends with its thread: callbacks of the program's
    /// may be running.
    is_busy: bool,
}

/// A registration that is busy up to the end of this, also if a destructor throws.
struct Busy(*mut Thread);

impl Busy {
    /// # Safety
    ///
    /// The calling thread's registration, outside sections. It does not end while it is busy.
    unsafe fn new(thread: *mut Thread) -> Self {
        // SAFETY: by the caller's word.
        unsafe { (*thread).is_busy = true };
        Self(thread)
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        // SAFETY: by the word of `new`.
        unsafe { (*self.0).is_busy = false };
    }
}

enum Kind {
    Sections(Handle<'static>),
    Quiescent(Online<'static>),
    /// As the last, while it is offline.
    Offline,
}

/// Something that is to be destroyed: `manycore_rcu_head_t`, a part of the program's object.
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
    patience_ticks: u64,
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
        if self.patience_ticks != 0 {
            config.patience_ticks = self.patience_ticks;
        }
        if self.fences != 0 {
            config.barriers = Barriers::Fences;
        }
        config.on_stall = Stall::reporter(self.report, self.context).map(|report| {
            Box::new(move |stall: &reclaim::Stall| {
                let age = clock::now().saturating_sub(stall.since);
                report(Stall::new(stall.thread, age, stall.held_bytes));
            }) as reclaim::OnStall
        });
        Ok(config)
    }
}

impl Thread {
    fn begin(&mut self) {
        if self.depth == 0 {
            let guard = match &self.handle {
                Kind::Sections(handle) => handle.pin(),
                Kind::Quiescent(online) => online.pin(),
                Kind::Offline => fatal("manycore_rcu_read_lock by a thread that is offline"),
            };
            // SAFETY: of a handle that stays where it is, and is not dropped or exchanged while there is a guard.
            self.guard = Some(unsafe { core::mem::transmute::<Guard<'_>, Guard<'static>>(guard) });
        }
        self.depth += 1;
    }

    /// Returns what ends the section, if it is the outermost one: to be dropped when this is not borrowed, because destructors of the
    /// program's run then, which may use it.
    fn end(&mut self) -> Option<Guard<'static>> {
        if self.depth == 0 {
            fatal("manycore_rcu_read_unlock outside a section");
        }
        self.depth -= 1;
        self.guard.take_if(|_| self.depth == 0)
    }

    /// Whether a callback of the program's is running by this registration, which must not end
    /// meanwhile, nor wait.
    fn is_calling(&self) -> bool {
        self.is_busy || matches!(&self.handle, Kind::Sections(handle) if handle.is_destroying())
    }

    /// The thread ends: so does the section that it is in, at whose end destructors of the
    /// program's run. They may use this, and so it is not borrowed then.
    ///
    /// # Safety
    ///
    /// The calling thread's registrations, which end with this.
    pub unsafe fn end_with_thread(threads: Vec<*mut Self>) {
        // SAFETY: by the caller's word. None of them ends by a destructor, since it is busy.
        unsafe {
            threads.iter().for_each(|thread| (**thread).is_busy = true);
            for thread in &threads {
                (**thread).depth = 0;
                let guard = (**thread).guard.take();
                drop(guard);
            }
            // SAFETY: from a box, and not used any more.
            threads.into_iter().for_each(|thread| drop(Box::from_raw(thread)));
        }
    }
}

impl Drop for Thread {
    fn drop(&mut self) {
        self.guard = None;
        self.handle = Kind::Offline;
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
unsafe fn outside<'a>(thread: *mut Thread) -> Result<&'a mut Thread, Status> {
    // SAFETY: by the caller's word.
    let this = unsafe { here(thread) }?;
    if this.depth > 0 || this.is_calling() { Err(Status::Busy) } else { Ok(this) }
}

/// The calling thread's registration.
///
/// # Safety
///
/// Null, or a registration.
unsafe fn here<'a>(thread: *mut Thread) -> Result<&'a mut Thread, Status> {
    // SAFETY: by the caller's word.
    let this = unsafe { thread.as_mut() }.ok_or(Status::Null)?;
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
    // SAFETY: by the caller's word.
    let config = match unsafe { config.as_ref() }.map(Config::resolve) {
        Some(Err(status)) => return status,
        Some(Ok(config)) => config,
        None => reclaim::Config::default(),
    };
    let rcu = Rcu { domain: Domain::new(config), threads: AtomicUsize::new(0) };
    // SAFETY: by the caller's word.
    unsafe { out.write(Box::into_raw(Box::new(rcu))) };
    Status::Ok
}

/// # Safety
///
/// Null, or from [`manycore_rcu_create`], and not destroyed yet.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn manycore_rcu_destroy(rcu: *mut Rcu) -> Status {
    // SAFETY: by the caller's word.
    let Some(this) = (unsafe { rcu.as_ref() }) else { return Status::Null };
    // Acquire: partner of the Release where threads leave. Relaxed on failure: nothing is done
    // then.
    let (done, failed) = (Ordering::Acquire, Ordering::Relaxed);
    if this.threads.compare_exchange(0, ENDED, done, failed).is_err() {
        return Status::Busy;
    }
    // SAFETY: by the caller's word.
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
    // SAFETY: by the caller's word.
    unsafe { rcu.as_ref() }.map_or(0, |rcu| rcu.domain.held_bytes())
}

/// # Safety
///
/// Null or from [`manycore_rcu_create`]; null or a pointer that may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn manycore_rcu_register(rcu: *mut Rcu, out: *mut *mut Thread) -> Status {
    // SAFETY: by the caller's word.
    unsafe { register(rcu, out, |rcu| Kind::Sections(rcu.domain.register())) }
}

/// # Safety
///
/// As of [`manycore_rcu_register`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn manycore_rcu_register_qsbr(
    rcu: *mut Rcu,
    out: *mut *mut Thread,
) -> Status {
    // SAFETY: by the caller's word.
    unsafe { register(rcu, out, |rcu| Kind::Quiescent(rcu.domain.register_online())) }
}

/// # Safety
///
/// As of [`manycore_rcu_register`].
unsafe fn register(
    rcu: *mut Rcu,
    out: *mut *mut Thread,
    handle: impl FnOnce(&'static Rcu) -> Kind,
) -> Status {
    // SAFETY: by the caller's word. It is not destroyed while a thread is registered.
    let Some(rcu) = (unsafe { rcu.as_ref() }).filter(|_| !out.is_null()) else {
        return Status::Null;
    };
    // Relaxed, both: a count. A destructor that the end of the domain runs finds the mark, which
    // its own thread has made.
    if rcu.threads.fetch_add(1, Ordering::Relaxed) >= ENDED {
        rcu.threads.fetch_sub(1, Ordering::Relaxed);
        return Status::Invalid;
    }
    let (handle, thread) = (handle(rcu), thread::id());
    let this = Box::into_raw(Box::new(Thread {
        guard: None,
        depth: 0,
        is_busy: false,
        handle,
        rcu,
        thread,
    }));
    process::at_exit(this);
    // SAFETY: by the caller's word.
    unsafe { out.write(this) };
    Status::Ok
}

/// # Safety
///
/// Null, or a registration that has not ended.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn manycore_rcu_unregister(thread: *mut Thread) -> Status {
    // SAFETY: by the caller's word.
    status(unsafe { outside(thread) }.map(|_| {
        process::not_at_exit(thread);
        // SAFETY: from a box, and by the caller's word not used any more.
        drop(unsafe { Box::from_raw(thread) });
    }))
}

/// # Safety
///
/// The calling thread's registration.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn manycore_rcu_read_lock(thread: *mut Thread) {
    // SAFETY: by the caller's word.
    match unsafe { thread.as_mut() } {
        Some(thread) => thread.begin(),
        None => fatal("manycore_rcu_read_lock with a null pointer"),
    }
}

/// # Safety
///
/// The calling thread's registration.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn manycore_rcu_read_unlock(thread: *mut Thread) {
    // SAFETY: by the caller's word.
    let guard = match unsafe { thread.as_mut() } {
        Some(thread) => thread.end(),
        None => fatal("manycore_rcu_read_unlock with a null pointer"),
    };
    drop(guard);
}

/// # Safety
///
/// Null or a registration; null or a part of an object which nobody finds any more, and which `destroy` may be called with later.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn manycore_rcu_call(
    thread: *mut Thread,
    head: *mut Head,
    bytes: usize,
    destroy: Option<unsafe extern "C-unwind" fn(*mut Head)>,
) -> Status {
    /// # Safety
    ///
    /// A head whose object nobody has.
    unsafe fn run(head: *mut ()) {
        let head = head.cast::<Head>();
        // SAFETY: by the caller's word; the function is there, see below.
        unsafe { (*head).destroy.map(|destroy| destroy(head)) };
    }
    // SAFETY: by the caller's word.
    let guard = unsafe { here(thread) }.and_then(|thread| {
        if head.is_null() || destroy.is_none() {
            return Err(Status::Null);
        }
        if matches!(thread.handle, Kind::Offline) {
            return Err(Status::NoSession);
        }
        thread.begin();
        // SAFETY: by the caller's word.
        unsafe {
            (*head).destroy = destroy;
            thread.guard.as_ref().expect("begun above").retire_with(head.cast(), bytes, run);
        }
        Ok(thread.end())
    });
    status(guard.map(drop))
}

/// # Safety
///
/// Null, or a registration.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn manycore_rcu_synchronize(thread: *mut Thread) -> Status {
    // SAFETY: by the caller's word.
    match unsafe { outside(thread) } {
        Ok(_) => {}
        Err(Status::Busy) => return Status::Deadlock,
        Err(status) => return status,
    }
    // SAFETY: as that has found.
    let _busy = unsafe { Busy::new(thread) };
    // Not borrowed from here on but for reading: destructors of the program's may use it.
    // SAFETY: the calling thread's registration, which does not end while it is busy.
    match unsafe { &(*thread).handle } {
        Kind::Sections(handle) => handle.synchronize_outside(),
        // SAFETY: there are no guards outside sections.
        Kind::Quiescent(online) => unsafe { online.synchronize_shared() },
        // SAFETY: as above.
        Kind::Offline => unsafe { (*thread).rcu.domain.synchronize() },
    }
    Status::Ok
}

/// # Safety
///
/// Null, or a registration.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn manycore_rcu_quiescent(thread: *mut Thread) -> Status {
    // SAFETY: by the caller's word.
    status(unsafe { outside(thread) }.and_then(|this| {
        if !matches!(this.handle, Kind::Quiescent(_)) {
            return Err(Status::Invalid);
        }
        // SAFETY: as in `manycore_rcu_synchronize`.
        unsafe {
            let _busy = Busy::new(thread);
            if let Kind::Quiescent(online) = &(*thread).handle {
                online.quiescent_shared();
            }
        }
        Ok(())
    }))
}

/// # Safety
///
/// Null, or a registration.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn manycore_rcu_offline(thread: *mut Thread) -> Status {
    // SAFETY: by the caller's word.
    let online = unsafe { outside(thread) }.and_then(|thread| match thread.handle {
        Kind::Quiescent(_) => Ok(core::mem::replace(&mut thread.handle, Kind::Offline)),
        Kind::Sections(_) | Kind::Offline => Err(Status::Invalid),
    });
    status(online.map(drop))
}

/// # Safety
///
/// Null, or a registration.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn manycore_rcu_online(thread: *mut Thread) -> Status {
    // SAFETY: by the caller's word.
    status(unsafe { outside(thread) }.and_then(|thread| match thread.handle {
        Kind::Offline => {
            thread.handle = Kind::Quiescent(thread.rcu.domain.register_online());
            Ok(())
        }
        Kind::Sections(_) | Kind::Quiescent(_) => Err(Status::Invalid),
    }))
}
