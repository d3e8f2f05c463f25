//! The run as a whole: threads, intervals, and what would help.

use std::path::Path;
// Relaxed throughout: one thread writes, and reads afterwards.
use std::sync::atomic::Ordering::Relaxed;

use crate::support::{Synthetic, profile_of, run};
use manycore_profile::analyze::assemble::{Run, Watched, assemble};
use manycore_profile::analyze::futex::{Count, FutexWaits, Futexes};
use manycore_profile::analyze::process::key;
use manycore_profile::analyze::run_analysis::threads::Seen;
use manycore_profile::analyze::run_analysis::timeline::TimelineBuilder;
use manycore_profile::profile::{Cause, Profile, Timeline};
use manycore_stats::{Kind, Record};

fn process(directory: &Path) -> Synthetic {
    let file = Synthetic::new(directory, 7);
    file.get().header.thread_entries.store(1, Relaxed);
    file.module(0x1000, 0x9000, 0, Path::new("/nonexistent/server"));
    file
}

/// A thread with this many acquisitions in its slab and in its entry.
fn thread(file: &Synthetic, number: u32, record: u32, in_slab: u64, in_thread_entry: u64) {
    file.get().header.thread_entries.fetch_max(number + 1, Relaxed);
    let thread_entry = &file.get().thread_entries[number as usize];
    thread_entry.thread.store(100 + number, Relaxed);
    thread_entry.acquired.store(in_thread_entry, Relaxed);
    thread_entry.name[0].store(u64::from_le_bytes(*b"worker\0\0"), Relaxed);
    let slot = file.slot(number as usize, record);
    slot.acquired.store(in_slab, Relaxed);
    file.get().slabs[number as usize].thread_entry.store(number, Relaxed);
}

fn waited(file: &Synthetic, at: usize, thread_entry: u64, record: u32, contended: u64, ticks: u64) {
    let place = &file.get().waits[at];
    place.key.store(thread_entry << 32 | u64::from(record), Relaxed);
    place.contended.store(contended, Relaxed);
    place.wait.store(ticks, Relaxed);
    file.get().thread_entries[thread_entry as usize].wait.fetch_add(ticks, Relaxed);
}

#[test]
fn threads_have_what_is_in_their_slabs_and_what_has_left_them() {
    let directory = tempfile::tempdir().unwrap();
    let file = process(directory.path());
    let (first, _) = file.record(Kind::Mutex, 0x2000, &[]);
    let (second, _) = file.record(Kind::Mutex, 0x3000, &[]);
    thread(&file, 1, first, 10, 5);
    thread(&file, 2, first, 20, 0);
    thread(&file, 3, second, 1, 0);
    waited(&file, 9, 2, first, 3, 3_000_000_000);
    waited(&file, 10, 2, second, 1, 1_000_000_000);
    let ended = &file.get().thread_entries[1];
    ended.user_ns.store(2_000_000_000, Relaxed);
    ended.kernel_ns.store(1_000_000_000, Relaxed);
    ended.contended.store(16, Relaxed);
    ended.sampled.store(2, Relaxed);
    ended.spin_ns.store(125_000_000, Relaxed);
    ended.wait.store(1_500_000_000, Relaxed);
    ended.ended.store(1, Relaxed);
    file.get().thread_entries[2].cpu_ns.store(4_000_000_000, Relaxed);

    let mut run = run();
    let seen = Seen { name: "main".into(), user: 1.5, kernel: 0.5, scheduled: None };
    run.watched.threads.insert((7, 102), seen.clone());
    run.watched.threads.insert((7, 101), seen);
    let threads = assemble(run, &[file.read()]).threads;
    let ids: Vec<_> = threads.iter().map(|t| (t.tid, t.name.as_str(), t.acquired)).collect();
    assert_eq!(ids, [(102, "main", 20), (101, "worker", 15), (103, "worker", 1)]);
    let of_second: Vec<_> = threads[0].waits.iter().map(|w| (w.contended, w.wait_ns)).collect();
    assert_eq!(of_second, [(3, 3_000_000_000), (1, 1_000_000_000)]);
    // Measured once more after it was seen: in the parts that were seen.
    assert_eq!((threads[0].cpu.program, threads[0].cpu.kernel), (3.0, 1.0));
    let cpu = threads[1].cpu;
    assert_eq!((cpu.lock_spin, cpu.lock_wait), (1.0, 0.5));
    assert!((cpu.kernel + cpu.program - 2.0).abs() < 1e-9, "{cpu:?}");
}

#[test]
fn threads_without_a_seat_are_one() {
    let directory = tempfile::tempdir().unwrap();
    let file = process(directory.path());
    let (number, _) = file.record(Kind::Mutex, 0x2000, &[]);
    thread(&file, 1, number, 10, 0);
    let others = &file.get().thread_entries[0];
    others.thread.store(3, Relaxed);
    others.acquired.store(77, Relaxed);
    let threads = profile_of(&[&file]).threads;
    assert_eq!(threads.len(), 2, "{threads:#?}");
    let last = &threads[1];
    assert_eq!((last.tid, last.name.as_str(), last.acquired), (0, "(3 more threads)", 77));
}

/// A process with a lock that threads wait for between any two samples; half of that wait is still
/// under way at the sample.
fn over_time(samples: u64) -> (Timeline, Profile) {
    let directory = tempfile::tempdir().unwrap();
    let file = process(directory.path());
    let (number, record) = file.record(Kind::Mutex, 0x2000, &[]);
    let slab = &file.get().slabs[0];
    file.slot(0, number).acquired.store(1, Relaxed);
    let mut recorder = TimelineBuilder::new(0.1);
    for sample in 1..=samples {
        record.contended.fetch_add(2, Relaxed);
        record.wait.fetch_add(500, Relaxed);
        slab.waiting.store(number, Relaxed);
        slab.waiting_since.store(1_000, Relaxed);
        let processes = [(key(file.get()), file.get())];
        let at = sample as f64 / 10.0;
        recorder.sample(at, (at / 2.0, at / 4.0), 1_500, processes);
        slab.waiting.store(0, Relaxed);
        record.wait.fetch_add(500, Relaxed);
    }
    let stats = [file.read()];
    let wall = samples as f64 / 10.0 + 0.05;
    recorder.end(wall, (wall / 2.0, wall / 4.0), &stats, &Futexes::default());
    let watched = Watched { timeline: Some(recorder), ..Watched::default() };
    let profile = assemble(Run { watched, ..run() }, &stats);
    (profile.timeline.clone().unwrap(), profile)
}

#[test]
fn waits_are_told_of_once_and_when_they_happen() {
    let (timeline, profile) = over_time(4);
    assert_eq!((timeline.interval, timeline.intervals.len()), (0.1, 5));
    let waits: Vec<_> = timeline.intervals.iter().map(|i| i.waits.first().copied()).collect();
    let ns: Vec<_> = waits.iter().map(|w| w.map_or(0, |w| (w.contended, w.wait_ns).1)).collect();
    // The first sample finds a wait that is counted and one under way.
    assert_eq!((ns[0], ns.iter().sum::<u64>()), (1_000, 4_000), "{ns:?}");
    let contended: u64 = waits.iter().flatten().map(|w| w.contended).sum();
    assert_eq!((contended, profile.locks[0].contended), (8, 8));
    for interval in &timeline.intervals[..4] {
        let cpu = interval.cpu;
        assert!((cpu.program - 0.05).abs() < 1e-9 && (cpu.kernel - 0.025).abs() < 1e-9, "{cpu:?}");
    }
}

#[test]
fn the_samples_stand_for_all_waits_as_in_the_whole_run() {
    let directory = tempfile::tempdir().unwrap();
    let file = process(directory.path());
    let (number, record) = file.record(Kind::Mutex, 0x2000, &[]);
    file.slot(0, number).acquired.store(100, Relaxed);
    let mut recorder = TimelineBuilder::new(0.1);
    // Chance measured one wait in three, and not one in eight as on average.
    for sample in 1..=4 {
        record.contended.fetch_add(3, Relaxed);
        record.wait.fetch_add(9_000_000, Relaxed);
        record.sampled.fetch_add(1, Relaxed);
        record.spin_ns.fetch_add(1_000_000, Relaxed);
        let at = f64::from(sample) / 10.0;
        recorder.sample(at, (at, at), 1_500, [(key(file.get()), file.get())]);
    }
    let stats = [file.read()];
    recorder.end(0.5, (0.5, 0.5), &stats, &Futexes::default());
    let watched = Watched { timeline: Some(recorder), ..Watched::default() };
    let profile = assemble(Run { watched, ..run() }, &stats);
    let spin = |cpu: manycore_profile::profile::Cpu| cpu.lock_spin;
    let timeline = profile.timeline.unwrap();
    let sum: f64 = timeline.intervals.iter().map(|interval| spin(interval.cpu)).sum();
    assert!((sum - 0.012).abs() < 1e-9, "{sum}");
    assert!((spin(profile.cpu) - sum).abs() < 1e-9, "{:?}", profile.cpu);
}

/// A process without the library; the kernel has seen its waits for a lock and for an event.
#[test]
fn futexes_of_the_programs_own_have_their_part() {
    let waits = |number, word, is_event| FutexWaits {
        process: 9,
        number: Some(number),
        word,
        is_event,
        calls: vec![0x1010],
        waits: 4,
        total_ns: 400_000,
        max_ns: 100_000,
        times: vec![(100_000, 4)],
        ..FutexWaits::default()
    };
    let mut futexes = Futexes::default();
    futexes.waits = vec![waits(0, 0xa000, false), waits(1, 0xb000, true)];
    let mut recorder = TimelineBuilder::new(0.1);
    for sample in 1..=4 {
        let at = f64::from(sample) / 10.0 - 0.01;
        recorder.sample(at, (at, 0.0), 0, []);
        // In the second interval no thread waits, and a part of the last wait is still under way.
        let (waits, total_ns) =
            [(1, 150_000), (1, 150_000), (3, 300_000), (3, 350_000)][sample as usize - 1];
        recorder.look_at_futexes(at, [0, 1].map(|number| Count { number, waits, total_ns }));
    }
    recorder.end(0.4, (0.4, 0.0), &[], &futexes);
    let watched = Watched { timeline: Some(recorder), futexes, ..Watched::default() };
    let profile = assemble(Run { watched, ..run() }, &[]);
    assert_eq!((profile.locks.len(), profile.conditions.len()), (1, 1), "{profile:#?}");
    let intervals = &profile.timeline.unwrap().intervals;
    let waited = |at: usize| match intervals[at].waits[..] {
        [] => (0, 0),
        [one] => (one.contended, one.wait_ns),
        _ => panic!("{intervals:#?}"),
    };
    let waited: Vec<_> = (0..intervals.len()).map(waited).collect();
    assert_eq!(waited[0], (1, 150_000));
    let (count, ns) = waited.iter().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    assert_eq!((count, ns), (4, 400_000), "{waited:?}");
    assert!(waited[1].1 < 20_000 && waited[2].1 > 100_000, "{waited:?}");
    let off: f64 = intervals.iter().map(|interval| interval.cpu.lock_wait).sum();
    assert!((off - 400e-6).abs() < 1e-9, "{off}");
}

#[test]
fn a_long_run_has_long_intervals() {
    let (timeline, profile) = over_time(1_000);
    assert_eq!(timeline.interval, 0.8);
    assert_eq!(timeline.intervals.len(), 126);
    let waits = timeline.intervals.iter().flat_map(|interval| &interval.waits);
    assert_eq!(waits.map(|w| w.wait_ns).sum::<u64>(), profile.locks[0].wait.total_ns);
    let cpu: f64 = timeline.intervals.iter().map(|i| i.cpu.program + i.cpu.kernel).sum();
    assert!((cpu - 100.05 * 0.75).abs() < 1e-6, "{cpu}");
}

fn causes(profile: &Profile) -> Vec<Cause> {
    profile.notes.iter().map(|note| note.cause).collect()
}

/// A lock for which threads waited a second, with other data.
fn one(kind: Kind, fill: impl FnOnce(&Synthetic, &Record)) -> Profile {
    let directory = tempfile::tempdir().unwrap();
    let file = process(directory.path());
    let (_, record) = file.record(kind, 0x2000, &[]);
    file.wait(record, &[1_000_000; 1_000]);
    fill(&file, record);
    profile_of(&[&file])
}

#[test]
fn notes_follow_from_the_figures() {
    let mutex = |acquired: u64, hold: u64| {
        one(Kind::Mutex, |file, record| {
            record.acquired.store(acquired, Relaxed);
            file.hold(record, &[hold; 50]);
        })
    };
    // The run took ten seconds.
    assert_eq!(causes(&mutex(10_000, 600_000)), [Cause::LongHold]);
    assert_eq!(causes(&mutex(10_000, 1_000)), [Cause::HotLock]);
    assert_eq!(causes(&mutex(1_000_000, 1_000)), []);
    let rwlock = |exclusive: u64, shared: u64| {
        one(Kind::RwLock, |_, record| {
            record.acquired.store(exclusive, Relaxed);
            record.shared.store(shared, Relaxed);
        })
    };
    assert_eq!(causes(&rwlock(100, 9_900)), [Cause::ReadMostly]);
    assert_eq!(causes(&rwlock(9_000, 1_000)), [Cause::UpdateHeavy]);
    assert_eq!(causes(&rwlock(5_000, 5_000)), []);
    assert_eq!(causes(&rwlock(9_000, 0)), [Cause::ReadersExclude]);
    let evidence = &rwlock(100, 9_900).notes[0].evidence;
    assert!(evidence.contains("9900 of 10000") && evidence.contains("1.00 s"), "{evidence}");
}

#[test]
fn spinning_is_a_matter_where_threads_exceed_cpus() {
    let spinning = |threads: u32, user: f64| {
        let directory = tempfile::tempdir().unwrap();
        let file = process(directory.path());
        let (number, record) = file.record(Kind::Spin, 0x2000, &[]);
        file.wait(record, &[1_000_000; 1_000]);
        record.acquired.store(1_000_000, Relaxed);
        // One in eight, of ten seconds.
        record.sampled.store(125, Relaxed);
        record.spin_ns.store(250_000_000, Relaxed);
        for thread in 0..threads {
            file.slot(thread as usize, number).acquired.store(1, Relaxed);
            file.get().slabs[thread as usize].thread.store(1 + thread, Relaxed);
        }
        causes(&assemble(Run { user, ..run() }, &[file.read()]))
    };
    let cpus = run().host.cpus;
    assert_eq!(spinning(cpus, 7.0), []);
    assert_eq!(spinning(cpus + 1, 7.0), [Cause::SpinningOversubscribed]);
    // Where CPUs idle, no thread lacks the time that others spin.
    assert_eq!(spinning(cpus + 1, 0.5), []);
}

#[test]
fn neighbours_that_wander_share_a_line() {
    let directory = tempfile::tempdir().unwrap();
    let file = process(directory.path());
    // In the file's data: a pair in one line, a single object, and an object beside another that
    // stays in its place.
    for (address, moves) in
        [(0x2000, 5_000), (0x2028, 2_000), (0x2100, 9_000), (0x2140, 9), (0x2168, 5_000)]
    {
        let (_, record) = file.record(Kind::Mutex, address, &[]);
        record.acquired.store(10_000, Relaxed);
        record.handoffs.store(moves, Relaxed);
    }
    let profile = profile_of(&[&file]);
    let [note] = &profile.notes[..] else { panic!("{:#?}", profile.notes) };
    assert_eq!(note.cause, Cause::FalseSharing);
    assert!(note.advice.contains("server+0x1000") && note.advice.contains("server+0x1028"));
    assert!(note.evidence.contains("5000") && note.evidence.contains("2000"), "{}", note.evidence);
}

#[test]
fn the_longest_queues_come_first() {
    let directory = tempfile::tempdir().unwrap();
    let file = process(directory.path());
    for (address, lasted, most) in [(0x2000, 500, 3), (0x3000, 900, 2), (0x4000, 0, 0)] {
        let (_, record) = file.record(Kind::Mutex, address, &[]);
        record.acquired.store(1, Relaxed);
        record.convoy.store(lasted, Relaxed);
        record.convoy_end.store(2_000_000_000, Relaxed);
        record.convoy_most.store(most, Relaxed);
    }
    let convoys = profile_of(&[&file]).convoys;
    let lengths: Vec<_> = convoys.iter().map(|c| (c.length_ns, c.waiters_max)).collect();
    assert_eq!(lengths, [(900, 2), (500, 3)]);
    assert!((convoys[0].start - 2.0).abs() < 1e-6, "{convoys:?}");
}
