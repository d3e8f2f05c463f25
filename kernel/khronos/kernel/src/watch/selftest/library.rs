//! The library's lists and hashes, under each mechanism.

use alloc::sync::Arc;

use manycore::collections::Sizes;
use manycore::{ConcurrentSet, SetHandle, for_each_set};

use super::{Test, on_all_cpus};
use crate::arch::cpu;
use crate::task::sched;

const KEYS: u64 = 64;
const ROUNDS: u64 = 3;

/// Each CPU inserts and removes keys of its own, which lie between those of others. All CPUs see
/// the expected keys.
fn set<S: ConcurrentSet<u64> + Send + Sync + 'static>(set: S) {
    let set = Arc::new(set);
    let shared = set.clone();
    on_all_cpus(move |number| {
        let cpus = cpu::count() as u64;
        let mut handle = shared.handle();
        for round in 0..ROUNDS {
            for key in (0..KEYS).map(|key| key * cpus + number as u64) {
                assert!(handle.insert(key), "a key that is not there cannot be inserted");
                assert!(!handle.insert(key), "a key is inserted twice");
            }
            sched::give_way();
            for key in (0..KEYS).map(|key| key * cpus + number as u64) {
                assert!(handle.contains(&key), "a key is lost");
                // Odd keys of the last round stay.
                if round + 1 < ROUNDS || (key / cpus).is_multiple_of(2) {
                    assert!(handle.remove(&key), "a key cannot be removed");
                    assert!(!handle.contains(&key), "a removed key is there");
                }
            }
        }
    });
    let mut handle = set.handle();
    let cpus = cpu::count() as u64;
    let right = |key: u64| handle.contains(&key) == (key / cpus % 2 == 1);
    assert!((0..KEYS * cpus).all(right), "the set holds other keys than it should");
}

macro_rules! sets {
    ($($name:ident, $structure:literal, $mechanism:literal, $sizes:ident => $set:expr;)*) => {
        $(fn $name() {
            let $sizes = Sizes { keys: 1024, buckets: 64 };
            let _ = &$sizes; // lists have no use for it
            set($set);
        })*

        pub const TESTS: &[Test] = &[$((concat!("sets::", stringify!($name)), $name)),*];
    };
}
for_each_set!(sets);
