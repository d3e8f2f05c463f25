//! The observations of the kernel agree with the facts: on a lock that is contended on purpose, and
//! by two means at once.
//!
//! Where the kernel does not permit it, these tests say so and end.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::FromRawFd;
use std::ptr::null_mut;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use manycore_kernel_trace::{KernelLock, Means, Request, Scope, Seen, Watch};
use manycore_profile::profile::Source;

/// Threads that wait.
const WAITERS: u32 = 3;
/// For this long, from when all of them wait.
const HELD: Duration = Duration::from_millis(150);
/// More than a terminal keeps for its reader.
const LONG: usize = 1 << 20;

/// Both ends of a terminal: data written to the second is read from the first.
fn terminal() -> (File, File) {
    let (mut master, mut slave) = (-1, -1);
    // SAFETY: both numbers are variables of ours, and nothing else is wanted.
    let failed =
        unsafe { libc::openpty(&mut master, &mut slave, null_mut(), null_mut(), null_mut()) };
    assert_eq!(failed, 0, "{}", io::Error::last_os_error());
    // SAFETY: just opened, and no other thread has them.
    unsafe { (File::from_raw_fd(master), File::from_raw_fd(slave)) }
}

/// Waits until a thread of this process sleeps at two polls in a row. At a single poll it may be
/// waiting for the channel.
fn until_it_sleeps(thread: libc::pid_t) {
    let deadline = Instant::now() + Duration::from_secs(30);
    let mut asleep = 0;
    while asleep < 2 {
        let stat = std::fs::read_to_string(format!("/proc/self/task/{thread}/stat")).unwrap();
        let sleeps = stat.rsplit_once(") ").unwrap().1.starts_with(['S', 'D']);
        asleep = if sleeps { asleep + 1 } else { 0 };
        assert!(Instant::now() < deadline, "it never waits: {stat}");
        thread::sleep(Duration::from_millis(1));
    }
}

/// Makes one thread write more to a terminal than is read, so that it sleeps with the terminal's
/// lock. Other writing threads wait for that lock. Returns the time that all of them spent in the
/// call.
fn hold_up(meanwhile: impl FnOnce()) -> Duration {
    let (mut master, slave) = terminal();
    let (sender, threads) = mpsc::channel();
    let timed = |bytes: usize| {
        let bytes = vec![b'x'; bytes];
        // SAFETY: a system call without side effects.
        sender.send(unsafe { libc::gettid() }).unwrap();
        let start = Instant::now();
        (&slave).write_all(&bytes).unwrap();
        start.elapsed()
    };
    thread::scope(|scope| {
        scope.spawn(|| timed(LONG));
        until_it_sleeps(threads.recv().unwrap());
        let waiters: Vec<_> = (0..WAITERS).map(|_| scope.spawn(|| timed(1))).collect();
        threads.iter().take(WAITERS as usize).for_each(until_it_sleeps);
        thread::sleep(HELD);
        meanwhile();
        let mut all = vec![0; LONG + WAITERS as usize];
        master.read_exact(&mut all).unwrap();
        waiters.into_iter().map(|waiter| waiter.join().unwrap()).sum()
    })
}

/// A watch on this process; `None` with a message if it is impossible. The test's own output would
/// be swallowed.
fn watch(source: Source) -> Option<Watch> {
    let request = Request { scope: Scope::Process(std::process::id()) };
    match Watch::start(Means::Only(source), &request) {
        Ok(watch) => Some(watch),
        Err(why) => {
            let said = format!("skipped: the kernel does not permit this test: {why}\n");
            io::stderr().write_all(said.as_bytes()).unwrap();
            None
        }
    }
}

const LOCK: &str = "tty->atomic_write_lock";

fn of_the_terminal(seen: &Seen) -> &KernelLock {
    seen.locks.iter().find(|lock| lock.name == LOCK).unwrap_or_else(|| panic!("{seen:?}"))
}

// One test: others in this process would wait for locks of the kernel meanwhile.
#[test]
fn waits_are_as_long_as_they_were_and_both_means_agree() {
    let mut watches: Vec<_> = [Source::Bpf, Source::Perf].into_iter().filter_map(watch).collect();
    let mut until_then = Vec::new();
    let in_calls = hold_up(|| until_then.extend(watches.iter_mut().map(Watch::take)));
    let all: Vec<Seen> = watches
        .into_iter()
        .map(|mut watch| {
            let seen = watch.take();
            let rest = watch.finish();
            assert!(rest.locks.iter().all(|lock| lock.name != LOCK), "it counts once: {rest:?}");
            seen
        })
        .collect();
    // A wait is in the part in which it ends, and whole.
    for seen in &until_then {
        assert!(seen.locks.iter().all(|lock| lock.name != LOCK), "{seen:?}");
    }

    for seen in &all {
        assert_eq!(seen.run.scope, Scope::Process(std::process::id()));
        let lock = of_the_terminal(seen);
        assert_eq!((lock.kind.as_str(), lock.is_named, lock.objects), ("mutex", true, 1));
        assert_eq!((lock.contended, lock.wait.count), (WAITERS.into(), WAITERS.into()), "{lock:?}");
        assert_eq!(seen.locks[0].name, lock.name, "{seen:?}");
        // Each call was one wait, and the writing of a byte.
        let waited = Duration::from_nanos(lock.wait.total_ns);
        assert!(waited <= in_calls, "{waited:?} of {in_calls:?}: {lock:?}");
        assert!(waited >= in_calls.mul_f64(0.9), "{waited:?} of {in_calls:?}: {lock:?}");
        assert!(waited >= HELD * WAITERS, "{lock:?}");
        assert!(lock.spin_ns <= lock.wait.total_ns / 10, "its owner slept: {lock:?}");
        assert_eq!(lock.stacks.iter().map(|stack| stack.waits).sum::<u64>(), lock.contended);
        assert_eq!(lock.stacks.iter().map(|stack| stack.wait_ns).sum::<u64>(), lock.wait.total_ns);
        assert_eq!(seen.run.dropped, 0, "{:?}", seen.run);
    }
    let totals: Vec<_> =
        all.iter().map(|seen| of_the_terminal(seen).wait.total_ns as f64).collect();
    if let [bpf, perf] = totals[..] {
        assert!((bpf / perf - 1.0).abs() < 0.1, "{bpf} and {perf}");
    }
}
