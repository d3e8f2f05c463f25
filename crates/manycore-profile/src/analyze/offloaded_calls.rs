//! The system calls of a program that other threads executed, and those that stayed in place: read
//! from the files of its processes.
//!
//! See [`manycore_stats::syscalls`] for the files, which can be read while the program runs and
//! after it has died by any means.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::clock::Rate;
use crate::profile::{FunctionCalls, Latency, MovedCalls, SYSTEM_CALLS_SCHEMA};
use manycore_stats::Histogram;
use manycore_stats::syscalls::{Function, Mapping, Outcome};

/// The sums over the processes of a program.
#[derive(Debug, Default)]
pub struct Tally {
    calls: MovedCalls,
    counts: BTreeMap<(u8, u8), u64>,
    latency: Histogram,
    quick: Histogram,
    programs: BTreeSet<(u32, PathBuf)>,
}

impl Tally {
    /// Whether a process has left anything while it was this program.
    pub fn has(&self, pid: u32, program: &Path) -> bool {
        self.programs.contains(&(pid, program.to_owned()))
    }

    /// Adds what a process has counted until now.
    pub fn add(&mut self, mapping: &Mapping) {
        // Relaxed: counters, or written before the header's magic.
        let number = |word: &AtomicU64| word.load(Ordering::Relaxed);
        let bytes = |words: &[AtomicU64]| -> Vec<u8> {
            let bytes = words.iter().flat_map(|word| number(word).to_le_bytes());
            bytes.take_while(|byte| *byte != 0).collect()
        };
        let header = &mapping.header;
        self.calls.mechanism = String::from_utf8_lossy(&bytes(&header.mechanism)).into_owned();
        let program = PathBuf::from(OsString::from_vec(bytes(&header.program)));
        self.programs.insert((header.pid.load(Ordering::Relaxed), program));
        let sets =
            [(&mut self.calls.cpus, &header.cpus), (&mut self.calls.cpus_used, &header.used)];
        for (all, words) in sets {
            let has = |cpu: &u32| number(&words[*cpu as usize / 64]) >> (cpu % 64) & 1 != 0;
            all.extend((0..64 * words.len() as u32).filter(has));
            all.sort_unstable();
            all.dedup();
        }
        self.calls.processes += 1;
        for shard in &mapping.shards {
            self.latency.add(&shard.latency);
            self.quick.add(&shard.quick);
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

    /// The sums.
    pub fn finish(self, rate: &Rate) -> MovedCalls {
        let Self { mut calls, counts, latency, quick, .. } = self;
        calls.schema = SYSTEM_CALLS_SCHEMA;
        for function in Function::ALL {
            let mut sums =
                FunctionCalls { name: function.name().to_owned(), ..FunctionCalls::default() };
            for outcome in Outcome::ALL {
                let key = (*function as u8, *outcome as u8);
                let Some(count) = counts.get(&key) else { continue };
                let (of_all, of_function) = match outcome {
                    Outcome::Moved | Outcome::Abandoned => (&mut calls.moved, &mut sums.moved),
                    Outcome::Bypassed => (&mut calls.bypassed, &mut sums.bypassed),
                    Outcome::Plain | Outcome::Stream | Outcome::Unknown => {
                        (&mut calls.others, &mut sums.others)
                    }
                    _ => (&mut calls.in_place, &mut sums.in_place),
                };
                *of_all += count;
                *of_function += count;
                if !matches!(outcome, Outcome::Moved | Outcome::Abandoned) {
                    sums.reasons.insert(outcome.name().to_owned(), *count);
                }
            }
            if sums.all() != 0 {
                calls.functions.push(sums);
            }
        }
        calls.functions.sort_by_key(|function| std::cmp::Reverse((function.moved, function.all())));
        calls.latency_ns = quantiles(&latency, rate);
        calls.quick_ns = quantiles(&quick, rate);
        calls
    }
}

/// None if nothing was measured.
fn quantiles(ticks: &Histogram, rate: &Rate) -> Option<Latency> {
    let quantile = |q| ticks.quantile(q).map(|ticks| rate.ns(ticks) as u64);
    let (p50, p99) = quantile(0.5).zip(quantile(0.99))?;
    let (p999, max) = quantile(0.999).zip(quantile(1.0))?;
    Some(Latency { p50, p99, p999, max })
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Write;

    use super::*;
    use crate::analyze::process::StatsFile;
    use manycore_stats::syscalls::MAGIC;

    const RATE: Rate = Rate { ticks_per_ns: 2.0, origin: 0 };

    /// A file as a process leaves it.
    fn leave(directory: &Path, name: &str, count: impl FnOnce(&Mapping)) -> PathBuf {
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
        let path = directory.join(name);
        File::create(&path).unwrap().write_all(bytes).unwrap();
        path
    }

    #[test]
    fn processes_and_cpus_are_added_up() {
        let directory = tempfile::tempdir().unwrap();
        let first = leave(directory.path(), "1-1.syscalls", |mapping| {
            mapping.header.pid.store(1, Ordering::Relaxed);
            mapping.header.program[0]
                .store(u64::from_le_bytes(*b"/a\0\0\0\0\0\0"), Ordering::Relaxed);
            mapping.header.cpus[0].store(0b101, Ordering::Relaxed);
            mapping.header.mechanism[0]
                .store(u64::from_le_bytes(*b"pool\0\0\0\0"), Ordering::Relaxed);
            mapping.count(0, Function::Read, Outcome::Moved);
            mapping.count(65, Function::Read, Outcome::Moved);
            mapping.shards[1].latency.count(200_000);
            mapping.shards[1].quick.count(2_000);
            mapping.header.used[0].store(0b100, Ordering::Relaxed);
        });
        let second = leave(directory.path(), "2-1.syscalls", |mapping| {
            mapping.header.cpus[1].store(1, Ordering::Relaxed);
            mapping.count(0, Function::Read, Outcome::Bypassed);
            mapping.count(0, Function::Read, Outcome::Stream);
            mapping.count(0, Function::Poll, Outcome::SignalMask);
            mapping.count(0, Function::Write, Outcome::Plain);
        });
        let mut tally = Tally::default();
        for path in [first, second] {
            tally.add(StatsFile::open(&path).unwrap().unwrap().get());
        }
        assert!(tally.has(1, Path::new("/a")));
        assert!(!tally.has(1, Path::new("/b")) && !tally.has(2, Path::new("/a")));
        let calls = tally.finish(&RATE);
        assert_eq!((calls.processes, &calls.cpus[..]), (2, &[0, 2, 64][..]));
        assert_eq!((calls.moved, calls.bypassed, calls.in_place, calls.others), (2, 1, 1, 2));
        let read = &calls.functions[0];
        assert_eq!((read.name.as_str(), read.moved, read.bypassed), ("read", 2, 1));
        assert_eq!((read.in_place, read.others, read.all()), (0, 1, 4));
        assert_eq!(read.reasons["a stream of stdio"], 1);
        assert!(!read.reasons.contains_key("moved"));
        assert_eq!(calls.cpus_used, [2]);
        assert!(calls.latency_ns.unwrap().p50 > 50_000, "{calls:?}");
        let p50 = calls.quick_ns.unwrap().p50;
        assert!((800..1250).contains(&p50), "{p50}");
    }

    #[test]
    fn a_file_of_another_version_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let other = leave(directory.path(), "1-1.syscalls", |mapping| {
            mapping.header.magic.store(MAGIC + 1, Ordering::Relaxed);
        });
        let said = StatsFile::<Mapping>::open(&other).unwrap_err().to_string();
        assert!(said.contains("1-1.syscalls") && said.contains("of one build"), "{said}");
        let made = leave(directory.path(), "3-1.syscalls", |mapping| {
            mapping.header.magic.store(0, Ordering::Relaxed);
        });
        assert!(StatsFile::<Mapping>::open(&made).unwrap().is_none(), "it is being made");
    }
}
