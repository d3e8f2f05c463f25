//! Tables of buckets, and the move of entries from one table into the next, which has twice as many
//! buckets.

use alloc::boxed::Box;
use core::ptr::null_mut;

use crate::reclaim::Guard;
use crate::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use crate::sync::order;

/// The number of buckets that a writer moves in addition to its own while the map grows.
const MOVED_TOGETHER: usize = 8;

/// The map grows when more than one bucket in this many has overflow lines.
const WITH_OVERFLOW: usize = 8;

/// The contents of a table: numbered buckets.
pub(super) trait Buckets {
    /// The contents of a slot.
    type Entry: Copy;
    /// A bucket that the calling thread has locked. Dropping this unlocks it.
    type Locked<'t>
    where
        Self: 't;

    /// Creates `count` empty buckets. `count` is a power of two.
    fn new(count: usize) -> Self;

    /// The number of buckets.
    fn count(&self) -> usize;

    /// The number of bytes that the buckets take, without overflow lines.
    fn bytes(&self) -> usize;

    /// Locks a bucket against other writers; `None` if its entries are in the next table.
    fn lock(&self, number: usize) -> Option<Self::Locked<'_>>;

    /// Calls `f` with all entries of a bucket, and with their tags.
    fn for_each(locked: &Self::Locked<'_>, f: impl FnMut(u8, Self::Entry));

    /// Marks the bucket: from now on its entries are in the next table. Release: for the threads
    /// that then read that table.
    fn moved(locked: Self::Locked<'_>);

    /// Adds an entry to a bucket that no other thread can find yet. Returns whether this added an
    /// overflow line.
    fn fill(&self, number: usize, tag: u8, entry: Self::Entry) -> bool;

    /// Empties a bucket that no other thread has: frees its overflow lines, and leaves the entries
    /// to the caller.
    fn forget(&self, number: usize);
}

/// The buckets.
pub(super) struct Table<B: Buckets> {
    buckets: B,
    /// The next table; null until this one has become too small.
    next: AtomicPtr<Table<B>>,
    /// The number of the bucket that is to be moved next, and the number of moved buckets.
    cursor: AtomicUsize,
    moved: AtomicUsize,
    /// The number of overflow lines.
    overflow: AtomicUsize,
}

impl<B: Buckets> Table<B> {
    /// Creates a table with this many buckets, rounded up to a power of two.
    pub fn new(buckets: usize) -> Self {
        Self {
            buckets: B::new(buckets.next_power_of_two()),
            next: AtomicPtr::new(null_mut()),
            cursor: AtomicUsize::new(0),
            moved: AtomicUsize::new(0),
            overflow: AtomicUsize::new(0),
        }
    }

    /// The buckets.
    #[inline]
    pub fn buckets(&self) -> &B {
        &self.buckets
    }

    /// The number of the bucket of a hash.
    #[inline]
    pub fn number(&self, hash: u64) -> usize {
        hash as usize & (self.buckets.count() - 1)
    }

    /// The next table, if there is one. The caller has found this table in a section that still
    /// lasts.
    #[inline]
    pub fn next(&self) -> Option<&Self> {
        // SAFETY: null, or a table that is retired after this one, which is valid.
        unsafe { self.next_table().as_ref() }
    }

    /// The next table, or null.
    #[inline]
    fn next_table(&self) -> *mut Self {
        // Acquire: partner of the Release in `grow`.
        self.next.load(order!(Acquire, "map-next"))
    }

    /// Whether all entries are in the next table.
    fn is_moved(&self) -> bool {
        // Acquire: partner of the AcqRel in `move_bucket`: all buckets are moved.
        self.moved.load(Ordering::Acquire) == self.buckets.count()
    }

    /// Counts one overflow line more or less.
    pub fn count_overflow(&self, more: bool) {
        // Relaxed, both: the number only decides when to grow.
        if more {
            self.overflow.fetch_add(1, Ordering::Relaxed);
        } else {
            self.overflow.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Whether the table should have more buckets.
    fn is_small(&self) -> bool {
        // Relaxed: as in `count_overflow`.
        self.overflow.load(Ordering::Relaxed) > self.buckets.count() / WITH_OVERFLOW
    }

    /// Makes the next table unless there is one. The caller knows that all entries of the table
    /// before this one are in this one.
    #[cold]
    fn grow(&self) {
        if self.next().is_some() {
            return;
        }
        let next = Box::into_raw(Box::new(Self::new(2 * self.buckets.count())));
        // Release: partner of the Acquire in `next`. Relaxed on failure: another thread's table is
        // used.
        let done = order!(Release, "map-grow");
        if self.next.compare_exchange(null_mut(), next, done, Ordering::Relaxed).is_err() {
            // SAFETY: from the box above, and no other thread has seen it.
            drop(unsafe { Box::from_raw(next) });
        }
    }

    /// Moves some buckets. Returns whether all are moved now.
    fn help(&self, next: &Self, hash: impl Fn(B::Entry) -> u64) -> bool {
        // Relaxed, both: they only distribute the buckets among threads; each bucket is moved with
        // its lock held.
        if self.cursor.load(Ordering::Relaxed) < self.buckets.count() {
            let from = self.cursor.fetch_add(MOVED_TOGETHER, Ordering::Relaxed);
            let to = (from + MOVED_TOGETHER).min(self.buckets.count());
            for number in from..to {
                if let Some(locked) = self.buckets.lock(number) {
                    self.move_bucket(locked, number, next, &hash);
                }
            }
        }
        self.is_moved()
    }

    /// Moves the bucket with this number, which the caller has locked.
    fn move_bucket(
        &self,
        locked: B::Locked<'_>,
        number: usize,
        next: &Self,
        hash: impl Fn(B::Entry) -> u64,
    ) {
        /// Removes the entries that were copied if a hash function panics: they are still in this
        /// table.
        struct Undo<'t, B: Buckets>(&'t B, [usize; 2]);
        impl<B: Buckets> Drop for Undo<'_, B> {
            fn drop(&mut self) {
                self.1.iter().for_each(|number| self.0.forget(*number));
            }
        }
        let half = self.buckets.count();
        // No other thread finds a bucket of the next table before this one is moved.
        let undo = Undo(&next.buckets, [number, number + half]);
        B::for_each(&locked, |tag, entry| {
            let upper = hash(entry) as usize & half != 0;
            if next.buckets.fill(undo.1[usize::from(upper)], tag, entry) {
                next.count_overflow(true);
            }
        });
        core::mem::forget(undo);
        B::moved(locked);
        // AcqRel: each addition is partner of the next, and the last of the Acquire in `is_moved`,
        // which so comes after all moves.
        self.moved.fetch_add(1, Ordering::AcqRel);
    }
}

impl<B: Buckets> Drop for Table<B> {
    /// Frees the table's lines. Its entries are in another table, or were freed. It does not own
    /// the next table.
    fn drop(&mut self) {
        (0..self.buckets.count()).for_each(|number| self.buckets.forget(number));
    }
}

/// The tables of a map: one, and a next one while the map grows.
pub(super) struct Tables<B: Buckets> {
    /// The table in which a look-up begins. It comes from a box.
    first: AtomicPtr<Table<B>>,
}

/// A bucket that this thread has locked to write, and the bucket's table.
pub(super) type Writing<'g, B> = (&'g Table<B>, <B as Buckets>::Locked<'g>);

impl<B: Buckets> Tables<B> {
    /// Creates one table with this many buckets, rounded up to a power of two.
    pub fn new(buckets: usize) -> Self {
        Self { first: AtomicPtr::new(Box::into_raw(Box::new(Table::new(buckets)))) }
    }

    /// The table in which a look-up begins.
    #[inline]
    pub fn first<'g>(&'g self, _guard: &'g Guard) -> &'g Table<B> {
        // Acquire: partner of the Release in `advance`.
        let table = self.first.load(order!(Acquire, "map-table"));
        // SAFETY: a table to which the map led in this section is not freed before its end.
        unsafe { &*table }
    }

    /// Locks the bucket of a hash in the table that has its entries. Helps to move buckets if the
    /// map is growing.
    #[inline]
    pub fn lock<'g>(
        &'g self,
        hash: u64,
        hash_of: impl Fn(B::Entry) -> u64,
        guard: &'g Guard,
    ) -> Writing<'g, B>
    where
        B: 'g,
    {
        let mut table = self.first(guard);
        loop {
            let locked = table.buckets.lock(table.number(hash));
            match (table.next(), locked) {
                (None, Some(locked)) => return (table, locked),
                (Some(next), locked) => {
                    self.go_on(table, locked, hash, next, &hash_of, guard);
                    table = next;
                }
                // The bucket was moved, so a next table exists; this thread now learns of it.
                (None, None) => {}
            }
        }
    }

    #[cold]
    fn go_on(
        &self,
        table: &Table<B>,
        locked: Option<B::Locked<'_>>,
        hash: u64,
        next: &Table<B>,
        hash_of: impl Fn(B::Entry) -> u64,
        guard: &Guard,
    ) {
        if let Some(locked) = locked {
            table.move_bucket(locked, table.number(hash), next, &hash_of);
        }
        if table.help(next, hash_of) {
            self.advance(guard);
        }
    }

    /// Makes look-ups begin with the next table, if all entries of the first one were moved.
    #[cold]
    fn advance(&self, guard: &Guard) {
        /// # Safety
        ///
        /// The table comes from a box, and no other thread has it.
        unsafe fn destroy<B: Buckets>(table: *mut ()) {
            // SAFETY: it comes from a box, and no thread has it (contract of this function).
            drop(unsafe { Box::from_raw(table.cast::<Table<B>>()) });
        }
        loop {
            // These are pointers, because a pointer made from a reference could not free its
            // target.
            // Acquire: partner of the Release in `advance`.
            let old = self.first.load(order!(Acquire, "map-table"));
            // SAFETY: the table was found in the map in this section, so it is not freed before the
            // section's end.
            let table = unsafe { &*old };
            let next = table.next_table();
            if next.is_null() || !table.is_moved() {
                return;
            }
            // Release: partner of the Acquire in `first`. Relaxed on failure: another thread has
            // done it.
            let (done, failed) = (order!(Release, "map-advance"), Ordering::Relaxed);
            if self.first.compare_exchange(old, next, done, failed).is_ok() {
                let bytes = size_of::<Table<B>>() + table.buckets.bytes();
                // SAFETY: the table comes from a box; the compare-and-swap has put its successor in
                // its place, which succeeds once, so that new sections cannot find it.
                unsafe { guard.retire_with(old.cast(), bytes, destroy::<B>) };
            }
        }
    }

    /// Makes the map grow if necessary, after a bucket of this table got an overflow line.
    #[cold]
    pub fn has_more_lines(&self, table: &Table<B>, guard: &Guard) {
        table.count_overflow(true);
        // Only if this is the first table: then no earlier table has entries any more.
        if table.is_small() && core::ptr::eq(table, self.first(guard)) {
            table.grow();
        }
    }

    /// Frees the tables, after a call of `entry` for each entry in a bucket that was not moved.
    pub fn end(&mut self, mut entry: impl FnMut(B::Entry)) {
        // Relaxed: no other thread is left.
        let mut first = self.first.swap(null_mut(), Ordering::Relaxed);
        while !first.is_null() {
            // SAFETY: it comes from a box, and so do the tables after it, see `grow`; no other
            // thread has them.
            let table = unsafe { Box::from_raw(first) };
            for number in 0..table.buckets.count() {
                if let Some(locked) = table.buckets.lock(number) {
                    B::for_each(&locked, |_, place| entry(place));
                }
            }
            first = table.next_table();
        }
    }
}

impl<B: Buckets> Drop for Tables<B> {
    fn drop(&mut self) {
        self.end(|_| ());
    }
}
