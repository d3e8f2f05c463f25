//! Threads with different names do not contend: on a simulated machine with 72 CPUs, for a short
//! time. `MANYCORE_TABLE=1` prints all workloads, which takes minutes.

use khronos_fs::{Options, Sync};
use khronos_workloads_simulated::{Stage, Workload};
use manycore::sync::tuning;
use manycore_sim::{Simulation, model, thread};

const MACHINE: &str = "xeon-e5-2697-2x18x2-like";
const CHAINS: usize = 1024;

/// The number of operations of all threads in a million cycles, after a warm-up of the same length.
fn throughput(workload: Workload, sync: Sync, threads: u32, cycles: u64) -> f64 {
    let machine = model::find(MACHINE).expect("a model that comes with the simulator").machine();
    let report = Simulation::new(&machine).run(|| {
        // No thread waits for a CPU, so that there is no reason to sleep.
        tuning::set_spin_limit(u32::MAX);
        let stage = Stage::new(workload, Options { chains: CHAINS, ..Options::new(sync) }, threads);
        stage.fill(&mut thread::progress);
        let begin = thread::now();
        let counts = thread::parallel(threads, |number| {
            let mut worker = stage.worker(number);
            let mut counted = 0;
            for random in 0.. {
                let now = thread::now() - begin;
                if now >= 2 * cycles {
                    break;
                }
                worker.act(random * 7 + u64::from(number));
                counted += u64::from(now >= cycles);
            }
            counted
        });
        stage.check().unwrap();
        counts.iter().sum::<u64>()
    });
    report.expect("no thread is stuck").result as f64 * 1e6 / cycles as f64
}

fn ratio(workload: Workload, sync: Sync, base: Sync) -> f64 {
    throughput(workload, sync, 72, 100_000) / throughput(workload, base, 72, 100_000)
}

#[test]
fn files_are_made_without_a_lock_for_the_directory() {
    for sync in [Sync::Rcu, Sync::MvRlu] {
        let ratio = ratio(Workload::MWCM, sync, Sync::DirLock);
        // The bar, ten times, is a claim of the figure `khronos-names`.
        assert!(ratio >= 3.0, "{sync}: {ratio:.1} times dirlock");
    }
}

#[test]
fn directories_are_moved_without_a_lock_for_all() {
    let ratio = ratio(Workload::STORM, Sync::MvRlu, Sync::Rcu);
    assert!(ratio >= 2.0, "{ratio:.1} times rcu");
}

#[test]
#[ignore = "a table for people, which takes minutes"]
fn table() {
    let asked = std::env::var("MANYCORE_TABLE").unwrap_or_default();
    for workload in Workload::ALL {
        if !asked.is_empty() && !asked.split(',').any(|name| name == workload.name()) {
            continue;
        }
        for threads in [1, 72] {
            let of = |sync: Sync| (sync, throughput(*workload, sync, threads, 200_000));
            println!("{workload} {threads}: {:.0?}", Sync::ALL.map(of));
        }
    }
}
