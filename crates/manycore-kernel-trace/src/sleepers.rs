//! Processes whose threads sleep in the futex call, and the places: the common part of the BPF
//! programs and the perf events.

use std::collections::HashMap;
use std::fs;
use std::hash::Hash;
use std::time::{Duration, Instant};

use manycore_profile::analyze::futex::{FutexWaits, Futexes};

/// A process' maps are read again after this time, because libraries are loaded and unloaded.
const AGE_MAX: Duration = Duration::from_secs(1);
/// The most processes whose maps are read: the size of the BPF programs' map `sleepers`.
pub const PROCESSES: u32 = 1024;

/// The most places that get a number: twice the number of sums. Waits that are under way have
/// places as well, and may find no room for a sum later.
const PLACES: usize = 16_384;

/// Numbers for the places where threads wait. They stay the same from one sample to the next.
#[derive(Debug)]
pub struct Numbers<K>(HashMap<K, u32>);

impl<K> Default for Numbers<K> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<K: Clone + Eq + Hash> Numbers<K> {
    /// A place's number. A new place gets one if there is room.
    pub fn of(&mut self, place: &K) -> Option<u32> {
        if let Some(number) = self.0.get(place) {
            return Some(*number);
        }
        let next = self.0.len();
        (next < PLACES).then(|| *self.0.entry(place.clone()).or_insert(next as u32))
    }
}

/// What is known of the processes that have waited.
#[derive(Debug, Default)]
pub struct Sleepers {
    /// The time at which maps were read, by process and program.
    seen: HashMap<(u32, u32), Instant>,
    futexes: Futexes,
}

impl Sleepers {
    /// Reads the maps of a process that runs its program of this number, unless they were read
    /// recently. `stack` is the start of that program's stack, or 0 if the process is known to run
    /// no other program yet.
    pub fn sample(&mut self, process: u32, program: u32, stack: u64) {
        self.look_at((process, program), stack, AGE_MAX);
    }

    /// Reads the maps of a process if it lives.
    pub fn look_again(&mut self, process: u32, program: u32, stack: u64) {
        self.look_at((process, program), stack, Duration::ZERO);
    }

    fn look_at(&mut self, key: (u32, u32), stack: u64, age: Duration) {
        if self.seen.get(&key).is_some_and(|read| read.elapsed() < age) {
            return;
        }
        let (process, program) = key;
        // The maps of an ended process are not read: the earlier data are kept.
        let Ok(maps) = fs::read(format!("/proc/{process}/maps")) else { return };
        self.seen.insert(key, Instant::now());
        // Asked last: then they were this program's.
        if stack == 0 || stack_of(process) == Some(stack) {
            self.futexes.note_maps(process, program, &maps);
        }
    }

    /// Hands over the maps, with the waits.
    pub fn futexes(&mut self, waits: Vec<FutexWaits>) -> Futexes {
        let mut futexes = std::mem::take(&mut self.futexes);
        futexes.waits = waits;
        futexes
    }
}

/// The start of a process' stack, which differs from program to program; `None` if this process may
/// not inspect it, or it has ended.
pub fn stack_of(process: u32) -> Option<u64> {
    /// Counted from the state, which follows the name, because the name may contain anything.
    const START_STACK: usize = 28 - 3;
    let stat = fs::read(format!("/proc/{process}/stat")).ok()?;
    let stat = String::from_utf8_lossy(&stat);
    stat.rsplit_once(')')?.1.split_whitespace().nth(START_STACK)?.parse().ok()
}

/// All calls. Frame pointers lead to the first one, but not to the caller of a function without a
/// frame.
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
    fn a_place_keeps_its_number() {
        let mut numbers = Numbers::default();
        assert_eq!(["a", "b", "a"].map(|place| numbers.of(&place)), [Some(0), Some(1), Some(0)]);
        let mut many = Numbers::default();
        assert_eq!((0..=PLACES).filter_map(|place| many.of(&place)).count(), PLACES);
        assert_eq!(many.of(&7), Some(7));
    }

    #[test]
    fn maps_are_read_while_a_process_runs_the_program() {
        let mut sleepers = Sleepers::default();
        let own = std::process::id();
        let stack = stack_of(own).unwrap();
        sleepers.sample(own, 0, stack + 16);
        assert!(!sleepers.futexes.has_maps(own, 0), "they are another program's");
        sleepers.sample(own, 1, stack);
        sleepers.look_again(u32::MAX, 0, 0);
        assert!(sleepers.futexes.has_maps(own, 1));
        assert!(!sleepers.futexes.has_maps(u32::MAX, 0));
    }
}
