//! A ring of records between a thread that commits and the thread that writes the journal.
//!
//! The thread *stages* a record before its transaction is decided, and gives it a stamp afterwards.
//! The reader takes records in order, as far as their stamps are not later than a horizon. For a
//! record without a stamp, the reader asks for the transaction's decision.
//!
//! ```text
//!       head                                  tail
//!        v                                     v
//!   ...  | length | stamp | record | length | 0 | record |  ...
//! ```
//!
//! All words are atomic: so neither side needs code that the compiler cannot check.

use std::sync::Arc;

use manycore::sync::atomic::{AtomicU64, Ordering, fence};
use manycore::sync::{CachePadded, mutation, order};

/// The number of words of a record's header: its length in words, and its stamp, which is 0 if it
/// has none yet.
const HEADER: u64 = 2;

struct Ring {
    words: Box<[AtomicU64]>,
    /// Words that were ever staged.
    tail: CachePadded<AtomicU64>,
    /// Words that were ever taken.
    head: CachePadded<AtomicU64>,
}

impl Ring {
    fn word(&self, at: u64) -> &AtomicU64 {
        &self.words[at as usize & (self.words.len() - 1)]
    }
}

/// The side of the thread that commits.
pub struct Writer {
    ring: Arc<Ring>,
    tail: u64,
    /// The reader has taken everything up to this position, as far as the writer knows.
    head: u64,
}

/// The side of the thread that writes the journal.
pub struct Reader {
    ring: Arc<Ring>,
    head: u64,
}

/// A ring with room for `words` words, a power of two.
pub fn ring(words: usize) -> (Writer, Reader) {
    assert!(words.is_power_of_two(), "a ring of {words} words");
    let words = (0..words).map(|_| AtomicU64::new(0)).collect();
    let [tail, head] = [0; 2].map(|at| CachePadded(AtomicU64::new(at)));
    let ring = Arc::new(Ring { words, tail, head });
    (Writer { ring: ring.clone(), tail: 0, head: 0 }, Reader { ring, head: 0 })
}

/// A record that is staged, and has no stamp yet.
#[must_use = "the reader waits for its stamp"]
pub struct Staged {
    at: u64,
}

impl Writer {
    /// The number of words of the largest record that fits if the ring is half empty.
    pub fn record_max(&self) -> usize {
        self.ring.words.len() / 2 - HEADER as usize
    }

    /// Whether a record of any size fits.
    pub fn has_room(&mut self) -> bool {
        let half = self.ring.words.len() as u64 / 2;
        if self.tail - self.head > half {
            // Acquire: partner of the Release in `take`: those words are not read any more. The
            // model checker, which executes no load late, needs neither.
            self.head = self.ring.head.load(Ordering::Acquire);
        }
        self.tail - self.head <= half
    }

    /// Puts a record into the ring.
    ///
    /// # Panics
    ///
    /// If the ring has no room: see [`has_room`](Self::has_room).
    pub fn stage(&mut self, record: &[u64]) -> Staged {
        let length = HEADER + record.len() as u64;
        let at = self.tail;
        assert!(at + length - self.head <= self.ring.words.len() as u64, "a ring without room");
        // Relaxed, throughout: released by the tail.
        self.ring.word(at).store(record.len() as u64, Ordering::Relaxed);
        self.ring.word(at + 1).store(0, Ordering::Relaxed);
        for (word, place) in record.iter().zip(at + HEADER..) {
            self.ring.word(place).store(*word, Ordering::Relaxed);
        }
        self.tail += length;
        // Release: partner of the Acquire in `take`.
        self.ring.tail.store(self.tail, order!(Release, "ring-stage"));
        Staged { at }
    }

    /// Says when the record's transaction has committed.
    pub fn stamp(&mut self, staged: Staged, stamp: u64) {
        // Relaxed: only a number. A reader that sees the decision of this thread's next transaction
        // also sees this number: the thread opens that transaction later (Release), and the reader
        // reads the decision before it reads this number again (Acquire).
        self.ring.word(staged.at + 1).store(stamp, Ordering::Relaxed);
    }
}

impl Reader {
    /// Takes the records with stamps up to the horizon, which is closed. `fate` returns the stamp
    /// of the thread's present transaction if that is up to the horizon, and otherwise ensures that
    /// it will be later.
    pub fn take(
        &mut self,
        horizon: u64,
        mut fate: impl FnMut() -> Option<u64>,
        mut give: impl FnMut(u64, &mut dyn Iterator<Item = u64>),
    ) {
        let ring = &*self.ring;
        // Acquire: partner of the Release in `stage`.
        let tail = ring.tail.load(order!(Acquire, "ring-tail"));
        let start = self.head;
        while self.head < tail {
            let at = self.head;
            // Relaxed, here and below: numbers, acquired with the tail.
            let stamp = match ring.word(at + 1).load(Ordering::Relaxed) {
                0 => {
                    let fate = fate();
                    // If it is still open, the decision was that of its transaction.
                    match ring.word(at + 1).load(Ordering::Relaxed) {
                        stamp if stamp != 0 && !mutation!("ring-looks-once") => Some(stamp),
                        _ => fate,
                    }
                }
                stamp => Some(stamp),
            };
            let Some(stamp) = stamp.filter(|stamp| *stamp <= horizon) else { break };
            let length = ring.word(at).load(Ordering::Relaxed);
            let from = at + HEADER;
            give(stamp, &mut (from..from + length).map(|at| ring.word(at).load(Ordering::Relaxed)));
            self.head = from + length;
        }
        if self.head != start {
            // Release: partner of the Acquire in `has_room`.
            ring.head.store(self.head, Ordering::Release);
        }
    }

    /// Whether there is nothing in it, and the thread has gone.
    pub fn is_left(&self) -> bool {
        if Arc::strong_count(&self.ring) > 1 {
            return false;
        }
        // Acquire: partner of the Release by which the writer's share of the ring was dropped.
        fence(Ordering::Acquire);
        self.ring.tail.load(Ordering::Relaxed) == self.head // Relaxed: after that fence
    }
}
