//! FxMark's workloads in the kernel: `bench=names` on the boot line, or `bench=names:mwcm` for one.
//! It counts how often calls were retried, and has the mechanisms' own counts.

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;

use khronos_fs::{Options, Retries, Sync};
use khronos_workloads::{Stage, Workload};

use super::Random;
use crate::arch::cpu;
use crate::println;
use crate::sync::order::Rank;
use crate::sync::spin::Spin;
use crate::watch::counters::{Event, total};
use crate::watch::selftest::on_all_cpus;

/// Operations of each CPU.
const OPERATIONS: u64 = 300;

/// Runs the workload with this name, or all workloads, under each mechanism. Returns whether each
/// has left a consistent tree.
pub fn run(name: &str) -> bool {
    let chosen = Workload::ALL.iter().filter(|workload| name.is_empty() || workload.name() == name);
    let mut count = 0;
    for workload in chosen {
        for sync in Sync::ALL {
            if let Err(wrong) = measure(*workload, sync) {
                println!("bench {workload} sync={sync}: {wrong}");
                return false;
            }
            count += 1;
        }
    }
    println!("{count} runs, kernel faults: {}", total(Event::KernelFaults));
    count > 0 && total(Event::KernelFaults) == 0
}

fn measure(workload: Workload, sync: Sync) -> Result<(), String> {
    let stage = Stage::new(workload, Options::new(sync), cpu::count() as u32);
    stage.fill(&mut || ());
    let shared = Arc::new((stage, Spin::new(Rank::Small, Retries::default())));
    let of_threads = shared.clone();
    on_all_cpus(move |number| {
        let (stage, sum) = &*of_threads;
        let mut worker = stage.worker(number as u32);
        let mut random = Random(0x9e37_79b9_7f4a_7c15 + number as u64);
        (0..OPERATIONS).for_each(|_| worker.act(random.next()));
        let Retries { locked, changed, freed, full } = worker.retries();
        let mut sum = sum.lock();
        sum.locked += locked;
        sum.changed += changed;
        sum.freed += freed;
        sum.full += full;
    });
    let (stage, retries) = &*shared;
    let totals = stage.check()?;
    let Retries { locked, changed, freed, full } = *retries.lock();
    let mut text = format!(
        "bench {workload} sync={sync} operations={} locked={locked} changed={changed} \
         freed={freed} full={full} names={}",
        OPERATIONS * cpu::count() as u64,
        totals.names
    );
    stage.fs().statistics(&mut |name, count| text += &format!(" {name}={count}"));
    println!("{text}");
    Ok(())
}
