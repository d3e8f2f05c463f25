//! Waits for futexes, and the processes that they are of.

use std::collections::HashMap;
use std::fs;
use std::time::{Duration, Instant};

use libbpf_rs::{MapCore, MapHandle};
use manycore_profile::futex::{FutexWaits, Futexes};

use super::{Fields, sum_of};

/// A process' maps are read again after so long: libraries come and go.
const AGE_MAX: Duration = Duration::from_secs(1);
/// As in `bpf/futex.h`.
const EVENT: u32 = 1;
/// Processes whose maps are read, at most: the room in the map `sleepers`.
pub const PROCESSES: u32 = 1024;

/// What is known of the processes that have waited.
#[derive(Default)]
pub struct Sleepers {
    /// By number: how many programs it has been, and when its maps were read.
    seen: HashMap<u32, (u32, Instant)>,
    futexes: Futexes,
}

impl Sleepers {
    /// Reads the maps of processes that are new or were not looked at for long.
    pub fn look(&mut self, sleepers: &MapHandle) {
        self.look_at(sleepers, AGE_MAX);
    }

    /// Reads the maps of all that live.
    pub fn look_again(&mut self, sleepers: &MapHandle) {
        self.look_at(sleepers, Duration::ZERO);
    }

    fn look_at(&mut self, sleepers: &MapHandle, age: Duration) {
        for key in sleepers.keys() {
            let mut key = Fields(&key);
            let (process, programs) = (key.int(), key.int());
            let is_known = |(known, read): &(u32, Instant)| {
                programs < *known || (programs == *known && read.elapsed() < age)
            };
            if self.seen.get(&process).is_some_and(is_known) {
                continue;
            }
            // None of a process that has ended: what was read of it before is kept.
            if let Ok(maps) = fs::read_to_string(format!("/proc/{process}/maps")) {
                self.seen.insert(process, (programs, Instant::now()));
                self.futexes.note_maps(process, &maps);
            }
        }
    }

    /// The waits that the kernel has added up. Hands over the maps, too.
    pub fn waits(
        &mut self,
        entries: Vec<(Vec<u8>, Vec<u8>)>,
        stack: impl Fn(u32) -> Vec<u64>,
    ) -> Futexes {
        let mut futexes = std::mem::take(&mut self.futexes);
        futexes.waits = entries
            .into_iter()
            .map(|(place, sum)| {
                let mut place = Fields(&place);
                let (word, ip, caller) = (place.long(), place.long(), place.long());
                let (process, _programs) = (place.int(), place.int());
                let (stack, flags) = (stack(place.int()), place.int());
                let sum = sum_of(&sum);
                FutexWaits {
                    process,
                    word,
                    is_event: flags & EVENT != 0,
                    calls: calls(ip, caller, &stack),
                    waits: sum.waits,
                    total_ns: sum.total_ns,
                    max_ns: sum.max_ns,
                    times: sum.durations(),
                }
            })
            .collect();
        futexes
    }
}

/// All calls: frame pointers know the first, but not who called a function that has no frame.
fn calls(ip: u64, caller: u64, stack: &[u64]) -> Vec<u64> {
    let mut calls = vec![ip];
    if caller != 0 && !stack.contains(&caller) {
        calls.push(caller);
    }
    calls.extend(stack.iter().skip_while(|call| **call == ip));
    calls
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_no_frame_is_between_the_others() {
        assert_eq!(calls(1, 2, &[1, 3, 4]), [1, 2, 3, 4]);
        assert_eq!(calls(1, 3, &[1, 3, 4]), [1, 3, 4]);
        assert_eq!(calls(1, 0, &[]), [1]);
    }
}
