//! Futexes that the kernel saw, as locks and condition variables.

use std::borrow::Cow;
use std::collections::HashMap;
use std::slice;

use crate::analyze::futex::{FutexWaits, Futexes};
use crate::analyze::groups::FUTEXES;
use crate::analyze::groups::name::{self, Identity};
use crate::analyze::names::modules::{Modules, NOW};
use crate::analyze::names::symbols::{StackId, Symbols};
use crate::analyze::process::decode::{Distributed, Tally};
use crate::clock::Rate;
use crate::profile::Origin;
use manycore_stats::{Histogram, Kind};

use super::{Group, Groups, Waited};

/// The number of innermost calls that are searched for a name that shows the reason of the wait.
const TELLING: usize = 6;
/// Functions that wait for an event, by parts of their names.
const EVENTS: &[&str] = &[
    "condvar",
    "cond_wait",
    "cond_timedwait",
    "cond_clockwait",
    "cnd_wait",
    "cnd_timedwait",
    "notesleep",
    "notetsleep",
    "sem_wait",
    "sem_timedwait",
    "semaphore",
    "barrier",
    "pthread_join",
    "thread::join",
    "thread::park",
];

impl Futexes {
    /// The waits of a process. `left` lists the files that it had at its end, for a process whose
    /// maps were not seen. Adds the identity of each place's lock or condition variable.
    pub(crate) fn groups(
        &self,
        process: u32,
        left: Option<&Modules>,
        symbols: &mut Symbols,
        rate: &Rate,
        identities: &mut HashMap<(usize, u32), Identity>,
    ) -> Groups {
        let nothing = Modules::default();
        let mut groups = Groups::default();
        // How long each word was waited for, in ticks.
        let mut words = HashMap::new();
        for waits in self.waits.iter().filter(|waits| waits.process == process) {
            let modules = self.modules(waits, left).unwrap_or(&nothing);
            if self.are_of_the_library(waits, modules) {
                continue;
            }
            let calls = without_own_call(&waits.calls, symbols, modules);
            let stack = symbols.stack(&calls, modules);
            let kind = if is_event(waits, stack, symbols) { Kind::Cond } else { Kind::Futex };
            let caller = waits.calls.first().copied().unwrap_or(0);
            let (identity, name) = name::of_address((waits.word, NOW), kind, modules, symbols)
                .unwrap_or_else(|| name::of_calls(stack, caller, kind, Origin::Futex, symbols));
            if let Some(number) = waits.number {
                identities.insert((FUTEXES, number), identity);
            }
            let tally = tally(waits, rate);
            let of_word: &mut u64 = words.entry((identity, waits.word)).or_insert(0);
            let objects = u64::from(*of_word == 0);
            *of_word += tally.wait.max(1);
            let hottest = *of_word;
            let caller = if symbols.is_empty(stack) { caller } else { 0 };
            let waited = Waited { waits: waits.waits, wait: tally.wait };
            let waiters = HashMap::from([((stack, caller), waited)]);
            groups.insert(identity, Group { name, stack, kind, objects, tally, hottest, waiters });
        }
        groups
    }
}

/// The calls of a wait, without the second if it is in the function of the first. Who has a frame
/// may have called something else before: on Arm, the address after that call is still in the
/// register in which a function without a frame has its return address.
fn without_own_call<'a>(
    calls: &'a [u64],
    symbols: &mut Symbols,
    modules: &Modules,
) -> Cow<'a, [u64]> {
    let mut function = |call: &u64| {
        let stack = symbols.stack(slice::from_ref(call), modules);
        let outermost = symbols.frames(stack).pop()?;
        Some((outermost.module, outermost.function?))
    };
    let [first, second, rest @ ..] = calls else { return Cow::Borrowed(calls) };
    let is_own = function(first).is_some_and(|it| function(second) == Some(it));
    if is_own { [slice::from_ref(first), rest].concat().into() } else { Cow::Borrowed(calls) }
}

fn is_event(waits: &FutexWaits, stack: StackId, symbols: &Symbols) -> bool {
    let says = |name: &str| {
        let name = name.to_lowercase();
        EVENTS.iter().any(|part| name.contains(part))
    };
    let frames = symbols.frames(stack);
    let mut names = frames.iter().take(TELLING).filter_map(|frame| frame.function.as_deref());
    waits.is_event || names.any(says)
}

fn tally(waits: &FutexWaits, rate: &Rate) -> Tally {
    let distributed = Distributed { wait: Histogram::default(), hold: Histogram::default() };
    for (ns, count) in &waits.times {
        distributed.wait.count_times(rate.ticks(*ns), *count);
    }
    Tally {
        contended: waits.waits,
        wait: rate.ticks(waits.total_ns),
        wait_ended: rate.ticks(waits.total_ns),
        wait_max: rate.ticks(waits.max_ns),
        distributions: Some(Box::new(distributed)),
        ..Tally::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::{Condition, Lock};

    const MAPS: &[u8] = b"1000-2000 r-xp 00000000 00:00 7 /nonexistent/program\n\
        2000-3000 rw-p 00001000 00:00 7 /nonexistent/program\n\
        8000-9000 r-xp 00000000 00:00 8 /opt/lib/libmanycore_preload.so\n";

    fn waits(word: u64, is_event: bool, calls: &[u64], total_ns: u64) -> FutexWaits {
        FutexWaits {
            process: 7,
            program: 1,
            number: None,
            word,
            is_event,
            calls: calls.to_vec(),
            waits: 10,
            total_ns,
            max_ns: total_ns / 2,
            times: vec![(total_ns / 10, 10)],
        }
    }

    fn groups(all: Vec<FutexWaits>) -> (Vec<Lock>, Vec<Condition>) {
        groups_with(Some("/lib/libmanycore_preload.so"), all)
    }

    fn groups_with(library: Option<&str>, all: Vec<FutexWaits>) -> (Vec<Lock>, Vec<Condition>) {
        let mut futexes = Futexes::default();
        futexes.waits = all;
        futexes.library = library.map(Into::into);
        futexes.note_maps(7, 1, MAPS);
        futexes.note_maps(7, 1, b"");
        futexes.note_maps(7, 2, b"1000-2000 r-xp 00000000 00:00 9 /nonexistent/another\n");
        let rate = Rate { ticks_per_ns: 2.5, origin: 0 };
        let mut symbols = Symbols::default();
        let groups = futexes.groups(7, None, &mut symbols, &rate, &mut HashMap::new());
        assert!(
            futexes.groups(8, None, &mut symbols, &rate, &mut HashMap::new()).groups.is_empty()
        );
        (groups.locks(&rate, &symbols), groups.conditions(&rate, &symbols))
    }

    #[test]
    fn each_program_of_a_process_has_its_own_names() {
        let by = |program| FutexWaits { program, ..waits(0xa000, false, &[0x1010], 100_000) };
        let (locks, _) = groups([0, 1, 2].map(by).into());
        let mut names: Vec<&str> = locks.iter().map(|lock| lock.name.as_str()).collect();
        names.sort_unstable();
        assert_eq!(names, ["another+0x10", "code made at run time", "program+0x10"]);
    }

    #[test]
    fn words_of_one_place_are_one_row() {
        let (locks, conditions) = groups(vec![
            waits(0xa000, false, &[0x1010, 0x1500], 100_000),
            waits(0xb000, false, &[0x1010, 0x1500], 300_000),
            waits(0xc000, true, &[0x1010, 0x1500], 900_000),
        ]);
        let [lock] = &locks[..] else { panic!("{locks:?}") };
        assert_eq!((lock.kind.as_str(), lock.origin, lock.objects), ("futex", Origin::Futex, 2));
        assert_eq!((lock.contended, lock.wait.total_ns, lock.acquired), (20, 400_000, 0));
        assert_eq!((lock.wait.max_ns, lock.hottest_share), (Some(150_000), 0.75));
        assert_eq!((lock.waits_in.len(), lock.waits_in[0].waits), (1, 20));
        assert_eq!((conditions.len(), conditions[0].waits), (1, 10));
    }

    #[test]
    fn a_word_in_a_files_data_has_its_variables_name() {
        let (locks, _) = groups(vec![
            waits(0x2010, false, &[0x1010], 100_000),
            waits(0x2010, false, &[0x1020], 100_000),
        ]);
        let [lock] = &locks[..] else { panic!("{locks:?}") };
        assert_eq!((lock.name.as_str(), lock.origin), ("program+0x1010", Origin::Variable));
        assert_eq!((lock.objects, lock.waits_in.len(), lock.hottest_share), (1, 2, 1.0));
    }

    #[test]
    fn an_earlier_call_in_the_function_itself_is_no_caller() {
        let maps = std::fs::read("/proc/self/maps").unwrap();
        let modules = Modules::of_maps((std::process::id(), 0), &maps);
        let [own, other] = [groups as *const () as u64, groups_with as *const () as u64];
        let mut symbols = Symbols::default();
        let mut without =
            |calls: &[u64]| without_own_call(calls, &mut symbols, &modules).into_owned();
        assert_eq!(without(&[own + 12, own + 8, other + 8]), [own + 12, other + 8]);
        assert_eq!(without(&[own + 12, other + 8, own + 8]), [own + 12, other + 8, own + 8]);
        assert_eq!(without(&[1, 1]), [1, 1], "of places without a name nothing is known");
    }

    #[test]
    fn what_the_library_waits_for_is_counted_by_itself() {
        let its = || vec![waits(0xa000, false, &[0x8010, 0x1500], 100_000)];
        let by_another = || vec![waits(0xa000, true, &[0x1010, 0x8010], 100_000)];
        for all in [its(), by_another()] {
            let (locks, conditions) = groups(all);
            assert_eq!((locks.len(), conditions.len()), (0, 0));
        }
        // Without the library there are no counts of its own, so these waits are shown.
        assert_eq!(groups_with(None, its()).0.len(), 1);
    }
}
