//! `pthread_cond_t` with a wait queue of ours in it.
//!
//! ```text
//!          0 ... 24                              24 ... 36        36          40 ... 48
//! glibc    __wseq, __g1_start, __g_refs          __g_size ...     __wrefs     __g_signals
//! here     the wait queue                        passes on        flags       statistics
//! ```
//!
//! The flags are glibc's: bit 0 says process-shared, bit 1 that `timedwait` counts on the monotonic
//! clock. glibc owns process-shared condition variables.
//!
//! # Whose memory, until when
//!
//! A program may destroy a condition variable once it has signalled all its waiters, and then reuse
//! the memory. So a signalled waiter does not touch it again, with one exception: a thread that is
//! cancelled just then must not keep a signal for itself while others wait. The signaller tells it
//! whether others wait. The thread passes the signal on unless the condition variable has been
//! destroyed since, which `departed.rs` records.
//!
//! # Mixtures
//!
//! A condition variable of ours waits with any mutex: it only locks and unlocks the mutex. A
//! process-shared one waits, in glibc, with mutexes that glibc owns; glibc must not see a mutex of
//! ours. There a *stand-in* takes the mutex's place: the waiter takes the stand-in, unlocks the
//! mutex and waits with the stand-in, and a signaller takes and drops the stand-in before it
//! signals. So a signaller that has the mutex finds every waiter that had released it.

use core::cell::{Cell, UnsafeCell};
use core::ffi::{c_int, c_void};

use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use libc::{EINVAL, ETIMEDOUT, clockid_t, timespec};
use manycore::lock::{InlineLock, WaitQueue, Waiter};
use manycore::sync::{Deadline, process};
use manycore_interpose::cancel;
use manycore_stats::Kind;

use crate::mutex::{self, Mutex};
use crate::stats::{self, Object};
use crate::{departed, glibc, time};

/// The overlay of `pthread_cond_t`.
#[repr(C)]
pub struct Cond {
    queue: WaitQueue,
    /// Whether a waiter was ever signalled while others were waiting. Such a waiter may have to
    /// signal another one in its place.
    passes_on: AtomicU32,
    /// This field and the end are cells: glibc writes to them in condition variables that it owns,
    /// and the memory may belong to another object while a signalled thread still has a reference
    /// to it.
    _spare: UnsafeCell<[u8; 32 - size_of::<WaitQueue>()]>,
    flags: AtomicU32,
    /// The number of this condition variable's record in the statistics; 0 if it has none yet.
    record: AtomicU32,
    _rest: UnsafeCell<u32>,
}

const _: () = assert!(size_of::<Cond>() == size_of::<libc::pthread_cond_t>());

const SHARED: u32 = 1;
const MONOTONIC: u32 = 2;

impl Cond {
    fn flags(&self) -> u32 {
        // Relaxed: written by the initialiser, which the program orders before every use.
        self.flags.load(Ordering::Relaxed)
    }

    /// The condition variable as statistics see it.
    fn object(&self, caller: usize) -> Object<'_> {
        Object {
            address: core::ptr::from_ref(self).cast(),
            record: &self.record,
            kind: Kind::Cond,
            caller,
        }
    }

    fn is_shared(&self) -> bool {
        self.flags() & SHARED != 0
    }

    /// The number of its record in the statistics; 0 if no thread has waited for it yet.
    fn number(&self) -> u32 {
        // Relaxed: a number stands for itself.
        self.record.load(Ordering::Relaxed)
    }

    /// Signals a waiter, which has to signal another one if it gives up waiting; returns whether
    /// there was one.
    fn signal(&self) -> bool {
        self.queue.signal_saying(|| {
            // Relaxed: read by the thread that destroys it, which the program orders after its
            // signals.
            self.passes_on.store(1, Ordering::Relaxed);
            departed::now(core::ptr::from_ref(self).cast())
        })
    }
}

/// `pthread_cond_init`: glibc reads the attributes and leaves flags and zeros.
///
/// # Safety
///
/// As POSIX requires. This holds for all functions of this module.
pub unsafe extern "C-unwind" fn init<const STATS: bool>(
    c: *mut Cond,
    attr: *const libc::pthread_condattr_t,
    caller: usize,
) -> c_int {
    // SAFETY: the memory is the program's to be initialised as a condition variable (contract of
    // this function).
    let (result, cond) = unsafe { (glibc::pthread_cond_init(c.cast(), attr), &*c) };
    if STATS && result == 0 && !cond.is_shared() {
        stats::initialised(&cond.record, caller);
    }
    result
}

/// `pthread_cond_destroy`.
///
/// # Safety
///
/// See [`init`].
pub unsafe extern "C-unwind" fn destroy<const STATS: bool>(c: *mut Cond) -> c_int {
    // SAFETY: an initialised condition variable is there during the call (POSIX, contract of
    // `init`); other threads, and glibc, write to atomics and cells.
    let cond = unsafe { &*c };
    if cond.is_shared() {
        // SAFETY: a process-shared condition variable is glibc's, which has initialised it.
        return unsafe { glibc::pthread_cond_destroy(c.cast()) };
    }
    if STATS {
        stats::destroyed(&cond.record);
    }
    // Relaxed: the program orders signals before this.
    if cond.passes_on.load(Ordering::Relaxed) != 0 {
        departed::note(c.cast());
    }
    // Signalled waiters no longer access it; the function waits for waiters that leave by
    // themselves.
    cond.queue.drain();
    0
}

/// `pthread_cond_wait`.
///
/// # Safety
///
/// See [`init`].
pub unsafe extern "C-unwind" fn wait<L: InlineLock, const STATS: bool>(
    c: *mut Cond,
    m: *mut Mutex,
    caller: usize,
) -> c_int {
    // SAFETY: both are initialised and valid during the call, and this thread has locked the mutex
    // (POSIX, contract of `init`). The first check is for the owner: glibc gets both of its own,
    // and never a mutex of ours.
    unsafe {
        if (*c).is_shared() {
            if !(*m).is_ours() {
                return glibc::pthread_cond_wait(c.cast(), m.cast());
            }
            return StandIn::wait::<L, STATS>(c, m, None, caller);
        }
        Wait::run::<L, STATS>(&*c, m, None, caller)
    }
}

/// `pthread_cond_timedwait`.
///
/// # Safety
///
/// See [`init`].
pub unsafe extern "C-unwind" fn timedwait<L: InlineLock, const STATS: bool>(
    c: *mut Cond,
    m: *mut Mutex,
    until: *const timespec,
    caller: usize,
) -> c_int {
    // SAFETY: both are initialised and valid during the call, this thread has locked the mutex, and
    // the time may be read (POSIX, contract of `init`). glibc gets both only if it owns both. Its
    // clocks are supported.
    unsafe {
        let clock = if (*c).flags() & MONOTONIC != 0 {
            libc::CLOCK_MONOTONIC
        } else {
            libc::CLOCK_REALTIME
        };
        if (*c).is_shared() && !(*m).is_ours() {
            return glibc::pthread_cond_timedwait(c.cast(), m.cast(), until);
        }
        wait_until::<L, STATS>(c, m, clock, until, caller)
    }
}

/// `pthread_cond_clockwait`.
///
/// # Safety
///
/// See [`init`].
pub unsafe extern "C-unwind" fn clockwait<L: InlineLock, const STATS: bool>(
    c: *mut Cond,
    m: *mut Mutex,
    clock: clockid_t,
    until: *const timespec,
    caller: usize,
) -> c_int {
    // SAFETY: both are initialised and valid during the call, this thread has locked the mutex, and
    // the time may be read (POSIX, contract of `init`). glibc gets both only if it owns both. The
    // clock is supported, as checked above.
    unsafe {
        if (*c).is_shared() && !(*m).is_ours() {
            return glibc::pthread_cond_clockwait(c.cast(), m.cast(), clock, until);
        }
        if !time::is_supported(clock) {
            return EINVAL;
        }
        wait_until::<L, STATS>(c, m, clock, until, caller)
    }
}

/// # Safety
///
/// See [`init`]. `clock` is supported, and not both objects are glibc's.
unsafe fn wait_until<L: InlineLock, const STATS: bool>(
    c: *mut Cond,
    m: *mut Mutex,
    clock: clockid_t,
    until: *const timespec,
    caller: usize,
) -> c_int {
    // SAFETY: the objects are valid and initialised, the mutex is locked and the clock supported
    // (contract of this function). A shared condition variable is glibc's, and the callers have
    // checked that the mutex is not.
    unsafe {
        let Some(deadline) = time::deadline(clock, until) else { return EINVAL };
        if (*c).is_shared() {
            return StandIn::wait::<L, STATS>(c, m, Some((clock, until)), caller);
        }
        Wait::run::<L, STATS>(&*c, m, Some(deadline), caller)
    }
}

/// `pthread_cond_signal`.
///
/// # Safety
///
/// See [`init`].
pub unsafe extern "C-unwind" fn signal<const STATS: bool>(c: *mut Cond, caller: usize) -> c_int {
    // SAFETY: an initialised condition variable is there during the call (POSIX, contract of
    // `init`); other threads, and glibc, write to atomics and cells.
    let cond = unsafe { &*c };
    if cond.is_shared() {
        StandIn::pass(c);
        // SAFETY: a process-shared condition variable is glibc's, which has initialised it.
        return unsafe { glibc::pthread_cond_signal(c.cast()) };
    }
    // Before: once its waiters have been told, it may be gone.
    let number = if STATS { cond.number() } else { 0 };
    let has_woken = cond.signal();
    if STATS && number != 0 {
        stats::handovers::signalled(number, has_woken, caller);
    }
    0
}

/// `pthread_cond_broadcast`.
///
/// # Safety
///
/// See [`init`].
pub unsafe extern "C-unwind" fn broadcast<const STATS: bool>(c: *mut Cond, caller: usize) -> c_int {
    // SAFETY: an initialised condition variable is there during the call (POSIX, contract of
    // `init`); other threads, and glibc, write to atomics and cells.
    let cond = unsafe { &*c };
    if cond.is_shared() {
        StandIn::pass(c);
        // SAFETY: a process-shared condition variable is glibc's, which has initialised it.
        return unsafe { glibc::pthread_cond_broadcast(c.cast()) };
    }
    // Before: once its waiters have been told, it may be gone.
    let number = if STATS { cond.number() } else { 0 };
    let has_woken = cond.queue.broadcast();
    if STATS && number != 0 {
        stats::handovers::signalled(number, has_woken, caller);
    }
    0
}

/// One thread's wait on a condition variable of ours.
struct Wait<'a> {
    cond: &'a Cond,
    waiter: Waiter,
    mutex: *mut Mutex,
    caller: usize,
    deadline: Option<Deadline>,
    timed_out: Cell<bool>,
}

impl Wait<'_> {
    /// # Safety
    ///
    /// See [`init`].
    unsafe fn run<L: InlineLock, const STATS: bool>(
        cond: &Cond,
        m: *mut Mutex,
        deadline: Option<Deadline>,
        caller: usize,
    ) -> c_int {
        let wait = Wait {
            cond,
            waiter: Waiter::new(),
            mutex: m,
            caller,
            deadline,
            timed_out: Cell::new(false),
        };
        // Before the signal: once the waiter has been signalled, the program may destroy the
        // condition variable.
        let number = if STATS { stats::number(&cond.object(caller)) } else { 0 };
        // SAFETY: the mutex is initialised and there, and this thread has locked it (contract of
        // this function).
        let with = if STATS { unsafe { mutex::number(m) } } else { 0 };
        // SAFETY: the waiter stays in this frame until it is signalled or withdrawn: `sleep`
        // returns only then; without a sleep `leave` ensures it, and `abandon` does where the
        // thread is cancelled. Only after that is the next waiter woken. The mutex is this thread's
        // (contract of this function).
        unsafe {
            let is_resumed = STATS && stats::handovers::waits(with, number, caller);
            cond.queue.enqueue(&wait.waiter);
            let refused = mutex::unlock::<L, STATS>(m);
            if refused != 0 {
                wait.leave();
                wait.waiter.wake_next();
                return refused;
            }
            let waiting = STATS.then(|| stats::Wait::for_condition(number, caller, is_resumed));
            cancel::guard(
                Self::sleep,
                Self::abandon::<L, STATS>,
                (&raw const wait).cast_mut().cast(),
            );
            if let Some(waiting) = waiting {
                waiting.end_of_condition(wait.timed_out.get());
            }
            wait.waiter.wake_next();
            let refused = mutex::lock::<L, STATS>(m, caller);
            if refused != 0 {
                return refused;
            }
            if STATS {
                stats::handovers::let_in(with, number, caller);
            }
        }
        if wait.timed_out.get() { ETIMEDOUT } else { 0 }
    }

    /// Leaves the queue before a signal. If a signal came nevertheless, passes it on if others were
    /// waiting then. If this waiter was signalled alone or with all others, the condition variable
    /// may be freed.
    fn leave(&self) {
        // SAFETY: `run` has enqueued the waiter. It calls this where it does not sleep, and
        // `abandon` calls it where the thread was cancelled asleep: `sleep` has not withdrawn the
        // waiter then.
        if !unsafe { self.cond.queue.withdraw(&self.waiter) } {
            let since = self.waiter.message();
            if since != 0 {
                departed::unless_gone(core::ptr::from_ref(self.cond).cast(), since, || {
                    self.cond.signal();
                });
            }
        }
    }

    unsafe extern "C-unwind" fn sleep(wait: *mut c_void) {
        // Not mutably: signalling threads write to the waiter in it. SAFETY: `guard` passes `run`'s
        // own argument: the wait in its frame, which waits for this to return.
        let wait = unsafe { &*wait.cast::<Self>() };
        let until = wait
            .deadline
            .map(|d| timespec { tv_sec: d.seconds, tv_nsec: i64::from(d.nanoseconds) });
        let timeout = until.as_ref().map_or(core::ptr::null(), core::ptr::from_ref);
        let wall = wait.deadline.is_some_and(|d| d.wall);
        if wait.waiter.poll() {
            return;
        }
        while let Some(expected) = wait.waiter.asleep() {
            // SAFETY: the word is in `run`'s frame and the time in this one; both are valid until
            // the call returns or unwinds.
            let error =
                unsafe { cancel::wait_open(wait.waiter.word(), wall.into(), expected, timeout) };
            // A deadline before 1970 is refused as invalid, although it also has passed.
            if error == ETIMEDOUT || (error == EINVAL && wait.deadline.is_some()) {
                // SAFETY: `run` has enqueued it, and only this thread withdraws it, here: a
                // cancelled thread unwinds from the call above, and does not come here.
                wait.timed_out.set(unsafe { wait.cond.queue.withdraw(&wait.waiter) });
                return;
            }
        }
    }

    /// The thread is cancelled. POSIX requires that it consumes no signal, and owns the mutex in
    /// its cleanup handlers.
    unsafe extern "C-unwind" fn abandon<L: InlineLock, const STATS: bool>(wait: *mut c_void) {
        // SAFETY: `guard` passes `run`'s own argument: the wait in its frame, which the unwinding
        // has not passed yet.
        let wait = unsafe { &*wait.cast::<Self>() };
        wait.leave();
        // SAFETY: the program waits with the mutex, which is valid until the program has it again
        // (POSIX, contract of `init`); the waiter is this thread's, and was withdrawn or signalled.
        unsafe {
            wait.waiter.wake_next();
            mutex::lock::<L, STATS>(wait.mutex, wait.caller);
        }
    }
}

/// A mutex of glibc's that replaces one of ours while a thread waits in glibc.
#[repr(transparent)]
struct StandIn(UnsafeCell<libc::pthread_mutex_t>);

// SAFETY: only glibc's functions for mutexes get it, by address, from any thread; and `forked`,
// where there is one.
unsafe impl Sync for StandIn {}

const STAND_INS: usize = 64;
static TABLE: [StandIn; STAND_INS] =
    [const { StandIn(UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER)) }; STAND_INS];

/// Whether any stand-in was ever used: most programs never mix.
static IN_USE: AtomicBool = AtomicBool::new(false);

/// One thread's wait with a stand-in.
struct StandInWait {
    cond: *mut Cond,
    stand_in: *mut c_void,
    mutex: *mut Mutex,
    until: Option<(clockid_t, *const timespec)>,
    caller: usize,
    result: Cell<c_int>,
}

impl StandIn {
    /// The stand-in of a condition variable. All its waiters have the same one, as POSIX requires
    /// of mutexes.
    fn of(c: *const Cond) -> *mut c_void {
        // A child that does not know yet that it was forked would wait for threads that it does not
        // have.
        process::generation();
        let index = (c as usize).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 58;
        TABLE[index % STAND_INS].0.get().cast()
    }

    /// # Safety
    ///
    /// See [`init`]; the condition variable is glibc's and the mutex ours.
    unsafe fn wait<L: InlineLock, const STATS: bool>(
        c: *mut Cond,
        m: *mut Mutex,
        until: Option<(clockid_t, *const timespec)>,
        caller: usize,
    ) -> c_int {
        // Relaxed: set before the mutex is released; a signaller that takes the mutex afterwards
        // sees it.
        IN_USE.store(true, Ordering::Relaxed);
        let stand_in = Self::of(c);
        let wait = StandInWait { cond: c, stand_in, mutex: m, until, caller, result: Cell::new(0) };
        // SAFETY: the stand-in is permanently a mutex of glibc's, and the thread that took it
        // releases it, also if it is cancelled (`abandon`). The mutex of ours is this thread's
        // (contract of this function).
        unsafe {
            glibc::pthread_mutex_lock(stand_in);
            let refused = mutex::unlock::<L, STATS>(m);
            if refused != 0 {
                glibc::pthread_mutex_unlock(stand_in);
                return refused;
            }
            cancel::guard(
                Self::sleep,
                Self::abandon::<L, STATS>,
                (&raw const wait).cast_mut().cast(),
            );
            glibc::pthread_mutex_unlock(stand_in);
            let refused = mutex::lock::<L, STATS>(m, caller);
            if refused != 0 { refused } else { wait.result.get() }
        }
    }

    unsafe extern "C-unwind" fn sleep(wait: *mut c_void) {
        // SAFETY: `guard` passes `wait`'s own argument, in its frame, which waits. The condition
        // variable is glibc's (contract of `wait`), as is the stand-in, which this thread has
        // taken; the time may be read.
        unsafe {
            let wait = &*wait.cast::<StandInWait>();
            wait.result.set(match wait.until {
                None => glibc::pthread_cond_wait(wait.cond.cast(), wait.stand_in),
                Some((clock, until)) => {
                    glibc::pthread_cond_clockwait(wait.cond.cast(), wait.stand_in, clock, until)
                }
            });
        }
    }

    /// The thread is cancelled; glibc has acquired the stand-in again.
    unsafe extern "C-unwind" fn abandon<L: InlineLock, const STATS: bool>(wait: *mut c_void) {
        // SAFETY: `guard` passes `wait`'s own argument, which is in a frame that the unwinding has
        // not reached yet. glibc has locked the stand-in mutex again for this thread; now the
        // thread locks the program's own.
        unsafe {
            let wait = &*wait.cast::<StandInWait>();
            glibc::pthread_mutex_unlock(wait.stand_in);
            mutex::lock::<L, STATS>(wait.mutex, wait.caller);
        }
    }

    /// Waits until every waiter that has released its mutex is known to glibc.
    fn pass(c: *const Cond) {
        // Relaxed: see `wait`.
        if IN_USE.load(Ordering::Relaxed) {
            let stand_in = Self::of(c);
            // SAFETY: the stand-in is permanently a mutex of glibc's, and the thread that took it
            // releases it.
            unsafe {
                glibc::pthread_mutex_lock(stand_in);
                glibc::pthread_mutex_unlock(stand_in);
            }
        }
    }
}

/// Called in the child of a fork, where no other thread exists that could hold a stand-in.
pub fn forked() {
    departed::forked();
    // Relaxed: see `wait`. Writing to pages that the child shares with its parent copies them.
    if !IN_USE.load(Ordering::Relaxed) {
        return;
    }
    for stand_in in &TABLE {
        // SAFETY: in the child of a fork this thread is the only one, and it is in `fork`, not in a
        // wait: no thread has the stand-in.
        unsafe { stand_in.0.get().write(libc::PTHREAD_MUTEX_INITIALIZER) };
    }
}
