//! Measures the cost of a moved call: pairs of `sendto` and `recvfrom` over loopback, in place and
//! by each mechanism.
//!
//! `cargo run --release -p manycore-syscalls --example udp [ROUNDS]`: the ways alternate for ROUNDS
//! rounds (default 15). It prints the median time of a pair, in microseconds, the range that
//! contains the median with 95 % confidence, and the number of moved calls.

use std::ffi::{c_int, c_void};
use std::time::Instant;

#[path = "../src/offload/mod.rs"]
#[allow(dead_code, unused_imports, reason = "a part is used")]
mod offload;

use offload::{Call, Groups, Kind, Mechanism, Offload, PendingCall, Rule, Settings};

const PAIRS: u32 = 20_000;

/// This program has no signal handlers.
unsafe extern "C" fn always(_blocked: u64) -> bool {
    true
}

unsafe extern "C" fn create_thread(
    run: extern "C" fn(*mut c_void) -> *mut c_void,
    argument: *mut c_void,
) -> c_int {
    let mut thread = 0;
    // SAFETY: the function takes the argument, as the library says; the attributes are the usual
    // ones.
    unsafe { libc::pthread_create(&mut thread, std::ptr::null(), run, argument) }
}

unsafe extern "C-unwind" fn sleep(word: *const u32, expected: u32, _: bool) -> c_int {
    let operation = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
    let forever = std::ptr::null::<libc::timespec>();
    // SAFETY: the kernel reads the word, which outlives the call.
    unsafe { libc::syscall(libc::SYS_futex, word, operation, expected, forever) };
    0
}

/// The CPUs that this process may use.
fn cpus() -> Vec<u32> {
    // SAFETY: the kernel writes the set, for which zero is a valid value.
    let set = unsafe {
        let mut set = std::mem::zeroed();
        libc::sched_getaffinity(0, size_of_val(&set), &mut set);
        set
    };
    // SAFETY: the numbers are below 1024, the size of a set.
    (0..1024).filter(|cpu| unsafe { libc::CPU_ISSET(*cpu, &set) }).map(|cpu| cpu as u32).collect()
}

fn steer(mechanism: Mechanism, bypass: bool) -> &'static Offload {
    let mut groups = Groups::new();
    assert!(groups.begin() && cpus().iter().all(|cpu| groups.add(*cpu)));
    let steer: &'static Offload = Box::leak(Box::default());
    steer.start(&Settings {
        mechanism,
        groups,
        rule: Rule::First,
        bypass,
        may_create_thread: always,
        create_thread,
        sleep,
        say: |parts| eprintln!("{}", String::from_utf8_lossy(&parts.concat())),
    });
    steer
}

/// A way of making calls, with a socket of its own that sends to itself.
struct Way {
    name: &'static str,
    steer: &'static Offload,
    route: offload::Route,
    socket: std::net::UdpSocket,
    times: Vec<f64>,
    moved: u64,
}

impl Way {
    fn new(name: &'static str, mechanism: Mechanism, bypass: bool) -> Self {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").expect("a socket");
        socket.connect(socket.local_addr().expect("its address")).expect("itself");
        let steer = steer(mechanism, bypass);
        Self { name, steer, route: steer.open(), socket, times: Vec::new(), moved: 0 }
    }

    fn call(&mut self, number: i64, buffer: &mut [u8; 64]) {
        let socket = std::os::fd::AsRawFd::as_raw_fd(&self.socket) as usize;
        let args = [socket, buffer.as_mut_ptr() as usize, buffer.len(), 0, 0, 0];
        let call = Call { number: number as usize, args };
        let flight = PendingCall::default();
        let [socket, buffer, length, ..] = args;
        // SAFETY: the buffer is there until the call is over.
        let make = || unsafe { libc::syscall(number, socket, buffer, length, 0, 0, 0) };
        let answer = match self.steer.bypass(&self.route) {
            Some(timer) => {
                let answer = make() as isize;
                self.steer.stop(&self.route, timer);
                answer
            }
            None => {
                // SAFETY: the buffer is there until the call is over, and the flight is empty.
                let answer =
                    unsafe { self.steer.perform(&self.route, &call, Kind::Waits, &flight) };
                self.moved += u64::from(answer.is_ok());
                answer.unwrap_or_else(|_| make() as isize)
            }
        };
        assert_eq!(answer, 64);
    }

    fn round(&mut self) {
        let mut buffer = [7; 64];
        let start = Instant::now();
        for _ in 0..PAIRS {
            self.call(libc::SYS_sendto, &mut buffer);
            self.call(libc::SYS_recvfrom, &mut buffer);
        }
        self.times.push(start.elapsed().as_secs_f64() * 1e6 / f64::from(PAIRS));
    }

    /// Prints the median, and the order statistics that enclose it with 95 % confidence.
    fn show(&mut self) {
        self.times.sort_by(f64::total_cmp);
        let n = self.times.len();
        let reach = (0.98 * (n as f64).sqrt()).ceil() as usize;
        let at = |index: usize| self.times[index.min(n - 1)];
        let (low, high) = (at((n / 2).saturating_sub(reach)), at(n / 2 + reach));
        let moved = 50.0 * self.moved as f64 / (n as f64 * f64::from(PAIRS));
        let (name, median) = (self.name, at(n / 2));
        println!("{name:10} {median:6.2} us   {low:6.2} .. {high:6.2}   {moved:5.1} % moved");
    }
}

fn main() {
    let rounds = std::env::args().nth(1).map_or(15, |n| n.parse().expect("a number of rounds"));
    let mut ways: Vec<_> =
        Mechanism::ALL.map(|m| Way::new(m.name(), m, false)).into_iter().collect();
    ways.push(Way::new("bypass", Mechanism::Pool, true));
    for _ in 0..rounds {
        ways.iter_mut().for_each(Way::round);
    }
    println!("sendto + recvfrom of 64 bytes, median of {rounds} rounds of {PAIRS} pairs:");
    ways.iter_mut().for_each(Way::show);
}
