//! Ordered deferred update: stacks and queues whose threads log their additions; the items are put
//! in order when one is taken out.
//!
//! # Idea
//!
//! [`ldu`](super) needs no order: only an insertion and a removal of one object do not commute, and
//! those cancel. An item of a stack or a queue has a position among all items of all threads. So
//! each item gets a stamp of a [clock](crate::clock), which costs no line that threads share. It
//! goes to the end of the adding thread's *run*, which is in order by itself. Nothing is sorted. A
//! thread that takes an item out acquires the structure's lock and merges: a tournament among the
//! runs determines the run with the next item, and only that run plays again.
//!
//! ```text
//!   thread 1   3  8  9 |  12  15   ->           who takes, with the lock:
//!   thread 2   5  6 |  20          ->              first in, first out:  3, then 5, 6, 8, 9, ...
//!   thread 3   |                   ->              last in, first out:   20, then 15, 12, 9, ...
//!              taken   pending      added
//!              out of the run
//! ```
//!
//! The thread that added an item last can [take it back](Handle::take_back) while it is pending.
//! The two operations cancel, like an insertion and a removal in LDU, and no other thread learns of
//! either. It takes one compare-and-swap in the thread's own line.
//!
//! | type | what comes out next |
//! |---|---|
//! | [`queue::OrderedQueue`](crate::collections::queue::OrderedQueue) | the [`Oldest`] |
//! | [`stack::OrderedStack`](crate::collections::stack::OrderedStack) | the [`Newest`] |
//!
//! # Order
//!
//! 1. *A handle's* items are always in the order in which it added them, independent of clocks and
//!    of the CPU of its thread.
//! 2. *Strict clocks* ([`Ordo`], [`Counter`](crate::clock::Counter)): additions and
//!    [`pop`](Ordered::pop)s are linearizable. There is one order of all of them in which each
//!    takes effect between its call and its return.
//! 3. *Relaxed clocks* ([`RelaxedClock`](crate::clock::RelaxedClock)): the same, if each addition
//!    is assumed to last longer than it did by the clock's boundary. So two additions are in their
//!    real order unless the second began within that time of the first one's return. A `pop` sees
//!    all additions that returned before it began.
//! 4. *Withdrawn items* are left out of 2 and 3 together with their additions. With both, the
//!    history is sequentially consistent: there is an order of all operations that keeps each
//!    thread's own. It need not keep the order between threads. On a stack, a thread may take its
//!    own item back although another thread has put one on top since. That makes the operation
//!    local, and is the reason for its own name.
//!
//! # Why
//!
//! *Stamps.* Under a strict clock an addition returns only when every stamp that any thread asks
//! for later is later than its own ([`Clock::pass`]). So: (S) if one addition returns before
//! another is called, its stamp is the smaller.
//!
//! *Oldest.* A queue is linearizable if values come out once, `pop` says "nothing" only if at some
//! moment between its call and its return there was nothing, and no value comes out before another
//! whose addition had returned before its own was called (Henzinger, Sezgin and Vafeiadis,
//! "Aspect-oriented linearizability proofs", CONCUR 2013). Let `pop` return an item `c`, and `x` be
//! one that was added before. By (S) its stamp is the smaller; so `x` can only be missed in a run
//! that was found empty. There are two reasons to believe that there is no such `x`:
//!
//! - `c` was known before all runs of which nothing was left were read, and found empty. `x`
//!   was in its run before `c` was added.
//! - The stamp of `c` is not after the time that this `pop`, or an earlier one, read before it read
//!   those runs. A stamp that is asked for after that time was read is later than the time. So `c`
//!   had got its stamp by then, and `x` was in its run before that.
//!
//! By the second reason taking `n` items costs `n` times the logarithm of the runs, and not `n`
//! reads of all runs: with a backlog, one read serves all earlier additions.
//!
//! *Newest.* A `pop` reads all runs, once, and takes the item with the latest stamp among all that
//! it finds and those left from earlier reads. Suppose that it misses an item. The item was not in
//! its run at the read, so its addition had not returned when the `pop` was called, and may have
//! taken effect later. The exception is an addition that had returned before the addition of the
//! taken item was called; but then its stamp is smaller, and the item is below. A thread that takes
//! several items stops after an item whose stamp is later than the time read before the runs:
//! another item may have been added above the next one.
//!
//! *"Nothing"* is returned after a read of all runs that found nothing: whatever was added before
//! the call had come out by then.
//!
//! *Taken back.* Between an addition and its withdrawal no thread has taken the item out of the
//! run, so no result depends on it. Meanwhile the thread itself has only added items that it had
//! withdrawn before, or taken out items of others. So the pair acts as one step that changes
//! nothing.
//!
//! *A preempted thread*, which has got its stamp but not yet put its item into its run, is the weak
//! point of merging by time: a later item may come out first. Here that does no harm, and no thread
//! waits for the preempted one. Its addition has not returned, so (S) says nothing about it, and it
//! may take effect later. A stamp never proves that no earlier item will come; the reads of the
//! runs prove that. In its run the item gets its position by its stamp.
//!
//! # Memory order
//!
//! A run has one word, with the number of added items and the number of taken ones. Adding an item
//! releases it, together with the link to its segment; taking acquires. Both are read-modify-writes
//! of the same word, so that an item is either taken or taken back. A segment is freed by the
//! thread that takes the first item of the next one: the writer does not come back to it, since
//! there is nothing in it that it could take back. The taken items and the tournament pass with the
//! lock from one thread that takes to the next.
//!
//! # Threads that come and go
//!
//! A run belongs to a [`Handle`]. When the handle is dropped, the run's items come out in their
//! order; the next handle goes on with the run. A thread that forgets a handle, or dies with it,
//! leaves behind a run that is read for ever. A thread that only takes items needs no handle.
//!
//! # Source
//!
//! LDU's author names stacks and queues as structures that it cannot handle, because operations in
//! the logs of cores lose their order, and leaves the combination of LDU with OpLog as future work.
//! Stamps instead of a shared tail are from M. Dodds, A. Haas and C. M. Kirsch, "A scalable,
//! correct time-stamped stack", POPL 2015, where each `pop` reads all pools, and takes items by
//! compare-and-swap. The differences:
//!
//! - A log belongs to a thread and not to a core: then adding takes no lock, and a preempted thread
//!   delays no other.
//! - A thread that takes items has a lock, takes many items out of a run at a time, and remembers
//!   its knowledge in a tournament.
//! - The adding thread waits for the clock, in its own line; that can be switched off.
//! - A removal cannot be logged, since the caller needs its result.
//!
//! # Cost
//!
//! An addition reads the clock, and writes lines of the thread's own: one write and one
//! read-modify-write. It allocates memory once for 64 items. With a strict clock it also waits for
//! the boundary, during which the CPU does nothing else. Taking an item back is one
//! compare-and-swap. Removing the oldest item takes the lock, follows a path through the
//! tournament, and reads the item's line and, for every 256 items, a line of its run. If the item
//! is newer than the last scan, it also reads each run that was empty then. Removing the newest
//! item takes the lock, reads each run, and follows the tournament. A run has 128 bytes, and a
//! segment for 64 items.
//!
//! # When not to use it
//!
//! Where items are removed one at a time as often as they are added: all removing threads contend
//! for the lock, as with a queue under a lock, and have to merge runs in addition;
//! [`Ordered::pop_into`] removes many at a time. Where a queue is mostly empty: each `pop` reads
//! all runs. Where memory must be bounded: no thread waits because many items are pending. Where
//! removals have to be local: the oldest item of a queue may be any thread's.

mod merge;
mod run;
mod tournament;

use alloc::boxed::Box;
use core::mem::ManuallyDrop;

pub use merge::{Discipline, Newest, Oldest};

use self::merge::Merge;
use self::run::{Run, Writer};
use crate::RawLock;
use crate::clock::{Clock, Ordo};
use crate::lock::{Adaptive, Guarded};
use crate::sync::CachePadded;
use crate::sync::mutation;
use crate::sync::phase::{self, Phase};
use crate::thread_registry::{ThreadRegistry, ThreadSlot};

/// The items that threads have added. The [oldest](Oldest) or the [newest](Newest) is removed next,
/// according to a clock `C`, with a lock `L`.
///
/// See [`OrderedQueue`](crate::collections::queue::OrderedQueue) and
/// [`OrderedStack`](crate::collections::stack::OrderedStack).
pub struct Ordered<T, D: Discipline, C: Clock = Ordo, L: RawLock = Adaptive> {
    clock: C,
    /// Runs, and their writers when no thread has them.
    slots: ThreadRegistry<Run<T>, Writer<T>>,
    guarded: CachePadded<Guarded<Merge<T, D>, L>>,
}

// SAFETY: `merge` is accessed only with the lock held. An item moves from the thread that has added
// it to the lock's owner (`T: Send`), and is not shared.
unsafe impl<T: Send, D: Discipline, C: Clock, L: RawLock> Sync for Ordered<T, D, C, L> {}
// SAFETY: handles borrow the `Ordered`, so an `Ordered` that is moved has none; another thread may
// take out and drop its items (`T: Send`).
unsafe impl<T: Send, D: Discipline, C: Clock, L: RawLock> Send for Ordered<T, D, C, L> {}

impl<T, D: Discipline, C: Clock, L: RawLock> Ordered<T, D, C, L> {
    /// Creates one without items, by this clock.
    pub fn with_clock(clock: C) -> Self {
        Self {
            clock,
            slots: ThreadRegistry::new(),
            guarded: CachePadded(Guarded::new(Merge::new())),
        }
    }

    /// The calling thread's right to add items.
    pub fn handle(&self) -> Handle<'_, T, D, C, L> {
        let (slot, mut writer) = self.slots.take(Run::new);
        writer.begin();
        Handle { ordered: self, slot, writer: ManuallyDrop::new(writer) }
    }

    /// Takes the next item out, if there is one.
    pub fn pop(&self) -> Option<T> {
        self.guarded.with(|merge| {
            phase::during(Phase::Log, || {
                merge.begin();
                merge.next(&self.slots, &self.clock)
            })
        })
    }

    /// Removes up to this many items, one after the other, as far as they were there when it was
    /// called, according to the clock; returns their number. It takes the lock once, and no other
    /// thread removes items meanwhile. `to` must not do so either, since it would deadlock with
    /// itself. It does not wait for more items, and returns 0 only if the structure was empty.
    ///
    /// # Panics
    ///
    /// If extending `to` panics. The item that it was about to get may be dropped then, and no
    /// other.
    pub fn pop_into(&self, most: usize, to: &mut impl Extend<T>) -> usize {
        self.guarded.with(|merge| {
            merge.begin();
            let mut count = 0;
            to.extend((0..most).map_while(|_| {
                let next = match count {
                    0 => merge.next(&self.slots, &self.clock),
                    _ => merge.another(&self.slots, &self.clock),
                };
                count += usize::from(next.is_some());
                next
            }));
            count
        })
    }
}

impl<T, D: Discipline, C: Clock + Default, L: RawLock> Default for Ordered<T, D, C, L> {
    fn default() -> Self {
        Self::with_clock(C::default())
    }
}

impl<T, D: Discipline, C: Clock, L: RawLock> Drop for Ordered<T, D, C, L> {
    fn drop(&mut self) {
        let slots = &self.slots;
        // SAFETY: `&mut self`: no handle is left, and no other thread has the structure.
        unsafe { self.guarded.alone(|merge| merge.finish(slots)) };
    }
}

opaque! { [T, D: Discipline, C: Clock, L: RawLock] Ordered<T, D, C, L>, "Ordered"; }

/// A thread's handle for adding items. Dropping it leaves the items in place.
pub struct Handle<'a, T, D: Discipline, C: Clock = Ordo, L: RawLock = Adaptive> {
    ordered: &'a Ordered<T, D, C, L>,
    slot: &'a ThreadSlot<Run<T>, Writer<T>>,
    writer: ManuallyDrop<Box<Writer<T>>>,
}

// SAFETY: the handle that has taken the slot uses it, in one thread at a time; its items, of
// `T: Send`, may come from any thread.
unsafe impl<T: Send, D: Discipline, C: Clock, L: RawLock> Send for Handle<'_, T, D, C, L> {}

impl<T, D: Discipline, C: Clock, L: RawLock> Handle<'_, T, D, C, L> {
    /// Adds an item.
    ///
    /// # Panics
    ///
    /// If the handle has 2^32 - 1 items in it that no thread has taken out.
    #[inline]
    pub fn push(&mut self, item: T) {
        let clock = &self.ordered.clock;
        let stamp = self.writer.stamp(clock.stamp());
        // SAFETY: `ThreadRegistry::take` has given out slot and writer together, and `give_back`
        // keeps them so: the writer is that of the slot's run.
        unsafe { self.writer.add(self.slot, item) };
        if !mutation!("ordered-no-wait") {
            clock.pass(stamp);
        }
    }

    /// Takes back the last item that this handle has added and that was neither removed nor taken
    /// back; `None` if a removing thread has claimed it already. No other thread notices, so
    /// neither the addition nor this operation has a place in the order of all others: see [the
    /// module](self#order).
    ///
    /// On a stack it is a `pop` for a thread that wants its own item back:
    /// `handle.take_back().or_else(|| stack.pop())`.
    #[inline]
    pub fn take_back(&mut self) -> Option<T> {
        // SAFETY: `ThreadRegistry::take` has given out slot and writer together, and `give_back`
        // keeps them so: the writer is that of the slot's run.
        unsafe { self.writer.take_back(self.slot) }.map(|item| item.value)
    }
}

impl<T, D: Discipline, C: Clock, L: RawLock> Drop for Handle<'_, T, D, C, L> {
    fn drop(&mut self) {
        // SAFETY: `self` is being dropped, so that the writer is taken once.
        self.slot.give_back(unsafe { ManuallyDrop::take(&mut self.writer) });
    }
}

opaque! { [T, D: Discipline, C: Clock, L: RawLock] Handle<'_, T, D, C, L>, "Handle"; }
