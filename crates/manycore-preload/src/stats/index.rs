//! Finds the number that a key was given: a hash table that only grows, read without a lock.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use manycore::lock::{Futex, PlainLock};

/// Numbers by key. A key identifies its object: two objects with the same 64-bit hash are not
/// expected.
pub struct Index<const SLOTS: usize> {
    /// Held while something is added.
    adding: Futex,
    slots: [Slot; SLOTS],
}

struct Slot {
    /// 0 for none yet; stored last (Release).
    key: AtomicU64,
    number: AtomicU32,
}

impl<const SLOTS: usize> Index<SLOTS> {
    /// Makes an empty index. It should have twice as many slots as it will have keys.
    pub const fn new() -> Self {
        let slots = [const { Slot { key: AtomicU64::new(0), number: AtomicU32::new(0) } }; SLOTS];
        Self { adding: Futex::new(), slots }
    }

    /// The number of a key, or the slot for it; none if all slots are taken.
    fn find(&self, key: u64) -> (Option<u32>, Option<&Slot>) {
        for probe in 0..SLOTS {
            let slot = &self.slots[(key as usize).wrapping_add(probe) % SLOTS];
            // Acquire: partner of the Release in `number`; a thread that sees the key sees the
            // number, and the object with that number.
            match slot.key.load(Ordering::Acquire) {
                // Relaxed: ordered by the Acquire above.
                found if found == key => return (Some(slot.number.load(Ordering::Relaxed)), None),
                0 => return (None, Some(slot)),
                _ => {}
            }
        }
        (None, None)
    }

    /// The number of a key. If it has none, `add` makes the object for it; `add` returns `None` if
    /// there is no room for one.
    pub fn number(&self, key: u64, add: impl FnOnce() -> Option<u32>) -> Option<u32> {
        if let (Some(number), _) = self.find(key) {
            return Some(number);
        }
        self.adding.acquire();
        // Another thread may have added it meanwhile.
        let number = match self.find(key) {
            (Some(number), _) => Some(number),
            (None, Some(slot)) => add().inspect(|number| {
                // Relaxed: published by the key.
                slot.number.store(*number, Ordering::Relaxed);
                // Release: partner of the Acquire in `find`.
                slot.key.store(key, Ordering::Release);
            }),
            (None, None) => None,
        };
        // SAFETY: this function has acquired the lock above, and has not released it since.
        unsafe { self.adding.release() };
        number
    }

    /// Called in the child of a fork, where no other thread exists that could be adding.
    pub fn forked(&self) {
        crate::own_lock::set_free(&self.adding);
    }
}

/// Returns true if the slot was free and now belongs to the caller, false if it has this key
/// already, and `None` if it has another key.
#[inline]
pub fn claim(slot: &AtomicU64, key: u64) -> Option<bool> {
    // Relaxed: only the key is read here; its object is published separately. The key is read
    // before the compare-and-swap, because in a full table most slots are taken, and attempts to
    // take them would take their lines from other CPUs.
    let there = match slot.load(Ordering::Relaxed) {
        // Relaxed: as above.
        0 => match slot.compare_exchange(0, key, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => return Some(true),
            Err(there) => there,
        },
        there => there,
    };
    (there == key).then_some(false)
}

/// A hash of these words, in this order. Not 0.
pub fn key(words: impl IntoIterator<Item = u64>) -> u64 {
    let mix =
        |hash: u64, word: u64| (hash ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29);
    let hash = words.into_iter().fold(1, mix);
    // In the multiplications the low bits of the result, which select a slot, depend only on the
    // low bits of the words.
    (hash ^ (hash >> 32)).max(1)
}
