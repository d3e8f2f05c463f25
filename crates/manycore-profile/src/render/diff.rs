//! Two profiles against each other, lock by lock.
//!
//! Runs differ in length, so counts and times are divided by the length of the run: a lock for
//! which 3 threads wait on average has a wait of 3 seconds a second. Locks are the same if they
//! have the same name and kind. Otherwise they are the same if the names without offset and line,
//! which a rebuild changes, are equal and unambiguous.

use std::collections::{BTreeMap, HashMap};

use crate::command::joined;
use crate::profile::{KernelLock, KernelRun, Lock, Profile, Scope, Source};
use serde::Serialize;

/// The version of the JSON.
pub const SCHEMA: u32 = 1;

/// What is different.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Diff {
    /// [`SCHEMA`].
    pub schema: u32,
    /// The first profile.
    pub before: Side,
    /// The second profile.
    pub after: Side,
    /// The ratio for all locks of the program, after over before.
    pub ratio: Ratio,
    /// Why figures may differ for another reason than the locks, one sentence each.
    pub caveats: Vec<String>,
    /// The locks of both profiles, sorted by the change of their waiting time a second, the largest
    /// change first.
    pub locks: Vec<Change>,
}

/// A profile as a whole.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Side {
    /// The program and its arguments.
    pub command: String,
    /// The machine, in a line; null if the profile does not name it.
    pub host: Option<String>,
    /// The lock that it ran with.
    pub lock: String,
    /// How long it ran, in seconds.
    pub wall: f64,
    /// The rates of all locks of the program.
    pub rates: Rates,
}

/// A lock's activity, for each second of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Rates {
    /// Acquisitions a second; null for a lock of the kernel.
    pub acquired: Option<f64>,
    /// Attempts a second that had to wait.
    pub contended: f64,
    /// Shares of all attempts, from 0 to 1; null for a lock of the kernel.
    pub contended_share: Option<f64>,
    /// Seconds waited a second: threads that wait, on average.
    pub wait: f64,
    /// The mean hold time, in nanoseconds; null if none was timed.
    pub hold_mean_ns: Option<u64>,
}

/// A lock in both profiles, or in one of them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Change {
    /// Its name, from the second profile if the lock is in it.
    pub name: String,
    /// The same, in short.
    pub short: String,
    /// As in a profile.
    pub kind: String,
    /// Whether it is one of the kernel's.
    pub is_kernel: bool,
    /// In the first profile; null if it is new.
    pub before: Option<Rates>,
    /// In the second profile; null if it is gone.
    pub after: Option<Rates>,
    /// The second value over the first one; null if either is not known or the first one is 0.
    pub ratio: Ratio,
}

/// Ratios of the second profile's values to the first one's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Ratio {
    /// The ratio of acquisitions a second.
    pub acquired: Option<f64>,
    /// The ratio of the shares that had to wait.
    pub contended_share: Option<f64>,
    /// The ratio of the times waited a second.
    pub wait: Option<f64>,
    /// The ratio of the mean holds.
    pub hold_mean: Option<f64>,
}

impl Ratio {
    fn of(before: Option<Rates>, after: Option<Rates>) -> Self {
        let of = |part: fn(&Rates) -> Option<f64>| {
            let (before, after) = (part(before.as_ref()?)?, part(after.as_ref()?)?);
            (before > 0.0).then(|| after / before)
        };
        Self {
            acquired: of(|rates| rates.acquired),
            contended_share: of(|rates| rates.contended_share),
            wait: of(|rates| Some(rates.wait)),
            hold_mean: of(|rates| rates.hold_mean_ns.map(|ns| ns as f64)),
        }
    }
}

/// Compares two profiles.
pub fn diff(before: &Profile, after: &Profile) -> Diff {
    let (old, new) = (entries(before), entries(after));
    let mut locks: Vec<Change> = pairs(&old, &new)
        .into_iter()
        .map(|pair| Change::of(pair.0.map(|at| &old[at]), pair.1.map(|at| &new[at])))
        .collect();
    locks.sort_by(|a, b| {
        let by = |weight: fn(&Change) -> f64| weight(b).total_cmp(&weight(a));
        by(Change::wait_changed)
            .then_with(|| by(Change::use_changed))
            .then_with(|| a.name.cmp(&b.name))
    });
    let watched = of_the_kernel(before.kernel.as_ref(), after.kernel.as_ref());
    let (before, after) = (Side::of(before), Side::of(after));
    let ratio = Ratio::of(Some(before.rates), Some(after.rates));
    let mut caveats = caveats(&before, &after);
    // Ahead of the last one, which is always there.
    caveats.splice(caveats.len() - 1..caveats.len() - 1, watched);
    Diff { schema: SCHEMA, caveats, before, after, ratio, locks }
}

/// A lock of one profile.
struct Entry {
    name: String,
    short: String,
    kind: String,
    is_kernel: bool,
    rates: Rates,
}

fn entries(profile: &Profile) -> Vec<Entry> {
    let watched = profile.kernel.as_ref().map_or(profile.wall, |kernel| kernel.seconds);
    let own = profile.locks.iter().map(|lock| Entry::of(lock, profile.wall));
    own.chain(profile.kernel_locks.iter().map(|lock| Entry::of_kernel(lock, watched))).collect()
}

impl Entry {
    fn of(lock: &Lock, wall: f64) -> Self {
        let rates = Rates {
            acquired: (lock.is_counted()).then(|| per_second(lock.acquired as f64, wall)),
            contended: per_second(lock.contended as f64, wall),
            contended_share: (lock.is_counted()).then_some(lock.contended_share),
            wait: per_second(lock.wait.total_ns as f64 / 1e9, wall),
            hold_mean_ns: lock.hold.mean_ns,
        };
        let (name, short, kind) = (lock.name.clone(), lock.title(), lock.kind.clone());
        Self { name, short, kind, is_kernel: false, rates }
    }

    fn of_kernel(lock: &KernelLock, watched: f64) -> Self {
        let rates = Rates {
            contended: per_second(lock.contended as f64, watched),
            wait: per_second(lock.wait.total_ns as f64 / 1e9, watched),
            ..Rates::default()
        };
        let (name, kind) = (lock.name.clone(), lock.kind.clone());
        Self { short: name.clone(), name, kind, is_kernel: true, rates }
    }

    /// The key that identifies the lock, and the number of earlier locks with the same key: names
    /// may occur twice.
    fn key(&self, name: &str, seen: &mut HashMap<(String, String, bool), usize>) -> Key {
        let same = (name.to_owned(), self.kind.clone(), self.is_kernel);
        let count = seen.entry(same.clone()).or_default();
        *count += 1;
        (same, *count)
    }
}

type Key = ((String, String, bool), usize);

/// Indices of the same lock in both lists; for a lock in only one list, its index there.
fn pairs(old: &[Entry], new: &[Entry]) -> Vec<(Option<usize>, Option<usize>)> {
    let mut seen = [HashMap::new(), HashMap::new()];
    let mut matched: BTreeMap<Key, (Option<usize>, Option<usize>)> = BTreeMap::new();
    for (at, entry) in old.iter().enumerate() {
        matched.entry(entry.key(&entry.name, &mut seen[0])).or_default().0 = Some(at);
    }
    for (at, entry) in new.iter().enumerate() {
        matched.entry(entry.key(&entry.name, &mut seen[1])).or_default().1 = Some(at);
    }
    let (mut pairs, single): (Vec<_>, Vec<_>) =
        matched.into_values().partition(|(before, after)| before.is_some() && after.is_some());

    // What is left, by names without what a rebuild moves.
    let mut moved: BTreeMap<(String, &str, bool), [Vec<usize>; 2]> = BTreeMap::new();
    for (side, entries) in [old, new].into_iter().enumerate() {
        for at in single.iter().filter_map(|pair| if side == 0 { pair.0 } else { pair.1 }) {
            let entry = &entries[at];
            let key = (unmoved(&entry.name), entry.kind.as_str(), entry.is_kernel);
            moved.entry(key).or_default()[side].push(at);
        }
    }
    for [before, after] in moved.into_values() {
        match (&before[..], &after[..]) {
            ([one], [other]) => pairs.push((Some(*one), Some(*other))),
            _ => {
                pairs.extend(before.into_iter().map(|at| (Some(at), None)));
                pairs.extend(after.into_iter().map(|at| (None, Some(at))));
            }
        }
    }
    pairs
}

/// A name without offsets, `+0x1c`, and lines, `file.c:12`.
fn unmoved(name: &str) -> String {
    let words = name.split(' ').map(|word| {
        let word = word.split_once("+0x").map_or(word, |(symbol, _)| symbol);
        match word.rsplit_once(':') {
            Some((file, line)) if !line.is_empty() && line.bytes().all(|b| b.is_ascii_digit()) => {
                file
            }
            _ => word,
        }
    });
    words.collect::<Vec<_>>().join(" ")
}

impl Change {
    fn of(before: Option<&Entry>, after: Option<&Entry>) -> Self {
        let named = after.or(before).expect("one of both is there");
        let (old, new) = (before.map(|entry| entry.rates), after.map(|entry| entry.rates));
        Self {
            name: named.name.clone(),
            short: named.short.clone(),
            kind: named.kind.clone(),
            is_kernel: named.is_kernel,
            before: old,
            after: new,
            ratio: Ratio::of(old, new),
        }
    }

    /// The change of the waiting time.
    fn wait_changed(&self) -> f64 {
        let wait = |rates: Option<Rates>| rates.map_or(0.0, |rates| rates.wait);
        (wait(self.after) - wait(self.before)).abs()
    }

    fn use_changed(&self) -> f64 {
        let uses = |rates: Option<Rates>| rates.and_then(|rates| rates.acquired).unwrap_or(0.0);
        (uses(self.after) - uses(self.before)).abs()
    }
}

impl Side {
    fn of(profile: &Profile) -> Self {
        let sum = |part: fn(&Lock) -> f64| profile.locks.iter().map(part).sum::<f64>();
        // For a futex of the program's own, only the attempts that had to wait are counted: it has
        // no share.
        let counted = |part: fn(&Lock) -> u64| {
            let counted = profile.locks.iter().filter(|lock| lock.is_counted());
            counted.map(|lock| part(lock) as f64).sum::<f64>()
        };
        let contended = counted(|lock| lock.contended);
        let attempts = counted(|lock| lock.acquired.saturating_add(lock.timeouts));
        Self {
            command: joined(&profile.command),
            host: profile.host.as_ref().map(ToString::to_string),
            lock: profile.lock.clone(),
            wall: profile.wall,
            rates: Rates {
                acquired: Some(per_second(sum(|lock| lock.acquired as f64), profile.wall)),
                contended: per_second(sum(|lock| lock.contended as f64), profile.wall),
                contended_share: Some(if attempts > 0.0 {
                    (contended / attempts).min(1.0)
                } else {
                    0.0
                }),
                wait: per_second(sum(|lock| lock.wait.total_ns as f64 / 1e9), profile.wall),
                hold_mean_ns: None,
            },
        }
    }
}

fn caveats(before: &Side, after: &Side) -> Vec<String> {
    let mut caveats = Vec::new();
    match (&before.host, &after.host) {
        (Some(one), Some(other)) if one != other => {
            caveats.push(format!("The machines differ: {one}; and {other}."));
        }
        (Some(_), Some(_)) => {}
        _ => caveats.push("Whether the machines differ is not known.".to_owned()),
    }
    if before.command != after.command {
        caveats.push(format!("The commands differ: {}; and {}.", before.command, after.command));
    }
    if before.lock != after.lock {
        caveats.push(format!(
            "The locks under the program differ: {} and {}.",
            before.lock, after.lock
        ));
    }
    let [shorter, longer] = [before.wall.min(after.wall), before.wall.max(after.wall)];
    if longer > 0.0 && shorter <= 0.0 {
        caveats.push("One run has no length: there are no rates of it.".to_owned());
    } else if longer > 2.0 * shorter {
        caveats.push(format!(
            "One run is {:.1} times as long as the other: starting up weighs more in the shorter one.",
            longer / shorter
        ));
    }
    caveats.push("Each is one run: `manycore compare` tells a difference from chance.".to_owned());
    caveats
}

/// Why locks of the kernel, and futexes of the program's own, may be in one profile alone.
fn of_the_kernel(before: Option<&KernelRun>, after: Option<&KernelRun>) -> Vec<String> {
    let (one, other) = match (before, after) {
        (None, None) => return Vec::new(),
        (Some(one), Some(other)) => (one, other),
        (before, _) => {
            let which = if before.is_some() { "first" } else { "second" };
            return vec![format!(
                "The kernel was watched in the {which} run only: its locks, and futexes of the program's own, are there alone."
            )];
        }
    };
    let mut differ = Vec::new();
    if one.source != other.source {
        let [one, other] = [one, other].map(|run| by_means(run.source));
        differ.push(format!(
            "The kernel was watched by {one}, and by {other}: one may see more than the other."
        ));
    }
    let [one, other] = [one, other].map(|run| whose(run.scope));
    if one != other {
        differ.push(format!("The waits in the kernel are those of {one}, and of {other}."));
    }
    differ
}

fn by_means(source: Source) -> &'static str {
    match source {
        Source::Bpf => "BPF",
        Source::Perf => "perf events",
        Source::LockStat => "lock_stat",
    }
}

fn whose(scope: Scope) -> &'static str {
    match scope {
        Scope::System => "the whole system",
        Scope::Command => "the command and its children",
        Scope::Process(_) => "a process",
    }
}

fn per_second(value: f64, seconds: f64) -> f64 {
    if seconds > 0.0 { value / seconds } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rebuild_moves_offsets_and_lines() {
        assert_eq!(unmoved("a::b+0x1c4 (libx.so)"), "a::b (libx.so)");
        assert_eq!(unmoved("serve server.c:120 (server)"), "serve server.c (server)");
        assert_eq!(unmoved("std::map (x)"), "std::map (x)");
    }
}
