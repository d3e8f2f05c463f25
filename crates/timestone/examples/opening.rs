//! How long it takes to open a store: one that a crash has left with a long journal, and one that
//! was closed with many objects.
//!
//! ```text
//! cargo run --release -p timestone --example opening -- [DIRECTORY [JOURNAL [OBJECTS [TIMES]]]]
//! ```
//!
//! `JOURNAL` are the mebibytes of frames that are in the journal: updates of 10,000 numbers, 40
//! bytes each. `OBJECTS` are the megabytes of values of 1000 bytes. The files are in the page cache
//! as far as it has room. Each store is opened `TIMES` times, and all durations are shown.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use timestone::{Map, Options, Store};

type Failure = Box<dyn std::error::Error>;

const KEYS: u64 = 10_000;
/// Updates on their way at a time.
const IN_FLIGHT: usize = 4096;
/// Words of a value of 1000 bytes.
const WORDS: usize = 125;

fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let parent = arguments.next().map_or_else(|| ".".into(), PathBuf::from);
    let journal: u64 = arguments.next().map_or(Ok(128), |text| text.parse())?;
    let objects: u64 = arguments.next().map_or(Ok(1000), |text| text.parse())?;
    let times: usize = arguments.next().map_or(Ok(5), |text| text.parse())?;
    let directory = tempfile::tempdir_in(parent)?;
    after_a_crash(&directory.path().join("crashed"), journal << 20, times)?;
    after_a_close(&directory.path().join("closed"), objects * 1_000_000, times)
}

/// The journal is so long that it does not become half full: otherwise an image would be written.
fn journal_options(bytes: u64) -> Options {
    Options::default().with_journal_bytes(2 * bytes + (4 << 20))
}

fn after_a_crash(path: &Path, bytes: u64, times: usize) -> Result<(), Failure> {
    let store = Store::open_with(path, journal_options(bytes))?;
    let map: Map<u64, u64> = store.map("numbers")?;
    let mut me = store.register()?;
    me.run(|tx| (0..KEYS).step_by(10).try_for_each(|key| map.insert(tx, key, 0).map(drop)))?;
    store.checkpoint()?;
    let before = store.stats();
    let mut updates = 0;
    while store.stats().frame_bytes - before.frame_bytes < bytes {
        let mut last = None;
        for _ in 0..IN_FLIGHT {
            updates += 1;
            last = Some(me.submit(|tx| map.insert(tx, updates * 7 % KEYS, updates))?);
        }
        last.map_or(Ok(()), |ticket| ticket.wait())?;
    }
    let images = store.stats().images - before.images;
    if images > 0 {
        return Err(format!("{images} images were written: this journal is not as long").into());
    }
    let written = store.stats().frame_bytes - before.frame_bytes;
    println!("after a crash: {updates} transactions, {written} bytes of frames");
    for _ in 0..times {
        // The state that the operating system has, as after killing the process.
        let copy = path.with_extension("copy");
        std::fs::create_dir(&copy)?;
        for file in ["store", "journal", "image.0", "image.1"] {
            std::fs::copy(path.join(file), copy.join(file))?;
        }
        let (opened, took) = open(&copy, journal_options(bytes))?;
        let recovered = opened.stats().recovered;
        if recovered < updates {
            return Err(format!("{recovered} transactions of {updates} were recovered").into());
        }
        print(took, recovered as f64, "transactions");
        drop(opened);
        std::fs::remove_dir_all(&copy)?;
    }
    Ok(())
}

fn after_a_close(path: &Path, bytes: u64, times: usize) -> Result<(), Failure> {
    let store = Store::open(path)?;
    let map: Map<u64, [u64; WORDS]> = store.map("values")?;
    let mut me = store.register()?;
    let keys = bytes / (WORDS as u64 * 8);
    for first in (0..keys).step_by(50) {
        let chunk = first..keys.min(first + 50);
        let put = |key| [key; WORDS];
        // All are on the disk when the store is closed.
        _ = me.submit(|tx| {
            chunk.clone().try_for_each(|key| map.insert(tx, key, put(key)).map(drop))
        })?;
    }
    drop(me);
    store.close()?;
    println!("after a close: {keys} values of {} bytes", WORDS * 8);
    for _ in 0..times {
        let (opened, took) = open(path, Options::default())?;
        print(took, bytes as f64, "bytes");
        let found = opened.register()?.read(|now| map.get(now, &(keys - 1)));
        if found != Some([keys - 1; WORDS]) {
            return Err("the last value is not there".into());
        }
        opened.close()?;
    }
    Ok(())
}

fn open(path: &Path, options: Options) -> Result<(Store, Duration), Failure> {
    let start = Instant::now();
    let store = Store::open_with(path, options)?;
    Ok((store, start.elapsed()))
}

fn print(took: Duration, count: f64, what: &str) {
    let seconds = took.as_secs_f64();
    println!("  {seconds:.3} s, {:.0} {what} a second", count / seconds);
}
