//! The clock by which waiters wait, against the system's.

use std::time::{Duration, Instant};

use manycore::sync::time;

#[test]
fn a_nanosecond_is_one() {
    let (start, first) = (Instant::now(), time::now());
    std::thread::sleep(Duration::from_millis(20));
    let at_least = start.elapsed();
    let passed = time::now() - first;
    let at_most = start.elapsed();
    let ratio = |elapsed: Duration| passed as f64 / elapsed.as_nanos() as f64;
    assert!(ratio(at_least) > 0.95 && ratio(at_most) < 1.05, "{passed} ns of {at_least:?}");
}

/// Several threads measure the clock at the same time, as in the other tests. All of them get the
/// same length of a nanosecond.
#[test]
fn time_does_not_jump() {
    let looks = std::thread::scope(|s| {
        let threads: Vec<_> = (0..8).map(|_| s.spawn(time::now)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
    });
    let between = looks.iter().max().unwrap() - looks.iter().min().unwrap();
    assert!(between < 1_000_000_000, "{looks:?}");
}

#[test]
fn a_delay_lasts_as_long() {
    let start = Instant::now();
    time::delay(3_000_000);
    assert!(start.elapsed() > Duration::from_micros(2_850), "{:?}", start.elapsed());
}
