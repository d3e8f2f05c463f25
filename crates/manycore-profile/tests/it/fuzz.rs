//! Whatever a statistics file contains, it is read to the end, and the profile is made: a program
//! may overwrite its own file, and any user may write a file of that name. Whatever a file contains
//! that is given as a profile, it is refused with a sentence, or drawn in all forms.

use std::fs;
use std::mem::offset_of;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use crate::support::{Synthetic, run};
use manycore_profile::analyze::process::StatsFile;
use manycore_profile::profile::read;
use manycore_profile::render::{diff, folded, page, trace};
use manycore_stats::{Kind, Mapping};

/// Where the parts of the file begin.
const PARTS: [usize; 11] = [
    offset_of!(Mapping, header),
    offset_of!(Mapping, records),
    offset_of!(Mapping, distributions),
    offset_of!(Mapping, slabs),
    offset_of!(Mapping, modules),
    offset_of!(Mapping, stacks),
    offset_of!(Mapping, sites),
    offset_of!(Mapping, thread_entries),
    offset_of!(Mapping, waits),
    offset_of!(Mapping, blocked),
    offset_of!(Mapping, orders),
];

/// An input is a sequence of writes. Each has a part, a word of it, and a value.
const WRITE: usize = 1 + 2 + 8;

/// What is there, as words.
fn words(file: &Synthetic) -> &[AtomicU64] {
    let mapping = file.get();
    // SAFETY: it consists of atomics of eight bytes each; no other code has it.
    unsafe { std::slice::from_raw_parts((&raw const *mapping).cast(), size_of_val(mapping) / 8) }
}

#[test]
fn statistics() {
    let directory = tempfile::tempdir().unwrap();
    let file = Synthetic::new(directory.path(), 7);
    let program = std::env::current_exe().unwrap();
    file.module(0x1000, 0x9000, 0, &program);
    let (number, record) = file.record(Kind::Mutex, 0x5000, &[0x1234, 0x2345]);
    record.acquired.store(1000, Relaxed);
    file.wait(record, &[100, 200, 3000]);
    file.hold(record, &[50, 60]);
    file.waited_at(number, &[0x1300], &[100, 200]);
    file.slot(0, number);
    file.waits(1, 8, number, 5000);

    let words = words(&file);
    let ones = [[1; WRITE], [255; WRITE], [0; WRITE]].concat();
    manycore_fuzz::bytes_of_much(
        "the statistics of a process",
        &[&ones, &[2; 20 * WRITE]],
        |input| {
            let writes: Vec<_> = input
                .chunks_exact(WRITE)
                .map(|write| {
                    let part = PARTS[usize::from(write[0]) % PARTS.len()] / 8;
                    // Mostly what is near the beginning, where the used ones are.
                    let word = usize::from(u16::from_le_bytes([write[1], write[2]])) % 700;
                    let value = u64::from_le_bytes(write[3..].try_into().unwrap());
                    (&words[(part + word).min(words.len() - 1)], value)
                })
                .collect();
            let before: Vec<_> =
                writes.iter().map(|(word, value)| word.swap(*value, Relaxed)).collect();
            if let Ok(Some(stats)) = StatsFile::<Mapping>::open(&file.path) {
                _ = manycore_profile::analyze::live::Snapshot::at(stats.get(), Some(1_000_000));
                let stats = manycore_profile::analyze::process::ProcessStats::read(stats.get());
                _ = manycore_profile::analyze::assemble::assemble(run(), &[stats]);
            }
            for ((word, _), before) in writes.iter().zip(before).rev() {
                word.store(before, Relaxed);
            }
        },
    );
}

/// Files of any length and content are refused, or parsed as empty.
#[test]
fn files_that_are_none() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("7-1.stats");
    manycore_fuzz::bytes("a file", &[&[0; 4096]], |input| {
        fs::write(&path, input).unwrap();
        let refused = StatsFile::<Mapping>::open(&path).expect_err("it is too short");
        assert!(refused.to_string().contains("7-1.stats"), "{refused}");
    });
}

#[test]
fn profiles_in_files() {
    let profile = crate::render::made_up::profile(3, 2);
    let valid = serde_json::to_string(&profile).unwrap();
    manycore_fuzz::texts("a profile", &[&valid], |text| match read::from_text("a.json", text) {
        Ok(profile) => {
            _ = page::html(&profile);
            _ = folded::folded(&profile);
            _ = trace::trace(&profile).to_string();
            _ = diff::diff(&profile, &profile);
        }
        Err(why) => assert!(why.to_string().contains("a.json"), "{why}"),
    });
}
