//! Queues of many structures, in tables; each core has one. At any time a slot of a table belongs
//! to one structure.

use alloc::boxed::Box;
use alloc::rc::Rc;
use alloc::sync::Arc;
use core::ops::Deref;
use core::ptr;

use super::queue::{Chain, FEW, Global, Length, Link, Queue};
use crate::lock::{Futex, PlainLock};
use crate::sync::atomic::{AtomicPtr, Ordering};
use crate::sync::cell::UnsafeCell;
use crate::sync::{CachePadded, cpu, own_of};

/// A direct-mapped table for each core. It has the structures whose entries were pushed on that
/// core.
///
/// The memory of all structures that share a table depends on the numbers of slots and of cores,
/// and not on the number of structures. A structure that needs another's slot takes it over: the
/// other's entries go to a queue of its own, where it finds them.
pub struct Table {
    /// All places of the first core, then those of the second.
    slots: Box<[CachePadded<CpuQueue>]>,
    cores: usize,
    places: usize,
}

struct CpuQueue {
    lock: Futex,
    /// The structure whose entries are here, named by the address of its own queue. Null if there
    /// are no entries.
    owner: AtomicPtr<Global>,
    /// The first and the last entry, if there are any. The structure's lock protects them.
    ends: UnsafeCell<Option<(Link, Link)>>,
    length: Length,
}

// SAFETY: `ends` is read and written in `change` only, whose callers have the lock.
unsafe impl Sync for CpuQueue {}
// SAFETY: entries lead to nodes, which any thread may settle that has the structure's lock.
unsafe impl Send for CpuQueue {}

/// A reference that leads to a [`Table`], and to the same one each time. [`Rooted`] relies on that:
/// an entry that was put into one table must not be searched for in another. So only the library
/// implements this:
///
/// ```compile_fail
/// use manycore::ldu::{Rooted, Table};
///
/// struct Either<'a>(&'a Table, &'a Table);
/// impl std::ops::Deref for Either<'_> {
///     type Target = Table;
///     fn deref(&self) -> &Table {
///         if std::process::id() % 2 == 0 { self.0 } else { self.1 }
///     }
/// }
/// Rooted::new(Either(&Table::new(1), &Table::new(1))); // the trait is not implemented for it
/// ```
pub trait TablePointer: Deref<Target = Table> + sealed::Sealed {}

impl<P: Deref<Target = Table> + sealed::Sealed> TablePointer for P {}

mod sealed {
    use super::{Arc, Box, Rc, Table};

    pub trait Sealed {}

    impl Sealed for &Table {}
    impl Sealed for Box<Table> {}
    impl Sealed for Rc<Table> {}
    impl Sealed for Arc<Table> {}
}

/// A structure's share of a [`Table`].
pub struct Rooted<P: TablePointer> {
    table: P,
    /// Entries that had to leave the table, or found no slot in it. Its address identifies the
    /// structure.
    own: Box<Global>,
    /// The structure's place in each core's table.
    place: usize,
}

impl Table {
    /// Creates one with this many places for each core, at least 1.
    #[must_use]
    pub fn new(places: usize) -> Self {
        let (cores, places) = (cpu::count().max(1) as usize, places.max(1));
        let slot = |_| CachePadded(CpuQueue::new());
        Self { slots: (0..places * cores).map(slot).collect(), cores, places }
    }

    /// Where the structure's place is in each core's table.
    fn place(&self, root: *const Global) -> usize {
        // Fibonacci hashing: addresses are multiples of a power of two. The model checker repeats
        // executions, in which addresses differ.
        let address = if cfg!(loom) { 0 } else { root.addr() as u64 };
        (address.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as usize % self.places
    }
}

impl CpuQueue {
    fn new() -> Self {
        let owner = AtomicPtr::new(ptr::null_mut());
        Self { lock: Futex::new(), owner, ends: UnsafeCell::new(None), length: Length::new() }
    }

    /// Changes a slot's entries and its structure, with the lock that the caller has acquired, and
    /// releases the lock.
    fn change(
        &self,
        change: impl FnOnce(*const Global, &mut Option<(Link, Link)>) -> *const Global,
    ) {
        // Relaxed: written under the lock.
        let before = self.owner.load(Ordering::Relaxed);
        // SAFETY: the callers, `push` and `take`, have acquired the lock, and nothing else leads to
        // `ends`.
        let owner = self.ends.with_mut(|ends| change(before, unsafe { &mut *ends }));
        // Release: partner of the Acquire in `take`: a thread that sees another's mark finds its
        // own entries where they went.
        self.owner.store(owner.cast_mut(), Ordering::Release);
        // SAFETY: the callers, `push` and `take`, have acquired the lock and leave its release to
        // this; the function that they pass as `change` does not panic, so this is reached.
        unsafe { self.lock.release() };
    }

    /// Adds an entry of a structure, unless another thread uses the slot; returns whether it did.
    ///
    /// # Safety
    ///
    /// As for [`Queue::push`].
    unsafe fn push(&self, root: &Global, link: Link) -> bool {
        if !self.lock.try_acquire() {
            return false;
        }
        self.change(|owner, ends| {
            let (first, last) = match *ends {
                Some((first, last)) if ptr::eq(owner, root) => (Some(first), last),
                Some((first, last)) => {
                    // SAFETY: the owner's queue is there: a structure takes its entries out of all
                    // slots before its end, and under this lock they are here. They are the slot's,
                    // and in no queue.
                    unsafe { (*owner).push_chain(first, last) };
                    (None, link)
                }
                None => (None, link),
            };
            // SAFETY: the entry is in no queue (contract of this function), and so the caller's to
            // link.
            unsafe { link.set_next(first) };
            *ends = Some((link, last));
            self.length.count();
            root
        });
        true
    }

    /// Takes the structure's entries.
    fn take(&self, root: &Global) -> Chain {
        let mut first = None;
        // Acquire: partner of the Release in `change`.
        if ptr::eq(self.owner.load(Ordering::Acquire), root) {
            self.lock.acquire();
            self.change(|owner, ends| match ptr::eq(owner, root) {
                true => {
                    first = ends.take().map(|(first, _)| first);
                    self.length.reset();
                    ptr::null()
                }
                false => owner,
            });
        }
        Chain::new(first)
    }
}

impl<P: TablePointer> Rooted<P> {
    /// A queue in this table, which has nothing of the structure's yet.
    pub fn new(table: P) -> Self {
        let own = Box::new(Global::new());
        let place = table.place(&raw const *own);
        Self { table, own, place }
    }

    /// The structure's slot of each core.
    fn slots(&self) -> impl Iterator<Item = &CpuQueue> {
        let table = &*self.table;
        table.slots.iter().skip(self.place).step_by(table.places).map(|slot| &**slot)
    }

    /// The structure's slot of the core on which the caller runs.
    #[inline]
    fn slot(&self) -> &CpuQueue {
        let table = &*self.table;
        &table.slots[own_of(table.cores) * table.places + self.place]
    }
}

// SAFETY: `push` puts an entry into one slot or into the structure's own queue, and another
// structure moves it from there to here under the slot's lock. `take` reads all slots before
// that queue, so that it misses none.
unsafe impl<P: TablePointer> Queue for Rooted<P> {
    #[inline]
    unsafe fn push(&self, link: Link) {
        // SAFETY: the entry is in no queue and its node stays (contract of this function), as the
        // slot requires. No thread waits here.
        let pushed = unsafe { self.slot().push(&self.own, link) };
        if !pushed {
            // SAFETY: the slot has not taken the entry, so that it is still in no queue (contract
            // of this function).
            unsafe { self.own.push(link) };
        }
    }

    fn take(&self, mut each: impl FnMut(Chain)) {
        self.slots().for_each(|slot| each(slot.take(&self.own)));
        each(self.own.take_all());
    }

    fn take_own(&self, mut each: impl FnMut(Chain)) {
        each(self.slot().take(&self.own));
        each(self.own.take_all());
    }

    #[inline]
    fn is_empty(&self) -> bool {
        // Acquire: partner of the Release in `change`. The slots are read first, as in `take`.
        let elsewhere =
            |slot: &CpuQueue| !ptr::eq(slot.owner.load(Ordering::Acquire), &raw const *self.own);
        self.table.cores <= FEW && self.slots().all(elsewhere) && self.own.is_empty()
    }

    #[inline]
    fn is_long(&self) -> bool {
        self.slot().length.is_long() || self.own.is_long()
    }
}

impl core::fmt::Debug for Table {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Table").field("places", &self.places).finish_non_exhaustive()
    }
}

opaque! { [P: TablePointer] Rooted<P>, "Rooted"; }
