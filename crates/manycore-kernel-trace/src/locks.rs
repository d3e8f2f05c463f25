//! From waits to locks: waits for locks of one name and kind are combined, most waited for first.

use std::collections::HashMap;

use manycore_profile::profile::{Frame, KernelLock, KernelStack};
use manycore_profile::safe;

use crate::kallsyms::Kallsyms;
use crate::names::{self, Name};
use crate::sum::Sum;
use crate::waits::{Identity, Waits, flag};

/// The number of places that are kept of those where threads wait for a lock.
pub const STACKS_MAX: usize = 32;

/// All that is shown as one lock.
#[derive(Default)]
struct Group<'a> {
    sum: Sum,
    contended_shared: u64,
    is_one: bool,
    /// By task, cgroup, calls and owner's calls.
    stacks: HashMap<WaitSite<'a>, (u64, u64)>,
}

/// The waiting threads and the places of their waits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct WaitSite<'a> {
    task: &'a str,
    cgroup: u64,
    stack: &'a [u64],
    owner: &'a [u64],
}

/// Finds the locks' names, and sums up locks with equal names. `cgroup` returns the path of a
/// number. Also returns the number of omitted places.
pub fn of(
    all: &[Waits],
    symbols: &Kallsyms,
    cgroup: impl Fn(u64) -> Option<String>,
) -> (Vec<KernelLock>, usize) {
    let mut groups: HashMap<(Name, &str), Group<'_>> = HashMap::new();
    for waits in all {
        let group =
            groups.entry((names::of(waits, symbols), names::kind(waits.flags))).or_default();
        group.sum.add(&waits.sum);
        if waits.flags & flag::READ != 0 {
            group.contended_shared += waits.sum.waits;
        }
        group.is_one = matches!(waits.identity, Identity::Variable(_));
        let Waits { task, cgroup, stack, owner, .. } = waits;
        let place = WaitSite { task, cgroup: *cgroup, stack, owner };
        let at = group.stacks.entry(place).or_default();
        at.0 += waits.sum.total_ns;
        at.1 += waits.sum.waits;
    }
    let cut = groups.values().map(|group| group.stacks.len().saturating_sub(STACKS_MAX)).sum();
    let mut locks: Vec<_> = groups
        .into_iter()
        .map(|((name, kind), group)| KernelLock {
            name: name.text,
            is_named: name.is_lock,
            kind: kind.to_owned(),
            spins: matches!(kind, "spinlock" | "rwlock"),
            spin_ns: group.sum.spun_ns,
            objects: if group.is_one { 1 } else { group.sum.objects() },
            contended: group.sum.waits,
            contended_shared: group.contended_shared,
            wait: group.sum.times(),
            stacks: stacks(group.stacks, symbols, &cgroup),
        })
        .collect();
    sort(&mut locks);
    (locks, cut)
}

/// Sorts by the waiting time, the longest first; equal ones by name, so the output is always the
/// same.
pub fn sort(locks: &mut [KernelLock]) {
    let rank = |lock: &KernelLock| (lock.wait.total_ns, lock.contended);
    locks.sort_by(|a, b| {
        rank(b).cmp(&rank(a)).then_with(|| (&a.name, &a.kind).cmp(&(&b.name, &b.kind)))
    });
}

fn stacks(
    places: HashMap<WaitSite<'_>, (u64, u64)>,
    symbols: &Kallsyms,
    cgroup: impl Fn(u64) -> Option<String>,
) -> Vec<KernelStack> {
    let mut sorted: Vec<_> = places.into_iter().collect();
    sorted.sort_by(|(a, waited_a), (b, waited_b)| waited_b.cmp(waited_a).then_with(|| a.cmp(b)));
    // Without control characters: a user who may run a program chooses its task's name, and often
    // its cgroup's name.
    let stack = |(place, (wait_ns, waits)): (WaitSite<'_>, (u64, u64))| KernelStack {
        task: safe(place.task),
        cgroup: cgroup(place.cgroup).as_deref().map(safe),
        waits,
        wait_ns,
        frames: frames(place.stack, symbols),
        owner_frames: frames(place.owner, symbols),
    };
    sorted.into_iter().take(STACKS_MAX).map(stack).collect()
}

/// The calls without those of the tracer: its program, which has no name, and the callers of that.
fn frames(calls: &[u64], symbols: &Kallsyms) -> Vec<Frame> {
    let all: Vec<Frame> = calls.iter().map(|call| symbols.frame(*call)).collect();
    let is_tracer = |frame: &Frame| frame.function.as_deref().is_some_and(names::is_tracer);
    let tracer = all.iter().rposition(is_tracer).map_or(0, |last| last + 1);
    all.into_iter().skip(tracer).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waits(identity: Identity, flags: u32, task: &str, ns: &[u64]) -> Waits {
        let mut sum = Sum::default();
        ns.iter().for_each(|ns| sum.count(0xffff_8880_0000_1000, *ns, 0));
        let (stack, owner) = (vec![0x100, 0x200], Vec::new());
        Waits { identity, flags, task: task.into(), cgroup: 0, stack, owner, sum }
    }

    #[test]
    fn waits_for_one_lock_are_one_row() {
        let part = Identity::Part("mm->mmap_lock");
        let all = [
            waits(part, flag::READ, "a", &[100, 200]),
            waits(part, flag::WRITE, "b", &[1000]),
            waits(Identity::Unknown, flag::SPIN, "a", &[50]),
        ];
        let (locks, cut) = of(&all, &Kallsyms::default(), |_| None);
        let found: Vec<_> = locks.iter().map(|l| (l.name.as_str(), l.kind.as_str())).collect();
        assert_eq!(found, [("mm->mmap_lock", "rwsem"), ("unknown", "spinlock")]);
        assert_eq!((locks[0].contended, locks[0].contended_shared), (3, 2));
        assert_eq!((locks[0].wait.total_ns, locks[0].objects), (1300, 1));
        let tasks: Vec<_> = locks[0].stacks.iter().map(|s| (s.task.as_str(), s.waits)).collect();
        assert_eq!(tasks, [("b", 1), ("a", 2)]);
        assert!(locks[1].spins && !locks[1].is_named);
        assert_eq!(cut, 0);
    }

    #[test]
    fn a_tasks_name_is_no_command_for_a_terminal() {
        let all = [waits(Identity::Unknown, flag::SPIN, "\x1b]0;x\x07\u{9b}2J", &[50])];
        let (locks, _) = of(&all, &Kallsyms::default(), |_| Some("/a\x1b[2Jb".to_owned()));
        let stack = &locks[0].stacks[0];
        assert_eq!(stack.task, "\u{fffd}]0;x\u{fffd}\u{fffd}2J");
        assert_eq!(stack.cgroup.as_deref(), Some("/a\u{fffd}[2Jb"));
    }

    #[test]
    fn places_that_are_not_kept_are_counted() {
        let task = |number: usize| format!("task-{number}");
        let all: Vec<Waits> = (0..STACKS_MAX + 3)
            .map(|number| waits(Identity::Unknown, flag::SPIN, &task(number), &[50]))
            .collect();
        let (locks, cut) = of(&all, &Kallsyms::default(), |_| None);
        assert_eq!((locks.len(), locks[0].stacks.len(), cut), (1, STACKS_MAX, 3));
    }
}
