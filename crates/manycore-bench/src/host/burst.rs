//! Bursts: several cores access a line at the same moment, and each waits until it has the line.
//! From these `machines derive` computes how the home of a line serves many.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use manycore::sync::{CachePadded, clock};
use manycore_sim::model::derive::Burst;

use super::not_pinned;
use super::sample::{Sample, ns_per_tick};
use super::topology::Topology;
use crate::cpus;
use crate::failure::Failure;

/// Bursts of a kind with a number of cores. The median counts, since other activity of the machine
/// delays some of them.
const BURSTS: u64 = 200;

/// Nanoseconds between two bursts, beside [`EACH_NS`]: more than a burst takes.
const PERIOD_NS: f64 = 20_000.0;

/// Nanoseconds that each core adds to that.
const EACH_NS: f64 = 500.0;

/// How long all cores add without end, in nanoseconds.
const WITHOUT_END_NS: f64 = 10_000_000.0;

/// What the cores do at the moment of a burst.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Accesses {
    ReadOne,
    ReadOwn,
    ReadWritten,
    WriteRead,
    WriteOne,
    WriteOwn,
    AddWithoutEnd,
}

impl Accesses {
    const ALL: [(Self, &str); 7] = [
        (Self::ReadOne, "read-one"),
        (Self::ReadOwn, "read-own"),
        (Self::ReadWritten, "read-written"),
        (Self::WriteRead, "write-read"),
        (Self::WriteOne, "write-one"),
        (Self::WriteOwn, "write-own"),
        (Self::AddWithoutEnd, "add-without-end"),
    ];

    /// Executes the access of a core; returns whether its time counts.
    fn execute(self, core: usize, shared: &AtomicU64, own: &AtomicU64) -> bool {
        // Relaxed: the words order nothing.
        let order = Ordering::Relaxed;
        match self {
            Self::ReadOne => shared.load(order) < u64::MAX,
            Self::ReadOwn => own.load(order) < u64::MAX,
            Self::WriteOne | Self::AddWithoutEnd => shared.fetch_add(1, order) < u64::MAX,
            Self::WriteOwn => own.fetch_add(1, order) < u64::MAX,
            Self::ReadWritten | Self::WriteRead if core == 0 => {
                shared.fetch_add(1, order);
                self == Self::WriteRead
            }
            Self::ReadWritten | Self::WriteRead => {
                shared.load(order) < u64::MAX && self == Self::ReadWritten
            }
        }
    }
}

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
        for (accesses, name) in Accesses::ALL {
            if count == 1 && accesses == Accesses::ReadWritten {
                continue; // there is no reader
            }
            let run = Run { accesses, ns_per_tick, cpus: &cores[..count] };
            let ns = run.measure()?;
            let cores = count as u32;
            table.push(Burst { accesses: name.to_owned(), cores, cycles: (ns * ghz).max(0.1) });
        }
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

/// Bursts of one kind by these CPUs.
struct Run<'a> {
    accesses: Accesses,
    ns_per_tick: f64,
    cpus: &'a [usize],
}

/// What the threads of a run share.
struct Shared {
    ready: Barrier,
    /// The tick of the first burst; 0 until it is chosen.
    start: AtomicU64,
    /// Whether a thread could not be kept on its CPU.
    failed: AtomicBool,
    words: Vec<CachePadded<AtomicU64>>,
}

impl Run<'_> {
    /// The mean time of an access in nanoseconds: the median over all bursts.
    fn measure(&self) -> Result<f64, Failure> {
        let shared = Shared {
            ready: Barrier::new(self.cpus.len()),
            start: AtomicU64::new(0),
            failed: AtomicBool::new(false),
            words: (0..=self.cpus.len()).map(|_| CachePadded(AtomicU64::new(0))).collect(),
        };
        let times = std::thread::scope(|scope| {
            let shared = &shared;
            let begin = |core| scope.spawn(move || self.on_core(core, shared));
            let threads: Vec<_> = (0..self.cpus.len()).map(begin).collect();
            threads.into_iter().map(|thread| thread.join().expect("it does not panic")).collect()
        });
        self.mean(times)
    }

    fn mean(&self, times: Vec<Result<Vec<Option<f64>>, Failure>>) -> Result<f64, Failure> {
        let times: Vec<Vec<Option<f64>>> = times.into_iter().collect::<Result<_, _>>()?;
        let bursts = times.first().map_or(0, Vec::len);
        let of_burst = |burst: usize| {
            let counted: Vec<f64> = times.iter().filter_map(|core| core[burst]).collect();
            let sum: f64 = counted.iter().sum();
            (!counted.is_empty()).then(|| sum / counted.len() as f64)
        };
        let means: Vec<f64> = (0..bursts).filter_map(of_burst).collect();
        if means.is_empty() {
            let fault =
                "no core was on time for a burst: measure while the machine does nothing else";
            return Err(Failure::Failed(fault.into()));
        }
        Ok(Sample::of(means).percentile(0.5))
    }

    /// The times of a core's accesses, by burst; none where it came too late or does not count.
    fn on_core(&self, core: usize, shared: &Shared) -> Result<Vec<Option<f64>>, Failure> {
        let pinned = cpus::pin(self.cpus[core]).map_err(not_pinned);
        if pinned.is_err() {
            shared.failed.store(true, Ordering::Relaxed); // Relaxed: the barrier orders it
        }
        shared.ready.wait();
        // Relaxed: the barrier orders it.
        if shared.failed.load(Ordering::Relaxed) {
            return pinned.map(|()| Vec::new());
        }
        if core == 0 {
            let start = clock::now() + self.ticks(self.period());
            shared.start.store(start, Ordering::Relaxed); // Relaxed: the value is all that counts
        }
        let start = loop {
            match shared.start.load(Ordering::Relaxed) {
                0 => std::hint::spin_loop(),
                start => break start,
            }
        };
        Ok(match self.accesses {
            Accesses::AddWithoutEnd => vec![Some(self.add_without_end(core, start, shared))],
            _ => self.bursts(core, start, shared),
        })
    }

    fn bursts(&self, core: usize, start: u64, shared: &Shared) -> Vec<Option<f64>> {
        let [one, own] = [0, core + 1].map(|word| &*shared.words[word]);
        let (period, overhead) = (self.ticks(self.period()), overhead());
        let burst = |number: u64| {
            let begin = start + number * period;
            // The first core has the line at the start of each burst.
            if core == 0 && self.accesses == Accesses::WriteOne {
                wait_until(begin - period / 4);
                one.fetch_add(1, Ordering::Relaxed); // Relaxed: the words order nothing
            }
            wait_until(begin);
            let before = clock::ordered();
            let counts = self.accesses.execute(core, one, own);
            let took = clock::ordered().wrapping_sub(before).saturating_sub(overhead);
            let is_on_time = before < begin + period / 8;
            (counts && is_on_time).then_some(took as f64 * self.ns_per_tick)
        };
        (0..BURSTS).map(burst).collect()
    }

    /// The time of an addition while all cores make one after the other.
    fn add_without_end(&self, core: usize, start: u64, shared: &Shared) -> f64 {
        const BATCH: u64 = 32;
        let end = start + self.ticks(WITHOUT_END_NS);
        wait_until(start);
        let (begin, mut done) = (clock::now(), 0);
        while clock::now() < end {
            (0..BATCH).for_each(|_| {
                _ = self.accesses.execute(core, &shared.words[0], &shared.words[core + 1])
            });
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
        assert_eq!(read.len(), Accesses::ALL.len() * counts.len() - 1);
    }
}
