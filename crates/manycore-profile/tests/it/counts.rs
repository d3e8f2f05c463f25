//! Counts are added up exactly, over threads, objects and processes, and the parts of the CPU time
//! are disjoint.

use std::path::Path;
// Relaxed throughout: one thread writes, and reads afterwards.
use std::sync::atomic::Ordering::Relaxed;

use crate::support::{Synthetic, profile_of, run};
use manycore_profile::analyze::assemble::assemble;
use manycore_profile::analyze::process::StatsFile;
use manycore_profile::profile::{End, Exit, Profile};
use manycore_stats::{Kind, Mapping};

fn lock<'a>(profile: &'a Profile, name: &str) -> &'a manycore_profile::profile::Lock {
    let found = profile.locks.iter().find(|lock| lock.name.contains(name));
    found.unwrap_or_else(|| panic!("{name} is not among {:#?}", profile.locks))
}

const PROGRAM: &str = "/nonexistent/server";

fn process(directory: &Path, pid: u32) -> Synthetic {
    let file = Synthetic::new(directory, pid);
    file.module(0x1000, 0x9000, 0, Path::new(PROGRAM));
    file
}

#[test]
fn a_lock_is_its_record_and_every_threads_counters() {
    let directory = tempfile::tempdir().unwrap();
    let file = process(directory.path(), 7);
    let (number, record) = file.record(Kind::RwLock, 0x2000, &[]);
    record.acquired.store(1, Relaxed);
    record.shared.store(20, Relaxed);
    record.handoffs.store(300, Relaxed);
    for slab in [0, 3, 8000] {
        let slot = file.slot(slab, number);
        slot.acquired.store(1000, Relaxed);
        slot.shared.store(10_000, Relaxed);
        slot.handoffs.store(100_000, Relaxed);
    }
    // A slot that was left to another record does not count for this one.
    file.slot(5, number + 64).acquired.store(77, Relaxed);

    let profile = profile_of(&[&file]);
    let lock = lock(&profile, "server+0x1000");
    assert_eq!(
        (lock.exclusive, lock.shared, lock.acquired, lock.handoffs),
        (3001, 30_020, 33_021, 300_300)
    );
    assert_eq!((lock.kind.as_str(), lock.objects, lock.wait.count), ("rwlock", 1, 0));
    assert_eq!(lock.wait.mean_ns, None);
}

#[test]
fn waits_and_holds_have_their_distributions() {
    let directory = tempfile::tempdir().unwrap();
    let file = process(directory.path(), 7);
    let (_, record) = file.record(Kind::Mutex, 0x2000, &[]);
    record.acquired.store(1000, Relaxed);
    file.wait(record, &[100; 198]);
    file.wait(record, &[5000, 9000]);
    file.hold(record, &[10, 30]);

    let lock = &profile_of(&[&file]).locks[0];
    assert_eq!((lock.contended, lock.contended_share), (200, 0.2));
    assert_eq!(
        (lock.wait.total_ns, lock.wait.mean_ns, lock.wait.max_ns),
        (33_800, Some(169), Some(9000))
    );
    let p99 = lock.wait.p99_ns.unwrap();
    assert!((4000..6000).contains(&p99), "{p99}");
    assert_eq!((lock.hold.count, lock.hold.mean_ns, lock.hold.max_ns), (2, Some(20), Some(30)));
    assert!(lock.hold.p99_ns.unwrap() <= 30);
}

#[test]
fn objects_that_were_first_used_at_one_place_are_one_lock() {
    let directory = tempfile::tempdir().unwrap();
    let file = process(directory.path(), 7);
    for (waits, frame) in [(&[300][..], 0x3000), (&[100], 0x3000), (&[], 0x3000), (&[1], 0x3008)] {
        file.used(Kind::Mutex, 0xdead_0000, &[frame], 10, waits);
    }
    file.used(Kind::Recursive, 0xdead_0000, &[0x3000], 5, &[]);

    let profile = profile_of(&[&file]);
    let [first, second, third] = &profile.locks[..] else { panic!("{:#?}", profile.locks) };
    assert_eq!((first.name.as_str(), first.objects, first.acquired), ("server+0x2000", 3, 30));
    assert_eq!(first.hottest_share, 0.75);
    assert_eq!((second.name.as_str(), second.acquired), ("server+0x2008", 10));
    assert_eq!((third.kind.as_str(), third.acquired), ("recursive", 5));
}

#[test]
fn a_tree_has_a_profile_for_each_process_and_the_sum() {
    let directory = tempfile::tempdir().unwrap();
    let files: Vec<_> = [7, 8, 9, 10].map(|pid| process(directory.path(), pid)).into();
    for (file, waits) in files.iter().zip([&[500][..], &[200, 200], &[100]]) {
        file.used(Kind::Mutex, 0x2000, &[0x3000], 10, waits);
        file.used(Kind::Mutex, 0xbad_0000, &[0x3000], 1, &[]);
    }
    files[0].get().header.ended.store(1, Relaxed);
    // Number 10 used no lock, and is what number 9 became.
    files[3].get().header.pid.store(9, Relaxed);

    let mut run = run();
    run.running = vec![8];
    run.exit = Exit::Signal(9);
    let stats: Vec<_> = files.iter().map(Synthetic::read).collect();
    let profile = assemble(run, &stats);
    assert_eq!(profile.locks.len(), 2);
    assert_eq!((profile.locks[0].acquired, profile.locks[0].wait.total_ns), (30, 1000));
    // The same variable in three processes is three objects.
    assert_eq!((profile.locks[0].objects, profile.locks[1].acquired), (3, 3));
    assert_eq!(profile.locks[0].hottest_share, 0.5);
    let ends: Vec<_> =
        profile.processes.iter().map(|p| (p.pid, p.end, p.locks[0].acquired)).collect();
    assert_eq!(ends, [(7, End::Exited, 10), (8, End::Running, 10), (9, End::Replaced, 10)]);
    assert_eq!(profile.processes[0].program, "server");
    assert_eq!(profile.exit, Exit::Signal(9));
}

#[test]
fn the_parts_of_the_cpu_time_are_disjoint() {
    let directory = tempfile::tempdir().unwrap();
    let file = process(directory.path(), 7);
    let (_, record) = file.record(Kind::Mutex, 0x2000, &[]);
    record.acquired.store(1, Relaxed);
    file.wait(record, &[625_000_000; 8]);
    // One wait in eight was measured: two seconds in all.
    record.sampled.store(1, Relaxed);
    record.spin_ns.store(250_000_000, Relaxed);
    let (_, cond) = file.record(Kind::Cond, 0x3000, &[]);
    file.wait(cond, &[9_000_000_000]);
    cond.spin_ns.store(1_000_000_000, Relaxed);

    let profile = profile_of(&[&file]);
    let cpu = profile.cpu;
    assert_eq!((cpu.lock_spin, cpu.lock_wait), (2.0, 3.0));
    assert!((cpu.kernel + cpu.program + cpu.lock_spin - 10.0).abs() < 1e-9, "{cpu:?}");
    assert!((cpu.kernel / cpu.program - 3.0 / 7.0).abs() < 1e-9, "{cpu:?}");
    assert_eq!((profile.locks.len(), profile.conditions.len()), (1, 1));
    assert_eq!(
        (profile.conditions[0].waits, profile.conditions[0].wait.total_ns),
        (1, 9_000_000_000)
    );
}

#[test]
fn what_found_no_record_is_named_as_such() {
    let directory = tempfile::tempdir().unwrap();
    let file = process(directory.path(), 7);
    let rest = &file.get().records[0];
    rest.acquired.store(5, Relaxed);
    rest.contended.store(1, Relaxed);
    rest.wait.store(10, Relaxed);
    rest.wait_max.store(10, Relaxed);
    file.get().distributions[0].wait.count(10);
    file.get().header.unrecorded.store(3, Relaxed);

    let profile = profile_of(&[&file]);
    assert_eq!((profile.locks[0].objects, profile.locks[0].acquired), (3, 5));
    // The distribution is everyone's, so it tells nothing of this one.
    assert_eq!((profile.locks[0].wait.p99_ns, profile.locks[0].wait.max_ns), (None, Some(10)));
    assert_eq!(profile.processes[0].unrecorded, 3);
}

#[test]
fn bad_files_are_named() {
    let directory = tempfile::tempdir().unwrap();
    let refused = |path: &Path| StatsFile::<Mapping>::open(path).unwrap_err().to_string();
    let path = directory.path().join("x.stats");
    assert!(refused(&path).contains("x.stats: No such file"));

    std::fs::write(&path, b"short").unwrap();
    assert!(refused(&path).contains("5 bytes instead of"), "{}", refused(&path));

    let file = std::fs::File::options().write(true).open(&path).unwrap();
    file.set_len(size_of::<Mapping>() as u64).unwrap();
    assert!(refused(&path).contains("this version"), "{}", refused(&path));

    std::fs::write(&path, vec![0; size_of::<Mapping>()]).unwrap();
    assert!(StatsFile::<Mapping>::open(&path).unwrap().is_none(), "nothing has been noted");

    // Other programs may make files that look like statistics: the command neither waits for them
    // nor follows them.
    let link = directory.path().join("link.stats");
    std::os::unix::fs::symlink(&path, &link).unwrap();
    assert!(refused(&link).contains("link.stats: "), "{}", refused(&link));
    let pipe = directory.path().join("pipe.stats");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for other in [&pipe, directory.path()] {
        assert!(refused(other).contains("it is no regular file"), "{}", refused(other));
    }
}
