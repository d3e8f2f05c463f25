//! Calls of kernels, as accesses to lines. According to the kernel's source, a call accesses memory
//! that other calls use too; computation stands for the rest of the call.
//!
//! | module | what is in it |
//! |---|---|
//! | `files` | a table of descriptors, under Linux' spin lock and without |
//! | `shared` | what both are to the threads |
//! | `links` | the state of a file beside changes of its link count |
//! | `semaphores` | an array of semaphores, under its lock and under theirs |
//! | `dentry` | the entry of a name, before and after its users got a line of their own |
//! | `mappings` | memory of a process that its threads map, touch and unmap |
//! | `rw_semaphore` | the semaphore of a process' mappings |

mod dentry;
mod files;
mod links;
mod mappings;
mod rw_semaphore;
mod semaphores;
mod shared;

use std::collections::BTreeMap;

use manycore_sim::thread;
use serde::{Deserialize, Serialize};

use self::dentry::Dentry;
use self::files::{Own, Table};
use self::links::{Deltas, References, SharedCount};
use self::mappings::{Faults, Mappings, Pattern};
use self::semaphores::{Locking, Semaphores};
use self::shared::{Part, Shared};
use crate::simulated::{Count, Finding, Run, SimulatedProgram, sight};

/// A call, and its computation apart from accesses to shared memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Calls {
    pub call: Call,
    /// The computation of the counted call, by mechanism.
    pub work_ns: BTreeMap<String, f64>,
    /// The computation of the call beside it, if there is one.
    #[serde(default)]
    pub beside_ns: f64,
    /// How much longer than in the machine's model an idle core takes to wake, by mechanism.
    #[serde(default)]
    pub idle_exit_ns: BTreeMap<String, f64>,
}

/// The calls that threads make.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Call {
    /// Each thread opens a file of its own and closes it.
    OpenAndClose,
    /// Half of the threads look up the state of a file, and these calls are counted. The other half
    /// links and unlinks the file.
    StatBesideLink,
    /// As `StatBesideLink`, without a look-up of the number of links.
    StatWithoutLinksBesideLink,
    /// As `StatBesideLink`, but the links are counted.
    LinkBesideStat,
    /// As `LinkBesideStat`, without a look-up of the number of links.
    LinkBesideStatWithoutLinks,
    /// Each operates on a semaphore of its own, all of one array.
    Semop,
    /// All look up the state of one file by its name.
    StatOneName,
    /// Each maps a page, touches it and unmaps it.
    MapOwn,
    /// Each maps a page, touches it and passes it to the next, which touches and unmaps it.
    MapAndPass,
}

impl Call {
    /// Whether the look-up of a file's state includes its number of links.
    fn asks_for_links(self) -> bool {
        matches!(self, Self::StatBesideLink | Self::LinkBesideStat)
    }

    /// Who touches the mapped pages, if it is a mapping.
    fn pattern(self) -> Option<Pattern> {
        match self {
            Self::MapOwn => Some(Pattern::Own),
            Self::MapAndPass => Some(Pattern::Passed),
            _ => None,
        }
    }

    /// The number of threads for each thread whose calls are counted.
    pub fn threads_each(self) -> u32 {
        match self {
            Self::OpenAndClose | Self::Semop | Self::StatOneName => 1,
            _ if self.pattern().is_some() => 1,
            _ => 2,
        }
    }

    /// The part of thread `thread` of `threads`, and whether its calls are counted.
    fn of(self, thread: u32, threads: u32) -> (Part, bool) {
        let stats = thread < threads / 2;
        match self {
            Self::OpenAndClose => (Part::OpenAndClose, true),
            Self::Semop => (Part::Semaphore, true),
            Self::StatOneName => (Part::StatName, true),
            _ if self.pattern().is_some() => (Part::Map, true),
            Self::StatBesideLink | Self::StatWithoutLinksBesideLink if stats => (Part::Stat, true),
            Self::StatBesideLink | Self::StatWithoutLinksBesideLink => (Part::Link, false),
            _ if stats => (Part::Stat, false),
            _ => (Part::Link, true),
        }
    }
}

/// Makes the mechanism's shared data for this call and this many threads.
fn make(mechanism: &str, call: Call, threads: u32, idle_exit: u64) -> Option<Box<dyn Shared>> {
    if let Some(pattern) = call.pattern() {
        let faults = match mechanism {
            "linux" => Faults::Semaphore,
            "bonsai" => Faults::Nothing,
            _ => return None,
        };
        return Some(Box::new(Mappings::new(threads, pattern, faults, idle_exit)));
    }
    Some(match (mechanism, call) {
        ("linux", Call::OpenAndClose) => Box::new(Table::new(threads)),
        ("own", Call::OpenAndClose) => Box::new(Own::new(threads)),
        ("array-lock", Call::Semop) => Box::new(Semaphores::new(threads, Locking::Array)),
        ("semaphore-locks", Call::Semop) => Box::new(Semaphores::new(threads, Locking::Semaphore)),
        ("one-line", Call::StatOneName) => Box::new(Dentry::with_one_line()),
        ("two-lines", Call::StatOneName) => Box::new(Dentry::with_two_lines()),
        (_, Call::OpenAndClose | Call::Semop | Call::StatOneName) => return None,
        ("linux", Call::StatBesideLink | Call::StatWithoutLinksBesideLink) => {
            Box::new(References::new())
        }
        ("own", _) => Box::new(Deltas::new(threads)),
        ("shared-count", _) => Box::new(SharedCount::new()),
        _ => return None,
    })
}

impl SimulatedProgram for Calls {
    const NAME: &'static str = "Calls";

    fn simulate(&self, run: &Run) -> Result<Finding, String> {
        let (job, ghz) = (run.job, run.ghz());
        let unknown = || format!("the set has no duration of a call for `{}`", job.mechanism);
        let own_ns = *self.work_ns.get(&job.mechanism).ok_or_else(unknown)?;
        let counts: Vec<Count> = (0..job.threads).map(|_| Count::default()).collect();
        let report = run.simulate(|| {
            let idle_exit_ns = self.idle_exit_ns.get(&job.mechanism).copied().unwrap_or_default();
            let idle_exit = (idle_exit_ns * ghz).round() as u64;
            let shared = make(&job.mechanism, self.call, job.threads, idle_exit)
                .ok_or_else(|| format!("this call is not implemented for `{}`", job.mechanism))?;
            let window = run.window(thread::now());
            let done = thread::parallel(job.threads, |me| {
                let (part, is_counted) = self.call.of(me, job.threads);
                if !shared.knows(part) {
                    return 0;
                }
                // Any odd multiplier keeps the threads' seeds apart.
                let own = (u64::from(me) + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                let random = std::cell::RefCell::new(fastrand::Rng::with_seed(job.seed ^ own));
                let ns = if is_counted { own_ns } else { self.beside_ns };
                // It varies by a quarter either way, so that threads do not fall into step.
                let work = |share: f64| {
                    let varying = 0.75 + 0.5 * random.borrow_mut().f64();
                    thread::compute((ns * share * varying * ghz) as u64);
                };
                // Threads that start at the same moment would queue in the order of their CPUs.
                let latest = job.measured.as_nanos() as f64 * ghz / 10.0;
                let begin = (random.borrow_mut().f64() * latest) as u64;
                thread::compute(begin);
                let mut done = 0;
                while thread::now() < window.end {
                    let mut calls = 1;
                    match part {
                        Part::OpenAndClose => shared.open_and_close(me, &work),
                        Part::Stat => shared.stat(self.call.asks_for_links(), &work),
                        Part::Link => shared.link(me, &work),
                        Part::Semaphore => shared.semop(me, &work),
                        Part::StatName => shared.stat_name(&work),
                        Part::Map => calls = shared.map_and_unmap(me, window.end, &work),
                    }
                    done += if is_counted { calls } else { 0 };
                    counts[me as usize].note(window, done);
                }
                done
            });
            shared.verify()?;
            Ok::<_, String>((window, done.iter().sum::<u64>()))
        })?;
        let (window, done) = report.result.clone()?;
        let counted = counts.iter().map(Count::counted).collect();
        let slice = run.slice(window, counted, std::iter::empty());
        Ok(Finding { slice, sight: sight(&report, done.max(1)) })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::simulated::{Job, Program, simulate};
    use crate::slice::Pinning;

    fn rate(mechanism: &str, threads: u32, call: Call) -> f64 {
        let work_ns = BTreeMap::from([(mechanism.to_owned(), 200.0)]);
        let calls = Calls { call, work_ns, beside_ns: 2000.0, idle_exit_ns: BTreeMap::new() };
        let job = Job {
            machine: manycore_sim::model::find("xeon-e7-8870-8x10").unwrap().to_toml(),
            cpus: None,
            mechanism: mechanism.to_owned(),
            threads,
            program: Program::of(&calls),
            measured: Duration::from_micros(100),
            pinning: Pinning::Auto,
            seed: 1,
            every_turn: false,
            patient: true,
        };
        simulate::<Calls>(&job).unwrap().slice.throughput()
    }

    #[test]
    fn private_lines_scale_and_the_shared_table_does_not() {
        let factor = |mechanism| {
            rate(mechanism, 40, Call::OpenAndClose) / rate(mechanism, 1, Call::OpenAndClose)
        };
        let (own, table) = (factor("own"), factor("linux"));
        assert!(own > 30.0 && table < 2.0, "{own}, {table}");
    }

    #[test]
    fn what_commits_have_changed_is_faster() {
        let over = |call, after, before| rate(after, 20, call) / rate(before, 20, call);
        let semaphores = over(Call::Semop, "semaphore-locks", "array-lock");
        let names = over(Call::StatOneName, "two-lines", "one-line");
        assert!(semaphores > 2.0 && names > 1.1, "{semaphores}, {names}");
    }

    #[test]
    fn mappings_of_one_process_do_not_scale() {
        let factor = |call| rate("linux", 20, call) / rate("linux", 1, call);
        for call in [Call::MapOwn, Call::MapAndPass] {
            let factor = factor(call);
            assert!(factor > 0.0 && factor < 1.0, "{call:?}: {factor}");
        }
    }

    #[test]
    fn a_look_up_of_links_waits_for_changes_of_links() {
        let of = |mechanism, call| rate(mechanism, 40, call);
        let [asked, not] = [Call::StatBesideLink, Call::StatWithoutLinksBesideLink]
            .map(|call| of("shared-count", call));
        assert!(not > 2.0 * asked, "{not}, {asked}");
        // A delta for each core is cheap to change and expensive to add up.
        let [links, shared] = ["own", "shared-count"].map(|name| of(name, Call::LinkBesideStat));
        assert!(links > 1.2 * shared, "{links}, {shared}");
        let deltas = of("own", Call::StatBesideLink);
        assert!(not > 5.0 * deltas, "{not}, {deltas}");
    }
}
