//! Lightweight deferred update: updates are logged without a lock, and applied when a thread reads.
//!
//! # Idea
//!
//! A structure that is updated far more often than it is read need not be up to date all the time.
//! Updates go into a log. A thread that reads acquires the structure's lock, applies the log, and
//! reads. The order of most updates does not matter. Only an insertion and a removal of the *same*
//! object do not commute, and at most one of those is pending. An object has a mark for each of the
//! two. A thread that logs one of them first clears the mark of the other. If that was set, the two
//! cancel, and nothing is left to do:
//!
//! ```text
//!     insert                                     synchronize, with the structure's lock
//!  1  remove mark set? clear it, done         5  insert mark set? clear it, insert the object
//!  2  set the insert mark                     6  clear `used`
//!  3  `used` set? done: the entry is queued   7  insert mark set? clear it, insert the object
//!  4  put the entry into the queue
//! ```
//!
//! The entry of a cancelled update stays in the queue, and the object's next update of the same
//! kind finds it there (step 3). A thread that drains the queue clears `used` between two reads of
//! the mark (5 and 7). Suppose that an owner sets the mark after the first read. Either it finds
//! `used` set, and then the second read finds the mark; or it finds `used` clear, and puts the
//! entry into the queue again. Here marks and `used` are bits of one word: steps 1 to 3 are one
//! compare-and-swap, and 5 to 7 are one read-modify-write, so neither interrupts the other. The
//! insertion follows it.
//!
//! The queue comes in three arrangements:
//!
//! | queue | arrangement |
//! |---|---|
//! | [`Global`] | one queue for each structure, at whose head all meet |
//! | [`Rooted`] | for each core a [`Table`] of structures, each with a slot |
//! | [`PerCore`] | for each core one queue for all structures, under one lock |
//!
//! A thread that finds another structure's entries in its slot of a [`Table`] returns them to a
//! queue of that structure. [`PerCore`] does not divide its queues by structure: their entries may
//! belong to a whole forest, under one lock.
//!
//! [`Deferred`] is the form for programs: items have an owner, whose handle says whether the item
//! is in the structure. [`Node`], [`Queue`] and [`drain`] are the form for kernels, whose objects
//! carry the node.
//!
//! # Where reads are frequent
//!
//! With few updates per read, deferring saves little, and moves the work to a thread with a cold
//! cache, away from the reader that has just had the lock. So a [`Deferred`] counts updates and
//! reads. Where there are [few](EAGER_BELOW) updates for each read, an update is applied inline if
//! the lock is free, and logged as usual otherwise: it never waits. If the lock is mostly taken, as
//! with many cores, updates only try it now and then. An object with a pending operation is always
//! logged, so that its operations stay in order; operations of different objects need no order.
//! [`Deferred::eager_below`] sets the limit, or turns this off.
//!
//! # Timer, and sweeping
//!
//! A structure that is never read has a log that grows with the number of items.
//! [`Deferred::synchronize_if_due`] drains it now and then, from updates. Only one thread does so:
//! a thread that finds it due claims it first, and then acquires the lock. [`every`] does the same
//! from a thread of its own.
//!
//! Logged items that were dropped stay in memory until the log is drained. A thread that drops one
//! drains the entries of its own core, if there are [`MANY`] and the lock is free: they are in its
//! cache, and most belong to cancelled updates. An object may have one entry on this core and one
//! on another, and they need not be taken together: the last one releases the object. No thread
//! waits here, since a thread that drops an item may be in a read, and own the lock. So memory is
//! bounded, with two exceptions: items dropped while another thread owns the lock, and machines
//! where cores log faster than one thread can apply. There the timer and reads drain the log.
//!
//! ```
//! # use manycore::ldu::{Deferred, Item, Structure, every};
//! # use std::sync::atomic::{AtomicBool, Ordering};
//! # #[derive(Default)]
//! # struct Count(u32);
//! # impl Structure<u32> for Count {
//! #     fn insert(&mut self, _: Item<'_, u32>) { self.0 += 1; }
//! #     fn remove(&mut self, _: Item<'_, u32>) { self.0 -= 1; }
//! # }
//! let (count, stop) = (Deferred::<Count, u32>::default(), AtomicBool::new(false));
//! std::thread::scope(|s| {
//!     s.spawn(|| every(1_000_000, &stop, || count.synchronize()));
//!     (0..100).for_each(|i| drop(count.item(i).insert()));
//!     stop.store(true, Ordering::Release);
//! });
//! ```
//!
//! # Source
//!
//! "LDU: Lightweight log-based Deferred Update", a dissertation on update-heavy structures of
//! Linux, whose reverse maps are updated by every fork and rarely read. The idea of a log for each
//! core that is applied before reads is from OpLog (S. Boyd-Wickizer, M. F. Kaashoek, R. Morris and
//! N. Zeldovich, MIT-CSAIL-TR-2014-019). The differences:
//!
//! - One word contains the marks, the bits `used` of the two entries, and a bit that says that the
//!   owner has gone. It is only changed by read-modify-writes, one for an update and one for an
//!   entry. The published code has a word for each, and clears `used` with a plain store.
//! - In the published code the assertion on the mark is inverted. Here it says that the same update
//!   does not come twice.
//! - An object with an entry in the queue is freed only by the thread that drains the entry, under
//!   the lock. In the published code it may be freed between steps 6 and 7.
//! - On a conflict in the table the published code takes the other structure's entries out of the
//!   queue, and only then acquires its lock; a read in between misses them. Here they go to a queue
//!   of the other structure's own. No lock of a structure is acquired, and no thread waits: a
//!   thread that finds another thread at the slot uses the structure's own queue as well.
//! - *Readers in progress.* With a lock, an update waits for readers; a logged update does not. So
//!   another thread may still read an object that was removed. The object is not freed, or given
//!   out to be changed, before the reader has released the lock. [`Deferred::wait_for_reads`] waits
//!   for readers that may have missed an insertion.
//! - Where reads are frequent, updates are applied at once: see above. With [`drain`] and [`Node`],
//!   the caller decides that.
//! - *Order of related objects.* Entries are applied in no particular order. If the order of two
//!   objects matters, the objects have to contain it: [`Structure`] asks for it.
//! - *Changed keys.* A removal and an insertion that follows it cancel only if the object is the
//!   same in both. So an object can be changed only by [`Absent::edit`], which drains the queue
//!   first.
//!
//! # Memory order
//!
//! The node's word orders owner and drainer: both change it by read-modify-writes (AcqRel), one of
//! which comes first. If the owner's is first, the drainer's finds the mark, and acquires what the
//! owner did before. If the drainer's is first, the owner puts the entry into the queue, and has
//! acquired the end of the drainer's use of it. With `used` in a word of its own there would be a
//! store and then a load of another word on both sides, which needs sequentially consistent fences
//! on both.
//!
//! The thread that puts an object's entry into the queue releases the object there, and the thread
//! that takes the entry acquires it; the object does not change until it is in no queue. The
//! structure's state passes from thread to thread with the lock. An owner that frees an object that
//! had entries has acquired the end of their use with the node's word.
//!
//! [`Deferred::wait_for_reads`] comes after the caller's updates, and takes the lock for a moment:
//! a read that had it before has ended, and a read that takes it later acquires the updates with
//! it.
//!
//! # Cost
//!
//! An update is one read-modify-write of the object's line. The first one of its kind since the
//! queue was drained is also one at the head of the queue. With [`Global`] that transfers the
//! head's line; with the other queues it does not, if the thread stays on its core. A drain is one
//! read-modify-write for each entry, and the cache misses of reading objects that others have
//! written; with a queue for each core, it also reads the head of each. An object's node takes 24
//! bytes.
//!
//! # When not to use it
//!
//! Where more than about one operation in thirty reads: a lock alone is a little faster. Where
//! updates have results, such as whether a key was there. Where the order of updates of different
//! objects matters, as in a stack: use [`ordered`] for that.

mod deferred;
mod item;
pub mod ordered;
mod per_core;
mod queue;
mod ratio;
mod statistics;
mod structure;
mod table;
mod timer;

pub use deferred::Deferred;
pub use item::{Absent, Present};
pub use per_core::PerCore;
pub use queue::node::{Node, Operation, Target};
pub use queue::{Chain, Drained, Global, Link, MANY, Queue, drain, drain_own};
pub use ratio::EAGER_BELOW;
pub use statistics::Statistics;
pub use structure::{Item, Structure};
pub use table::{Rooted, Table, TablePointer};
pub use timer::every;
