//! Threads of a simulated machine that use the sets.

use manycore_durable_simulated::persistence::Simulated;
use manycore_durable_simulated::romulus::Romulus;
use manycore_durable_simulated::timestone::{Logged, PERIOD};
use manycore_sim::explore::Exploration;
use manycore_sim::{Machine, Simulation, thread};
use manycore_simulated::collections::hash::VersionedTable;
use manycore_simulated::collections::list::VersionedList;
use manycore_traits::{ConcurrentSet, SetHandle};

const KEYS: u64 = 24;

/// Threads insert and remove keys: in the end the set has the keys that they report.
fn use_it<S: ConcurrentSet<u64>>(set: &S, threads: u32, operations: u32) {
    let left = thread::parallel(threads, |me| {
        let mut handle = set.handle();
        let mut random = fastrand::Rng::with_seed(u64::from(me));
        let mut left = 0_i64;
        for _ in 0..operations {
            let key = random.u64(..KEYS);
            match random.u32(..3) {
                0 => left += i64::from(handle.insert(key)),
                1 => left -= i64::from(handle.remove(&key)),
                _ => _ = handle.contains(&key),
            }
        }
        left
    });
    let mut handle = set.handle();
    let found = (0..KEYS).filter(|key| handle.contains(key)).count() as i64;
    assert_eq!(found, left.into_iter().sum::<i64>());
}

fn counts<S: ConcurrentSet<u64>>(set: &S) -> impl Fn(&str) -> u64 {
    let mut counts = Vec::new();
    set.statistics(&mut |name, count| counts.push((name, count)));
    move |name| counts.iter().find(|(known, _)| *known == name).expect("it is counted").1
}

fn run<R: Clone>(program: impl FnOnce() -> R) -> R {
    Simulation::new(&Machine::example()).run(program).unwrap().result
}

#[test]
fn romulus_executes_the_operations_of_many_as_one_transaction() {
    let [transactions, combined, bytes] = run(|| {
        let set = Romulus::<Simulated>::new(4, KEYS as usize, 8);
        use_it(&set, 7, 200);
        let count = counts(&set);
        [count("transactions"), count("combined"), count("device_bytes")]
    });
    assert!(transactions > 100 && combined > transactions * 3 / 2, "{combined} in {transactions}");
    // The state twice, and some lines in two copies.
    assert!(bytes > transactions * 4 * 64, "{bytes}");
}

#[test]
fn romulus_is_right_in_any_schedule() {
    let explored = Exploration::default().schedules(200).at_least(50).run(|| {
        let set = Romulus::<Simulated>::new(1, KEYS as usize, 4);
        use_it(&set, 3, 6);
    });
    explored.unwrap();
}

#[test]
fn each_commit_is_a_line_and_each_checkpoint_the_objects_that_have_changed() {
    let [commits, checkpoints, device, versions] = run(|| {
        let set = VersionedList::<u64, (), Logged<Simulated>>::default();
        use_it(&set, 7, 600);
        let count = counts(&set);
        ["commits", "checkpoints", "device_bytes", "version_bytes"].map(count)
    });
    assert!(commits > 500, "{commits}");
    let most = commits / PERIOD as u64;
    assert!(checkpoints > 0 && (most - 8..=most).contains(&checkpoints), "{checkpoints} of {most}");
    let records = 64 * commits;
    // A list of 24 keys has 25 places; those that are free are used again after a while.
    assert!(device > records + 64 * checkpoints, "{device} {records}");
    assert!(device < records + 64 * checkpoints * 2 * PERIOD as u64, "{device} {records}");
    assert!(versions >= 96 * commits && versions < 4 * 96 * commits, "{versions} {commits}");
}

#[test]
fn a_table_waits_for_persistent_memory_once_an_update() {
    let took = |latency| {
        let mut machine = Machine::example();
        machine.persist.latency = latency;
        let report = Simulation::new(&machine).run(|| {
            let set = VersionedTable::<u64, (), Logged<Simulated>>::new(8);
            let mut handle = ConcurrentSet::handle(&set);
            (0..KEYS).for_each(|key| _ = handle.insert(key));
            let begin = thread::now();
            (0..KEYS).for_each(|key| _ = handle.remove(&key));
            thread::now() - begin
        });
        report.unwrap().result
    };
    let more = took(5_000) - took(1_000);
    assert!((KEYS * 4_000 * 9 / 10..KEYS * 4_000 * 12 / 10).contains(&more), "{more}");
}
