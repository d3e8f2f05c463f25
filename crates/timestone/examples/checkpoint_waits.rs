//! How long commits wait, with an image being written beside them and without.
//!
//! ```text
//! cargo run --release -p timestone --example checkpoint_waits -- [DIRECTORY [MEGABYTES [SECONDS]]]
//! ```
//!
//! The store has values of 1000 bytes. Two threads change one value each, and wait until it is on
//! the disk. Rounds with and without an image alternate.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use timestone::{Map, Store};

type Failure = Box<dyn std::error::Error>;

const THREADS: u64 = 2;
const ROUNDS: usize = 5;
/// Words of a value.
const WORDS: usize = 125;

fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let parent = arguments.next().map_or_else(|| ".".into(), PathBuf::from);
    let megabytes: u64 = arguments.next().map_or(Ok(100), |text| text.parse())?;
    let seconds: f64 = arguments.next().map_or(Ok(1.0), |text| text.parse())?;
    let directory = tempfile::tempdir_in(parent)?;
    let store = Store::open(directory.path())?;
    let map: Map<u64, [u64; WORDS]> = store.map("values")?;
    let keys = megabytes * 1_000_000 / (WORDS as u64 * 8);
    let mut me = store.register()?;
    for first in (0..keys).step_by(50) {
        let chunk = first..keys.min(first + 50);
        me.run(|tx| chunk.clone().try_for_each(|key| map.insert(tx, key, [key; WORDS]).map(drop)))?;
    }
    store.checkpoint()?;
    println!("{keys} values, {THREADS} threads; waits of commits in milliseconds");
    for _ in 0..ROUNDS {
        let (waits, _) = round(&store, map, keys, Duration::from_secs_f64(seconds), false)?;
        print("no image", &waits, Duration::ZERO);
        let (waits, image) = round(&store, map, keys, Duration::from_secs_f64(seconds), true)?;
        print("an image", &waits, image);
    }
    Ok(())
}

/// The waits of all commits, sorted, and how long the image took. With an image, the round is as
/// long as that takes.
fn round(
    store: &Store,
    map: Map<u64, [u64; WORDS]>,
    keys: u64,
    time: Duration,
    with_image: bool,
) -> Result<(Vec<Duration>, Duration), Failure> {
    let is_over = AtomicBool::new(false);
    let mut image = Duration::ZERO;
    let mut waits = Vec::new();
    std::thread::scope(|scope| -> Result<(), Failure> {
        let threads: Vec<_> = (0..THREADS)
            .map(|thread| {
                let is_over = &is_over;
                scope.spawn(move || commit(store, map, keys, thread, is_over))
            })
            .collect();
        let mut written = Ok(());
        if with_image {
            std::thread::sleep(Duration::from_millis(20));
            let start = Instant::now();
            written = store.checkpoint();
            image = start.elapsed();
        } else {
            std::thread::sleep(time);
        }
        // Relaxed: a hint to stop.
        is_over.store(true, Ordering::Relaxed);
        written?;
        for thread in threads {
            waits.extend(thread.join().expect("a thread that does not panic")?);
        }
        Ok(())
    })?;
    waits.sort_unstable();
    Ok((waits, image))
}

fn commit(
    store: &Store,
    map: Map<u64, [u64; WORDS]>,
    keys: u64,
    thread: u64,
    is_over: &AtomicBool,
) -> timestone::Result<Vec<Duration>> {
    let mut me = store.register()?;
    let mut rng = fastrand::Rng::with_seed(thread);
    let mut waits = Vec::new();
    // Relaxed: as above.
    while !is_over.load(Ordering::Relaxed) {
        let key = rng.u64(0..keys);
        let start = Instant::now();
        me.run(|tx| map.update(tx, &key, |value| value[0] += 1))?;
        waits.push(start.elapsed());
    }
    Ok(waits)
}

fn print(what: &str, waits: &[Duration], image: Duration) {
    let at = |part: f64| waits[((waits.len() - 1) as f64 * part) as usize].as_secs_f64() * 1e3;
    println!(
        "{what}: {:6} commits, median {:.2}, p99 {:.2}, longest {:.2}; image {:.0} ms",
        waits.len(),
        at(0.5),
        at(0.99),
        at(1.0),
        image.as_secs_f64() * 1e3
    );
}
