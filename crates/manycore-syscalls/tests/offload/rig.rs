//! A process' worth of routes, and calls on them as a program makes them.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::offload::settings::{CreateThread, Sleep};
use crate::offload::{
    Call, Groups, Kind, Mechanism, Offload, PendingCall, Reason, Route, Rule, Settings,
};

pub const MECHANISMS: &[Mechanism] = &[Mechanism::Thread, Mechanism::Pool, Mechanism::Uring];

pub unsafe extern "C" fn create_thread(
    run: extern "C" fn(*mut c_void) -> *mut c_void,
    argument: *mut c_void,
) -> c_int {
    // SAFETY: zero is a value of the structure.
    unsafe {
        let mut attributes = std::mem::zeroed();
        libc::pthread_attr_init(&mut attributes);
        libc::pthread_attr_setdetachstate(&mut attributes, libc::PTHREAD_CREATE_DETACHED);
        libc::pthread_attr_setstacksize(&mut attributes, 128 << 10);
        let mut thread = 0;
        libc::pthread_create(&mut thread, &attributes, run, argument)
    }
}

/// No test has a handler in the allocator.
pub unsafe extern "C" fn may_create_thread(_blocked: u64) -> bool {
    true
}

pub unsafe extern "C-unwind" fn sleep(
    word: *const u32,
    expected: u32,
    never_restarts: bool,
) -> c_int {
    let far = libc::timespec { tv_sec: 1 << 30, tv_nsec: 0 };
    let limit = if never_restarts { &raw const far } else { std::ptr::null() };
    let operation = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: the word and the time outlive the call; `errno` is the calling thread's own.
    unsafe {
        match libc::syscall(libc::SYS_futex, word, operation, expected, limit) {
            -1 => *libc::__errno_location(),
            _ => 0,
        }
    }
}

/// The CPUs that this process may use.
pub fn cpus() -> Vec<u32> {
    // SAFETY: zero is a value of the structure.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sched_getaffinity(0, size_of_val(&set), &mut set);
        (0..1024).filter(|cpu| libc::CPU_ISSET(*cpu, &set)).map(|cpu| cpu as u32).collect()
    }
}

pub struct Rig {
    pub steer: &'static Offload,
    pub moved: AtomicU64,
    pub in_place: AtomicU64,
}

impl Rig {
    pub fn new(mechanism: Mechanism) -> &'static Self {
        Self::with_sleep(mechanism, sleep)
    }

    /// A rig that has its workers already, for tests in which several threads make their first
    /// calls at the same time. Otherwise, a thread that finds another one making a worker waits for
    /// some milliseconds, and executes its call in place if the machine is too busy.
    pub fn ready(mechanism: Mechanism) -> &'static Self {
        let rig = Self::new(mechanism);
        let routes: Vec<_> = cpus().iter().map(|_| rig.steer.open()).collect();
        for route in routes {
            rig.call(route, libc::SYS_getpid, &[], Kind::Quick);
            rig.steer.close(route);
        }
        rig
    }

    pub fn with_sleep(mechanism: Mechanism, sleep: Sleep) -> &'static Self {
        Self::with(mechanism, sleep, create_thread)
    }

    pub fn with(mechanism: Mechanism, sleep: Sleep, create_thread: CreateThread) -> &'static Self {
        Self::start(mechanism, Rule::First, sleep, create_thread)
    }

    pub fn with_rule(mechanism: Mechanism, rule: Rule) -> &'static Self {
        Self::start(mechanism, rule, sleep, create_thread)
    }

    fn start(
        mechanism: Mechanism,
        rule: Rule,
        sleep: Sleep,
        create_thread: CreateThread,
    ) -> &'static Self {
        let mut groups = Groups::new();
        assert!(groups.begin() && cpus().iter().all(|cpu| groups.add(*cpu)));
        let steer: &'static Offload = Box::leak(Box::default());
        steer.start(&Settings {
            mechanism,
            groups,
            rule,
            bypass: false,
            may_create_thread,
            create_thread,
            sleep,
            say: |_| {},
        });
        Box::leak(Box::new(Self { steer, moved: 0.into(), in_place: 0.into() }))
    }

    /// Makes a call as the library does: elsewhere, or in place if it is not moved.
    pub fn call(&self, route: Route, number: i64, args: &[usize], kind: Kind) -> isize {
        let mut call = Call { number: number as usize, args: [0; 6] };
        call.args[..args.len()].copy_from_slice(args);
        // SAFETY: what the arguments point to outlives the call.
        let answer = unsafe { self.steer.perform(&route, &call, kind, &PendingCall::default()) };
        match answer {
            Ok(answer) => {
                self.moved.fetch_add(1, Ordering::Relaxed);
                answer
            }
            Err(reason) => {
                assert_ne!(reason, Reason::Off);
                println!("call {number} stays in place: {reason:?}");
                self.in_place.fetch_add(1, Ordering::Relaxed);
                let [a, b, c, d, e, f] = call.args;
                // SAFETY: what the test's arguments lead to outlives the call.
                match unsafe { libc::syscall(number, a, b, c, d, e, f) } {
                    // SAFETY: `errno` is the calling thread's own, at the address that libc
                    // returns.
                    -1 => -unsafe { *libc::__errno_location() } as isize,
                    result => result as isize,
                }
            }
        }
    }

    pub fn read(&self, route: Route, fd: i32, buffer: &mut [u8]) -> isize {
        let args = [fd as usize, buffer.as_mut_ptr() as usize, buffer.len()];
        self.call(route, libc::SYS_read, &args, Kind::Waits)
    }

    pub fn write(&self, route: Route, fd: i32, bytes: &[u8]) -> isize {
        let args = [fd as usize, bytes.as_ptr() as usize, bytes.len()];
        self.call(route, libc::SYS_write, &args, Kind::Waits)
    }

    pub fn close(&self, route: Route, fd: i32) -> isize {
        self.call(route, libc::SYS_close, &[fd as usize], Kind::Quick)
    }

    /// The CPUs that the thread which executes calls on a route may use.
    pub fn executed_within(&self, route: Route) -> Vec<u32> {
        let mut mask = [0_u8; 128];
        let args = [0, mask.len(), mask.as_mut_ptr() as usize];
        let length = self.call(route, libc::SYS_sched_getaffinity, &args, Kind::Quick);
        assert!(length > 0, "{length}");
        (0..1024).filter(|cpu| mask[*cpu as usize / 8] >> (cpu % 8) & 1 != 0).collect()
    }

    pub fn moved(&self) -> u64 {
        self.moved.load(Ordering::Relaxed)
    }

    pub fn in_place(&self) -> u64 {
        self.in_place.load(Ordering::Relaxed)
    }
}

pub fn socketpair(kind: c_int) -> [i32; 2] {
    let mut pair = [0; 2];
    // SAFETY: writes two descriptors into the array.
    assert_eq!(unsafe { libc::socketpair(libc::AF_UNIX, kind, 0, pair.as_mut_ptr()) }, 0);
    pair
}

/// Waits until a thread is probably asleep in a call. Tests pass however short the wait is; a long
/// one makes them stricter.
pub fn a_while() {
    std::thread::sleep(std::time::Duration::from_millis(100));
}
