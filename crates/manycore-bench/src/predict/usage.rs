//! From the observations of a program to the workload that represents it.

use crate::mix::{Latch, Mix, USUAL_DATA};
use crate::simulated::THREADS_MAX;
use crate::work::Length;

/// A program's use of its locks, according to a profile.
#[derive(Clone, Debug, PartialEq)]
pub struct Usage {
    /// Threads that used locks.
    pub threads: u32,
    /// CPUs that they had.
    pub cpus: u32,
    /// From start to end, in seconds.
    pub wall: f64,
    /// CPU time of all threads except for waits, in seconds.
    pub busy: f64,
    /// Time in waits for locks, on the CPU and off it, in seconds.
    pub waiting: f64,
    /// Time in which threads were ready and had no CPU, whether or not they waited for a lock, in
    /// seconds; `None` if it was not counted.
    pub ready: Option<f64>,
    /// Cache lines of data that each section moves, which a profile does not show.
    pub data: u32,
    /// Its locks.
    pub locks: Vec<Row>,
}

/// A lock, or several that are known together.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// What a person calls it.
    pub name: String,
    /// How many locks these are.
    pub objects: u64,
    /// Acquisitions of all of them.
    pub acquired: u64,
    /// The number of acquisitions by readers; `None` for a mutex.
    pub shared: Option<u64>,
    /// The mean hold time, in nanoseconds; `None` if no hold was measured.
    pub hold_ns: Option<f64>,
    /// The factors by which the mean is multiplied at the ends of its interval.
    pub hold_range: (f64, f64),
    /// The 99th percentile of hold times.
    pub hold_p99_ns: Option<f64>,
    /// The share of the waits of the object with the longest waits, from 0 to 1.
    pub hottest: f64,
}

/// A workload that stands for a program.
#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    /// What each thread does.
    pub mix: Mix,
    /// For each lock of the mix, the number of its row in [`Usage::locks`].
    pub rows: Vec<usize>,
    /// Sections a second, as observed.
    pub observed: f64,
    /// The assumptions about this program, a sentence each.
    pub assumed: Vec<String>,
}

/// The most locks of a workload. A simulated thread's steps repeat after 256, so more locks would
/// be drawn too unevenly.
const LATCHES_MAX: usize = 128;

/// The most rows that are kept apart: those with the longest hold times. The sections of the others
/// count as time between sections.
const ROWS_MAX: usize = 16;

/// Threads that are idle for less than this share of their time count as busy.
const BUSY: f64 = 0.1;

/// A sleep takes longer than requested by the timer's slack, some 50 us. So threads sleep this
/// long, in nanoseconds, and correspondingly rarely.
const SLEEP_NS: f64 = 200_000.0;

/// The smallest and the largest number of sections between two sleeps.
const SECTIONS: (f64, f64) = (16.0, 1024.0);

/// A program whose CPUs are idle for less than this needs more CPUs.
const SATURATED: f64 = 0.9;

/// Hold times that are shortened by less than this are not reported.
const MUCH_SHORTER: f64 = 0.9;

/// Hold times are not known more precisely than this: they include the time to read the clock, and
/// the holder's losses to other threads.
const HOLDS: (f64, f64) = (0.8, 1.25);

/// The quantile 0.99 of an exponential distribution is 4.6 times its mean, that of a fixed length
/// the mean.
const VARIES: f64 = 2.0;

impl Workload {
    /// The workload that represents a program. The error says in a line why there is none.
    pub fn of(usage: &Usage) -> Result<Self, String> {
        if usage.threads > THREADS_MAX {
            return Err(format!(
                "the program had {} threads, and at most {THREADS_MAX} can be simulated: profile it with fewer",
                usage.threads
            ));
        }
        let mut order: Vec<usize> = (0..usage.locks.len()).collect();
        let held = |row: &Row| row.acquired as f64 * row.hold_ns.unwrap_or_default();
        order.sort_by(|a, b| held(&usage.locks[*b]).total_cmp(&held(&usage.locks[*a])));
        order.retain(|row| held(&usage.locks[*row]) > 0.0);
        order.truncate(ROWS_MAX);
        let rows = || order.iter().map(|row| &usage.locks[*row]);
        let sections = rows().map(|row| row.acquired as f64).sum::<f64>();
        if sections == 0.0 || usage.busy <= 0.0 || usage.threads == 0 {
            return Err("no lock was seen to be held, so there is nothing to model: profile the program for longer, or under load".into());
        }
        let mut assumed = Vec::new();
        if usage.data != USUAL_DATA {
            assumed.push(format!("each section moves {} cache lines of data", usage.data));
        }
        let in_sections = rows().map(held).sum::<f64>() / 1e9;
        let scale = (usage.busy / in_sections).min(1.0);
        if scale < MUCH_SHORTER {
            assumed.push(format!(
                "locks were held for {:.1} times as long as in the model: holders slept, lost their CPU, or held several",
                1.0 / scale
            ));
        }
        let outside_ns = (usage.busy - in_sections * scale) * 1e9 / sections;
        let idle_ns = usage.idle(&mut assumed) * 1e9 / sections;
        let is_busy = idle_ns < BUSY * usage.busy * 1e9 / sections;
        if !is_busy {
            let idle = idle_ns * sections / 1e9 / (f64::from(usage.threads) * usage.wall);
            assumed.push(format!(
                "threads were idle for {:.0} % of the time by choice; if they waited for each other's work, as stages of a pipeline \
                 do, more threads do no more, which is the low end of the range",
                100.0 * idle
            ));
        }
        let between = (SLEEP_NS / idle_ns).ceil().clamp(SECTIONS.0, SECTIONS.1);
        let mut mix = Mix {
            locks: Vec::new(),
            outside: Length::exponential(outside_ns.max(1.0)),
            reads: 0.0,
            sections: between as u32,
            think_ns: if is_busy { 0.0 } else { between * idle_ns },
            updating: None,
        };
        let mut of_latch = Vec::new();
        for row in order.iter().copied() {
            let latches = latches(&usage.locks[row], scale, LATCHES_MAX / order.len(), usage.data);
            of_latch.extend(latches.iter().map(|_| row));
            mix.locks.extend(latches);
        }
        Ok(Self { mix, rows: of_latch, observed: sections / usage.wall, assumed })
    }

    /// Whether its threads sleep.
    pub fn is_idle(&self) -> bool {
        self.mix.think_ns > 0.0
    }

    /// The rows that take part, as indices in [`Usage::locks`].
    pub fn parts(&self) -> Vec<usize> {
        let mut parts = self.rows.clone();
        parts.dedup();
        parts
    }

    /// The workload as if no thread ever had to wait for the locks of a row: its sections become
    /// time between sections. Also returns the number of sections for each remaining one. `None` if
    /// it is the only row.
    pub fn without(&self, row: usize) -> Option<(Self, f64)> {
        let weights = || self.mix.locks.iter().zip(&self.rows);
        let all: f64 = weights().map(|(latch, _)| latch.weight).sum();
        let left: f64 =
            weights().filter(|(_, of)| **of != row).map(|(latch, _)| latch.weight).sum();
        let free = weights().filter(|(_, of)| **of == row);
        let free: f64 = free.map(|(latch, _)| latch.weight * latch.section.mean_ns).sum();
        if left <= 0.0 {
            return None;
        }
        let per_section = all / left;
        let mut changed = self.clone();
        let keeps: Vec<bool> = self.rows.iter().map(|of| *of != row).collect();
        let mut keep = keeps.iter();
        changed.mix.locks.retain(|_| *keep.next().expect("a row each"));
        changed.rows.retain(|of| *of != row);
        changed.mix.outside.mean_ns = self.mix.outside.mean_ns * per_section + free / left;
        changed.mix.think_ns *= per_section;
        Some((changed, per_section))
    }
}

impl Usage {
    /// Other programs that the observations allow: the hold times, of all locks or of the one that
    /// was held longest, at either end of their intervals; holders that lost their CPU as often as
    /// other threads; and threads that were idle for less time, because some had ended long before
    /// the program, or for more, because waits for locks included time without a CPU.
    pub fn others(&self) -> Vec<Self> {
        let held = |row: &Row| row.acquired as f64 * row.hold_ns.unwrap_or_default();
        let longest = (0..self.locks.len())
            .max_by(|a, b| held(&self.locks[*a]).total_cmp(&held(&self.locks[*b])));
        let low = |row: &Row| row.hold_range.0.min(HOLDS.0);
        let high = |row: &Row| row.hold_range.1.max(HOLDS.1);
        // All ends at once are those of hold times that fit into the CPU time, as in the workload
        // itself. Only one lock's may be too long, because few samples show it: then the others'
        // are right as measured.
        let scale = (self.busy * 1e9 / self.locks.iter().map(held).sum::<f64>()).min(1.0);
        let with = |scale: f64,
                    of_longest: &dyn Fn(&Row) -> f64,
                    of_others: &dyn Fn(&Row) -> f64| {
            let mut changed = self.clone();
            for (place, row) in changed.locks.iter_mut().enumerate() {
                let factor = if Some(place) == longest { of_longest(row) } else { of_others(row) };
                let factor = factor * scale;
                row.hold_ns = row.hold_ns.map(|ns| ns * factor);
                row.hold_p99_ns = row.hold_p99_ns.map(|ns| ns * factor);
            }
            changed
        };
        let mut others = vec![with(scale, &low, &low), with(scale, &high, &high)];
        if self.locks.len() > 1 {
            others.extend([with(1.0, &low, &high), with(1.0, &high, &low)]);
        }
        if self.ready.is_some_and(|ready| ready > 0.0) {
            let with_cpu = self.busy / (self.busy + self.without_cpu());
            others.push(with(scale, &|_| with_cpu, &|_| with_cpu));
            let apart = self.ready.map(|ready| (ready - self.waiting).max(0.0));
            others.push(Self { ready: apart, ..self.clone() });
        }
        others.push(Self { ready: Some(f64::INFINITY), ..self.clone() });
        others
    }

    /// Seconds in which threads had work to do, waited for no lock and had no CPU.
    fn without_cpu(&self) -> f64 {
        let rest = f64::from(self.threads) * self.wall - self.busy - self.waiting;
        self.ready.unwrap_or_default().min(rest.max(0.0))
    }

    /// Seconds in which all threads did nothing, like terminals whose users think.
    fn idle(&self, assumed: &mut Vec<String>) -> f64 {
        let had = f64::from(self.threads) * self.wall;
        let idle = (had - self.busy - self.waiting - self.without_cpu()).max(0.0);
        if self.ready.is_some() {
            return idle;
        }
        let used = self.busy / (f64::from(self.cpus.max(1)) * self.wall);
        if self.threads > self.cpus && used > SATURATED {
            assumed.push(
                "all CPUs were in use: what threads did not run is taken for waiting for a CPU, not for idleness"
                    .into(),
            );
            return 0.0;
        }
        idle
    }
}

/// The locks of a row, at most this many.
fn latches(row: &Row, scale: f64, most: usize, data: u32) -> Vec<Latch> {
    let mean_ns = row.hold_ns.unwrap_or_default() * scale;
    let varies = row.hold_p99_ns.is_none_or(|p99| p99 * scale > VARIES * mean_ns);
    let section = if varies { Length::exponential(mean_ns) } else { Length::fixed(mean_ns) };
    let acquired = row.acquired as f64;
    let shared = row.shared.map(|shared| 100.0 * shared as f64 / acquired);
    let latch = |share: f64| Latch { weight: acquired * share, section, shared, data };
    let others = (row.objects.max(1) as usize).min(most.max(1)) - 1;
    if others == 0 {
        return vec![latch(1.0)];
    }
    let first = share_of_hottest(row.hottest, row.objects);
    let mut latches = vec![latch(first)];
    latches.extend((0..others).map(|_| latch((1.0 - first) / others as f64)));
    latches
}

/// The acquisitions' share of the most waited-for of several locks, computed from its share of the
/// waits. Waits for a rarely used lock grow with the square of its acquisitions; the other locks
/// are assumed to be alike.
fn share_of_hottest(of_waits: f64, objects: u64) -> f64 {
    let others = objects.saturating_sub(1) as f64;
    let of_waits = of_waits.clamp(1.0 / objects as f64, 0.9999);
    let ratio = (of_waits / (1.0 - of_waits) / others).sqrt();
    ratio / (1.0 + ratio)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(acquired: u64, hold_ns: f64) -> Row {
        Row {
            name: "a lock".into(),
            objects: 1,
            acquired,
            shared: None,
            hold_ns: Some(hold_ns),
            hold_range: (1.0, 1.0),
            hold_p99_ns: Some(hold_ns),
            hottest: 1.0,
        }
    }

    /// A million sections of 1 us in a second of two CPUs.
    fn usage() -> Usage {
        let locks = vec![row(1_000_000, 500.0), row(1_000_000, 100.0), row(7, 0.0)];
        Usage {
            threads: 2,
            cpus: 2,
            wall: 1.0,
            busy: 1.8,
            waiting: 0.2,
            ready: None,
            data: 1,
            locks,
        }
    }

    #[test]
    fn a_workload_takes_as_long_as_the_program_did() {
        let workload = Workload::of(&usage()).unwrap();
        assert_eq!(workload.mix.locks.len(), 2);
        assert_eq!(workload.mix.section_mean_ns(), 300.0);
        assert_eq!(workload.mix.outside.mean_ns.round(), 600.0);
        assert_eq!((workload.mix.think_ns, workload.observed), (0.0, 2e6));
        assert!(workload.assumed.is_empty());
        for other in usage().others() {
            let mix = Workload::of(&other).unwrap().mix;
            assert_eq!((mix.section_mean_ns() + mix.outside.mean_ns).round(), 900.0);
        }
    }

    #[test]
    fn time_that_nobody_used_is_thought() {
        let idle = Usage { busy: 0.8, ..usage() };
        let workload = Workload::of(&idle).unwrap();
        assert_eq!((workload.mix.think_ns.round(), workload.mix.sections), (200_000.0, 400));
        assert!(workload.is_idle() && workload.assumed[0].contains("idle for 50 %"));
        let nearly = Usage { busy: 1.7, ..usage() };
        assert_eq!(Workload::of(&nearly).unwrap().mix.think_ns, 0.0);
        let crowd = Usage { threads: 32, busy: 1.95, ..usage() };
        let workload = Workload::of(&crowd).unwrap();
        assert_eq!((workload.is_idle(), workload.assumed.len()), (false, 1));
    }

    #[test]
    fn waiting_for_a_cpu_is_no_thought() {
        let starved = Usage { threads: 16, ready: Some(14.0), ..usage() };
        let workload = Workload::of(&starved).unwrap();
        assert_eq!((workload.mix.think_ns, workload.assumed.len()), (0.0, 0));
        let idle = Usage { threads: 16, ready: Some(0.0), ..usage() };
        assert!(Workload::of(&idle).unwrap().mix.think_ns > 0.0);
        // The time without a CPU may have been part of the waits, or threads may have ended early.
        let thinks = |usage: &Usage| Workload::of(usage).unwrap().mix.think_ns > 0.0;
        let some = Usage { threads: 4, waiting: 1.0, ready: Some(1.0), ..usage() };
        assert!(some.others().iter().any(thinks) && !some.others().iter().all(thinks));
    }

    #[test]
    fn holds_lie_in_their_intervals() {
        let mut wide = usage();
        wide.locks[0].hold_range = (0.1, 3.0);
        let holds = |usage: &Usage| [0, 1].map(|row: usize| usage.locks[row].hold_ns.unwrap());
        let others: Vec<_> = wide.others().iter().map(holds).collect();
        for ends in [[50.0, 80.0], [1500.0, 125.0], [50.0, 125.0], [1500.0, 80.0]] {
            assert!(others.contains(&ends), "{others:?}");
        }
    }

    /// A holder that lost its CPU in one of few samples.
    #[test]
    fn one_lock_may_have_been_seen_too_long() {
        let mut seen = usage();
        let cpu = seen.busy;
        seen.locks[1].hold_ns = Some(cpu * 4e9 / seen.locks[1].acquired as f64);
        seen.locks[1].hold_range = (0.01, 2.0);
        let held = |usage: &Usage, row: usize| {
            usage.locks[row].acquired as f64 * usage.locks[row].hold_ns.unwrap()
        };
        let as_measured = held(&seen, 0);
        assert!(
            seen.others()
                .iter()
                .any(|other| held(other, 0) >= as_measured && held(other, 1) < 0.1 * cpu * 1e9)
        );
    }

    #[test]
    fn holds_cannot_exceed_the_time_on_cpus() {
        let usage = Usage { busy: 0.3, ..usage() };
        let workload = Workload::of(&usage).unwrap();
        assert_eq!(workload.mix.section_mean_ns().round(), 150.0);
        assert!(workload.assumed[0].contains("2.0 times"), "{:?}", workload.assumed);
    }

    #[test]
    fn nothing_held_is_nothing_to_model() {
        let usage = Usage { locks: vec![row(7, 0.0)], ..usage() };
        assert!(Workload::of(&usage).unwrap_err().contains("nothing to model"));
    }

    #[test]
    fn the_hottest_of_many_is_told_apart() {
        assert!((share_of_hottest(0.25, 4) - 0.25).abs() < 1e-9);
        assert!((share_of_hottest(0.5, 101) - 1.0 / 11.0).abs() < 1e-9);
        let mut usage = usage();
        usage.locks[0] = Row { objects: 1_000_000, hottest: 0.5, ..row(1_000_000, 500.0) };
        let workload = Workload::of(&usage).unwrap();
        assert!(workload.mix.locks.len() <= LATCHES_MAX);
        let of_row: f64 = workload.mix.locks.iter().map(|latch| latch.weight).sum();
        assert!((of_row - 2e6).abs() < 1.0, "{of_row}");
    }

    #[test]
    fn without_a_row_a_thread_takes_as_long() {
        let workload = Workload::of(&usage()).unwrap();
        assert_eq!(workload.parts(), [0, 1]);
        let (changed, per_section) = workload.without(0).unwrap();
        let turn = |mix: &Mix| mix.section_mean_ns() + mix.outside.mean_ns;
        assert_eq!((changed.rows.as_slice(), per_section), ([1].as_slice(), 2.0));
        assert!((turn(&changed.mix) - 2.0 * turn(&workload.mix)).abs() < 1e-6);
        assert_eq!(changed.without(1), None);
    }
}
