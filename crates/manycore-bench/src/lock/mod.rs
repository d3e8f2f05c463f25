//! `manycore bench lock`: threads contend for locks, at every point of a small grid.
//!
//! ```no_run
//! use manycore_bench::lock::{self, Options};
//! use manycore_bench::worker::Command;
//!
//! // The arguments that lead this program to `worker::serve`.
//! let worker = Command::this_executable(["bench", "worker"])?;
//! let options = Options { threads: vec![1, 2, 8], ..Options::new(worker) };
//! let found = lock::run(&options)?;
//! println!("{}", lock::render(&found.measurements));
//! # Ok::<(), manycore_bench::Failure>(())
//! ```

pub(crate) mod campaign;
mod command;
mod flags;
mod grid;
mod point;
mod records;
mod render;
mod render_simulated;
pub(crate) mod sections;
pub mod simulated;
mod simulated_command;
pub(crate) mod stage;

use std::path::PathBuf;
use std::time::Duration;

pub use manycore_measure::paired::Rounds;

use crate::campaign::fault;
use crate::contender::{self, BASE, BASE_SHARED};
use crate::failure::Failure;
use crate::front::Front;
use crate::mix::{Mix, USUAL_DATA};
use crate::run_records::RunRecords;
use crate::simulated::Simulator;
use crate::slice::Pinning;
use crate::work::Length;
use crate::worker::{Command, Executor, Subject, Through};
use crate::workload::Workload;
use campaign::LockCampaign;
pub(crate) use grid::PointGrid;
pub(crate) use point::Point;
pub use render::render;
pub(crate) use render::{in_words, lines_of_data};
pub use render_simulated::render as render_simulated;

/// The base line of simulations: the algorithm of glibc's `pthread_mutex_lock`.
pub(crate) const SIMULATED_BASE: &str = "futex";

/// Threads that contend for locks.
pub(crate) struct Locks;

impl Workload for Locks {
    fn measured(&self) -> Vec<Front> {
        vec![Front::of::<command::Options>()]
    }

    fn simulated(&self) -> Vec<Front> {
        vec![Front::of::<simulated_command::Options>()]
    }

    fn executors(&self, lock: &str) -> Vec<Executor> {
        vec![campaign::executor(lock)]
    }

    fn simulators(&self) -> Vec<Simulator> {
        vec![Simulator::of::<Mix>()]
    }
}

/// What to measure.
#[derive(Clone, Debug)]
pub struct Options {
    /// Names of locks; empty means all locks. The base line takes part in any case.
    pub locks: Vec<String>,
    /// Thread counts.
    pub threads: Vec<u32>,
    /// How many locks the threads share.
    pub lock_count: u32,
    /// Times in a section.
    pub sections: Vec<Length>,
    /// Time between two sections; `None` means exponential with twice the mean of the section.
    pub outside: Option<Length>,
    /// The share of sections that only read, in percent. From 1 % on, the peers are reader-writer
    /// locks.
    pub reads: f64,
    /// Cache lines that a section reads and writes, one after the other.
    pub data: u32,
    /// Measure manycore's locks called as a library.
    pub native: bool,
    /// The preload library with which manycore's locks are measured in place of the pthread ones.
    pub preload: Option<PathBuf>,
    /// The length of one slice with few threads per CPU; with many, slices are longer.
    pub slice: Duration,
    /// How often to repeat.
    pub rounds: Rounds,
    /// Which CPUs the threads run on.
    pub pinning: Pinning,
    /// The seed of every random choice.
    pub seed: u64,
    /// How to start a worker.
    pub worker: Command,
    /// Whether to show progress, if standard error is a terminal.
    pub progress: bool,
}

impl Options {
    /// All locks as a library, with 1, 2, 4 and 8 threads, one lock, sections of 1 us, 31 rounds.
    pub fn new(worker: Command) -> Self {
        Self {
            locks: Vec::new(),
            threads: vec![1, 2, 4, 8],
            lock_count: 1,
            sections: vec![Length::fixed(1_000.0)],
            outside: None,
            reads: 0.0,
            data: USUAL_DATA,
            native: true,
            preload: None,
            slice: Duration::from_millis(30),
            rounds: Rounds::Count(31),
            pinning: Pinning::Auto,
            seed: 1,
            worker,
            progress: false,
        }
    }
}

/// Measures.
pub fn run(options: &Options) -> Result<RunRecords, Failure> {
    let samples = options.campaign()?.run()?;
    Ok(RunRecords { measurements: samples.measurements()?, failures: samples.failures() })
}

impl Options {
    pub(crate) fn campaign(&self) -> Result<LockCampaign<'_>, Failure> {
        self.check()?;
        Ok(LockCampaign {
            points: self.points(),
            subjects: self.subjects()?,
            slice: self.slice,
            rounds: self.rounds,
            pinning: self.pinning,
            seed: self.seed,
            worker: &self.worker,
            progress: self.progress,
        })
    }

    fn check(&self) -> Result<(), Failure> {
        self.grid().check()?;
        let nothing = (!self.native && self.preload.is_none())
            .then_some("neither native nor through the preload library: choose at least one");
        match fault(self.slice, None, self.rounds).or(nothing) {
            Some(fault) => Err(Failure::Usage(fault.into())),
            None => Ok(()),
        }
    }

    fn grid(&self) -> PointGrid<'_> {
        PointGrid {
            threads: &self.threads,
            lock_count: self.lock_count,
            sections: &self.sections,
            outside: self.outside,
            reads: self.reads,
            data: self.data,
        }
    }

    fn points(&self) -> Vec<Point> {
        self.grid().points()
    }

    /// The base line first, then the others in the order asked for.
    fn subjects(&self) -> Result<Vec<Subject>, Failure> {
        let shared = self.reads > 0.0;
        let base = if shared { BASE_SHARED } else { BASE };
        let asked = if self.locks.is_empty() { every_lock(shared) } else { self.locks.clone() };
        if let Some(unknown) = asked.iter().find(|name| !contender::exists(name)) {
            return Err(unknown_lock(unknown));
        }
        let mut subjects: Vec<Subject> = Vec::new();
        let mut add = |lock: &str, through: Through| {
            let subject = Subject { lock: lock.to_string(), through, shared };
            if !subjects.contains(&subject) {
                subjects.push(subject);
            }
        };
        add(base, Through::Native);
        for lock in &asked {
            let inline = contender::is_inline(lock);
            if self.native || !inline {
                add(lock, Through::Native);
            }
            if let (Some(library), true) = (&self.preload, inline) {
                add(lock, Through::Preload(library.clone()));
            }
        }
        Ok(subjects)
    }
}

fn every_lock(shared: bool) -> Vec<String> {
    // A mutex takes part among readers too: there they exclude each other.
    let rw_locks = if shared { contender::rw_locks() } else { &[] };
    let ours = contender::locks().iter().chain(rw_locks).map(|info| info.name);
    ours.chain(contender::peers(shared)).map(str::to_string).collect()
}

/// What to say about a lock that does not exist.
pub(crate) fn unknown_lock(name: &str) -> Failure {
    let mut known = every_lock(false);
    known.extend(every_lock(true).into_iter().filter(|name| !every_lock(false).contains(name)));
    Failure::Usage(format!("there is no lock `{name}`: choose from {}", known.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options() -> Options {
        Options::new(Command { program: "/nonexistent".into(), arguments: Vec::new() })
    }

    fn names(options: &Options) -> Vec<String> {
        options.subjects().unwrap().iter().map(Subject::to_string).collect()
    }

    #[test]
    fn the_base_line_comes_first_and_once() {
        let locks = ["std", "glibc", "futex", "std"].map(str::to_string).to_vec();
        assert_eq!(names(&Options { locks, ..options() }), ["glibc", "std", "futex"]);
        let all = names(&options());
        assert_eq!(all.iter().filter(|name| *name == "glibc").count(), 1);
        assert!(
            all.contains(&"parking_lot".to_string()) && !all.contains(&"std-rwlock".to_string())
        );
    }

    #[test]
    fn only_our_locks_go_through_the_preload_library() {
        let locks = vec!["futex".to_string(), "std".to_string()];
        let both = Options { locks, preload: Some("/lib.so".into()), ..options() };
        assert_eq!(names(&both), ["glibc", "futex", "futex (preload)", "std"]);
        assert_eq!(names(&Options { native: false, ..both }), ["glibc", "futex (preload)", "std"]);
    }

    #[test]
    fn readers_bring_other_peers() {
        let all = names(&Options { reads: 90.0, ..options() });
        assert_eq!(all[0], "glibc-rwlock");
        assert!(contender::rw_locks().iter().all(|info| all.contains(&info.name.to_string())));
        assert!(
            all.contains(&"parking_lot-rwlock".to_string()) && !all.contains(&"std".to_string())
        );
    }

    #[test]
    fn every_section_meets_every_thread_count() {
        let sections = vec![Length::fixed(50.0), Length::fixed(20e3)];
        let points = Options { sections, threads: vec![1, 8], ..options() }.points();
        assert_eq!(points.len(), 4);
        assert_eq!((points[3].threads, points[3].outside), (8, Length::exponential(40e3)));
    }

    #[test]
    fn bad_questions_are_named() {
        let refuse = |options: Options| options.campaign().unwrap_err();
        let unknown = refuse(Options { locks: vec!["nosuch".into()], ..options() });
        assert!(
            matches!(&unknown, Failure::Usage(text) if text.starts_with("there is no lock `nosuch`: choose from "))
        );
        for wrong in [
            Options { threads: vec![], ..options() },
            Options { threads: vec![0], ..options() },
            Options { sections: vec![], ..options() },
            Options { sections: vec![Length::fixed(f64::NAN)], ..options() },
            Options { reads: 101.0, ..options() },
            Options { lock_count: 0, ..options() },
            Options { slice: Duration::ZERO, ..options() },
            Options { rounds: Rounds::Count(0), ..options() },
            Options { native: false, ..options() },
        ] {
            assert!(matches!(refuse(wrong), Failure::Usage(_)));
        }
    }
}
