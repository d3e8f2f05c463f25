//! A profile of the largest possible statistics of a process is made fast, and in little memory.

#[path = "it/support.rs"]
mod support;

use std::path::Path;
// Relaxed throughout: one thread writes, and reads afterwards.
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use manycore_profile::analyze::assemble::assemble;
use manycore_stats::{FRAMES, FRAMES_OF_LOCK, Kind, RECORDS, SITES, SLOTS, STACKS, STACKS_FULL};
use support::{Synthetic, run};

const THREADS: usize = 2_000;
const CONTENDED: u64 = 10_000_000;
/// The places where locks were created, except for the first entry, which is no stack.
const LOCK_STACKS: usize = 1_001;

/// An address in this program, which has line tables. Each number has an address a few bytes after
/// that of the one before.
fn address(number: usize, text: (u64, u64)) -> u64 {
    text.0 + (number as u64 * 7) % (text.1 - text.0)
}

#[test]
fn full_tables_are_read_in_little_memory() {
    let directory = tempfile::tempdir().unwrap();
    let file = Synthetic::new(directory.path(), 1);
    let program = std::env::current_exe().unwrap();
    // As if it were loaded at its own addresses; where its text is does not matter much.
    let text = (0x10_0000, 0x10_8000);
    file.module(0, text.1, 0, &program);
    for number in 0..20 {
        file.module(text.1 << (number + 1), (text.1 << (number + 1)) + 1, 0, Path::new("/other"));
    }
    for number in 1..STACKS {
        let calls = match number {
            ..LOCK_STACKS => FRAMES_OF_LOCK,
            LOCK_STACKS..STACKS_FULL => FRAMES,
            _ => 1,
        };
        let frames: Vec<_> = (0..calls).map(|at| address(number * at + number, text)).collect();
        file.stack(&frames);
    }
    let contended = CONTENDED / (RECORDS - 1) as u64;
    for number in 1..RECORDS {
        let (_, record) = file.record(Kind::Mutex, 1 << 60, &[]);
        record.stack.store(1 + (number % (LOCK_STACKS - 1)) as u32, Relaxed);
        record.contended.store(contended, Relaxed);
        record.wait.store(contended * 1000, Relaxed);
    }
    for thread in 0..THREADS {
        for slot in 0..SLOTS {
            let record = 1 + (thread * SLOTS + slot) % (RECORDS - SLOTS);
            file.slot(thread, record as u32).acquired.store(100, Relaxed);
        }
    }
    for number in 1..SITES {
        let site = &file.get().sites[number];
        site.record.store(1 + (number % (LOCK_STACKS - 1)) as u32, Relaxed);
        site.stack.store((number % STACKS) as u32, Relaxed);
        site.waits.store(10, Relaxed);
        site.wait.store(10_000, Relaxed);
    }
    file.get().header.sites.store(SITES as u32, Relaxed);

    let started = Instant::now();
    let profile = assemble(run(), &[file.read()]);
    let json = serde_json::to_string(&profile).unwrap();
    eprintln!("{:?}, {} MiB of JSON", started.elapsed(), json.len() >> 20);

    let sum =
        |of: fn(&manycore_profile::profile::Lock) -> u64| profile.locks.iter().map(of).sum::<u64>();
    assert_eq!(sum(|lock| lock.objects), RECORDS as u64 - 1);
    assert_eq!(sum(|lock| lock.contended), contended * (RECORDS as u64 - 1));
    assert_eq!(sum(|lock| lock.acquired), (THREADS * SLOTS * 100) as u64);
    let listed: u64 = profile.stacks.iter().map(|stack| stack.waits).sum();
    assert_eq!(listed, 10 * (SITES as u64 - 1));
    let peak = peak_mib();
    assert!(peak < 512, "{peak} MiB");
}

/// The most memory that this process has used, in MiB, statistics file included.
fn peak_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").trim().parse::<u64>().unwrap() / 1024
}
