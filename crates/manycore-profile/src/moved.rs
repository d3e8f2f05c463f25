//! Which system calls of a program were executed by other threads, and which not: read from what its processes left behind.
//!
//! See [`crate::layout::syscalls`] for the files, which can be read while the program runs and after it has died by any means.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use memmap2::{MmapOptions, MmapRaw};
use serde::Serialize;

use crate::clock::Rate;
use crate::layout::Histogram;
use crate::layout::syscalls::{Function, MAGIC, Mapping, Outcome};

/// The calls of a program, all processes together.
#[derive(Debug, Default, PartialEq, Serialize)]
pub struct MovedCalls {
    /// The version of this model.
    pub schema: u32,
    /// Who executed moved calls: `thread`, `pool`, `uring`; `in-place` if nobody was to.
    pub mechanism: String,
    /// The CPUs on which they could be executed.
    pub cpus: Vec<u32>,
    /// Processes that left statistics.
    pub processes: u32,
    /// Calls that another thread executed.
    pub moved: u64,
    /// Calls that were executed in place because moving costs more than it saves.
    pub bypassed: u64,
    /// Calls on sockets that were executed in place for other reasons.
    pub in_place: u64,
    /// Calls on other descriptors.
    pub others: u64,
    /// How long moved calls took from the caller's side, in nanoseconds; none if none was moved.
    pub latency_ns: Option<Latency>,
    /// By function, the most moved first, then the most called.
    pub functions: Vec<FunctionCalls>,
}

/// Quantiles, in nanoseconds, right to about 20 %.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Latency {
    /// Half of the calls took less.
    pub p50: u64,
    /// One in a hundred took more.
    pub p99: u64,
    /// One in a thousand took more.
    pub p999: u64,
    /// The longest, which may have waited for others.
    pub max: u64,
}

/// The calls of one function.
#[derive(Debug, PartialEq, Serialize)]
pub struct FunctionCalls {
    /// Its name in C.
    pub name: &'static str,
    /// How many another thread executed.
    pub moved: u64,
    /// How many were executed in place, by reason.
    pub in_place: BTreeMap<&'static str, u64>,
}

impl FunctionCalls {
    /// All of them.
    pub fn all(&self) -> u64 {
        self.moved + self.in_place.values().sum::<u64>()
    }
}

impl MovedCalls {
    /// Adds up what all processes have left in a directory until now.
    ///
    /// # Errors
    ///
    /// If the directory cannot be read. A file that is being made, or is none of ours, is passed over.
    pub fn read(directory: &Path, rate: &Rate) -> io::Result<Self> {
        let mut sum = Sum::default();
        for entry in fs::read_dir(directory)? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "syscalls")
                && let Some(map) = open(&path)
            {
                // SAFETY: of this size, and all of it is atomics.
                sum.add(unsafe { &*map.as_ptr().cast::<Mapping>() });
            }
        }
        Ok(sum.finish(rate))
    }
}

/// Maps a file of the right size and version.
fn open(path: &Path) -> Option<MmapRaw> {
    let file = File::open(path).ok()?;
    if file.metadata().ok()?.len() < size_of::<Mapping>() as u64 {
        return None;
    }
    let map = MmapOptions::new().map_raw_read_only(&file).ok()?;
    // SAFETY: of this size, and all of it is atomics.
    let mapping = unsafe { &*map.as_ptr().cast::<Mapping>() };
    // Acquire: partner of the library's Release; whoever sees the magic sees the header.
    (mapping.header.magic.load(Ordering::Acquire) == MAGIC).then_some(map)
}

/// What is added up.
#[derive(Default)]
struct Sum {
    calls: MovedCalls,
    counts: BTreeMap<(u8, u8), u64>,
    latency: Histogram,
}

impl Sum {
    fn add(&mut self, mapping: &Mapping) {
        // Relaxed: counters, or written before the header's magic.
        let number = |word: &AtomicU64| word.load(Ordering::Relaxed);
        let header = &mapping.header;
        let name = header.mechanism.iter().flat_map(|word| number(word).to_le_bytes());
        let name: Vec<u8> = name.take_while(|byte| *byte != 0).collect();
        self.calls.mechanism = String::from_utf8_lossy(&name).into_owned();
        let has = |cpu: &u32| number(&header.cpus[*cpu as usize / 64]) >> (cpu % 64) & 1 != 0;
        self.calls.cpus.extend((0..64 * header.cpus.len() as u32).filter(has));
        self.calls.processes += 1;
        for shard in &mapping.shards {
            self.latency.add(&shard.latency);
            for (function, outcomes) in shard.calls.iter().enumerate() {
                for (outcome, count) in outcomes.iter().enumerate() {
                    let count = number(count);
                    if count != 0 {
                        *self.counts.entry((function as u8, outcome as u8)).or_default() += count;
                    }
                }
            }
        }
    }

    fn finish(self, rate: &Rate) -> MovedCalls {
        let Self { mut calls, counts, latency } = self;
        calls.schema = 1;
        calls.cpus.sort_unstable();
        calls.cpus.dedup();
        for function in Function::ALL {
            let mut sums =
                FunctionCalls { name: function.name(), moved: 0, in_place: BTreeMap::new() };
            for outcome in Outcome::ALL {
                let key = (*function as u8, *outcome as u8);
                let Some(count) = counts.get(&key) else { continue };
                match outcome {
                    Outcome::Moved | Outcome::Abandoned => sums.moved += count,
                    _ => _ = sums.in_place.insert(outcome.name(), *count),
                }
                *match outcome {
                    Outcome::Moved | Outcome::Abandoned => &mut calls.moved,
                    Outcome::Bypassed => &mut calls.bypassed,
                    Outcome::Plain | Outcome::Stream | Outcome::Unknown => &mut calls.others,
                    _ => &mut calls.in_place,
                } += count;
            }
            if sums.all() != 0 {
                calls.functions.push(sums);
            }
        }
        calls.functions.sort_by_key(|function| std::cmp::Reverse((function.moved, function.all())));
        let quantile = |q| latency.quantile(q).map(|ticks| rate.ns(ticks) as u64);
        let latency = quantile(0.5).zip(quantile(0.99)).zip(quantile(0.999).zip(quantile(1.0)));
        calls.latency_ns = latency.map(|((p50, p99), (p999, max))| Latency { p50, p99, p999, max });
        calls
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    const RATE: Rate = Rate { ticks_per_ns: 2.0, origin: 0 };

    /// A file as a process leaves it.
    fn leave(directory: &Path, name: &str, count: impl FnOnce(&Mapping)) {
        // SAFETY: numbers, for which zero is a value.
        let mapping: Box<Mapping> = unsafe { Box::new_zeroed().assume_init() };
        mapping.header.magic.store(MAGIC, Ordering::Relaxed);
        count(&mapping);
        // SAFETY: as many bytes as it has, all of them initialised.
        let bytes = unsafe {
            std::slice::from_raw_parts(
                std::ptr::from_ref(&*mapping).cast::<u8>(),
                size_of::<Mapping>(),
            )
        };
        File::create(directory.join(name)).unwrap().write_all(bytes).unwrap();
    }

    #[test]
    fn processes_and_cpus_are_added_up() {
        let directory = tempfile::tempdir().unwrap();
        leave(directory.path(), "1-1.syscalls", |mapping| {
            mapping.header.cpus[0].store(0b101, Ordering::Relaxed);
            mapping.header.mechanism[0]
                .store(u64::from_le_bytes(*b"pool\0\0\0\0"), Ordering::Relaxed);
            mapping.count(0, Function::Read, Outcome::Moved);
            mapping.count(65, Function::Read, Outcome::Moved);
            mapping.shards[1].latency.count(2_000);
        });
        leave(directory.path(), "2-1.syscalls", |mapping| {
            mapping.header.cpus[1].store(1, Ordering::Relaxed);
            mapping.count(0, Function::Read, Outcome::Bypassed);
            mapping.count(0, Function::Poll, Outcome::SignalMask);
            mapping.count(0, Function::Write, Outcome::Plain);
        });
        File::create(directory.path().join("3-1.syscalls")).unwrap();
        let calls = MovedCalls::read(directory.path(), &RATE).unwrap();
        assert_eq!((calls.processes, &calls.cpus[..]), (2, &[0, 2, 64][..]));
        assert_eq!((calls.moved, calls.bypassed, calls.in_place, calls.others), (2, 1, 1, 1));
        let read = &calls.functions[0];
        assert_eq!((read.name, read.moved, read.all()), ("read", 2, 3));
        let p50 = calls.latency_ns.unwrap().p50;
        assert!((800..1250).contains(&p50), "{p50}");
    }

    #[test]
    fn another_version_is_passed_over() {
        let directory = tempfile::tempdir().unwrap();
        leave(directory.path(), "1-1.syscalls", |mapping| {
            mapping.header.magic.store(MAGIC + 1, Ordering::Relaxed);
        });
        let calls = MovedCalls::read(directory.path(), &RATE).unwrap();
        assert_eq!((calls.processes, calls.latency_ns), (0, None));
    }
}
