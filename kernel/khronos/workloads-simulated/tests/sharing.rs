//! Calls that commute share no cache line that one of them writes: counted exactly.

extern crate khronos_workloads_simulated as khronos_workloads;

use khronos_fs::{Options, Sync};
use khronos_workloads::calls::Call;
use khronos_workloads::sharing::shared_lines;
use manycore_sim::{Machine, Simulation};

fn shared(sync: Sync, calls: [Call; 2]) -> usize {
    let options = Options { chains: 256, ..Options::new(sync) };
    let report = Simulation::new(&Machine::example()).run(|| shared_lines(options, calls));
    report.unwrap().result.unwrap()
}

/// Prints a table with `--nocapture`.
fn table(sync: Sync) -> Vec<(Call, Call, usize)> {
    let mut all = Vec::new();
    for (number, one) in Call::ALL.iter().enumerate() {
        for two in &Call::ALL[number..] {
            let lines = shared(sync, [*one, *two]);
            println!("{sync}: {one}, {two}: {lines}");
            all.push((*one, *two, lines));
        }
    }
    all
}

fn nothing_is_shared(sync: Sync) {
    let met: Vec<_> = table(sync).into_iter().filter(|(_, _, lines)| *lines > 0).collect();
    assert!(met.is_empty(), "{sync}: {met:?}");
}

#[test]
fn different_names_of_a_directory_do_not_meet_under_mvrlu() {
    nothing_is_shared(Sync::MvRlu);
}

#[test]
fn different_names_of_a_directory_do_not_meet_under_rcu() {
    nothing_is_shared(Sync::Rcu);
}

/// This shows that the test counts something: it finds the lock of a directory.
#[test]
fn who_takes_a_lock_for_a_directory_meets_there() {
    assert!(shared(Sync::DirLock, [Call::Create, Call::Unlink]) > 0);
    assert!(shared(Sync::Lock, [Call::Stat, Call::Stat]) > 0);
    assert_eq!(shared(Sync::DirLock, [Call::Stat, Call::Stat]), 0);
}
