//! Threads that contend for one lock, or for one word.
//!
//! The mechanism is a lock of manycore's, `glibc-2013-rw`, or a way to count. `atomic-add` and
//! `cas-add` count in one word. With `own-add` and `own-plain-add` each thread has a word of its
//! own; the latter uses a load and a store.

use manycore_sim::machine::Topology;
use manycore_sim::{Placement, thread};
use manycore_simulated::sync::CachePadded;
use manycore_simulated::sync::atomic::{AtomicU64, Ordering};
use manycore_simulated::sync::cell::UnsafeCell;
use manycore_simulated::sync::tuning;
use serde::{Deserialize, Serialize};

use super::glibc_rw::GlibcRw;
use crate::contender::{self, Contender, Visitor};
use crate::simulated::{Count, Finding, Run, SimulatedProgram, Window, sight};
use crate::waits::Waits;

/// The order in which threads are put on CPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Filling {
    /// Socket by socket.
    #[default]
    Compact,
    /// On all sockets in turn, as a scheduler spreads them.
    Scatter,
}

/// A thread's computation and accesses, under the lock and between two acquisitions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Contend {
    /// Computation under the lock.
    pub section_ns: f64,
    /// Mean computation between two sections. It varies by half of that either way.
    pub outside_ns: f64,
    /// The share of sections that only read, in percent.
    pub reads: f64,
    /// The number of lines that a section reads. It also writes them unless it only reads.
    pub data: u32,
    pub filling: Filling,
}

/// The data that all threads use.
trait Shared {
    /// One operation of a thread.
    fn act(&self, index: u32, reads: bool, section: u64);

    /// The number of operations that changed something, according to the data.
    fn written(&self) -> u64;
}

/// A lock with the lines that it protects.
#[repr(C, align(128))]
struct Guarded<C> {
    lock: C,
    lines: Box<[CachePadded<UnsafeCell<u64>>]>,
}

impl<C: Contender> Shared for Guarded<C> {
    fn act(&self, _: u32, reads: bool, section: u64) {
        let visit = |writes: bool| {
            for line in &self.lines {
                // SAFETY: all simulated threads are one thread of the host, and none stops within
                // this access.
                let count = line.with(|line| unsafe { *line });
                if writes {
                    // SAFETY: all simulated threads are one thread of the host, and none stops
                    // within this access. Another thread in the section would show in the count.
                    line.with_mut(|line| unsafe { *line = count + 1 });
                }
            }
            thread::compute(section);
        };
        match reads {
            true => self.lock.shared(|| visit(false)),
            false => self.lock.exclusive(|| visit(true)),
        }
    }

    fn written(&self) -> u64 {
        // SAFETY: all simulated threads are one thread of the host, and none stops within this
        // access.
        self.lines.first().map_or(0, |line| line.with(|line| unsafe { *line }))
    }
}

/// How a thread increments a word.
#[derive(Clone, Copy)]
enum Way {
    Add,
    CompareAndSwap,
    Own,
    OwnPlain,
}

struct Word {
    way: Way,
    words: Box<[CachePadded<AtomicU64>]>,
}

impl Shared for Word {
    fn act(&self, index: u32, _: bool, section: u64) {
        if section > 0 {
            thread::compute(section);
        }
        // Relaxed: the words order nothing.
        match self.way {
            Way::Add => _ = self.words[0].fetch_add(1, Ordering::Relaxed),
            Way::Own => _ = self.words[index as usize].fetch_add(1, Ordering::Relaxed),
            Way::OwnPlain => {
                let word = &self.words[index as usize];
                word.store(word.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
            }
            Way::CompareAndSwap => {
                let mut seen = self.words[0].load(Ordering::Relaxed);
                while let Err(now) = self.words[0].compare_exchange(
                    seen,
                    seen + 1,
                    Ordering::Relaxed,
                    Ordering::Relaxed,
                ) {
                    seen = now;
                }
            }
        }
    }

    fn written(&self) -> u64 {
        // Relaxed: all threads have ended.
        self.words.iter().map(|word| word.load(Ordering::Relaxed)).sum()
    }
}

/// Makes the shared data for this many threads and lines.
type Maker = fn(u32, u32) -> Box<dyn Shared>;

struct Chooser;

impl Visitor for Chooser {
    type Output = Maker;

    fn visit<C: Contender>(self) -> Maker {
        |_, lines| {
            let lines = (0..lines).map(|_| CachePadded(UnsafeCell::default())).collect();
            Box::new(Guarded::<C> { lock: C::new(), lines })
        }
    }
}

fn words(way: Way, count: u32) -> Box<dyn Shared> {
    let words: Box<[_]> = (0..count).map(|_| CachePadded(AtomicU64::new(0))).collect();
    // Relaxed: there are no other threads yet. The constructor's store is not simulated.
    words.iter().for_each(|word| word.store(0, Ordering::Relaxed));
    Box::new(Word { way, words })
}

fn maker(mechanism: &str) -> Option<Maker> {
    match mechanism {
        "atomic-add" => Some(|_, _| words(Way::Add, 1)),
        "cas-add" => Some(|_, _| words(Way::CompareAndSwap, 1)),
        "own-add" => Some(|threads, _| words(Way::Own, threads)),
        "own-plain-add" => Some(|threads, _| words(Way::OwnPlain, threads)),
        GlibcRw::NAME => Some(Chooser.visit::<GlibcRw>()),
        lock => contender::simulated::with(lock, Chooser),
    }
}

impl SimulatedProgram for Contend {
    const NAME: &'static str = "Contend";

    fn placement(&self, _: &Topology, _: u32) -> Placement {
        match self.filling {
            Filling::Compact => Placement::Compact,
            Filling::Scatter => Placement::Scatter,
        }
    }

    fn simulate(&self, run: &Run) -> Result<Finding, String> {
        simulate(run, self)
    }
}

/// The number of random values that a thread draws before the start, so that drawing is not
/// simulated.
const DRAWN: usize = 256;

fn simulate(run: &Run, program: &Contend) -> Result<Finding, String> {
    let (job, ghz) = (run.job, run.ghz());
    let make = maker(&job.mechanism)
        .ok_or_else(|| format!("there is no lock or counter `{}`", job.mechanism))?;
    let counts: Vec<Count> = (0..job.threads).map(|_| Count::default()).collect();
    let drawn: Vec<Drawn> = (0..job.threads).map(|one| draw(program, one, run)).collect();
    let section = (program.section_ns * ghz).round() as u64;
    let report = run.simulate(|| {
        let shared = make(job.threads, program.data);
        // The first call measures the cost. It must not happen while operations are counted.
        tuning::pause_cost();
        let window = run.window(thread::now());
        let done = thread::parallel(job.threads, |index| {
            let Drawn { begin, steps } = &drawn[index as usize];
            thread::compute(*begin);
            let mut steps = steps.iter().cycle();
            let mut done = [0, 0];
            while thread::now() < window.end {
                let (reads, outside) = *steps.next().expect("there is at least one step");
                shared.act(index, reads, section);
                done[usize::from(reads)] += 1;
                counts[index as usize].note(window, done[0] + done[1]);
                thread::compute(outside.max(1));
            }
            done
        });
        (window, done, shared.written())
    })?;
    let (window, done, written): &(Window, Vec<[u64; 2]>, u64) = &report.result;
    let writes: u64 = done.iter().map(|[writes, _]| writes).sum();
    if program.data > 0 && writes != *written {
        return Err(format!(
            "updates were lost: the threads made {writes}, and the data shows {written}"
        ));
    }
    let all: u64 = done.iter().map(|[writes, reads]| writes + reads).sum();
    let counted = counts.iter().map(Count::counted).collect();
    let slice = run.slice(*window, counted, std::iter::empty());
    Ok(Finding {
        slice: crate::slice::Slice { waits: Waits::default(), ..slice },
        sight: sight(&report, all.max(1)),
    })
}

/// The random values of a thread.
struct Drawn {
    /// The computation before the first operation. Threads that began at the same moment would
    /// queue in the order of their CPUs, socket by socket, and a fair lock would keep that order.
    begin: u64,
    /// For each operation: whether it only reads, and how long the thread computes afterwards.
    steps: Vec<(bool, u64)>,
}

fn draw(program: &Contend, thread: u32, run: &Run) -> Drawn {
    // Any odd multiplier keeps the threads' seeds apart.
    let own = (u64::from(thread) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut random = fastrand::Rng::with_seed(run.job.seed.wrapping_add(own));
    let step = |_| {
        let reads = random.f64() < program.reads / 100.0;
        let outside = program.outside_ns * (0.5 + random.f64()) * run.ghz();
        (reads, outside.round() as u64)
    };
    let steps = (0..DRAWN).map(step).collect();
    // Half of the time that is not counted.
    let latest = run.job.measured.as_nanos() as f64 * run.ghz() / 10.0;
    Drawn { begin: (random.f64() * latest) as u64, steps }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::simulated::{Job, Program, simulate};
    use crate::slice::Pinning;

    fn job(mechanism: &str, threads: u32, program: &Contend) -> Job {
        Job {
            machine: manycore_sim::model::find("xeon-4x6").unwrap().to_toml(),
            cpus: None,
            mechanism: mechanism.to_owned(),
            threads,
            program: Program::of(program),
            measured: Duration::from_micros(50),
            pinning: Pinning::Auto,
            seed: 1,
            every_turn: false,
            patient: true,
        }
    }

    fn throughput(mechanism: &str, threads: u32, reads: f64) -> f64 {
        let program = Contend {
            section_ns: 20.0,
            outside_ns: 100.0,
            reads,
            data: 1,
            filling: Filling::Compact,
        };
        let job = job(mechanism, threads, &program);
        simulate::<Contend>(&job).unwrap().slice.throughput()
    }

    #[test]
    fn private_words_scale_and_shared_ones_do_not() {
        let factor = |mechanism| throughput(mechanism, 24, 0.0) / throughput(mechanism, 1, 0.0);
        let (own, shared, swapped) = (factor("own-add"), factor("atomic-add"), factor("cas-add"));
        assert!(own > 20.0 && shared.max(swapped) < 6.0, "{own}, {shared}, {swapped}");
    }

    /// A fair queue across four sockets crosses them at most hand-overs. A queue that prefers its
    /// own socket does not.
    #[test]
    fn a_fair_queue_crosses_sockets() {
        let crossing = |mechanism| {
            let program = Contend {
                section_ns: 100.0,
                outside_ns: 400.0,
                reads: 0.0,
                data: 1,
                filling: Filling::Scatter,
            };
            let sight = simulate::<Contend>(&job(mechanism, 24, &program)).unwrap().sight;
            let near = sight["transfers_0"];
            let all: f64 = (0..3).filter_map(|far| sight.get(&format!("transfers_{far}"))).sum();
            (all - near) / all
        };
        let (fair, together) = (crossing("mcs"), crossing("cna"));
        assert!(fair > 0.5 && together < 0.3, "{fair}, {together}");
    }

    #[test]
    fn readers_share_the_lock_and_writers_do_not() {
        let (read, written) = (throughput("per-cpu-rw", 24, 100.0), throughput("mcs", 24, 0.0));
        assert!(read > 4.0 * written, "{read}, {written}");
    }
}
