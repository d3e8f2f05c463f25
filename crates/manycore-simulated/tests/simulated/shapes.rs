//! The well-known behaviour of locks on large machines, and the cost that parking avoids.

use manycore_sim::{Machine, Report, Simulation, model};
use manycore_simulated::lock::{self, PlainLock};

use crate::workload::{Load, simulate, throughput};

const SHORT: Load = Load { inside: 100, outside: 400, length: 300_000 };

fn large() -> Machine {
    model::find("xeon-e7-8870-8x15").unwrap().machine()
}

/// Throughput on a socket, and on all.
fn at_15_and_120<L: PlainLock + 'static>() -> [f64; 2] {
    [15, 120].map(|threads| throughput::<L>(&large(), threads, SHORT))
}

#[test]
fn unfair_and_central_locks_collapse() {
    let peak = throughput::<lock::Tas>(&large(), 2, SHORT);
    let [_, all] = at_15_and_120::<lock::Tas>();
    assert!(all < peak / 4.0, "tas: {all} at 120 threads, {peak} at 2");
    let [socket, all] = at_15_and_120::<lock::Ticket>();
    assert!(all < socket * 0.6, "ticket: {all} at 120 threads, {socket} at 15");
}

#[test]
fn a_queue_stays_flat_beyond_the_socket() {
    let [two_sockets, all] =
        [30, 120].map(|threads| throughput::<lock::Mcs>(&large(), threads, SHORT));
    assert!((0.7..1.4).contains(&(all / two_sockets)), "mcs: {all} at 120, {two_sockets} at 30");
    let [_, ticket] = at_15_and_120::<lock::Ticket>();
    assert!(all > 2.0 * ticket, "at 120 threads: mcs {all}, ticket {ticket}");
}

#[test]
fn locks_that_stay_on_a_node_gain_across_sockets() {
    // Waiters are sorted by and by.
    let long = Load { length: 3_000_000, ..SHORT };
    let mcs = throughput::<lock::Mcs>(&large(), 120, long);
    macro_rules! compare {
        ($($lock:ident),* $(,)?) => {
            $(
                let gain = throughput::<lock::$lock>(&large(), 120, long) / mcs;
                println!("{}: {gain:.2} x mcs", <lock::$lock as PlainLock>::INFO.name);
                assert!(gain > 1.2, "{}: {gain} x mcs", <lock::$lock as PlainLock>::INFO.name);
            )*
        };
    }
    compare!(Hmcs, CBoMcs, Cna);
}

/// Locks that learn how long their waits are do so in nanoseconds. On one CPU more than few they
/// queue; with more threads than CPUs they sleep.
#[test]
fn a_slow_counter_changes_little() {
    let mut slow = large();
    slow.core.counter_ghz = Some(0.025);
    let load = Load { inside: 500, outside: 2_000, length: 30_000_000 };
    for (cpus, threads) in [(4, 3), (4, 12), (30, 20)] {
        let throughput = |machine: &Machine| {
            let simulation = Simulation::new(machine).cpus(cpus).pinned(false);
            let report = simulate::<lock::Adaptive>(&simulation, threads, load);
            report.result.iter().sum::<u64>() as f64 / report.cycles as f64
        };
        let ratio = throughput(&slow) / throughput(&large());
        println!("{threads} threads on {cpus} CPUs: {ratio:.2} x with a counter of 25 MHz");
        assert!((0.85..1.2).contains(&ratio), "{threads} threads on {cpus} CPUs: {ratio} x");
    }
}

#[test]
fn culling_spares_wake_ups_when_threads_outnumber_cpus() {
    let few_cpus = Simulation::new(&large()).cpus(15).pinned(false);
    let load = Load { inside: 500, outside: 2_000, length: 10_000_000 };
    let throughput = |threads, run: fn(&Simulation, u32, Load) -> Report<Vec<u64>>| {
        let report = run(&few_cpus, threads, load);
        1e6 * report.result.iter().sum::<u64>() as f64 / report.cycles as f64
    };
    let mcs = throughput(60, simulate::<lock::Mcs>);
    let malthusian = throughput(60, simulate::<lock::Malthusian>);
    println!("60 threads on 15 CPUs: malthusian {malthusian:.0}, mcs {mcs:.0}");
    assert!(malthusian > 2.0 * mcs, "malthusian {malthusian}, mcs {mcs}");
}

/// Throughput with parked and with polling threads.
fn parked_and_polling<L: PlainLock + 'static>(threads: u32) -> [f64; 2] {
    [true, false].map(|parking| {
        let simulation = Simulation::new(&Machine::example()).parking(parking);
        let load = Load { inside: 300, outside: 500, length: 1_000_000 };
        let report = simulate::<L>(&simulation, threads, load);
        report.result.iter().sum::<u64>() as f64 / report.cycles as f64
    })
}

#[test]
fn parking_changes_nothing_but_the_speed() {
    let mut wrong = String::new();
    macro_rules! compare {
        ($($lock:ident),* $(,)?) => {
            $(
                for threads in [2, 8] {
                    let [parked, polling] = parked_and_polling::<lock::$lock>(threads);
                    let error = parked / polling - 1.0;
                    let name = <lock::$lock as PlainLock>::INFO.name;
                    println!("{name} with {threads} threads: {:+.1} %", 100.0 * error);
                    if error.abs() > 0.05 {
                        wrong += &format!("{name} with {threads} threads: {:+.1} %\n", 100.0 * error);
                    }
                }
            )*
        };
    }
    manycore_simulated::for_each_lock!(compare);
    assert!(wrong.is_empty(), "{wrong}");
}
