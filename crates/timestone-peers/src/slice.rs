//! One slice: threads that read and put, for a while.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use fastrand::Rng;

use crate::engine::{Engine, Failure};
use crate::written::Written;

/// Keys in the store.
pub const KEYS: u64 = 10_000;

/// What is done.
#[derive(Clone, Copy, Debug)]
pub struct Point {
    pub threads: usize,
    /// How many of a hundred operations put.
    pub update: u64,
    /// Keys of a transaction that puts.
    pub batch: usize,
    /// Transactions that a thread begins before it waits for them; with 0, it waits for each.
    pub in_flight: usize,
}

/// Puts all keys, and waits until all workers read them.
pub fn fill(engine: &dyn Engine) -> Result<(), Failure> {
    let mut worker = engine.worker()?;
    let keys: Vec<_> = (0..KEYS).collect();
    keys.chunks(500).try_for_each(|keys| worker.begin_put(keys, 1))?;
    worker.finish()
}

/// The results of a slice; storing a key is an operation.
#[derive(Clone, Copy, Debug, Default)]
pub struct Slice {
    /// Operations a second, of all threads.
    pub rate: f64,
    /// Those that have put.
    pub puts: u64,
    /// What the process has written meanwhile.
    pub written: Written,
}

pub fn run(engine: &dyn Engine, point: Point, time: Duration, seed: u64) -> Result<Slice, Failure> {
    let before = Written::so_far()?;
    let mut slice = run_threads(engine, point, time, seed)?;
    slice.written = Written::so_far()?.since(before);
    Ok(slice)
}

fn run_threads(
    engine: &dyn Engine,
    point: Point,
    time: Duration,
    seed: u64,
) -> Result<Slice, Failure> {
    let (end, start) = (AtomicBool::new(false), Barrier::new(point.threads + 1));
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..point.threads)
            .map(|thread| {
                let (end, start) = (&end, &start);
                scope.spawn(move || {
                    let worker = engine.worker();
                    start.wait();
                    work(worker?, point, end, Rng::with_seed(seed ^ thread as u64))
                })
            })
            .collect();
        start.wait();
        std::thread::sleep(time);
        // Relaxed: a hint to stop.
        end.store(true, Ordering::Relaxed);
        let mut all = Slice::default();
        for thread in threads {
            let (rate, puts) = thread.join().expect("a worker that does not panic")?;
            all.rate += rate;
            all.puts += puts;
        }
        Ok(all)
    })
}

/// Operations a second of one thread, which counts none that it has not waited for; and how many of
/// them have put.
fn work(
    mut worker: Box<dyn crate::engine::Worker + '_>,
    point: Point,
    end: &AtomicBool,
    mut rng: Rng,
) -> Result<(f64, u64), Failure> {
    let mut keys = vec![0; point.batch];
    let (mut operations, mut puts, mut begun) = (0, 0, 0);
    let start = Instant::now();
    // Relaxed: as above.
    while !end.load(Ordering::Relaxed) {
        if rng.u64(0..100) >= point.update {
            let value = worker.get(rng.u64(0..KEYS))?;
            assert!(value.is_some(), "a key that was put");
            operations += 1;
            continue;
        }
        keys.fill_with(|| rng.u64(0..KEYS));
        operations += point.batch;
        puts += point.batch as u64;
        if point.in_flight == 0 {
            worker.put(&keys, operations as u64)?;
            continue;
        }
        worker.begin_put(&keys, operations as u64)?;
        begun += 1;
        if begun == point.in_flight {
            worker.finish()?;
            begun = 0;
        }
    }
    worker.finish()?;
    Ok((operations as f64 / start.elapsed().as_secs_f64(), puts))
}
