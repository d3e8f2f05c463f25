//! Waits for futexes, and the processes that they are of, as the maps of the BPF programs have
//! them.

use std::collections::HashMap;

use libbpf_rs::{MapCore, MapFlags, MapHandle};
use manycore_profile::analyze::futex::{Count, FutexWaits};

use super::{Fields, entries, sum_of};
use crate::asleep::{Asleep, asleep, asleep_in};
use crate::sleepers::{Numbers, Sleepers, calls};
use crate::sum::Sum;

/// As in `bpf/futex.h`.
const EVENT: u32 = 1;
/// The size of a place, and the value of an unknown stack.
const PLACE: usize = 40;
const NO_STACK: u32 = u32::MAX;
/// The number of the program that a process runs when the observation begins: the kernel's number
/// for it is unknown.
const FIRST: u32 = u32::MAX;

/// Reads the maps of the processes that have waited: of all of them if `again` is set, otherwise of
/// the new ones.
pub fn sample(sleepers: &mut Sleepers, map: &MapHandle, again: bool) {
    for (key, stack) in entries(map) {
        let (mut key, stack) = (Fields(&key), Fields(&stack).long());
        let (process, program) = (key.int(), key.int());
        if again {
            sleepers.look_again(process, program, stack);
        } else {
            sleepers.sample(process, program, stack);
        }
    }
}

/// Notes the threads that sleep already: their waits begin now.
pub fn begin(sleepers: &mut Sleepers, sleeping: &MapHandle, process: u32, now: u64) {
    for one in asleep(process) {
        sleepers.sample(process, FIRST, 0);
        let thread = one.thread.to_ne_bytes();
        let begun = sleeping.update(&thread, &sleep(&one, process, now), MapFlags::ANY);
        // The thread may have woken meanwhile: the end of another wait would then be mistaken for
        // the end of this one.
        if begun.is_ok() && asleep_in(process, one.thread) != Some(one) {
            // Not there any more if that end has come.
            let _ = sleeping.delete(&thread);
        }
    }
}

/// As `struct sleep` has it.
fn sleep(one: &Asleep, process: u32, began: u64) -> Vec<u8> {
    let flags = if one.is_event { EVENT } else { 0 };
    let longs = [one.word, one.ip, 0].into_iter().flat_map(u64::to_ne_bytes);
    let ints = [process, FIRST, NO_STACK, flags].into_iter().flat_map(u32::to_ne_bytes);
    longs.chain(ints).chain(began.to_ne_bytes()).collect()
}

/// A place, as the kernel has it.
pub type WaitSite = Vec<u8>;

/// What each place has come to until now.
pub fn counts(
    sums: &MapHandle,
    sleeping: &MapHandle,
    now: u64,
    numbers: &mut Numbers<WaitSite>,
) -> Vec<Count> {
    let ended = entries(sums).into_iter().map(|(place, sum)| {
        let mut sum = Fields(&sum);
        (place, (sum.long(), sum.long()))
    });
    let mut all: HashMap<WaitSite, (u64, u64)> = ended.collect();
    for (place, began) in under_way(sleeping) {
        all.entry(place).or_default().1 += now.saturating_sub(began);
    }
    let count =
        |(place, (waits, total_ns))| Some(Count { number: numbers.of(&place)?, waits, total_ns });
    all.into_iter().filter_map(count).collect()
}

/// Where threads sleep, and since when.
fn under_way(sleeping: &MapHandle) -> impl Iterator<Item = (WaitSite, u64)> {
    entries(sleeping).into_values().map(|sleep| {
        let (place, began) = sleep.split_at(PLACE.min(sleep.len()));
        (place.to_vec(), Fields(began).long())
    })
}

/// The waits that the kernel has summed up, and those that are under way. Returns the number of the
/// latter.
pub fn waits(
    sums: &MapHandle,
    sleeping: &MapHandle,
    now: u64,
    numbers: &mut Numbers<WaitSite>,
    stack: impl Fn(u32) -> Vec<u64>,
) -> (Vec<FutexWaits>, u64) {
    let ended = entries(sums).into_iter().map(|(place, sum)| (place, sum_of(&sum)));
    let mut all: HashMap<WaitSite, Sum> = ended.collect();
    let mut sleeps = 0;
    for (place, began) in under_way(sleeping) {
        let word = Fields(&place).long();
        sleeps += 1;
        all.entry(place).or_default().count(word, now.saturating_sub(began), 0);
    }
    let waits = all.into_iter().map(|(place, sum)| {
        let number = numbers.of(&place);
        let mut place = Fields(&place);
        let (word, ip, caller) = (place.long(), place.long(), place.long());
        let (process, program) = (place.int(), place.int());
        let (stack, flags) = (stack(place.int()), place.int());
        let (is_event, calls) = (flags & EVENT != 0, calls(ip, caller, &stack));
        sum.of_futex(FutexWaits {
            process,
            program,
            number,
            word,
            is_event,
            calls,
            ..FutexWaits::default()
        })
    });
    (waits.collect(), sleeps)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sleep_is_written_as_the_kernel_has_it() {
        let one = Asleep { thread: 9, word: 0xa000, is_event: true, ip: 0x1010 };
        let bytes = sleep(&one, 7, 4711);
        assert_eq!(bytes.len(), PLACE + 8);
        let mut fields = Fields(&bytes);
        assert_eq!([fields.long(), fields.long(), fields.long()], [0xa000, 0x1010, 0]);
        assert_eq!([fields.int(), fields.int()], [7, FIRST]);
        assert_eq!((fields.int() as i32, fields.int(), fields.long()), (-1, EVENT, 4711));
    }
}
