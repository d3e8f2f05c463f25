//! The table: entries by descriptor, and the slots that they refer to.

use manycore::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use manycore::{mutation, order};

use super::slot::{Held, Slot};

/// How many slots a table can have, at most.
pub const SLOTS_MAX: usize = 1 << SLOT_BITS;

const STATE_BITS: u32 = 8;
const SLOT_BITS: u32 = 24;
const EPOCH_SHIFT: u32 = STATE_BITS + SLOT_BITS;
const STATE: u64 = (1 << STATE_BITS) - 1;

/// The lower half of a word.
const LOW: u64 = u32::MAX as u64;

const UNKNOWN: u64 = 0;
const PLAIN: u64 = 1;
const STREAM: u64 = 2;
const STEERED: u64 = 3;
const CLOSING: u64 = 4;
const TIED: u64 = 5;

/// What is known about one descriptor. If all bytes are zero, nothing is known.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct Entry(AtomicU64);

impl Entry {
    /// Nothing is known.
    #[cfg(not(loom))]
    pub const fn new() -> Self {
        Self(AtomicU64::new(UNKNOWN))
    }

    /// Nothing is known.
    #[cfg(loom)]
    pub fn new() -> Self {
        Self(AtomicU64::new(UNKNOWN))
    }
}

/// Why calls on a descriptor are left in place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// Calls on the descriptor are not moved: it is no socket.
    Plain,
    /// stdio also reads and writes it, without any interposed function.
    Stream,
    /// The results of calls on it depend on the calling thread.
    Tied,
    /// A thread is closing it, so the kernel's answer may be outdated when it arrives.
    Closing,
}

/// What [`Table::find`] finds.
#[derive(Debug)]
pub enum Lookup {
    /// Nothing is known. A thread that needs to know asks the kernel.
    Unknown,
    /// Calls on it are executed in place.
    Left(Left),
    /// Calls on it are moved. The reference is to be given back.
    Steered(Held),
    /// There is no entry for such a number.
    Beyond,
}

/// The table, in memory that its user has reserved.
#[derive(Debug)]
pub struct Table<'m, L, C> {
    entries: &'m [Entry],
    slots: &'m [Slot<L>],
    /// Closes a route to which nothing refers any more.
    close: C,
    /// The first free slot plus one, and how often a slot was put back.
    free: AtomicU64,
    /// How many slots have been used, ever.
    used: AtomicU32,
    /// Which fork's child this is.
    epoch: AtomicU32,
    /// One more than the largest descriptor that was ever steered.
    end: AtomicU32,
}

impl<'m, L: Copy, C: Fn(L)> Table<'m, L, C> {
    /// Creates a table in which all descriptors are unknown. Its memory is zero, or new.
    ///
    /// # Panics
    ///
    /// If there are more than [`SLOTS_MAX`] slots.
    pub fn new(entries: &'m [Entry], slots: &'m [Slot<L>], close: C) -> Self {
        assert!(slots.len() <= SLOTS_MAX, "too many slots");
        Self {
            entries,
            slots,
            close,
            free: AtomicU64::new(0),
            used: AtomicU32::new(0),
            epoch: AtomicU32::new(0),
            end: AtomicU32::new(0),
        }
    }

    /// What is known of a descriptor.
    #[inline]
    pub fn find(&self, descriptor: i32) -> Lookup {
        let Some(entry) = self.entry(descriptor) else { return Lookup::Beyond };
        loop {
            // Acquire: partner of the Release in `replace`; the slot that it refers to has been
            // published.
            let word = entry.0.load(order!(Acquire, "entry-find"));
            match word & STATE {
                PLAIN => return Lookup::Left(Left::Plain),
                STREAM => return Lookup::Left(Left::Stream),
                TIED => return Lookup::Left(Left::Tied),
                STEERED if self.is_current(word) => {}
                CLOSING if self.is_current(word) => return Lookup::Left(Left::Closing),
                _ => return Lookup::Unknown,
            }
            let number = slot_of(word);
            if !self.slots[number as usize].join() {
                continue; // freed in between: then the entry has changed
            }
            // Relaxed: if the slot has had another route in between, the Acquire in `join` has made
            // the change visible.
            if mutation!("entry-trusted") || entry.0.load(Ordering::Relaxed) == word {
                return Lookup::Steered(Held(number));
            }
            // The joined slot has another route, whose descriptor may have been closed since.
            self.leave(Held(number));
        }
    }

    /// Makes calls on a descriptor take this route from now on; the caller has just opened the
    /// route. If there is no entry or no slot for the descriptor, closes the route, leaves the
    /// descriptor unknown, and returns false.
    pub fn steer(&self, descriptor: i32, route: L, traits: u32) -> bool {
        let Some(number) = self.published(descriptor, route, traits) else {
            self.forget(descriptor);
            return false;
        };
        self.replace(descriptor, self.referring(descriptor, number));
        true
    }

    /// As [`steer`](Self::steer), for a descriptor about which the caller has asked the kernel, if
    /// it is still unknown. The descriptor may have been closed since. So the caller asks the
    /// kernel once more, and forgets the entry if the descriptor is another file by now.
    pub fn adopt(&self, descriptor: i32, route: L, traits: u32) -> bool {
        let Some(number) = self.published(descriptor, route, traits) else { return false };
        let is_noted = self.note_if_unknown(descriptor, self.referring(descriptor, number));
        if !is_noted {
            self.leave(Held(number));
        }
        is_noted
    }

    /// Makes calls on a descriptor stay in place, if it is still unknown. For a descriptor whose
    /// calls must not be moved.
    pub fn adopt_plain(&self, descriptor: i32) {
        self.note_if_unknown(descriptor, PLAIN);
    }

    /// A slot with this route and one reference, the caller's. If there is none, closes the route.
    fn published(&self, descriptor: i32, route: L, traits: u32) -> Option<u32> {
        let slot = if self.entry(descriptor).is_some() { self.take() } else { None };
        let Some(number) = slot else {
            (self.close)(route);
            return None;
        };
        // SAFETY: `take` has taken the slot off the free list for this thread.
        unsafe { self.slots[number as usize].publish(route, traits) };
        Some(number)
    }

    /// Makes calls on a descriptor take the route of another one, because they share an open
    /// description.
    pub fn share(&self, descriptor: i32, held: &Held) {
        if self.entry(descriptor).is_some() {
            let joined = self.slots[held.0 as usize].join();
            debug_assert!(joined, "the caller has a reference");
            self.replace(descriptor, self.referring(descriptor, held.0));
        }
    }

    /// Has calls on a descriptor executed in place.
    pub fn leave_alone(&self, descriptor: i32, why: Left) {
        let word = match why {
            Left::Plain => PLAIN,
            Left::Stream => STREAM,
            Left::Tied => TIED,
            Left::Closing => self.closing(),
        };
        self.replace(descriptor, word);
    }

    /// Notes that a thread will close or replace a descriptor: until that is done, no thread asks
    /// for its kind.
    pub fn closes(&self, descriptor: i32) {
        if mutation!("closing-unmarked") {
            return self.forget(descriptor);
        }
        self.leave_alone(descriptor, Left::Closing);
    }

    /// Ends [`closes`](Self::closes), whether or not the descriptor was closed. The entry becomes
    /// unknown, unless another thread has filled it in since for a new descriptor with that number.
    pub fn closed(&self, descriptor: i32) {
        if let Some(Entry(entry)) = self.entry(descriptor) {
            // Release: partner of the Acquire in `note_if_unknown`: a thread that notes an answer
            // after this asks the kernel when the change is done. Relaxed: there is nothing to do.
            let (success, failure) = (order!(Release, "entry-closed"), Ordering::Relaxed);
            let _ = entry.compare_exchange(self.closing(), UNKNOWN, success, failure);
        }
    }

    /// Nothing is known of a descriptor any more.
    pub fn forget(&self, descriptor: i32) {
        self.replace(descriptor, UNKNOWN);
    }

    /// The route of a slot.
    #[inline]
    pub fn route(&self, held: &Held) -> &L {
        // SAFETY: `held` is a reference to the slot, which stays as long as it is borrowed.
        unsafe { self.slots[held.0 as usize].route() }
    }

    /// What is known of the open description.
    #[inline]
    pub fn traits(&self, held: &Held) -> u32 {
        // Relaxed: advice, and what a thread has set it finds itself.
        self.slots[held.0 as usize].traits.load(Ordering::Relaxed)
    }

    /// Adds bits to what is known of the open description.
    pub fn add_traits(&self, held: &Held, set: u32) {
        // Relaxed: as in `traits`.
        self.slots[held.0 as usize].traits.fetch_or(set, Ordering::Relaxed);
    }

    /// Returns a reference. If it was the last one, the route is closed.
    pub fn leave(&self, held: Held) {
        // SAFETY: `held` is a reference to the slot, and is consumed by this.
        if let Some(route) = unsafe { self.slots[held.0 as usize].leave() } {
            (self.close)(route);
            self.put(held.0);
        }
    }

    /// One more than the largest descriptor that was ever steered.
    pub fn end(&self) -> i32 {
        // Acquire: partner of the Release in `refer`: a descriptor that another thread has steered,
        // and passed to this one, is not past the end.
        self.end.load(Ordering::Acquire) as i32
    }

    /// Closes all routes and frees all slots, in the child of a fork. Its only thread calls this.
    /// Calls that the parent's other threads had in flight do not count here.
    pub fn forked(&self) {
        // Relaxed throughout this function: there is one thread.
        let used = self.used.swap(0, Ordering::Relaxed);
        for slot in self.slots.iter().take(used as usize) {
            // SAFETY: the caller is the one thread of a forked child, so that no other thread has
            // the table.
            if let Some(route) = unsafe { slot.reset() } {
                (self.close)(route);
            }
        }
        self.free.store(0, Ordering::Relaxed);
        let epoch = self.epoch.load(Ordering::Relaxed);
        self.epoch.store(epoch.wrapping_add(1), Ordering::Relaxed);
    }

    #[inline]
    fn entry(&self, descriptor: i32) -> Option<&Entry> {
        self.entries.get(usize::try_from(descriptor).ok()?)
    }

    #[inline]
    fn is_current(&self, word: u64) -> bool {
        // Relaxed: changes only while there is one thread.
        (word >> EPOCH_SHIFT) as u32 == self.epoch.load(Ordering::Relaxed)
    }

    /// Whether a word leaves its descriptor unknown. A word that another process of a fork has
    /// written also does.
    #[inline]
    fn is_unknown(&self, word: u64) -> bool {
        let is_dated = [STEERED, CLOSING].contains(&(word & STATE));
        word & STATE == UNKNOWN || (is_dated && !self.is_current(word))
    }

    /// The word for an entry that has a reference to a slot.
    fn referring(&self, descriptor: i32, number: u32) -> u64 {
        // Release: partner of the Acquire in `end`.
        self.end.fetch_max(descriptor as u32 + 1, Ordering::Release);
        self.dated(u64::from(number) << STATE_BITS | STEERED)
    }

    fn closing(&self) -> u64 {
        self.dated(CLOSING)
    }

    fn dated(&self, word: u64) -> u64 {
        // Relaxed: as in `is_current`.
        u64::from(self.epoch.load(Ordering::Relaxed)) << EPOCH_SHIFT | word
    }

    /// Stores a word in an entry that is unknown; returns whether it was.
    fn note_if_unknown(&self, descriptor: i32, word: u64) -> bool {
        let Some(Entry(entry)) = self.entry(descriptor) else { return false };
        // Relaxed: the exchange says whether it still is so.
        let now = entry.load(Ordering::Relaxed);
        if mutation!("adopt-blind") {
            self.replace(descriptor, word);
            return true;
        }
        // AcqRel: Release is partner of the Acquire in `find`; Acquire of the Release in `closed`.
        // Relaxed: nothing was changed.
        let (success, failure) = (order!(AcqRel, "entry-adopt"), Ordering::Relaxed);
        self.is_unknown(now) && entry.compare_exchange(now, word, success, failure).is_ok()
    }

    fn replace(&self, descriptor: i32, word: u64) {
        let Some(Entry(entry)) = self.entry(descriptor) else { return };
        // Relaxed: most entries were unknown and stay so. If another thread changes the entry
        // meanwhile, the result is that of a change shortly afterwards.
        if word & STATE != STEERED && entry.load(Ordering::Relaxed) == word {
            return;
        }
        // AcqRel: Release is partner of the Acquire in `find`; Acquire of another `replace`'s
        // Release, whose slot is left here.
        let old = entry.swap(word, order!(AcqRel, "entry-replace"));
        if old & STATE == STEERED && self.is_current(old) {
            self.leave(Held(slot_of(old)));
        }
    }

    /// A free slot's number.
    fn take(&self) -> Option<u32> {
        // Acquire: partner of the Release in `put`, for the slot's `next` and its end of use.
        let mut head = self.free.load(order!(Acquire, "free-take"));
        while let Some(number) = (head as u32).checked_sub(1) {
            // Relaxed: if the slot has been taken and put back meanwhile, the count shows it.
            let next = self.slots[number as usize].next.load(Ordering::Relaxed);
            let changed = (head & !LOW) | u64::from(next);
            // Acquire, also on failure: partner of the Release in `put`.
            let taken = self.free.compare_exchange_weak(
                head,
                changed,
                order!(Acquire, "free-take"),
                order!(Acquire, "free-take"),
            );
            match taken {
                Ok(_) => return Some(number),
                Err(now) => head = now,
            }
        }
        // Relaxed: each number is given once, and its memory was never used.
        let fresh = |used| ((used as usize) < self.slots.len()).then_some(used + 1);
        self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fresh).ok()
    }

    fn put(&self, number: u32) {
        // Relaxed: the exchange publishes.
        let mut head = self.free.load(Ordering::Relaxed);
        loop {
            // Relaxed: published by the Release below.
            self.slots[number as usize].next.store(head as u32, Ordering::Relaxed);
            let count = if mutation!("free-uncounted") { 0 } else { 1 << 32 };
            let changed = (head & !LOW).wrapping_add(count) | u64::from(number + 1);
            // Release: partner of the Acquire in `take`. Relaxed: tried again.
            match self.free.compare_exchange_weak(
                head,
                changed,
                order!(Release, "free-put"),
                Ordering::Relaxed, // Relaxed: as said
            ) {
                Ok(_) => return,
                Err(now) => head = now,
            }
        }
    }
}

fn slot_of(word: u64) -> u32 {
    (word >> STATE_BITS) as u32 & (SLOTS_MAX as u32 - 1)
}
