//! Tests of the kernel in itself: `test` on the command line, or `test=PREFIX`.

mod library;
mod locks;
mod memory;
mod shelves;
mod threads;

use alloc::sync::Arc;
use core::sync::atomic::{AtomicU32, Ordering};

use crate::arch::cpu;
use crate::println;
use crate::sync::wait::{Patience, WaitQueue};
use crate::task::thread;
use crate::watch::counters::{Event, total};

/// A test panics if it fails.
type Test = (&'static str, fn());

/// Runs the tests whose names begin with `prefix`; returns whether there were any. The kernel stops
/// at the first failure.
pub fn run(prefix: &str) -> bool {
    let groups = [threads::TESTS, locks::TESTS, shelves::TESTS, memory::TESTS, library::TESTS];
    let all = groups.iter().copied().flatten();
    let mut count = 0;
    for (name, test) in all.filter(|(name, _)| name.starts_with(prefix)) {
        println!("test {name}");
        test();
        count += 1;
    }
    assert!(total(Event::KernelFaults) == 0, "the kernel has faulted on its own memory");
    println!("{count} tests on {} cpus", cpu::count());
    count > 0
}

/// Runs `work` in a thread on each CPU, and waits until all have ended.
pub fn on_all_cpus(work: impl Fn(usize) + Send + Sync + 'static) {
    in_threads(cpu::count(), |number| 1 << number, work);
}

/// Runs `work` in threads, on the CPUs that `affinity` says, and waits until all have ended.
fn in_threads(
    count: usize,
    affinity: impl Fn(usize) -> u64,
    work: impl Fn(usize) + Send + Sync + 'static,
) {
    let shared = Arc::new((work, AtomicU32::new(0), WaitQueue::new()));
    for number in 0..count {
        let shared = shared.clone();
        thread::spawn_on(affinity(number), move || {
            (shared.0)(number);
            shared.1.fetch_add(1, Ordering::Release); // Release: partner of the Acquire below
            shared.2.wake_all();
        });
    }
    // Acquire: partner of the Release above: what the threads did is over.
    let all = || (shared.1.load(Ordering::Acquire) as usize == count).then_some(());
    shared.2.wait(Patience::ENDLESS, all).expect("nothing ends the wait but the threads");
}
