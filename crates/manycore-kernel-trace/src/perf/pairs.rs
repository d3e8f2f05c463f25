//! From events to waits: the beginning and the end of each, by task. The BPF programs do the same
//! in the kernel.

use std::collections::HashMap;
use std::fs;
use std::mem;
use std::ops::Range;

use crate::sum::Sum;
use crate::waits::{Identity, Totals, Waits, flag};

/// The most waits of one task at a time, as in `bpf/contention.bpf.c`.
const NESTED: usize = 4;
/// More sums are not kept, as there.
const SUMS_MAX: usize = 16_384;

/// A wait that begins (with flags) or ends.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    pub time: u64,
    pub process: u32,
    pub task: u32,
    pub lock: u64,
    pub flags: Option<u32>,
    pub calls: Vec<u64>,
}

/// Waits under way, and the sums of those that have ended.
#[derive(Debug)]
pub struct Pairs {
    /// Where the kernel's own variables are.
    image: Range<u64>,
    /// Whose waits do not count: ours.
    own: Option<u32>,
    names: HashMap<u32, String>,
    begun: HashMap<u32, Vec<Wait>>,
    sums: HashMap<Key, Sum>,
    totals: Totals,
}

#[derive(Debug)]
struct Wait {
    lock: u64,
    flags: u32,
    began: u64,
    phase_began: u64,
    spun: u64,
    calls: Vec<u64>,
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Key {
    identity: Identity,
    flags: u32,
    task: String,
    calls: Vec<u64>,
}

impl Pairs {
    pub fn new(image: Range<u64>, own: Option<u32>) -> Self {
        let (names, begun, sums) = (HashMap::new(), HashMap::new(), HashMap::new());
        Self { image, own, names, begun, sums, totals: Totals::default() }
    }

    /// A task has a new name.
    pub fn name(&mut self, task: u32, name: String) {
        self.names.insert(task, name);
    }

    /// A new task has its parent's name.
    pub fn fork(&mut self, task: u32, parent: u32) {
        let name = self.name_of(parent);
        self.names.insert(task, name);
    }

    fn name_of(&mut self, task: u32) -> String {
        let read = || {
            let name = fs::read_to_string(format!("/proc/{task}/comm")).unwrap_or_default();
            name.trim_end().to_owned()
        };
        self.names.entry(task).or_insert_with(read).clone()
    }

    /// Adds an event. Events come in the order of their time.
    pub fn take(&mut self, event: Event) {
        if self.own == Some(event.process) {
            return;
        }
        // The idle tasks, one for each CPU, share one number, so the owner of such a wait is
        // unknown.
        if event.task == 0 {
            return;
        }
        match event.flags {
            Some(flags) => self.begin(event, flags),
            None => self.end(event),
        }
    }

    /// Forgets waits that are under way, because missing events may have ended them.
    pub fn forget(&mut self) {
        let begun = self.begun.drain().map(|(_, waits)| waits.len() as u64).sum::<u64>();
        self.totals.dropped += begun;
        self.totals.waits += begun;
    }

    fn begin(&mut self, event: Event, flags: u32) {
        let waits = self.begun.entry(event.task).or_default();
        if let Some(wait) = waits.last_mut()
            && wait.lock == event.lock
        {
            // A thread first spins for a mutex, and then sleeps; each of the two makes an event.
            if wait.flags & flags & flag::MUTEX != 0 {
                wait.end_phase(event.time);
                wait.flags = flags;
                return;
            }
            // A task never waits for two other locks at a time: the end of the first wait was lost.
            waits.pop();
            self.totals.dropped += 1;
            self.totals.waits += 1;
        }
        // Only the task itself sleeps, and for one lock at a time. If other waits have not ended,
        // their end was lost.
        if waits.len() >= NESTED || (!waits.is_empty() && flags & flag::SPIN == 0) {
            self.totals.dropped += waits.len() as u64;
            self.totals.waits += waits.len() as u64;
            waits.clear();
        }
        let Event { time, lock, calls, .. } = event;
        waits.push(Wait { lock, flags, began: time, phase_began: time, spun: 0, calls });
    }

    fn end(&mut self, event: Event) {
        let Some(waits) = self.begun.get_mut(&event.task) else { return };
        let Some(at) = waits.iter().rposition(|wait| wait.lock == event.lock) else { return };
        let mut wait = waits.swap_remove(at);
        waits.truncate(at);
        wait.end_phase(event.time);
        let identity = match self.image.contains(&wait.lock) {
            true => Identity::Variable(wait.lock),
            false => Identity::Unknown,
        };
        let flags = if wait.flags & flag::MUTEX != 0 { flag::MUTEX } else { wait.flags };
        let key = Key { identity, flags, task: self.name_of(event.task), calls: wait.calls };
        self.totals.waits += 1;
        if self.sums.len() >= SUMS_MAX && !self.sums.contains_key(&key) {
            self.totals.dropped += 1;
            return;
        }
        let ns = event.time.saturating_sub(wait.began);
        self.sums.entry(key).or_default().count(wait.lock, ns, wait.spun);
    }

    /// The counts since the start or the last call. Waits that are under way may end later.
    pub fn drain(&mut self) -> (Vec<Waits>, Totals) {
        let waits = self.sums.drain().map(|(key, sum)| Waits {
            identity: key.identity,
            flags: key.flags,
            task: key.task,
            cgroup: 0,
            stack: key.calls,
            owner: Vec::new(),
            sum,
        });
        (waits.collect(), mem::take(&mut self.totals))
    }
}

impl Wait {
    fn end_phase(&mut self, time: u64) {
        if self.flags & flag::SPIN != 0 {
            self.spun += time.saturating_sub(self.phase_began);
        }
        self.phase_began = time;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(time: u64, task: u32, lock: u64, flags: Option<u32>) -> Event {
        Event { time, process: task, task, lock, flags, calls: vec![0x100] }
    }

    fn seen(events: &[Event]) -> (Vec<Waits>, Totals) {
        let mut pairs = Pairs::new(0x8000..0x9000, Some(1));
        pairs.name(7, "seven".into());
        pairs.fork(8, 7);
        events.iter().cloned().for_each(|event| pairs.take(event));
        let (mut waits, totals) = pairs.drain();
        waits.sort_by_key(|waits| std::cmp::Reverse(waits.sum.total_ns));
        (waits, totals)
    }

    #[test]
    fn a_mutex_is_spun_for_and_then_slept_for() {
        let (waits, totals) = seen(&[
            event(100, 7, 0x10, Some(flag::MUTEX | flag::SPIN)),
            event(130, 7, 0x10, Some(flag::MUTEX)),
            event(200, 7, 0x10, None),
        ]);
        assert_eq!((totals.waits, totals.dropped), (1, 0));
        assert_eq!((waits[0].sum.total_ns, waits[0].sum.spun_ns), (100, 30));
        assert_eq!((waits[0].flags, waits[0].task.as_str()), (flag::MUTEX, "seven"));
    }

    #[test]
    fn a_wait_counts_where_it_ends() {
        let mut pairs = Pairs::new(0x8000..0x9000, None);
        pairs.take(event(100, 7, 0x10, Some(flag::MUTEX)));
        assert_eq!(pairs.drain(), (Vec::new(), Totals::default()));
        pairs.take(event(150, 7, 0x10, None));
        let (waits, totals) = pairs.drain();
        assert_eq!((waits[0].sum.total_ns, totals.waits), (50, 1));
        assert_eq!(pairs.drain(), (Vec::new(), Totals::default()));
    }

    #[test]
    fn an_interrupt_waits_within_a_wait() {
        let (waits, totals) = seen(&[
            event(100, 8, 0x8010, Some(flag::WRITE)),
            event(110, 8, 0x20, Some(flag::SPIN)),
            event(150, 8, 0x20, None),
            event(300, 8, 0x8010, None),
        ]);
        assert_eq!(totals.waits, 2);
        assert_eq!((waits[0].identity, waits[0].sum.total_ns), (Identity::Variable(0x8010), 200));
        assert_eq!((waits[1].identity, waits[1].sum.spun_ns), (Identity::Unknown, 40));
    }

    #[test]
    fn two_waits_whose_middle_is_lost_are_not_one() {
        let mut pairs = Pairs::new(0x8000..0x9000, None);
        pairs.take(event(100, 7, 0x10, Some(flag::MUTEX)));
        pairs.take(event(150, 8, 0x20, Some(flag::MUTEX)));
        pairs.forget();
        pairs.take(event(9000, 7, 0x10, None));
        pairs.take(event(9100, 7, 0x10, Some(flag::MUTEX)));
        pairs.take(event(9150, 7, 0x10, None));
        let (waits, totals) = pairs.drain();
        assert_eq!((totals.waits, totals.dropped), (3, 2));
        assert_eq!((waits.len(), waits[0].sum.total_ns), (1, 50));
    }

    #[test]
    fn a_wait_without_an_end_is_no_part_of_the_next_for_that_lock() {
        let (waits, totals) = seen(&[
            event(100, 7, 0x10, Some(flag::SPIN)),
            event(9000, 7, 0x10, Some(flag::SPIN)),
            event(9010, 7, 0x10, None),
        ]);
        assert_eq!((totals.waits, totals.dropped), (2, 1));
        let [waits] = &waits[..] else { panic!("{waits:?}") };
        assert_eq!((waits.sum.waits, waits.sum.total_ns, waits.sum.spun_ns), (1, 10, 10));
    }

    #[test]
    fn what_has_no_end_is_dropped() {
        let (waits, totals) = seen(&[
            event(100, 7, 0x10, Some(flag::MUTEX)),
            event(200, 7, 0x20, Some(flag::MUTEX)),
            event(250, 7, 0x20, None),
            event(300, 7, 0x30, None),
            event(400, 1, 0x40, Some(flag::MUTEX)),
            event(500, 1, 0x40, None),
        ]);
        assert_eq!((totals.waits, totals.dropped), (2, 1));
        assert_eq!(waits.len(), 1);
    }
}
