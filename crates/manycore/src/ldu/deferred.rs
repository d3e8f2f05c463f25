//! A structure whose updates are logged, and which is brought up to date when it is read.

use alloc::boxed::Box;
use core::marker::PhantomData;
use core::mem::forget;
use core::ptr::NonNull;

use super::queue::node::{Node, Operation, Target};
use super::queue::{Drained, Global, Queue, drain, drain_own};
use super::ratio::{EAGER_BELOW, Eager, Ratio};
use super::statistics::Statistics;
use super::structure::{Item, Object, Structure};
use crate::RawLock;
use crate::due::Due;
use crate::lock::{Adaptive, Guarded};
use crate::sync::phase::{self, Phase};
use crate::sync::{CachePadded, hint, mutation};

/// A structure `S` of items `T`, whose updates are logged in a queue `Q`, protected by a lock `L`.
///
/// A thread that makes an item with [`item`](Self::item) owns it and its state:
/// [`Absent`](super::Absent) or [`Present`](super::Present). So no thread can insert an item that
/// is already inserted. Updates wait for no lock. A read acquires the lock, applies the log, and
/// then sees all updates that were done before it began. If reads are
/// [frequent](Self::eager_below), updates are applied inline while the lock is free.
///
/// ```
/// use std::collections::BTreeSet;
/// use manycore::ldu::{Deferred, Item, Structure};
///
/// #[derive(Default)]
/// struct Names(BTreeSet<&'static str>);
///
/// impl Structure<&'static str> for Names {
///     fn insert(&mut self, name: Item<'_, &'static str>) {
///         self.0.insert(*name);
///     }
///     fn remove(&mut self, name: Item<'_, &'static str>) {
///         self.0.remove(*name);
///     }
/// }
///
/// let names = Deferred::<Names, &str>::default();
/// std::thread::scope(|s| {
///     s.spawn(|| names.item("lightweight").insert().keep());
///     s.spawn(|| drop(names.item("deferred").insert())); // inserted, and removed again
/// });
/// assert_eq!(names.read(|names| names.0.len()), 1);
/// ```
///
/// Data to which items refer has to live as long as the structure into which they are deferred,
/// because they are applied when the structure is next read:
///
/// ```compile_fail
/// # use manycore::ldu::{Deferred, Item, Structure};
/// # #[derive(Default)]
/// # struct Count(usize);
/// # impl Structure<&str> for Count {
/// #     fn insert(&mut self, name: Item<'_, &str>) { self.0 += name.len(); }
/// #     fn remove(&mut self, name: Item<'_, &str>) { self.0 -= name.len(); }
/// # }
/// let count = Deferred::<Count, &str>::default();
/// {
///     let name = String::from("name");
///     count.item(name.as_str()).insert().keep(); // does not live long enough
/// }
/// assert_eq!(count.read(|count| count.0), 4);
/// ```
///
/// ```
/// # use manycore::ldu::{Deferred, Item, Structure};
/// # #[derive(Default)]
/// # struct Count(usize);
/// # impl Structure<&str> for Count {
/// #     fn insert(&mut self, name: Item<'_, &str>) { self.0 += name.len(); }
/// #     fn remove(&mut self, name: Item<'_, &str>) { self.0 -= name.len(); }
/// # }
/// let name = String::from("name");
/// let count = Deferred::<Count, &str>::default();
/// count.item(name.as_str()).insert().keep();
/// assert_eq!(count.read(|count| count.0), 4);
/// ```
pub struct Deferred<S, T, Q: Queue = Global, L = Adaptive>
where
    S: Structure<T>,
{
    queue: Q,
    eager: Eager,
    shared: CachePadded<Guarded<Inner<S>, L>>,
    /// When it was brought up to date by the timer.
    due: Due,
    /// Items are inserted and returned, so it is invariant in their type.
    _items: PhantomData<fn(T) -> T>,
}

struct Inner<S> {
    structure: S,
    statistics: Statistics,
    ratio: Ratio,
}

impl<S> Inner<S> {
    fn count(&mut self, drained: Drained) {
        self.statistics.count(drained);
        self.ratio.logged(drained.entries);
    }
}

// SAFETY: the structure is reached with the lock held only, and is `Send`. An item is read by
// its owner while a reader reads it, too (`T: Sync`), and dropped by the thread that drains (`T:
// Send`).
unsafe impl<S, T, Q, L> Sync for Deferred<S, T, Q, L>
where
    S: Structure<T> + Send,
    T: Send + Sync,
    Q: Queue + Sync,
    L: RawLock,
{
}
// SAFETY: owners of items borrow the `Deferred`, so a `Deferred` that is moved has none; another
// thread may use its parts.
unsafe impl<S, T, Q, L> Send for Deferred<S, T, Q, L>
where
    S: Structure<T> + Send,
    T: Send + Sync,
    Q: Queue + Send,
    L: RawLock,
{
}

/// Applies what comes out of the queue.
struct Applier<'a, S, T> {
    inner: &'a mut Inner<S>,
    _items: PhantomData<T>,
}

impl<S: Structure<T>, T> Target for Applier<'_, S, T> {
    fn apply(&mut self, operation: Operation, node: NonNull<Node>) {
        // SAFETY: the queue of this structure has entries of objects `Object<T>` only, and an
        // object is there until `release`, which `Node::settle` calls last.
        let item = Item(unsafe { &Object::<T>::of(node).as_ref().value });
        match operation {
            Operation::Insert => self.inner.structure.insert(item),
            Operation::Remove => self.inner.structure.remove(item),
        }
    }

    fn release(&mut self, node: NonNull<Node>) {
        self.inner.statistics.released += 1;
        // SAFETY: `Absent::new` has made the object by a box; the owner has retired its node, and
        // this was its last entry: no thread has it any more.
        drop(unsafe { Box::from_raw(Object::<T>::of(node).as_ptr()) });
    }
}

impl<S: Structure<T>, T> Deferred<S, T> {
    /// Creates one with one queue for all, and the usual lock.
    pub fn new(structure: S) -> Self {
        Self::with_queue(structure, Global::new())
    }
}

impl<S: Structure<T>, T, Q: Queue, L: RawLock> Deferred<S, T, Q, L> {
    /// Creates one with this queue, which is empty.
    pub fn with_queue(structure: S, queue: Q) -> Self {
        let inner = Inner { structure, statistics: Statistics::default(), ratio: Ratio::new() };
        Self {
            queue,
            eager: Eager::below(EAGER_BELOW),
            shared: CachePadded(Guarded::new(inner)),
            due: Due::new(),
            _items: PhantomData,
        }
    }

    /// Sets the limit below which updates are applied inline, in place of [`EAGER_BELOW`]: the
    /// recent number of updates for each read. They are still logged if another thread has the
    /// lock, or mostly had it recently. A thread that updates must be allowed to call the
    /// [`Structure`], and receives its panics. With 0, updates are never applied inline, and only
    /// reads, the timer and a thread that drops an item call the structure. With [`u64::MAX`], the
    /// frequency of reads does not matter.
    #[must_use]
    pub fn eager_below(mut self, updates: u64) -> Self {
        self.eager = Eager::below(updates);
        self
    }

    pub(super) fn queue(&self) -> &Q {
        &self.queue
    }

    /// Applies what is logged. The caller has the lock.
    fn drain(&self, inner: &mut Inner<S>) {
        // SAFETY: the caller, `read` or `synchronize` or `try_synchronize`, has the structure's
        // lock, which every thread holds that drains this queue.
        let drained = phase::during(Phase::Log, || unsafe {
            drain(&self.queue, &mut Applier { inner, _items: PhantomData })
        });
        inner.statistics.drains += 1;
        inner.count(drained);
    }

    /// Applies the calling core's log. The caller has the lock.
    fn drain_own(&self, inner: &mut Inner<S>) {
        // SAFETY: the caller, `sweep_own`, has the structure's lock, which every thread holds that
        // drains this queue.
        let drained = phase::during(Phase::Log, || unsafe {
            drain_own(&self.queue, &mut Applier { inner, _items: PhantomData })
        });
        inner.statistics.sweeps += 1;
        inner.count(drained);
    }

    /// Reads the structure after all earlier updates. No other thread reads meanwhile. Updates
    /// continue, and the next reader sees them. `look` and the structure must not read or wait for
    /// reads: they would deadlock with themselves.
    ///
    /// # Panics
    ///
    /// If `look` or the structure does.
    pub fn read<R>(&self, look: impl FnOnce(&S) -> R) -> R {
        self.shared.with(|inner| {
            self.drain(inner);
            inner.ratio.read(self.eager.is());
            self.eager.reconsider(&inner.ratio);
            look(&inner.structure)
        })
    }

    /// Applies an update inline, if reads are frequent and no other thread has the lock. Returns
    /// whether it did.
    ///
    /// # Safety
    ///
    /// As for [`Node::log`], of a node of an [`Object`] of this structure.
    #[inline]
    pub(super) unsafe fn apply(&self, operation: Operation, node: NonNull<Node>) -> bool {
        self.eager.is()
            // SAFETY: the node stays until it is retired and released, which its owner has not
            // requested yet (contract of this function).
            && (mutation!("ldu-eager-blind") || !unsafe { node.as_ref() }.is_pending())
            // SAFETY: the contract of this function, and `is_pending` has just said that no
            // operation of the node is pending: only its owner, the caller, could make that so.
            && unsafe { self.try_apply(operation, node) }
    }

    /// # Safety
    ///
    /// As for [`apply`](Self::apply), and no operation of the node is pending.
    unsafe fn try_apply(&self, operation: Operation, node: NonNull<Node>) -> bool {
        let apply = |inner: &mut Inner<S>| {
            Applier::<S, T> { inner, _items: PhantomData }.apply(operation, node);
            inner.statistics.at_once += 1;
            inner.ratio.applied_at_once();
            self.eager.reconsider(&inner.ratio);
        };
        self.shared.try_with(apply).is_some()
    }

    /// Waits until all reads have ended that may have missed an update of the caller's. Reads that
    /// begin meanwhile see it.
    ///
    /// For an owner that will change data which readers find through the structure.
    pub fn wait_for_reads(&self) {
        if !mutation!("ldu-nobody-waits") {
            // A thread that has missed the update had the lock before this point; a thread that
            // gets it later drains the queue.
            self.shared.with(|_| ());
        }
    }

    /// Applies what is logged.
    pub fn synchronize(&self) {
        self.shared.with(|inner| self.drain(inner));
    }

    /// For a timer: applies the logged updates, if this function has not tried that for this many
    /// ticks of [`clock::now`](crate::sync::clock::now), no other thread is about to do it, and no
    /// other thread has the lock. Returns whether it did. It is so cheap that it can be called with
    /// every update.
    pub fn synchronize_if_due(&self, period: u64) -> bool {
        // Where updates are applied inline, the queue is mostly empty, and to see that is faster
        // than to read the time.
        let is_idle = self.eager.is() && self.queue.is_empty();
        !is_idle
            && self
                .due
                .claim(period)
                .is_some_and(|_claim| self.shared.try_with(|inner| self.drain(inner)).is_some())
    }

    /// Called after an item was dropped. If the calling core's log is long, and the lock is free,
    /// applies that core's log. The dropped items' memory is then freed while it is in that core's
    /// cache.
    #[inline]
    pub(super) fn sweep(&self) {
        if self.queue.is_long() {
            self.sweep_own();
        }
    }

    #[cold]
    fn sweep_own(&self) {
        if mutation!("ldu-sweep") {
            // SAFETY: this is unsound on purpose, as the mutation of a test: another thread may
            // have the lock.
            return unsafe { self.shared.alone(|inner| self.drain_own(inner)) };
        }
        if self.shared.try_with(|inner| self.drain_own(inner)).is_none() {
            // The owner of the lock may have been preempted, while all others log more for it to
            // apply: it gets this CPU.
            hint::yield_now();
        }
    }

    /// What has been done so far.
    pub fn statistics(&self) -> Statistics {
        self.shared.with(|inner| inner.statistics)
    }
}

/// Empties the queue of a structure that has panicked at its end, so that no entry stays behind in
/// a shared table. Items without an owner are dropped.
struct Discard<'q, Q: Queue, T>(&'q Q, PhantomData<T>);

impl<Q: Queue, T> Target for Discard<'_, Q, T> {
    fn apply(&mut self, _: Operation, _: NonNull<Node>) {}

    fn release(&mut self, node: NonNull<Node>) {
        // SAFETY: `Absent::new` has made the object by a box; the owner has retired its node, and
        // this was its last entry: no thread has it any more.
        drop(unsafe { Box::from_raw(Object::<T>::of(node).as_ptr()) });
    }
}

impl<Q: Queue, T> Drop for Discard<'_, Q, T> {
    fn drop(&mut self) {
        // SAFETY: `Deferred::drop` has made this, and owns the structure: no other thread drains
        // its queue.
        unsafe { drain(self.0, self) };
    }
}

impl<S: Structure<T>, T, Q: Queue, L> Drop for Deferred<S, T, Q, L> {
    /// Applies the log. If the structure or an item panics, the rest is dropped without being
    /// applied.
    fn drop(&mut self) {
        let discard = Discard(&self.queue, PhantomData::<T>);
        // SAFETY: `&mut self`: no owner of an item, and no reader, is left.
        unsafe {
            self.shared.alone(|inner| {
                drain(discard.0, &mut Applier { inner, _items: PhantomData });
            });
        }
        forget(discard);
    }
}

impl<S: Structure<T> + Default, T, Q: Queue + Default, L: RawLock> Default
    for Deferred<S, T, Q, L>
{
    fn default() -> Self {
        Self::with_queue(S::default(), Q::default())
    }
}

opaque! { [S: Structure<T>, T, Q: Queue, L] Deferred<S, T, Q, L>, "Deferred"; }
