//! Bursts: several cores access a line at the same moment, and each waits until it has the line.
//! From these `machines derive` computes how the home of a line serves many.

use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};

use manycore::sync::{CachePadded, clock};
use manycore_sim::model::derive::Burst;

use super::not_pinned;
use super::sample::{Sample, ns_per_tick};
use super::topology::Topology;
use crate::cpus;
use crate::failure::Failure;
use crate::line_accesses::Accesses;

/// Bursts of a kind with a number of cores. The median counts, since other activity of the machine
/// delays some of them.
const BURSTS: u64 = 200;

/// Nanoseconds between two bursts, beside [`EACH_NS`]: more than a burst takes.
const PERIOD_NS: f64 = 20_000.0;

/// Nanoseconds that each core adds to that.
const EACH_NS: f64 = 500.0;

/// How long all cores add without end, in nanoseconds.
const WITHOUT_END_NS: f64 = 10_000_000.0;

/// The accesses of bursts, with their names in the table.
const ACCESSES: [(Accesses, &str); 6] = [
    (Accesses::ReadOne, "read-one"),
    (Accesses::ReadOwn, "read-own"),
    (Accesses::ReadWritten, "read-written"),
    (Accesses::WriteRead, "write-read"),
    (Accesses::WriteOne, "write-one"),
    (Accesses::WriteOwn, "write-own"),
];

/// All kinds of bursts with 1, 2, and more cores of this machine, group by group. Times are in
/// cycles of a clock of `ghz`. `progress` is called with each number of cores.
pub(crate) fn table(
    topology: &Topology,
    ghz: f64,
    mut progress: impl FnMut(usize),
) -> Result<Vec<Burst>, Failure> {
    let cores = one_cpu_a_core(topology);
    let ns_per_tick = ns_per_tick();
    let mut table = Vec::new();
    for count in counts(topology, cores.len()) {
        progress(count);
        let run = Run { ns_per_tick, cpus: &cores[..count] };
        let mut note = |name: &str, ns: f64| {
            let (accesses, cores) = (name.to_owned(), count as u32);
            table.push(Burst { accesses, cores, cycles: (ns * ghz).max(0.1) });
        };
        for (accesses, name) in ACCESSES {
            // One core alone reads nothing that another has written.
            if count > 1 || accesses != Accesses::ReadWritten {
                note(
                    name,
                    run.measure(|core, start, words| run.bursts(accesses, core, start, words))?,
                );
            }
        }
        let additions = |_, start, words: &Words| vec![Some(run.add_without_end(start, words))];
        note("add-without-end", run.measure(additions)?);
    }
    Ok(table)
}

/// The first CPU of each core, group by group.
fn one_cpu_a_core(topology: &Topology) -> Vec<usize> {
    let mut cpus: Vec<_> = topology.cpus.iter().collect();
    cpus.sort_by_key(|cpu| (cpu.package, cpu.cluster, cpu.core, cpu.number));
    cpus.dedup_by_key(|cpu| (cpu.package, cpu.core));
    cpus.iter().map(|cpu| cpu.number).collect()
}

/// 1 and 2 cores, half a group and a whole one, twice as many and so on, and all.
fn counts(topology: &Topology, cores: usize) -> Vec<usize> {
    let group = (cores / topology.counts().clusters.max(1)).max(1);
    let doubled = std::iter::successors(Some(group), |count| Some(2 * count));
    let more = doubled.take_while(|count| *count < cores);
    let mut counts: Vec<usize> = [1, 2, group / 2, cores].into_iter().chain(more).collect();
    counts.retain(|count| (1..=cores).contains(count));
    counts.sort_unstable();
    counts.dedup();
    counts
}

/// Bursts by these CPUs.
struct Run<'a> {
    ns_per_tick: f64,
    cpus: &'a [usize],
}

/// Words on lines of their own: the first one is for all cores, and each core has one behind it.
type Words = [CachePadded<AtomicU64>];

impl Run<'_> {
    /// The mean time of an access in nanoseconds: the median over all bursts. Each core calls
    /// `access` with its number, the tick of the first burst and the words. That returns the times
    /// by burst; none where the core came too late, or where its access is not measured.
    fn measure(
        &self,
        access: impl Fn(u32, u64, &Words) -> Vec<Option<f64>> + Sync,
    ) -> Result<f64, Failure> {
        let ready = Barrier::new(self.cpus.len());
        let start = AtomicU64::new(0);
        let words: Vec<_> = (0..=self.cpus.len()).map(|_| CachePadded(AtomicU64::new(0))).collect();
        let on_core = |core: u32| {
            let pinned = cpus::pin(self.cpus[core as usize]).map_err(not_pinned);
            // A thread that could not be pinned goes on, because the others wait for it.
            if ready.wait().is_leader() {
                // Relaxed, here and below: only the value of the word matters.
                start.store(clock::now() + self.ticks(self.period()), Ordering::Relaxed);
            }
            while start.load(Ordering::Relaxed) == 0 {
                std::hint::spin_loop();
            }
            let times = access(core, start.load(Ordering::Relaxed), &words);
            pinned.map(|()| times)
        };
        let times: Result<Vec<_>, _> = std::thread::scope(|scope| {
            let on_core = &on_core;
            let begin = |core| scope.spawn(move || on_core(core));
            let threads: Vec<_> = (0..self.cpus.len() as u32).map(begin).collect();
            threads.into_iter().map(|thread| thread.join().expect("it does not panic")).collect()
        });
        mean(&times?)
    }

    /// Bursts of these accesses.
    fn bursts(&self, of: Accesses, core: u32, start: u64, words: &Words) -> Vec<Option<f64>> {
        let word = &words[of.word(core)];
        let (period, overhead) = (self.ticks(self.period()), overhead());
        let burst = |number: u64| {
            let begin = start + number * period;
            // The first core has the line at the start of each burst.
            if core == 0 && of == Accesses::WriteOne {
                wait_until(begin - period / 4);
                word.fetch_add(1, Ordering::Relaxed); // Relaxed: the words order nothing
            }
            wait_until(begin);
            let before = clock::ordered();
            // Relaxed: the words order nothing.
            _ = match of.writes(core) {
                true => word.fetch_add(1, Ordering::Relaxed),
                false => word.load(Ordering::Relaxed),
            };
            let took = clock::ordered().wrapping_sub(before).saturating_sub(overhead);
            let is_on_time = before < begin + period / 8;
            (of.is_measured(core) && is_on_time).then_some(took as f64 * self.ns_per_tick)
        };
        (0..BURSTS).map(burst).collect()
    }

    /// The time of an addition while all cores make one after the other.
    fn add_without_end(&self, start: u64, words: &Words) -> f64 {
        const BATCH: u64 = 32;
        let end = start + self.ticks(WITHOUT_END_NS);
        wait_until(start);
        let (begin, mut done) = (clock::now(), 0);
        while clock::now() < end {
            // Relaxed: the words order nothing.
            (0..BATCH).for_each(|_| _ = words[0].fetch_add(1, Ordering::Relaxed));
            done += BATCH;
        }
        clock::now().wrapping_sub(begin) as f64 * self.ns_per_tick / done.max(1) as f64
    }

    /// Nanoseconds between two bursts.
    fn period(&self) -> f64 {
        PERIOD_NS + EACH_NS * self.cpus.len() as f64
    }

    fn ticks(&self, ns: f64) -> u64 {
        (ns / self.ns_per_tick).ceil() as u64
    }
}

/// The median over all bursts of the mean over the cores. `times` has a list for each core.
fn mean(times: &[Vec<Option<f64>>]) -> Result<f64, Failure> {
    let bursts = times.first().map_or(0, Vec::len);
    let of_burst = |burst: usize| {
        let counted: Vec<f64> = times.iter().filter_map(|core| core[burst]).collect();
        let sum: f64 = counted.iter().sum();
        (!counted.is_empty()).then(|| sum / counted.len() as f64)
    };
    let means: Vec<f64> = (0..bursts).filter_map(of_burst).collect();
    if means.is_empty() {
        let fault = "no core was on time for a burst: measure while the machine does nothing else";
        return Err(Failure::Failed(fault.into()));
    }
    Ok(Sample::of(means).percentile(0.5))
}

fn wait_until(tick: u64) {
    while clock::now() < tick {}
}

/// What two reads of the counter take if nothing is between them, in ticks.
fn overhead() -> u64 {
    let once = |_| {
        let before = clock::ordered();
        clock::ordered().wrapping_sub(before)
    };
    (0..100).map(once).min().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bursts_of_this_machine_can_be_read_back() {
        let topology = Topology::read().unwrap();
        let table = table(&topology, 2.0, |_| {}).unwrap();
        let text = Burst::text(&table);
        let read = Burst::table("here.csv", &text).unwrap();
        assert_eq!(read.len(), table.len());
        assert!(read.iter().all(|burst| burst.cycles > 0.0 && burst.cycles < 1e7), "{text}");
        let counts = counts(&topology, one_cpu_a_core(&topology).len());
        // One core alone reads nothing that another has written.
        assert_eq!(read.len(), (ACCESSES.len() + 1) * counts.len() - 1);
    }
}
