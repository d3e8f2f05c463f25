//! A slice waits no longer for its end than it should. Threads that do not end stay behind in this
//! process, which is why these tests are not with the others.

use std::time::{Duration, Instant};

use manycore::sync::atomic::{AtomicU32, Ordering};
use manycore::sync::hint;
use manycore_bench::contender::Contender;
use manycore_bench::mix::Mix;
use manycore_bench::slice::{self, Pinning, Settings};
use manycore_bench::work::{Length, Pace};

fn settings() -> Settings {
    Settings {
        threads: 4,
        mix: Mix::uniform(1, Length::exponential(1_000.0), Length::fixed(2_000.0), 0.0),
        pinning: Pinning::Auto,
        warm_up: Duration::from_millis(5),
        measured: Duration::from_millis(40),
        drain: Duration::from_millis(100),
        sample: 3,
        pace: Pace::measure(),
        seed: 1,
    }
}

/// Makes every thread wait for a minute.
struct Shut;

impl Contender for Shut {
    fn new() -> Self {
        Self
    }

    fn exclusive<R>(&self, section: impl FnOnce() -> R) -> R {
        std::thread::sleep(Duration::from_secs(60));
        section()
    }
}

fn threads_that_do_not_end_are_left_behind() {
    let settings = settings();
    let start = Instant::now();
    let slice = slice::run::<Shut>(&settings).unwrap();
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
    assert_eq!(slice.counts, [0; 4]);
    // A busy machine may not even start some of them before the end.
    assert!((1..=4).contains(&slice.stuck), "{slice:?}");
    assert!(slice.waits.quantile(0.5).unwrap() >= 100e6);
}

/// Serves strictly in order of arrival and never gives up a CPU: with more threads than CPUs each
/// hand-over can wait for the scheduler.
struct Ticket {
    next: AtomicU32,
    serving: AtomicU32,
}

impl Contender for Ticket {
    fn new() -> Self {
        Self { next: AtomicU32::new(0), serving: AtomicU32::new(0) }
    }

    fn exclusive<R>(&self, section: impl FnOnce() -> R) -> R {
        let ticket = self.next.fetch_add(1, Ordering::Relaxed); // Relaxed: `serving` orders the sections
        // Acquire: partner of the Release below.
        while self.serving.load(Ordering::Acquire) != ticket {
            hint::spin_loop();
        }
        let result = section();
        // Release: partner of the Acquire above.
        self.serving.store(ticket.wrapping_add(1), Ordering::Release);
        result
    }
}

fn spinning_in_order_with_many_threads_ends_in_time() {
    let settings = Settings { threads: 32, ..settings() };
    let start = Instant::now();
    let slice = slice::run::<Ticket>(&settings).unwrap();
    // 45 ms, the drain, and a machine that is busy with other things; in order, 32 threads would
    // take a second or more.
    assert!(start.elapsed() < Duration::from_secs(20), "{:?}", start.elapsed());
    assert_eq!(slice.counts.len(), 32);
    assert!(slice.stuck < 32 && slice.throughput() > 0.0, "{slice:?}");
}

#[test]
fn slices_end_in_time() {
    threads_that_do_not_end_are_left_behind();
    // This is the last one, because the threads that it leaves behind keep the CPUs busy.
    spinning_in_order_with_many_threads_ends_in_time();
}
