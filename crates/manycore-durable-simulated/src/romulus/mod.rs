//! Romulus' log form (Correia, Felber & Ramalhete: Romulus: Efficient Algorithms for Persistent
//! Transactional Memory, SPAA 2018), as a set.
//!
//! Threads publish their operations. One thread takes the writers' lock, executes the operations
//! that it finds as one transaction on [two copies](copies), with four waits for persistent memory
//! however large it is, and answers. Readers announce that they read, and check whether a thread
//! writes. A writer waits for earlier readers, and later readers wait for the writer.
//!
//! Differences: notes of changes are kept in vectors, which cost nothing in a simulation. Each line
//! is written back once for each transaction and copy. Both favour this implementation.

pub mod chains;
pub mod copies;

// What is counted costs nothing.
use std::sync::atomic::AtomicU64 as Count;
use std::sync::{Mutex, PoisonError};

use manycore_simulated::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use manycore_simulated::sync::{CachePadded, hint};
use manycore_traits::{ConcurrentSet, SetHandle};

use crate::persistence::{LINE, Persistence};
use chains::{Chains, Request};
use copies::Copies;

/// A set in persistent memory.
pub struct Romulus<P> {
    /// The words.
    pub copies: Copies<P>,
    /// How they are used.
    pub chains: Chains,
    is_locked: CachePadded<AtomicBool>,
    slots: Box<[Slot]>,
    free_slots: Mutex<Vec<usize>>,
    transactions: Count,
    operations: Count,
    lines: Count,
}

/// A thread's place.
#[derive(Default)]
struct Slot {
    /// The operation, until it is done; then 0. The answer is on the same line.
    asked: CachePadded<(AtomicU64, AtomicBool)>,
    reads: CachePadded<AtomicBool>,
}

impl<P: Persistence> Romulus<P> {
    /// A set without keys, of this many buckets, for at most this many keys and handles at a
    /// time.
    ///
    /// # Panics
    ///
    /// If there are no buckets.
    pub fn new(buckets: usize, keys: usize, handles: usize) -> Self {
        assert!(buckets > 0, "a set without buckets has no keys: give it one or more");
        let chains = Chains::new(buckets);
        Self {
            copies: Copies::new(chains.words(keys), P::default()),
            chains,
            is_locked: CachePadded::default(),
            slots: (0..handles).map(|_| Slot::default()).collect(),
            free_slots: Mutex::new((0..handles).rev().collect()),
            transactions: Count::new(0),
            operations: Count::new(0),
            lines: Count::new(0),
        }
    }

    fn read<R>(&self, slot: usize, read: impl FnOnce() -> R) -> R {
        let reads = &self.slots[slot].reads;
        loop {
            // SeqCst: before the read of the lock. Partner: the exchange that takes the lock,
            // before the writer's read of the readers. One of the two sees the other.
            reads.store(true, Ordering::SeqCst);
            if !self.is_locked.load(Ordering::SeqCst) {
                break;
            }
            // Relaxed: nothing was read.
            reads.store(false, Ordering::Relaxed);
            // Acquire, like the read above: for the writer's writes. Partner: `unlock`.
            while self.is_locked.load(Ordering::Acquire) {
                hint::spin_loop();
            }
        }
        let result = read();
        // Release: what was read, before a writer changes it. Partner: `wait_for_readers`.
        reads.store(false, Ordering::Release);
        result
    }

    fn wait_for_readers(&self) {
        for slot in &self.slots {
            // SeqCst, and thereby Acquire: see `read`.
            while slot.reads.load(Ordering::SeqCst) {
                hint::spin_loop();
            }
        }
    }

    /// Returns the operation's result; this or another thread has executed it.
    fn update(&self, slot: usize, request: Request) -> bool {
        let (asked, answer) = &*self.slots[slot].asked;
        // Release: nothing but the word itself; the lock orders the rest.
        asked.store(request.encode(), Ordering::Release);
        loop {
            // Acquire: for the writes under the lock. SeqCst: see `read`. Relaxed: a hint.
            let is_free = !self.is_locked.load(Ordering::Relaxed);
            if is_free && !self.is_locked.swap(true, Ordering::SeqCst) {
                break;
            }
            // Acquire: the answer. Partner: the store of 0 in `combine`.
            if asked.load(Ordering::Acquire) == 0 {
                return answer.load(Ordering::Relaxed); // Relaxed: the load before orders it
            }
            hint::spin_loop();
        }
        self.combine();
        // Release: all that was written. Partner: the thread that finds it free.
        self.is_locked.store(false, Ordering::Release);
        // Relaxed: this thread has answered, or had seen the answer with the lock.
        answer.load(Ordering::Relaxed)
    }

    /// Executes what all have asked for.
    fn combine(&self) {
        // Acquire: the word alone. Partner: the store in `update`.
        let asked = |slot: &Slot| slot.asked.0.0.load(Ordering::Acquire);
        let requests = self.slots.iter().map(|slot| (slot, asked(slot)));
        let requests: Vec<_> = requests.filter(|(_, word)| *word != 0).collect();
        if requests.is_empty() {
            return;
        }
        let mut changes = self.copies.begin();
        self.wait_for_readers();
        for (slot, word) in &requests {
            let has_changed = self.chains.apply(&mut changes, Request::decode(*word));
            // Relaxed: a thread that sees the 0 sees it.
            slot.asked.0.1.store(has_changed, Ordering::Relaxed);
        }
        let answer = || {
            for (slot, _) in &requests {
                // Release: the answer. Partner: the load in `update`.
                slot.asked.0.0.store(0, Ordering::Release);
            }
        };
        let lines = changes.commit(answer);
        // Relaxed: numbers alone.
        let count = |counter: &Count, more: u64| counter.fetch_add(more, Ordering::Relaxed);
        count(&self.transactions, 1);
        count(&self.operations, requests.len() as u64);
        count(&self.lines, lines);
    }
}

/// A thread's access.
pub struct RomulusHandle<'a, P> {
    set: &'a Romulus<P>,
    slot: usize,
}

impl<P> Drop for RomulusHandle<'_, P> {
    fn drop(&mut self) {
        let mut free = self.set.free_slots.lock().unwrap_or_else(PoisonError::into_inner);
        free.push(self.slot);
    }
}

impl<P: Persistence> ConcurrentSet<u64> for Romulus<P> {
    type Handle<'a> = RomulusHandle<'a, P>;

    fn handle(&self) -> RomulusHandle<'_, P> {
        let slot = self.free_slots.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let slot = slot.expect("the set has no handle left: drop one, or make it for more");
        RomulusHandle { set: self, slot }
    }

    fn statistics(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        // Relaxed: numbers alone.
        let count = |counter: &Count| counter.load(Ordering::Relaxed);
        visit("transactions", count(&self.transactions));
        visit("combined", count(&self.operations));
        visit("device_bytes", count(&self.lines) * LINE as u64);
    }
}

impl<P: Persistence> SetHandle<u64> for RomulusHandle<'_, P> {
    fn contains(&mut self, key: &u64) -> bool {
        let Romulus { copies, chains, .. } = self.set;
        self.set.read(self.slot, || chains.contains(copies, *key))
    }

    fn insert(&mut self, key: u64) -> bool {
        self.set.update(self.slot, Request::Insert(key))
    }

    fn remove(&mut self, key: &u64) -> bool {
        self.set.update(self.slot, Request::Remove(*key))
    }
}
