//! Calls for which no thread can be made.

use std::ffi::{c_int, c_void};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use crate::offload::{Call, Kind, Mechanism, PendingCall, Reason};

use crate::rig::{Rig, create_thread, sleep};

/// Threads that are still made.
static GRANTED: AtomicU32 = AtomicU32::new(0);
static RIG: AtomicPtr<Rig> = AtomicPtr::new(null_mut());
static FLIGHT: AtomicPtr<PendingCall> = AtomicPtr::new(null_mut());
static HANDLED: AtomicU32 = AtomicU32::new(0);
static ENDED: AtomicU32 = AtomicU32::new(0);

/// Refuses, and a signal has come meanwhile.
unsafe extern "C" fn refuse(
    run: extern "C" fn(*mut c_void) -> *mut c_void,
    argument: *mut c_void,
) -> c_int {
    let one_less = |granted: u32| granted.checked_sub(1);
    if GRANTED.fetch_update(Ordering::SeqCst, Ordering::SeqCst, one_less).is_ok() {
        // SAFETY: function and argument belong together, as the library says.
        return unsafe { create_thread(run, argument) };
    }
    // SAFETY: a signal to the calling thread, which has it blocked.
    unsafe { libc::pthread_kill(libc::pthread_self(), libc::SIGVTALRM) };
    libc::EAGAIN
}

/// A handler that ends the call as if it jumped out of it.
extern "C" fn jumps(_: c_int) {
    HANDLED.fetch_add(1, Ordering::SeqCst);
    let (rig, flight) = (RIG.load(Ordering::SeqCst), FLIGHT.load(Ordering::SeqCst));
    // SAFETY: the test's own, in this thread, which is in `perform`.
    let answer = unsafe { (*rig).steer.abandon(&*flight) };
    ENDED.fetch_add(u32::from(answer.is_some()), Ordering::SeqCst);
}

/// If no thread could be made for a call, a handler that ends the call does not wait. SIGALRM ends
/// the test if it does.
#[test]
fn a_handler_finds_no_call_that_was_not_sent() {
    // SAFETY: zero is a value of the structure.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = jumps as *const () as usize;
        assert_eq!(libc::sigaction(libc::SIGVTALRM, &action, null_mut()), 0);
    }
    let mut pipe = [0; 2];
    // SAFETY: writes two descriptors into the array; a byte for the reader.
    unsafe {
        assert_eq!(libc::pipe(pipe.as_mut_ptr()), 0);
        assert_eq!(libc::write(pipe[1], b"x".as_ptr().cast(), 1), 1);
    }
    // In turn: there is no worker; there is none in the pool either; there is one in the pool, but
    // none that could block with the call.
    for (mechanism, granted) in [(Mechanism::Thread, 0), (Mechanism::Pool, 0), (Mechanism::Pool, 1)]
    {
        let rig = Rig::with(mechanism, sleep, refuse);
        let route = rig.steer.open();
        let (mut byte, mut flight) = (0u8, PendingCall::default());
        let args = [pipe[0] as usize, &raw mut byte as usize, 1, 0, 0, 0];
        let call = Call { number: libc::SYS_read as usize, args };
        GRANTED.store(granted, Ordering::SeqCst);
        HANDLED.store(0, Ordering::SeqCst);
        RIG.store(std::ptr::from_ref(rig).cast_mut(), Ordering::SeqCst);
        FLIGHT.store(&raw mut flight, Ordering::SeqCst);
        // SAFETY: ends the process if this hangs.
        unsafe { libc::alarm(30) };
        // SAFETY: the arguments' targets outlive the call; the handler ends before the call goes
        // on.
        let answer = unsafe {
            rig.steer.perform(&route, &call, Kind::Waits, &*FLIGHT.load(Ordering::SeqCst))
        };
        // SAFETY: ends the alarm that was set above.
        unsafe { libc::alarm(0) };
        assert_eq!(answer, Err(Reason::NoThread), "{mechanism:?}, {granted}");
        assert_eq!(HANDLED.load(Ordering::SeqCst), 1, "{mechanism:?}, {granted}");
        assert_eq!(ENDED.load(Ordering::SeqCst), 0, "{mechanism:?}, {granted}");
    }
}
