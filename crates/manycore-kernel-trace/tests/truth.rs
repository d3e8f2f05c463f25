//! What is seen of the kernel is what happened: on a lock that is contended on purpose, and by two means at once.
//!
//! Where the kernel does not permit it, these tests say so and end.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use manycore_kernel_trace::{KernelLock, Means, Request, Scope, Seen, Watch};
use manycore_profile::profile::Source;

const THREADS: usize = 4;
const WRITES: usize = 12;

/// Threads that write to one open file, each for long: they wait for the file's position. Gives the time that all of
/// them spent in the calls.
fn hammer() -> Duration {
    let file = tempfile::tempfile().unwrap();
    let bytes = vec![1; 4 << 20];
    let write = |mut file: &File| {
        file.write_all(&bytes).unwrap();
        file.seek(SeekFrom::Start(0)).unwrap();
    };
    let timed = |run: &dyn Fn()| {
        let start = Instant::now();
        run();
        start.elapsed()
    };
    let barrier = Barrier::new(THREADS);
    thread::scope(|scope| {
        let thread = || {
            barrier.wait();
            (0..WRITES).map(|_| timed(&|| write(&file))).sum::<Duration>()
        };
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(thread)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    })
}

/// A watch on this process, or why there is none; the test's own output would be swallowed.
fn watch(source: Source) -> Option<Watch> {
    let request = Request { scope: Scope::Process(std::process::id()) };
    match Watch::start(Means::Only(source), &request) {
        Ok(watch) => Some(watch),
        Err(why) => {
            io::stderr()
                .write_all(
                    format!("skipped: the kernel does not permit this test: {why}\n").as_bytes(),
                )
                .unwrap();
            None
        }
    }
}

fn of_the_file(seen: &Seen) -> &KernelLock {
    seen.locks.iter().find(|lock| lock.kind == "mutex").unwrap_or_else(|| panic!("{seen:?}"))
}

// One test: others in this process would wait for locks of the kernel meanwhile.
#[test]
fn the_contended_lock_is_on_top_and_both_means_agree() {
    let watches: Vec<_> = [Source::Bpf, Source::Perf].into_iter().filter_map(watch).collect();
    let in_calls = hammer();
    let all: Vec<Seen> = watches.into_iter().map(Watch::finish).collect();

    for seen in &all {
        assert_eq!(seen.run.scope, Scope::Process(std::process::id()));
        let lock = of_the_file(seen);
        assert_eq!((lock.name.as_str(), lock.is_named), ("file->f_pos_lock", true), "{lock:?}");
        assert_eq!(seen.locks[0].name, lock.name, "{seen:?}");
        // Threads take turns: at most all but one wait at a time.
        let waited = Duration::from_nanos(lock.wait.total_ns);
        assert!(waited < in_calls, "{waited:?} of {in_calls:?}: {lock:?}");
        assert!(lock.contended <= 2 * (THREADS * WRITES) as u64, "{lock:?}");
        assert_eq!(lock.wait.count, lock.contended);
        assert!(lock.spin_ns <= lock.wait.total_ns && lock.objects == 1, "{lock:?}");
        assert_eq!(lock.stacks.iter().map(|stack| stack.waits).sum::<u64>(), lock.contended);
        assert_eq!(lock.stacks.iter().map(|stack| stack.wait_ns).sum::<u64>(), lock.wait.total_ns);
    }
    let totals: Vec<_> = all.iter().map(|seen| of_the_file(seen).wait.total_ns as f64).collect();
    if let [bpf, perf] = totals[..] {
        assert!((bpf / perf - 1.0).abs() < 0.1, "{bpf} and {perf}");
    }
}
