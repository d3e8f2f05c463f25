//! Accesses to lines: bursts of many cores at the same moment, and a word that two cores hand to
//! each other.

use manycore_sim::machine::Topology;
use manycore_sim::{Placement, thread};
use manycore_simulated::sync::CachePadded;
use manycore_simulated::sync::atomic::{AtomicU64, Ordering};
use serde::{Deserialize, Serialize};

use crate::line_accesses::Accesses;
use crate::simulated::{Finding, Run, SimulatedProgram, Window, sight};

/// Accesses to lines.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Lines {
    pub accesses: Accesses,
}

/// The key of the cycles of an access, in a simulation's detailed results.
pub(crate) const CYCLES: &str = "access_cycles";

/// The number of measured bursts. One that is not measured comes before them.
const BURSTS: u64 = 20;

/// Cycles between the starts of two bursts: more than a burst takes on the largest machine.
const PERIOD: u64 = 400_000;

/// The number of measured hand-overs there and back.
const ROUNDS: u64 = 200;

impl SimulatedProgram for Lines {
    const NAME: &'static str = "Lines";

    fn placement(&self, topology: &Topology, _: u32) -> Placement {
        let Accesses::HandOver { class } = self.accesses else { return Placement::Compact };
        let is_there = |socket: &u32| topology.distance[0][*socket as usize] == class;
        let socket = (0..topology.sockets).find(is_there).unwrap_or(0);
        let partner = if class == 0 { 1 } else { socket * topology.cores_per_socket };
        Placement::Cpus(vec![0, partner])
    }

    fn simulate(&self, run: &Run) -> Result<Finding, String> {
        let threads = run.job.threads;
        let report = run.simulate(|| match self.accesses {
            Accesses::HandOver { .. } => hand_over(),
            accesses => bursts(accesses, threads),
        })?;
        let (cycles, accesses) = report.result;
        if accesses == 0 {
            return Err("no access was measured".to_owned());
        }
        let mut sight = sight(&report, accesses);
        sight.insert(CYCLES.to_owned(), cycles as f64 / accesses as f64);
        let window = Window { begin: 0, end: report.cycles };
        Ok(Finding { slice: run.slice(window, vec![accesses], std::iter::empty()), sight })
    }
}

/// How late a core begins a burst. A core that polls its time-stamp counter notices the moment with
/// a delay of up to one iteration, so each burst begins with another core.
fn lateness(index: u32, burst: u64) -> u64 {
    const TURN: u64 = 60;
    // Fibonacci hashing.
    let hash = (u64::from(index) << 32 | burst).wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    (hash >> 40) % TURN
}

/// The cycles of all measured accesses, and their number.
fn bursts(accesses: Accesses, threads: u32) -> (u64, u64) {
    let words: Vec<CachePadded<AtomicU64>> =
        (0..=threads).map(|_| CachePadded(AtomicU64::new(0))).collect();
    let start = thread::now() + PERIOD;
    let measured = thread::parallel(threads, |index| {
        let (mut cycles, mut count) = (0, 0);
        for burst in 0..=BURSTS {
            let begin = start + burst * PERIOD;
            // The first core has the line at the start of each burst.
            if index == 0 && accesses == Accesses::WriteOne {
                thread::compute((begin - PERIOD / 4).saturating_sub(thread::now()));
                words[0].fetch_add(1, Ordering::Relaxed); // Relaxed: the words order nothing
            }
            let late = lateness(index, burst);
            thread::compute((begin + late).saturating_sub(thread::now()));
            let word = &words[accesses.word(index)];
            let before = thread::now();
            // Relaxed: the words order nothing.
            _ = match accesses.writes(index) {
                true => word.fetch_add(1, Ordering::Relaxed),
                false => word.load(Ordering::Relaxed),
            };
            if burst > 0 && accesses.is_measured(index) {
                cycles += thread::now() - before;
                count += 1;
            }
        }
        (cycles, count)
    });
    measured.into_iter().fold((0, 0), |all, one| (all.0 + one.0, all.1 + one.1))
}

/// The cycles of all hand-overs, and their number.
fn hand_over() -> (u64, u64) {
    let word = Box::new(CachePadded(AtomicU64::new(0)));
    let took = thread::parallel(2, |index| {
        let own = u64::from(index);
        let mut begin = thread::now();
        for round in 0..=ROUNDS {
            if round == 1 {
                begin = thread::now();
            }
            // Relaxed: the word orders nothing. Each attempt acquires the line, as in the measured
            // program.
            while word.compare_exchange(own, 1 - own, Ordering::Relaxed, Ordering::Relaxed).is_err()
            {
            }
        }
        thread::now() - begin
    });
    (took[0], 2 * ROUNDS)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::simulated::{Job, Program, simulate};
    use crate::slice::Pinning;

    fn cycles(accesses: Accesses, threads: u32) -> f64 {
        let job = Job {
            machine: manycore_sim::model::find("xeon-e7-8870-8x15").unwrap().to_toml(),
            cpus: None,
            mechanism: "line".to_owned(),
            threads,
            program: Program::of(&Lines { accesses }),
            measured: Duration::from_micros(1),
            pinning: Pinning::Each,
            seed: 1,
            every_turn: false,
            patient: false,
        };
        simulate::<Lines>(&job).unwrap().sight[CYCLES]
    }

    #[test]
    fn a_burst_of_more_writers_takes_longer() {
        assert!(cycles(Accesses::WriteOwn, 60) < 40.0);
        assert!(cycles(Accesses::ReadOne, 60) < 40.0);
        let (few, many) = (cycles(Accesses::WriteOne, 2), cycles(Accesses::WriteOne, 60));
        assert!(few > 50.0 && many > 20.0 * few, "{few}, {many}");
    }

    #[test]
    fn a_hand_over_to_a_distant_core_takes_longer() {
        let [near, far] = [0, 1].map(|class| cycles(Accesses::HandOver { class }, 2));
        assert!(near > 50.0 && far > 1.5 * near, "{near}, {far}");
    }
}
