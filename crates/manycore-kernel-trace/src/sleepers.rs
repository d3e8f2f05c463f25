//! Processes whose threads sleep in the futex call, and where: what the BPF programs and perf events have in common.

use std::collections::HashMap;
use std::fs;
use std::time::{Duration, Instant};

use manycore_profile::futex::{FutexWaits, Futexes};

/// A process' maps are read again after so long: libraries come and go.
const AGE_MAX: Duration = Duration::from_secs(1);
/// Processes whose maps are read, at most: the room in the BPF programs' map `sleepers`.
pub const PROCESSES: u32 = 1024;

/// What is known of the processes that have waited.
#[derive(Debug, Default)]
pub struct Sleepers {
    /// By number: how many programs it has been, and when its maps were read.
    seen: HashMap<u32, (u32, Instant)>,
    futexes: Futexes,
}

impl Sleepers {
    /// Reads the maps of a process if it is new, is another program than before, or was not looked at for long.
    pub fn look(&mut self, process: u32, programs: u32) {
        self.look_at(process, programs, AGE_MAX);
    }

    /// Reads the maps of a process if it lives.
    pub fn look_again(&mut self, process: u32, programs: u32) {
        self.look_at(process, programs, Duration::ZERO);
    }

    fn look_at(&mut self, process: u32, programs: u32, age: Duration) {
        let is_known = |(known, read): &(u32, Instant)| {
            programs < *known || (programs == *known && read.elapsed() < age)
        };
        if self.seen.get(&process).is_some_and(is_known) {
            return;
        }
        // None of a process that has ended: what was read of it before is kept.
        if let Ok(maps) = fs::read_to_string(format!("/proc/{process}/maps")) {
            self.seen.insert(process, (programs, Instant::now()));
            self.futexes.note_maps(process, &maps);
        }
    }

    /// Hands over the maps, with the waits.
    pub fn futexes(&mut self, waits: Vec<FutexWaits>) -> Futexes {
        let mut futexes = std::mem::take(&mut self.futexes);
        futexes.waits = waits;
        futexes
    }
}

/// All calls: frame pointers know the first, but not who called a function that has no frame.
pub fn calls(ip: u64, caller: u64, stack: &[u64]) -> Vec<u64> {
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

    #[test]
    fn maps_are_read_while_a_process_lives() {
        let mut sleepers = Sleepers::default();
        sleepers.look(std::process::id(), 0);
        sleepers.look_again(u32::MAX, 0);
        assert_eq!(sleepers.seen.keys().collect::<Vec<_>>(), [&std::process::id()]);
    }
}
