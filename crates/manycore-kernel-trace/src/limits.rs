//! What the means cannot show, a sentence each.

use manycore_profile::profile::{Scope, Source};

use crate::kallsyms::Kallsyms;
use crate::locks::STACKS_MAX;
use crate::sleepers::PROCESSES;
use crate::waits::Totals;

/// Said of futexes where perf events show them.
pub const BY_CALLS: &str = "a wait for a futex of the program's own (kind futex) is counted from the futex call to its return, by perf \
    events: each futex call, those that wake somebody too, takes longer meanwhile, and every system call of the machine a little. \
    A call that got what it wanted in the kernel without a sleep, or whose deadline had passed already, counts as a wait; one that a \
    signal interrupted as one until then";

/// By which the BPF programs find a lock's owner.
const OWNERS: &str = "bpf_task_from_pid";

/// What these means never show.
pub fn of_means(
    source: Source,
    scope: Scope,
    symbols: &Kallsyms,
) -> impl Iterator<Item = &'static str> {
    let is_attached = matches!(scope, Scope::Process(_));
    let has_owners = symbols.is_empty() || symbols.has(OWNERS);
    let (bpf, perf) = (source == Source::Bpf, source == Source::Perf);
    let limits = [
        (
            bpf,
            "where threads spin for a lock is looked up for one wait in 8, which stands for the others",
        ),
        (
            bpf && !has_owners,
            "owners of locks have no stacks: Linux has what that takes from 6.2 on",
        ),
        (perf, "each wait was read by itself: this slows the program more than BPF does"),
        (perf, "owners of locks have no stacks without BPF, and tasks no cgroups"),
        (
            perf && is_attached,
            "threads that the process made while perf events were opened for the others may be missing",
        ),
        (
            scope != Scope::Command,
            "a wait for a lock of the kernel counts when it ends: one that had begun before, or has not ended, is not in here",
        ),
        (
            true,
            "a lock on the kernel's heap has its name from the function that waits for it, where that tells",
        ),
        (true, "a rwsem that is spun for before anybody sleeps counts only if that was in vain"),
        (
            symbols.is_empty(),
            "functions have no names: /proc/kallsyms hides them (run as root, or set kernel.kptr_restrict to 0)",
        ),
    ];
    limits.into_iter().filter_map(|(is_so, limit)| is_so.then_some(limit))
}

/// What the results about the kernel's locks omit. `cut` is the number of omitted places.
pub fn of_locks(totals: &Totals, cut: usize) -> Vec<String> {
    let Totals { without_stack, unfollowed, .. } = *totals;
    let limits = those_that_are([
        (without_stack, format!("of {without_stack} waits the calls were not kept")),
        (
            cut as u64,
            format!(
                "{cut} of the places where the kernel's locks were waited for are left out, beyond the first {STACKS_MAX} of a lock: \
                 shares are of those that were kept"
            ),
        ),
        (
            unfollowed,
            format!(
                "{unfollowed} threads or processes could not be followed, nor what they have started: there was no room"
            ),
        ),
    ]);
    limits.collect()
}

/// What is unknown about futexes, and other remarks about the method.
pub fn of_futexes(totals: &Totals, means: Option<&str>) -> Vec<String> {
    if totals.waits == 0 {
        return Vec::new();
    }
    let Totals { waits, dropped, without_stack, without_maps, unread, under_way, .. } = *totals;
    let always = [
        "of a lock that the program waits for by a futex of its own (kind futex) only the waits are seen, and of them those \
         that slept, not how long anybody spun for it before: that counts as the program's own time. A word that is 0 meanwhile, \
         or whose functions say so, counts as a condition",
        "waits of kind futex are in the sums and over time, and neither among the threads nor in who waits for whom",
        "calls that lead to such waits are known as far as the program keeps frame pointers",
    ];
    let always = always.into_iter().chain(means).map(str::to_owned);
    always
        .chain(those_that_are([
            (under_way, format!("{under_way} sleeps for futexes had not ended: they count until then")),
            (dropped, format!("of {waits} sleeps for futexes up to {dropped} were dropped")),
            (
                unread,
                format!(
                    "callers of functions without a frame are missing at {unread} places: this user may not look into the program's memory"
                ),
            ),
            (
                without_stack,
                format!("of {without_stack} sleeps for futexes only the innermost call was kept"),
            ),
            (
                without_maps,
                format!(
                    "{without_maps} sleeps for futexes were in processes beyond the first {PROCESSES} that slept so: functions there \
                     have no names, unless the library is in them"
                ),
            ),
        ]))
        .collect()
}

/// What is said of numbers that are not zero.
fn those_that_are<const N: usize>(limits: [(u64, String); N]) -> impl Iterator<Item = String> {
    limits.into_iter().filter_map(|(number, limit)| (number > 0).then_some(limit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_means_says_what_it_lacks() {
        let said = |source, scope| {
            of_means(source, scope, &Kallsyms::default()).collect::<Vec<_>>().join("; ")
        };
        let bpf = said(Source::Bpf, Scope::Command);
        assert!(!bpf.contains("cgroups") && !bpf.contains("when it ends"), "{bpf}");
        let perf = said(Source::Perf, Scope::Process(7));
        for words in ["no cgroups", "while perf events were opened", "when it ends"] {
            assert!(perf.contains(words), "{words}: {perf}");
        }
    }

    #[test]
    fn what_is_missing_is_counted() {
        assert!(of_locks(&Totals::default(), 0).is_empty());
        let totals = Totals { unfollowed: 3, without_stack: 4, ..Totals::default() };
        let said = of_locks(&totals, 5).join("; ");
        for words in ["3 threads or processes", "of 4 waits", "5 of the places"] {
            assert!(said.contains(words), "{words}: {said}");
        }
        assert!(of_futexes(&Totals::default(), None).is_empty());
        let totals = Totals { waits: 9, under_way: 2, ..Totals::default() };
        let said = of_futexes(&totals, Some(BY_CALLS)).join("; ");
        for words in [
            "2 sleeps for futexes had not ended",
            "spun for it before",
            "who waits for whom",
            BY_CALLS,
        ] {
            assert!(said.contains(words), "{words}: {said}");
        }
    }
}
