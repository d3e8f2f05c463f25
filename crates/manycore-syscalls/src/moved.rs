//! Having a call executed elsewhere, and the possible events on the way.
//!
//! While a call is being moved, a signal handler can interrupt its thread; the handler may make
//! calls of its own, jump out, or never return. The thread can also be cancelled. In every case the
//! call is over before the memory that it reads or writes may be reused, and the route is returned.
//! The necessary data are in an [`InFlight`] on the stack, which the thread finds independently
//! ([`thread::in_flight`]).

use core::ffi::{c_int, c_long, c_void};
use core::sync::atomic::AtomicU32;

use crate::offload::{Answer, Call, Kind, PendingCall, Reason, Route, Timer};
use manycore::sync::clock;
use manycore_channel::descriptors::{Held, Left, Lookup};
use manycore_interpose::cancel;
use manycore_stats::syscalls::{Function, Outcome};
use syscalls::{Errno, Sysno, raw_syscall};

use crate::descriptors::{self, FILE, LINGERS, STAYS, TIMED};
use crate::in_flight::{InFlight, Shape};
use crate::table::{Descriptors, OFFLOAD};
use crate::{counters, dispositions, file_size, state, thread};

/// What became of a call.
pub enum Verdict {
    /// The call was executed: what the kernel returned.
    Done(Answer),
    /// The caller executes the call in place, and then ends its measurement.
    InPlace(Measurement),
}

/// The measurement of a call in place, if it is measured.
pub struct Measurement(Option<(Route, Timer)>);

impl Measurement {
    /// The call is not measured.
    pub const NONE: Self = Self(None);

    /// The call is over.
    #[inline]
    pub fn end(self) {
        if let Some((route, timer)) = self.0 {
            OFFLOAD.stop(&route, timer);
            give_back_kept();
        }
    }
}

/// Releases the route of a measured call in place: at its end, or once the thread has left the call
/// without returning.
pub fn give_back_kept() {
    keep_instead(0);
}

/// Keeps another route, by its number plus one, or none; returns the route that was kept before.
/// This is one step, because a handler may keep and return a route of its own in between.
fn keep_instead(number: u64) {
    if let Some(kept) = thread::swap_kept(number).checked_sub(1) {
        descriptors::leave(kept as u32);
    }
}

/// Executes a call on the CPU that serves its descriptor, if there is one.
///
/// # Safety
///
/// The arguments are those of the system call; their targets are valid during the call.
#[inline]
pub unsafe fn on(fd: c_int, shape: Shape, number: c_long, args: [usize; 6]) -> Verdict {
    let held = match find(fd) {
        Ok(held) => held,
        Err(why) => {
            counters::count(shape.function, why);
            return Verdict::InPlace(Measurement::NONE);
        }
    };
    // SAFETY: the arguments are those of the system call, and their targets are valid during it
    // (contract of this function).
    unsafe { with(held, shape, number, args) }
}

/// The descriptor's route, or why its calls are executed in place.
#[inline]
pub fn find(fd: c_int) -> Result<Held, Outcome> {
    find_by(fd, descriptors::find)
}

/// The descriptor's route if it is known, for a thread that will not use the descriptor any more.
pub fn find_known(fd: c_int) -> Result<Held, Outcome> {
    find_by(fd, |table, fd| table.find(fd))
}

#[inline]
fn find_by(
    fd: c_int,
    look: impl FnOnce(&'static Descriptors, c_int) -> Lookup,
) -> Result<Held, Outcome> {
    state::check()?;
    thread::check()?;
    match look(descriptors::table().ok_or(Outcome::NotStarted)?, fd) {
        Lookup::Steered(held) => Ok(held),
        Lookup::Left(Left::Plain) => Err(Outcome::Plain),
        Lookup::Left(Left::Stream) => Err(Outcome::Stream),
        Lookup::Left(Left::Tied) => Err(Outcome::ThreadState),
        Lookup::Left(Left::Closing) | Lookup::Unknown | Lookup::Beyond => Err(Outcome::Unknown),
    }
}

/// Why a call of a kind that is not moved is executed in place: `why`, if its descriptor has a
/// route.
pub fn unmoved(fd: c_int, why: Outcome) -> Outcome {
    match find(fd) {
        Ok(held) => {
            descriptors::leave(held.into_number());
            why
        }
        Err(other) => other,
    }
}

/// Executes a call on the route of a descriptor, and releases the route.
///
/// # Safety
///
/// See [`on`].
pub unsafe fn with(held: Held, shape: Shape, number: c_long, args: [usize; 6]) -> Verdict {
    let Some(table) = descriptors::table() else {
        return Verdict::InPlace(Measurement::NONE);
    };
    let route = *table.route(&held);
    let traits = table.traits(&held);
    let kind = match shape.kind {
        Kind::Waits if traits & FILE != 0 => Kind::File,
        Kind::Waits if traits & TIMED != 0 => Kind::Timed,
        Kind::Quick if traits & LINGERS != 0 && shape.function == Function::Close => Kind::Waits,
        kind => kind,
    };
    let stays = if traits & STAYS != 0 {
        Some(Outcome::Unsure)
    } else {
        (traits & FILE != 0 && file_size::may_signal(shape.function)).then_some(Outcome::FileLimit)
    };
    if let Some(why) = stays {
        table.leave(held);
        counters::count(shape.function, why);
        return Verdict::InPlace(Measurement::NONE);
    }
    if let Some(timer) = OFFLOAD.bypass(&route) {
        counters::count(shape.function, Outcome::Bypassed);
        return in_place(table, held, route, timer);
    }
    let call = Call { number: number as usize, args };
    let slot = held.into_number();
    // SAFETY: the arguments are those of the system call, and their targets are valid during it
    // (contract of this function).
    match unsafe { perform(route, Some(slot), &call, kind, shape) } {
        Ok(answer) => {
            descriptors::leave(slot);
            Verdict::Done(answer)
        }
        Err(_) => {
            descriptors::leave(slot);
            Verdict::InPlace(Measurement::NONE)
        }
    }
}

/// A call that stays in place. Its route is kept only if the call is measured.
fn in_place(table: &Descriptors, held: Held, route: Route, timer: Timer) -> Verdict {
    if !timer.runs() {
        table.leave(held);
        return Verdict::InPlace(Measurement::NONE);
    }
    keep_instead(u64::from(held.into_number()) + 1);
    Verdict::InPlace(Measurement(Some((route, timer))))
}

/// Whether every handler has to interrupt the call, although the kernel could continue it: only its
/// result tells whether a part was done.
fn stops_for_handlers(shape: Shape, kind: Kind) -> bool {
    shape.in_parts && kind == Kind::Waits
}

/// Executes a call on a route, and counts it.
///
/// # Safety
///
/// See [`on`].
pub unsafe fn perform(
    route: Route,
    slot: Option<u32>,
    call: &Call,
    kind: Kind,
    shape: Shape,
) -> Result<Answer, Reason> {
    let mut flight = InFlight {
        flight: PendingCall::default(),
        route,
        slot,
        call: *call,
        kind,
        shape,
        result: Err(Reason::Off),
        cancel_type: DEFERRED,
    };
    let started = clock::now();
    loop {
        // SAFETY: `run` and `abandon` expect an `InFlight`, which is in this frame. Neither they
        // nor the functions that they call have anything to drop where the thread can be cancelled.
        unsafe { cancel::guard(run, abandon, (&raw mut flight).cast()) };
        // `EINTR` means that nothing was done yet; after some handlers the kernel would go on with
        // the call.
        let is_interrupted = flight.result == Ok(-(libc::EINTR as Answer));
        if !(is_interrupted && stops_for_handlers(shape, kind) && dispositions::all_restart()) {
            break;
        }
    }
    match flight.result {
        Ok(_) => {
            let ticks = clock::now().wrapping_sub(started);
            counters::moved(shape.function, OFFLOAD.cpu(&route, kind), ticks, kind == Kind::Quick);
        }
        Err(reason) => counters::count(shape.function, outcome(reason)),
    }
    flight.result
}

unsafe extern "C" {
    fn pthread_setcanceltype(new: c_int, old: *mut c_int) -> c_int;
    fn pthread_testcancel();
}

const DEFERRED: c_int = 0;

/// Moves the call. A thread that can be cancelled at any instruction can be cancelled here only
/// where it sleeps.
unsafe extern "C-unwind" fn run(flight: *mut c_void) {
    // SAFETY: `perform` has passed its `InFlight`, to which nothing else refers before
    // `thread::begin`.
    let flight = unsafe { &mut *flight.cast::<InFlight>() };
    // SAFETY: the calling thread may set its own type of cancellation; `restore_cancel_type` sets
    // it back.
    unsafe { pthread_setcanceltype(DEFERRED, &raw mut flight.cancel_type) };
    if flight.shape.cancels {
        testcancel();
    }
    thread::begin(flight);
    let InFlight { flight: place, route, call, kind: takes, .. } = &*flight;
    // SAFETY: the arguments are those of the system call, and their targets are valid during it
    // (contract of `perform`).
    let result = unsafe { OFFLOAD.perform(route, call, *takes, place) };
    flight.result = result;
    thread::end();
    if flight.cancel_type != DEFERRED {
        restore_cancel_type(flight);
    }
}

fn restore_cancel_type(flight: &InFlight) {
    let mut now = DEFERRED;
    // SAFETY: the type is the one that `run` has found, which the calling thread may set.
    unsafe { pthread_setcanceltype(flight.cancel_type, &raw mut now) };
}

fn testcancel() {
    // SAFETY: the functions have the same signature except for the unwinding, which the function
    // does.
    let test: unsafe extern "C-unwind" fn() =
        unsafe { core::mem::transmute(pthread_testcancel as unsafe extern "C" fn()) };
    // SAFETY: a thread that is cancelled here unwinds through `run`, which has nothing to drop.
    unsafe { test() }
}

/// Ends the call of a thread that was cancelled in [`run`], or that has jumped out of it.
unsafe extern "C-unwind" fn abandon(flight: *mut c_void) {
    // SAFETY: `perform` has passed its `InFlight`, whose frame is there until it is unwound;
    // `run`'s use of it is over.
    unsafe { settle(&mut *flight.cast::<InFlight>()) };
}

/// Notes that the thread will jump out of [`run`]. It may come from where it slept, where it could
/// be cancelled at any instruction.
pub fn jumped_out(flight: &mut InFlight) {
    restore_cancel_type(flight);
    settle(flight);
}

/// Ends a call from which the thread will not return.
fn settle(flight: &mut InFlight) {
    let answer = OFFLOAD.abandon(&flight.flight);
    if let Some(fd) = answer.filter(|answer| flight.shape.makes && *answer >= 0) {
        // SAFETY: the call has made the descriptor, and the thread does not know its number yet.
        unsafe { raw_syscall!(Sysno::close, fd) };
    }
    match flight.slot.take() {
        Some(slot) => descriptors::leave(slot),
        // That of a socket that no thread has now.
        None => OFFLOAD.close(flight.route),
    }
    counters::count(flight.shape.function, Outcome::Abandoned);
    thread::end();
}

/// How callers sleep, see [`crate::offload::settings::Sleep`].
pub unsafe extern "C-unwind" fn sleep(
    word: *const u32,
    expected: u32,
    never_restarts: bool,
) -> c_int {
    // Some centuries: a wait with a time-out is not restarted after a handler, whatever its flags.
    static FAR: libc::timespec = libc::timespec { tv_sec: 1 << 34, tv_nsec: 0 };
    // SAFETY: the call is under way in this thread, so its frame is there. These fields are read
    // without a reference to the whole, because `run` has lent out another field of it mutably.
    let flight = thread::in_flight().map(|flight| unsafe { ((*flight).shape, (*flight).kind) });
    let stops =
        never_restarts || flight.is_some_and(|(shape, kind)| stops_for_handlers(shape, kind));
    let until = if stops { &raw const FAR } else { core::ptr::null() };
    let cancels = flight.is_some_and(|(shape, _)| shape.cancels);
    if cancels {
        // SAFETY: `run` is called by `guard`, and `sleep` by `run`; the word and the time outlive
        // the call.
        return unsafe { cancel::wait_open(word.cast::<AtomicU32>(), 0, expected, until) };
    }
    let operation = libc::FUTEX_WAIT_BITSET | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: the kernel reads the word and the time, which outlive the call.
    let result = unsafe {
        raw_syscall!(
            Sysno::futex,
            word,
            operation,
            expected,
            until,
            0,
            libc::FUTEX_BITSET_MATCH_ANY
        )
    };
    Errno::from_ret(result).map_or_else(Errno::into_raw, |_| 0)
}

fn outcome(reason: Reason) -> Outcome {
    match reason {
        Reason::Off => Outcome::Off,
        Reason::OneCpu => Outcome::OneCpu,
        Reason::NoThread => Outcome::NoThread,
    }
}

/// libc's result for the kernel's answer. Sets `errno`.
#[inline]
pub fn result(answer: Answer) -> isize {
    if (-4095..0).contains(&answer) {
        // SAFETY: `__errno_location` returns the address of the calling thread's own number.
        unsafe { *libc::__errno_location() = -answer as c_int };
        return -1;
    }
    answer
}
