//! The kernel under observation: by the best means that it permits.

use std::fmt;
use std::time::Instant;

use clap::ValueEnum;
use clap::builder::PossibleValue;
use manycore_profile::analyze::assemble::KernelSeen as Seen;
use manycore_profile::analyze::futex::{Count, Futexes};
use manycore_profile::profile::{KernelRun, Scope, Source};
use manycore_profile::record::kernel_side::KernelWatch;

#[cfg(feature = "bpf")]
use crate::bpf::Programs;
use crate::cgroup::{self, Cgroups};
use crate::kallsyms::Kallsyms;
use crate::limits;
use crate::lock_stat::LockStat;
use crate::locks;
use crate::perf::{Contention, FutexCalls};

/// Counting the waits of all places where threads wait for futexes takes at most one part in this
/// many of the time.
const COUNTING_SHARE: u32 = 20;

/// What is to be watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The tasks whose waits count. A command is any process that this process starts from now on.
    pub scope: Scope,
}

/// By which means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Means {
    /// The first that works.
    Auto,
    /// This one.
    Only(Source),
}

impl ValueEnum for Means {
    fn value_variants<'a>() -> &'a [Self] {
        &[
            Self::Auto,
            Self::Only(Source::Bpf),
            Self::Only(Source::Perf),
            Self::Only(Source::LockStat),
        ]
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let (name, help) = match self {
            Self::Auto => ("auto", "The first of these that works"),
            Self::Only(Source::Bpf) => ("bpf", "BPF programs, which add up in the kernel"),
            Self::Only(Source::Perf) => ("perf", "Perf events, read one by one"),
            Self::Only(Source::LockStat) => (
                "lock-stat",
                "The kernel's own statistics, if it was built with them: the whole system only",
            ),
        };
        Some(PossibleValue::new(name).help(help))
    }
}

/// The reason why the kernel cannot be watched, and the remedy: in one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal(String);

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Refusal {}

/// Counts until it is finished.
pub struct Watch {
    running: Running,
    scope: Scope,
    /// The program's own futexes, if they are watched, too.
    futexes: Own,
    symbols: Kallsyms,
    /// The time of the start, or of the last taking of results.
    started: Instant,
    /// Why better means were not used.
    refused: Vec<String>,
    /// What there is to say of futexes.
    of_futexes: Vec<String>,
    /// The time from which the waits may be counted again.
    count_next: Instant,
    /// Whose waits alone are wanted.
    cgroup: Option<cgroup::One>,
}

/// The program's own futexes.
enum Own {
    /// No reader wants them.
    Unwanted,
    /// The BPF programs see to them.
    #[cfg(feature = "bpf")]
    ByPrograms,
    /// By the tracepoints of the system call.
    ByCalls(Box<FutexCalls>),
    /// Why not.
    Refused(String),
}

impl Own {
    /// Starts to count them, if the method of observing the kernel's locks allows it.
    fn start(running: &Running, request: &Request) -> Self {
        match running {
            #[cfg(feature = "bpf")]
            Running::Bpf(_) => Self::ByPrograms,
            _ => match FutexCalls::start(request) {
                Ok(calls) => Self::ByCalls(Box::new(calls)),
                Err(why) => Self::Refused(why),
            },
        }
    }
}

enum Running {
    #[cfg(feature = "bpf")]
    Bpf(Programs),
    Perf(Box<Contention>),
    LockStat(LockStat),
}

impl Watch {
    /// Starts to count waits for the kernel's locks. If the waits of a command count, call this
    /// before the command is started.
    pub fn start(means: Means, request: &Request) -> Result<Self, Refusal> {
        Self::begin(means, request, false)
    }

    /// As [`start`](Watch::start), and also counts the program's own waits by futexes, see
    /// [`Watch::futexes`]. That costs some time at every context switch, or without BPF at every
    /// system call. For the whole system futexes are not counted, because no single program would
    /// own them.
    pub fn start_with_futexes(means: Means, request: &Request) -> Result<Self, Refusal> {
        Self::begin(means, request, request.scope != Scope::System)
    }

    fn begin(means: Means, request: &Request, futexes: bool) -> Result<Self, Refusal> {
        let symbols = Kallsyms::read();
        let sources = match means {
            Means::Auto => vec![Source::Bpf, Source::Perf, Source::LockStat],
            Means::Only(source) => vec![source],
        };
        let mut reasons = Vec::new();
        for source in sources {
            match begin(source, request, futexes, &symbols) {
                Ok(running) => {
                    let futexes = match futexes {
                        true => Own::start(&running, request),
                        false => Own::Unwanted,
                    };
                    // Not earlier: on a busy machine, loading BPF's programs and opening perf
                    // events takes as long as a short watch lasts.
                    let started = Instant::now();
                    return Ok(Self {
                        running,
                        scope: request.scope,
                        futexes,
                        symbols,
                        started,
                        refused: reasons,
                        of_futexes: Vec::new(),
                        count_next: started,
                        cgroup: None,
                    });
                }
                Err(why) => reasons.push(format!("{}: {why}", name(source))),
            }
        }
        Err(Refusal(reasons.join("; ")))
    }

    /// Counts only waits of tasks in a cgroup, and in the cgroups below it. The cgroup is given by
    /// its path from the topmost root, or by its directory.
    pub fn only_cgroup(self, path: &str) -> Result<Self, Refusal> {
        let one = cgroup::One::find(path).map_err(Refusal)?;
        if self.tells_cgroups() {
            return Ok(Self { cgroup: Some(one), ..self });
        }
        let because = self.not_used().join("; ");
        Err(Refusal(format!("which cgroup waits in '{path}' is told by BPF alone: {because}")))
    }

    fn tells_cgroups(&self) -> bool {
        match &self.running {
            #[cfg(feature = "bpf")]
            Running::Bpf(_) => true,
            Running::Perf(_) | Running::LockStat(_) => false,
        }
    }

    /// Reads the new data; call this several times a second, or some data may be dropped.
    pub fn sample(&mut self) {
        match (&mut self.running, &mut self.futexes) {
            #[cfg(feature = "bpf")]
            (Running::Bpf(programs), Own::ByPrograms) => programs.sample(),
            (Running::Perf(events), _) => events.read(),
            _ => {}
        }
        if let Own::ByCalls(calls) = &mut self.futexes {
            calls.read();
        }
    }

    /// The present totals of each place where the program's threads wait by futexes of their own.
    /// `None` if reading them would take much of the time: with many places, they are read less
    /// often.
    pub fn count_futexes(&mut self) -> Option<Vec<Count>> {
        let begun = Instant::now();
        if begun < self.count_next {
            return None;
        }
        let counts = match (&mut self.running, &mut self.futexes) {
            #[cfg(feature = "bpf")]
            (Running::Bpf(programs), Own::ByPrograms) => programs.futex_counts(),
            (_, Own::ByCalls(calls)) => calls.counts(),
            _ => Vec::new(),
        };
        self.count_next = Instant::now() + begun.elapsed() * (COUNTING_SHARE - 1);
        Some(counts)
    }

    /// The waits of the program's threads until now by futexes of their own, without those for
    /// locks that the preloaded library sees. None if they are not counted; [`KernelRun::limits`]
    /// lists the waits that cannot be seen.
    pub fn futexes(&mut self) -> Futexes {
        match (&mut self.running, &mut self.futexes) {
            #[cfg(feature = "bpf")]
            (Running::Bpf(programs), Own::ByPrograms) => {
                let (futexes, totals) = programs.futexes();
                self.of_futexes = limits::of_futexes(&totals, None);
                futexes
            }
            (_, Own::ByCalls(calls)) => {
                let (futexes, totals) = calls.futexes();
                self.of_futexes = limits::of_futexes(&totals, Some(limits::BY_CALLS));
                futexes
            }
            (_, Own::Refused(why)) => {
                let text = format!(
                    "what the program waits for by futexes of its own, without a lock of a library, is not seen: {why}"
                );
                self.of_futexes = vec![text];
                Futexes::default()
            }
            _ => Futexes::default(),
        }
    }

    /// Stops counting, and names the counted waits since the start or the last [`Watch::take`].
    pub fn finish(mut self) -> Seen {
        match &mut self.running {
            #[cfg(feature = "bpf")]
            Running::Bpf(programs) => programs.stop(),
            Running::Perf(events) => events.stop(),
            Running::LockStat(_) => {}
        }
        let mut seen = self.take();
        // Only now: statistics that are switched off may be forgotten.
        if let Running::LockStat(statistics) = &mut self.running {
            seen.run.limits.extend(statistics.stop());
        }
        seen
    }

    /// Finds the names of the waits since the start or the last call, and continues to count. A
    /// wait belongs to the part in which it ends.
    pub fn take(&mut self) -> Seen {
        let now = Instant::now();
        let seconds = (now - std::mem::replace(&mut self.started, now)).as_secs_f64();
        let (waits, totals, source) = match &mut self.running {
            #[cfg(feature = "bpf")]
            Running::Bpf(programs) => {
                let (waits, totals) = programs.take();
                (waits, totals, Source::Bpf)
            }
            Running::Perf(events) => {
                let (waits, totals) = events.take();
                (waits, totals, Source::Perf)
            }
            Running::LockStat(statistics) => {
                let (locks, of_lock_stat) = statistics.take();
                let mut limits = self.not_used();
                limits.extend(of_lock_stat);
                limits.extend(self.of_futexes.iter().cloned());
                let events = locks.iter().map(|lock| lock.contended).sum();
                let (source, scope) = (Source::LockStat, Scope::System);
                let run = KernelRun { source, scope, seconds, events, dropped: 0, limits };
                return Seen { run, locks };
            }
        };
        let cgroups = Cgroups::read();
        let mut waits = waits;
        if let Some(one) = &self.cgroup {
            waits.retain(|wait| cgroups.is_within(wait.cgroup, one));
        }
        let (locks, cut) = locks::of(&waits, &self.symbols, |number| cgroups.path(number));
        let mut limits = self.not_used();
        limits.extend(limits::of_means(source, self.scope, &self.symbols).map(str::to_owned));
        limits.extend(self.of_futexes.iter().cloned());
        limits.extend(limits::of_locks(&totals, cut));
        let of_cgroup = || locks.iter().map(|lock| lock.contended).sum();
        let events = if self.cgroup.is_some() { of_cgroup() } else { totals.waits };
        let (scope, dropped) = (self.scope, totals.dropped);
        Seen { run: KernelRun { source, scope, seconds, events, dropped, limits }, locks }
    }

    fn not_used(&self) -> Vec<String> {
        self.refused.iter().map(|why| format!("not used: {why}")).collect()
    }
}

impl KernelWatch for Watch {
    fn sample(&mut self) {
        Watch::sample(self);
    }

    fn count_futexes(&mut self) -> Option<Vec<Count>> {
        Watch::count_futexes(self)
    }

    fn futexes(&mut self) -> Futexes {
        Watch::futexes(self)
    }

    fn finish(self: Box<Self>) -> Seen {
        Watch::finish(*self)
    }
}

fn begin(
    source: Source,
    request: &Request,
    #[cfg_attr(not(feature = "bpf"), allow(unused_variables, reason = "only BPF sees them"))]
    futexes: bool,
    symbols: &Kallsyms,
) -> Result<Running, String> {
    match source {
        #[cfg(feature = "bpf")]
        Source::Bpf => Programs::start(request, futexes, symbols).map(Running::Bpf),
        #[cfg(not(feature = "bpf"))]
        Source::Bpf => Err(
            "this command was built without it: build it with `make build`, which installs clang, or cargo's `--features bpf`"
                .to_owned(),
        ),
        Source::Perf => {
            Contention::start(request, symbols).map(|events| Running::Perf(Box::new(events)))
        }
        Source::LockStat => LockStat::start(request).map(Running::LockStat),
    }
}

fn name(source: Source) -> &'static str {
    match source {
        Source::Bpf => "BPF",
        Source::Perf => "perf events",
        Source::LockStat => "/proc/lock_stat",
    }
}
