//! Waits for futexes, and the processes that they are of, as the maps of the BPF programs have them.

use libbpf_rs::{MapCore, MapHandle};
use manycore_profile::futex::FutexWaits;

use super::{Fields, sum_of};
use crate::sleepers::{Sleepers, calls};

/// As in `bpf/futex.h`.
const EVENT: u32 = 1;

/// Looks at the processes that have waited: each time `again` is set, or else at those that are new.
pub fn look(sleepers: &mut Sleepers, map: &MapHandle, again: bool) {
    for key in map.keys() {
        let mut key = Fields(&key);
        let (process, programs) = (key.int(), key.int());
        if again {
            sleepers.look_again(process, programs);
        } else {
            sleepers.look(process, programs);
        }
    }
}

/// The waits that the kernel has added up.
pub fn waits(entries: Vec<(Vec<u8>, Vec<u8>)>, stack: impl Fn(u32) -> Vec<u64>) -> Vec<FutexWaits> {
    let waits = entries.into_iter().map(|(place, sum)| {
        let mut place = Fields(&place);
        let (word, ip, caller) = (place.long(), place.long(), place.long());
        let (process, _programs) = (place.int(), place.int());
        let (stack, flags) = (stack(place.int()), place.int());
        sum_of(&sum).of_futex(process, word, flags & EVENT != 0, calls(ip, caller, &stack))
    });
    waits.collect()
}
