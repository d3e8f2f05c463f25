//! Handlers interrupt moved calls as they interrupt calls in place.

use std::ffi::c_int;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crate::offload::{Call, Kind, PendingCall};

use crate::rig::{self, MECHANISMS, Rig, a_while, socketpair};

static HANDLED: AtomicU32 = AtomicU32::new(0);
/// How often a caller has begun to sleep.
static ASLEEP: AtomicU32 = AtomicU32::new(0);
static HANDLED_BY: AtomicI32 = AtomicI32::new(0);

extern "C" fn handler(_: i32) {
    HANDLED.fetch_add(1, Ordering::SeqCst);
    // SAFETY: touches no memory but its own result.
    HANDLED_BY.store(unsafe { libc::gettid() }, Ordering::SeqCst);
}

fn handle(signal: i32, flags: i32) {
    // SAFETY: zero is a value of the structure.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as *const () as usize;
        action.sa_flags = flags;
        assert_eq!(libc::sigaction(signal, &action, std::ptr::null_mut()), 0);
    }
}

unsafe extern "C-unwind" fn sleep(word: *const u32, expected: u32, never_restarts: bool) -> c_int {
    ASLEEP.fetch_add(1, Ordering::SeqCst);
    // SAFETY: the word outlives the call, as the library says.
    unsafe { rig::sleep(word, expected, never_restarts) }
}

/// Runs `call` in a thread, sends that thread the signal when it sleeps, and calls `after` when the
/// handler has run.
fn interrupt(signal: i32, call: impl FnOnce() -> isize + Send, after: impl FnOnce()) -> isize {
    let (send, receive) = mpsc::channel();
    let awake = ASLEEP.load(Ordering::SeqCst);
    thread::scope(|scope| {
        let thread = scope.spawn(move || {
            // SAFETY: touches no memory but its own result.
            send.send(unsafe { libc::pthread_self() }).unwrap();
            call()
        });
        let target = receive.recv().unwrap();
        // A handler that ran before the call would interrupt nothing. One that is executed in place
        // does not sleep here.
        for _ in 0..1000 {
            if ASLEEP.load(Ordering::SeqCst) != awake {
                break;
            }
            thread::sleep(Duration::from_millis(1));
        }
        a_while();
        let before = HANDLED.load(Ordering::SeqCst);
        // SAFETY: the thread is in the scope, and not joined.
        assert_eq!(unsafe { libc::pthread_kill(target, signal) }, 0);
        while HANDLED.load(Ordering::SeqCst) == before {
            thread::yield_now();
        }
        a_while();
        after();
        thread.join().unwrap()
    })
}

const EINTR: isize = -(libc::EINTR as isize);

/// One test: signals and their handlers are the process'.
#[test]
fn handlers() {
    handle(libc::SIGUSR1, 0);
    handle(libc::SIGUSR2, libc::SA_RESTART);
    for mechanism in MECHANISMS {
        let rig = Rig::with_sleep(*mechanism, sleep);
        let [near, far] = socketpair(libc::SOCK_STREAM);
        let route = rig.steer.open();
        let read = || rig.read(route, near, &mut [0; 8]);
        let poll = || {
            let mut polled = libc::pollfd { fd: near, events: libc::POLLIN, revents: 0 };
            let args = [&raw mut polled as usize, 1, usize::MAX];
            rig.call(route, libc::SYS_poll, &args, Kind::Timed)
        };
        for _ in 0..5 {
            assert_eq!(interrupt(libc::SIGUSR1, read, || ()), EINTR, "{mechanism:?}");
            assert_eq!(interrupt(libc::SIGUSR1, poll, || ()), EINTR, "{mechanism:?}");
            assert_eq!(interrupt(libc::SIGUSR2, poll, || ()), EINTR, "{mechanism:?}");
            let send = || assert_eq!(rig.write(route, far, b"after"), 5);
            assert_eq!(interrupt(libc::SIGUSR2, read, send), 5, "{mechanism:?}");
        }
        interrupted_pipe(rig);
        interrupted_send(rig);
        broken_pipe(rig);
    }
}

/// A read that only a blocking thread can execute.
fn interrupted_pipe(rig: &Rig) {
    let mut pipe = [0; 2];
    // SAFETY: writes two descriptors into the array.
    assert_eq!(unsafe { libc::pipe(pipe.as_mut_ptr()) }, 0);
    let route = rig.steer.open();
    let read = || rig.read(route, pipe[0], &mut [0; 8]);
    assert_eq!(interrupt(libc::SIGUSR1, read, || ()), EINTR);
    let write = || assert_eq!(rig.write(route, pipe[1], b"after"), 5);
    assert_eq!(interrupt(libc::SIGUSR2, read, write), 5);
}

/// What was sent before the handler ran counts.
fn interrupted_send(rig: &Rig) {
    let [near, far] = socketpair(libc::SOCK_STREAM);
    let route = rig.steer.open();
    let bytes = vec![7; 8 << 20];
    let sent = interrupt(libc::SIGUSR1, || rig.write(route, near, &bytes), || ());
    assert!(sent > 0 && sent < bytes.len() as isize, "{sent}");
    let mut left = sent as usize;
    let mut buffer = vec![0; 1 << 20];
    while left > 0 {
        let got = rig.read(route, far, &mut buffer);
        assert!(got > 0);
        left -= got as usize;
    }
    let args = [far as usize, buffer.as_mut_ptr() as usize, 1, libc::MSG_DONTWAIT as usize, 0, 0];
    let more = rig.call(route, libc::SYS_recvfrom, &args, Kind::Waits);
    assert_eq!(more, -(libc::EAGAIN as isize), "no byte more than was counted");
}

/// SIGPIPE is the caller's.
fn broken_pipe(rig: &Rig) {
    handle(libc::SIGPIPE, 0);
    let [near, far] = socketpair(libc::SOCK_STREAM);
    // SAFETY: a descriptor of this test, closed once.
    unsafe { libc::close(far) };
    let route = rig.steer.open();
    let before = HANDLED.load(Ordering::SeqCst);
    assert_eq!(rig.write(route, near, b"x"), -(libc::EPIPE as isize));
    assert_eq!(HANDLED.load(Ordering::SeqCst), before + 1);
    // SAFETY: touches no memory but its own result.
    assert_eq!(HANDLED_BY.load(Ordering::SeqCst), unsafe { libc::gettid() });
    let quiet = [near as usize, b"x".as_ptr() as usize, 1, libc::MSG_NOSIGNAL as usize, 0, 0];
    assert_eq!(rig.call(route, libc::SYS_sendto, &quiet, Kind::Waits), -(libc::EPIPE as isize));
    assert_eq!(HANDLED.load(Ordering::SeqCst), before + 1);
}

/// A caller that leaves its call without returning ends the call, and gets its slot back.
#[test]
fn abandoned() {
    thread_local! {
        static SLEPT: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
    }
    unsafe extern "C-unwind" fn torn(_: *const u32, _: u32, _: bool) -> i32 {
        SLEPT.set(true);
        std::panic::resume_unwind(Box::new("cancelled"));
    }
    for mechanism in MECHANISMS {
        let rig = Rig::with_sleep(*mechanism, torn);
        let [near, _far] = socketpair(libc::SOCK_STREAM);
        let route = rig.steer.open();
        for _ in 0..20 {
            let mut byte = 0u8;
            let call = Call {
                number: libc::SYS_read as usize,
                args: [near as usize, &raw mut byte as usize, 1, 0, 0, 0],
            };
            let flight = PendingCall::default();
            // SAFETY: structures of this function, as the manual page says.
            let torn = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| unsafe {
                rig.steer.perform(&route, &call, Kind::Waits, &flight)
            }));
            assert!(torn.is_err() && SLEPT.take());
            assert_eq!(rig.steer.abandon(&flight), Some(EINTR), "{mechanism:?}");
            assert_eq!(rig.steer.abandon(&flight), None);
        }
    }
}
