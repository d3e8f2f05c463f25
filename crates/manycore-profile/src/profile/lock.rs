//! A lock and a condition variable of a profile.

use manycore_stats::Kind;
use serde::{Deserialize, Serialize};

use super::frame::Frame;

/// A lock, or all locks that were initialised, or otherwise first used, at one place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Lock {
    /// The variable, `symbol+offset (module)`, or otherwise the place of its initialisation or
    /// first use.
    pub name: String,
    /// The same without module and arguments.
    pub short: String,
    /// Which of these.
    pub origin: Origin,
    /// The file that the name is of.
    pub module: Option<String>,
    /// `mutex`, `recursive`, `errorcheck`, `adaptive`, `rwlock`, `spinlock`, `futex`.
    pub kind: String,
    /// Objects that this stands for.
    pub objects: u64,
    /// Acquisitions, all of them.
    pub acquired: u64,
    /// Acquisitions for writing, or of a lock that does not distinguish reading and writing.
    pub exclusive: u64,
    /// Those for reading.
    pub shared: u64,
    /// Attempts that had to wait.
    pub contended: u64,
    /// Those of them for reading.
    pub contended_shared: u64,
    /// `contended` over all attempts: 0 to 1.
    pub contended_share: f64,
    /// Waits that ended by their deadline, without the lock.
    pub timeouts: u64,
    /// Acquisitions on another CPU than the one before.
    pub handoffs: u64,
    /// How long attempts waited; all of them are timed.
    pub wait: Times,
    /// How long it was held; one acquisition in `sampling.hold_period` is timed.
    pub hold: Times,
    /// The total duration, estimated from the timed ones; null if none was timed, and in profiles
    /// older than this field.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<Held>,
    /// The share of `wait.total_ns` of the object with the longest waits, among those that were
    /// counted singly; 1 if there is one object.
    pub hottest_share: f64,
    /// The calls that initialised it or used it first, innermost first.
    pub frames: Vec<Frame>,
    /// Where threads waited for it most, from samples.
    pub waits_in: Vec<Site>,
}

impl Lock {
    /// Whether the program has made it of a mutex and a condition variable. Then acquisitions are
    /// not known, and zero.
    pub fn is_made(&self) -> bool {
        self.kind == kind_name(Kind::Made)
    }

    /// Whether its acquisitions are counted.
    pub fn is_counted(&self) -> bool {
        !self.is_futex() && !self.is_made()
    }

    /// Whether it is a futex of the program's own, which the kernel saw. Then acquisitions and
    /// holds are not known, and zero.
    pub fn is_futex(&self) -> bool {
        self.kind == kind_name(Kind::Futex)
    }

    /// A short name: the variable's name; for another lock, `in` and the place where threads wait
    /// for it, or where it was created.
    pub fn title(&self) -> String {
        let (what, name) = self.title_parts();
        format!("{what}{name}")
    }

    /// The short name in two parts, of which only the second may be shortened.
    pub fn title_parts(&self) -> (&'static str, &str) {
        match (self.origin, self.waits_in.first()) {
            (Origin::Variable | Origin::Rest, _) => ("", &self.short),
            (Origin::Futex, _) | (_, None) => ("in ", &self.short),
            (Origin::Initialised | Origin::FirstUse, Some(site)) => ("in ", &site.short),
        }
    }

    /// The share of its acquisitions that were on another CPU than the one before, from 0 to 1.
    pub fn moved_share(&self) -> f64 {
        self.handoffs as f64 / self.acquired.max(1) as f64
    }

    /// The total time for which it was held, in nanoseconds, estimated from timed holds; `None` if
    /// none was timed.
    pub fn held_ns(&self) -> Option<f64> {
        if let Some(held) = self.held {
            return Some(held.total_ns as f64);
        }
        let Times { count, total_ns, .. } = self.hold;
        (count > 0 && !self.is_made())
            .then(|| total_ns as f64 / count as f64 * self.acquired as f64)
    }

    /// The share of this many seconds in which it was held, at most 1. `None` if the sum of its
    /// holds does not give the share: when readers hold it together, or several objects are held at
    /// the same time.
    pub fn held_share(&self, seconds: f64) -> Option<f64> {
        let held = self.held_ns().filter(|_| self.shared == 0 && self.objects == 1)?;
        Some((held / 1e9 / seconds.max(f64::MIN_POSITIVE)).min(1.0))
    }

    /// The ends of the interval that contains that share with a probability of 95 %. `None` if the
    /// interval was not computed.
    pub fn held_between(&self, seconds: f64) -> Option<(f64, f64)> {
        self.held_share(seconds)?;
        let Held { low_ns, high_ns, .. } = self.held?;
        let share = |ns: u64| (ns as f64 / 1e9 / seconds.max(f64::MIN_POSITIVE)).min(1.0);
        Some((share(low_ns), share(high_ns)))
    }

    /// The longest possible hold time in these seconds, with this many threads at a time: that many
    /// seconds for each object, and for each reader of a lock that is taken for reading.
    fn possible_ns(&self, seconds: f64, threads: u32) -> u64 {
        let holders = if self.shared > 0 { f64::from(threads.max(1)) } else { 1.0 };
        (seconds * 1e9 * holders * self.objects.max(1) as f64) as u64
    }

    /// Limits the estimates to what is possible.
    pub(crate) fn bound_holds(&mut self, seconds: f64, threads: u32) {
        let most = self.possible_ns(seconds, threads);
        if let Some(Held { total_ns, low_ns, high_ns }) = &mut self.held {
            for ns in [total_ns, low_ns, high_ns] {
                *ns = (*ns).min(most);
            }
        }
    }
}

/// The total time for which a lock was held, estimated from samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// The estimate, limited to what is possible.
    pub total_ns: u64,
    /// Nineteen times in twenty it is at least this.
    pub low_ns: u64,
    /// And at most this.
    pub high_ns: u64,
}

/// A place in the program where threads wait for a lock.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Site {
    /// The function that acquires the lock: `function+offset (module)`, or with source file and
    /// line.
    pub name: String,
    /// The same without module and arguments.
    pub short: String,
    /// Sampled waits here.
    pub waits: u64,
    /// This place's share of the sampled waiting time, from 0 to 1.
    pub share: f64,
    /// The innermost eight calls, innermost first.
    pub frames: Vec<Frame>,
}

/// Where a lock is, or came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// It lives in a variable of the program or of a library.
    Variable,
    /// The lock is on the heap or a stack; the name is that of the place where it was initialised.
    Initialised,
    /// The lock is on the heap or a stack and was never initialised by a call; the name is that of
    /// its first use.
    FirstUse,
    /// The program waited for it by a futex of its own, which the kernel saw; the name is that of
    /// the waiting place.
    Futex,
    /// It stands for all objects for which there was no free record.
    Rest,
}

/// A condition variable, or all that were created at one place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Condition {
    /// As of a [`Lock`].
    pub name: String,
    /// As of a [`Lock`].
    pub short: String,
    /// As of a [`Lock`].
    pub origin: Origin,
    /// As of a [`Lock`].
    pub module: Option<String>,
    /// Objects that this stands for.
    pub objects: u64,
    /// Waits.
    pub waits: u64,
    /// Those of them that ended by their deadline.
    pub timeouts: u64,
    /// The waits' durations, until the signal; the wait for the mutex follows.
    pub wait: Times,
    /// The calls that initialised it or used it first, innermost first.
    pub frames: Vec<Frame>,
    /// As of a [`Lock`].
    pub waits_in: Vec<Site>,
}

/// Durations. Those that are not known are null.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Times {
    /// How many were measured.
    pub count: u64,
    /// Their sum.
    pub total_ns: u64,
    /// Their mean.
    pub mean_ns: Option<u64>,
    /// The 99th percentile, to about 20 %.
    pub p99_ns: Option<u64>,
    /// The longest.
    pub max_ns: Option<u64>,
}

/// What a kind is called in profiles.
pub fn kind_name(kind: Kind) -> &'static str {
    match kind {
        Kind::Mutex => "mutex",
        Kind::Recursive => "recursive",
        Kind::ErrorCheck => "errorcheck",
        Kind::Adaptive => "adaptive",
        Kind::RwLock => "rwlock",
        Kind::Spin => "spinlock",
        Kind::Cond => "condition",
        Kind::Futex => "futex",
        Kind::Made => "mutex+condition",
        Kind::None => "any",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lock() -> Lock {
        let times = Times { count: 2, total_ns: 30, ..Times::default() };
        let place = |name: &str| Site {
            name: name.to_owned(),
            short: name.to_owned(),
            waits: 1,
            share: 1.0,
            frames: Vec::new(),
        };
        Lock {
            name: "made (prog)".to_owned(),
            short: "made".to_owned(),
            origin: Origin::Initialised,
            module: None,
            kind: "mutex".to_owned(),
            objects: 1,
            acquired: 100,
            exclusive: 100,
            shared: 0,
            contended: 0,
            contended_shared: 0,
            contended_share: 0.0,
            timeouts: 0,
            handoffs: 25,
            wait: Times::default(),
            hold: times,
            held: None,
            hottest_share: 1.0,
            frames: Vec::new(),
            waits_in: vec![place("waited"), place("elsewhere")],
        }
    }

    #[test]
    fn a_title_is_the_place_that_tells_most() {
        let title = |origin, waits_in| Lock { origin, waits_in, ..lock() }.title();
        assert_eq!(title(Origin::Variable, lock().waits_in), "made");
        assert_eq!(title(Origin::Initialised, lock().waits_in), "in waited");
        assert_eq!(title(Origin::FirstUse, Vec::new()), "in made");
        assert_eq!(title(Origin::Futex, lock().waits_in), "in made");
    }

    #[test]
    fn holds_are_worked_out_from_those_that_were_timed() {
        let one = lock();
        assert_eq!((one.held_ns(), one.held_share(3e-6)), (Some(1500.0), Some(0.5)));
        assert_eq!((one.held_share(0.0), one.moved_share()), (Some(1.0), 0.25));
        assert_eq!(Lock { hold: Times::default(), ..lock() }.held_ns(), None);
        // A sum that does not tell.
        assert_eq!(Lock { shared: 1, ..lock() }.held_share(1.0), None);
        assert_eq!(Lock { objects: 2, ..lock() }.held_share(1.0), None);
    }

    #[test]
    fn every_kind_is_described() {
        let document = include_str!("../../schema.md");
        let row = document.lines().find(|line| line.starts_with("| `kind` | `mutex`")).unwrap();
        for kind in (0..=Kind::Made as u32).map(Kind::from_number) {
            let is_described = row.contains(&format!("`{}`", kind_name(kind)));
            assert_eq!(is_described, kind != Kind::Cond, "{kind:?}: it is no lock");
        }
    }
}
