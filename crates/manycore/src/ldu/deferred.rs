//! A structure whose updates are logged, and which is brought up to date when it is read.

use alloc::boxed::Box;
use core::marker::PhantomData;
use core::ptr::NonNull;

use super::item::{Absent, Object};
use super::node::{Node, Operation, Target};
use super::queue::{Drained, Global, Queue, drain, drain_own};
use crate::RawLock;
use crate::due::Due;
use crate::lock::{Adaptive, Guarded};
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::phase::{self, Phase};
use crate::sync::{CachePadded, full_fence, hint, mutation, order};

/// What can be updated by a log.
///
/// Updates of different items come in any order: what the structure is afterwards must not depend on it. An order that
/// matters, such as that of items which are equal otherwise, has to be part of the items. Updates of one item alternate
/// between the two, beginning with [`insert`](Self::insert).
pub trait Structure<T> {
    /// The item comes in.
    fn insert(&mut self, item: Item<'_, T>);

    /// The item leaves.
    fn remove(&mut self, item: Item<'_, T>);
}

/// An item that is about to come into a structure, or to leave it.
///
/// A structure may keep its [address](Self::pointer): from its insertion until its removal the item stays where it is,
/// and nobody has it mutably.
#[derive(Debug)]
pub struct Item<'a, T>(&'a T);

impl<T> Item<'_, T> {
    /// Where the item is, until it is removed.
    pub fn pointer(&self) -> NonNull<T> {
        NonNull::from(self.0)
    }
}

impl<T> core::ops::Deref for Item<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0
    }
}

/// What draining the log has done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// How often the log was drained.
    pub drains: u64,
    /// How often a core's part of it was, by who had dropped an item there.
    pub sweeps: u64,
    /// Entries that were found in it.
    pub entries: u64,
    /// Updates that were applied; the other entries stood for updates that had cancelled each other.
    pub applied: u64,
    /// Items that were given back to the allocator.
    pub released: u64,
    /// The most entries that one drain found: so long was the log.
    pub entries_max: u64,
}

impl Statistics {
    fn count(&mut self, Drained { entries, applied }: Drained) {
        self.entries += entries;
        self.applied += applied;
        self.entries_max = self.entries_max.max(entries);
    }

    /// Each number that adds up with its name: all but [`entries_max`](Self::entries_max).
    pub fn visit(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        visit("drains", self.drains);
        visit("sweeps", self.sweeps);
        visit("entries", self.entries);
        visit("applied", self.applied);
        visit("released", self.released);
    }
}

impl core::ops::Add for Statistics {
    type Output = Self;

    /// Of two structures together; the most entries of a drain are those of either.
    fn add(self, other: Self) -> Self {
        Self {
            drains: self.drains + other.drains,
            sweeps: self.sweeps + other.sweeps,
            entries: self.entries + other.entries,
            applied: self.applied + other.applied,
            released: self.released + other.released,
            entries_max: self.entries_max.max(other.entries_max),
        }
    }
}

/// A structure `S` of items `T`, of which updates are logged in a queue `Q`, under a lock `L`.
///
/// Whoever makes an item with [`item`](Self::item) owns it, and with it the state that it is in: [`Absent`] or
/// [`Present`](super::Present). So nobody can insert what is there already. Updates take no lock. A read acquires the lock,
/// applies the log, and then sees all updates that were done before it began.
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
/// What items refer to has to live for as long as that into which they are put off, for they are applied when it is next read:
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
    shared: CachePadded<Shared<S, L>>,
    /// When it was brought up to date by the timer.
    due: Due,
    /// Items go in and come out, so that it is invariant in their type.
    _items: PhantomData<fn(T) -> T>,
}

struct Shared<S, L> {
    guarded: Guarded<Inner<S>, L>,
    /// Whether somebody reads, and may not have seen what is logged now.
    reading: AtomicBool,
}

struct Inner<S> {
    structure: S,
    statistics: Statistics,
}

// SAFETY: the structure goes from thread to thread with the lock. Items are dropped by whoever drains, and looked at by
// their owners meanwhile.
unsafe impl<S, T, Q, L> Sync for Deferred<S, T, Q, L>
where
    S: Structure<T> + Send,
    T: Send + Sync,
    Q: Queue + Sync,
    L: RawLock,
{
}
// SAFETY: as above; one that is moved has no owners of items.
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
        // SAFETY: the node is that of an object, which is there until it is released.
        let item = Item(unsafe { &Object::<T>::of(node).as_ref().value });
        match operation {
            Operation::Insert => self.inner.structure.insert(item),
            Operation::Remove => self.inner.structure.remove(item),
        }
    }

    fn release(&mut self, node: NonNull<Node>) {
        self.inner.statistics.released += 1;
        // SAFETY: made by `Absent::new` of a box, and nobody else knows of it any more.
        drop(unsafe { Box::from_raw(Object::<T>::of(node).as_ptr()) });
    }
}

impl<S: Structure<T>, T> Deferred<S, T> {
    /// With one queue for all, and the usual lock.
    pub fn new(structure: S) -> Self {
        Self::with_queue(structure, Global::new())
    }
}

impl<S: Structure<T>, T, Q: Queue, L: RawLock> Deferred<S, T, Q, L> {
    /// With this queue, in which nothing is yet.
    pub fn with_queue(structure: S, queue: Q) -> Self {
        let inner = Inner { structure, statistics: Statistics::default() };
        let (guarded, reading) = (Guarded::new(inner), AtomicBool::new(false));
        Self {
            queue,
            shared: CachePadded(Shared { guarded, reading }),
            due: Due::new(),
            _items: PhantomData,
        }
    }

    /// A new item, which is not in the structure.
    pub fn item(&self, value: T) -> Absent<'_, S, T, Q, L> {
        Absent::new(self, value)
    }

    pub(super) fn queue(&self) -> &Q {
        &self.queue
    }

    /// Applies what is logged. The caller has the lock.
    fn drain(&self, inner: &mut Inner<S>) {
        // SAFETY: the lock is held, which all who drain this queue hold.
        let drained = phase::during(Phase::Log, || unsafe {
            drain(&self.queue, &mut Applier { inner, _items: PhantomData })
        });
        inner.statistics.drains += 1;
        inner.statistics.count(drained);
    }

    /// Applies what the calling core has logged. The caller has the lock.
    fn drain_own(&self, inner: &mut Inner<S>) {
        // SAFETY: as above.
        let drained = phase::during(Phase::Log, || unsafe {
            drain_own(&self.queue, &mut Applier { inner, _items: PhantomData })
        });
        inner.statistics.sweeps += 1;
        inner.statistics.count(drained);
    }

    /// Looks at the structure as it is after all updates that were done before. Nobody else looks meanwhile; updates go on,
    /// and are seen by the next who looks.
    ///
    /// # Panics
    ///
    /// If `look` or the structure does.
    pub fn read<R>(&self, look: impl FnOnce(&S) -> R) -> R {
        /// Says that the read has ended.
        struct Reading<'a>(&'a AtomicBool);
        impl Drop for Reading<'_> {
            fn drop(&mut self) {
                // Release: partner of the Acquire in `wait_for_reads`.
                self.0.store(false, order!(Release, "ldu-read-end"));
            }
        }
        self.shared.guarded.with(|inner| {
            let reading = &self.shared.reading;
            // Relaxed: the fence orders it before the looks at the queue.
            reading.store(true, Ordering::Relaxed);
            full_fence!("ldu-reading");
            let _reading = Reading(reading);
            self.drain(inner);
            look(&inner.structure)
        })
    }

    /// Waits until all reads have ended that may have missed an update which the caller has made. Reads that begin meanwhile
    /// see it.
    ///
    /// For an owner who is about to change something that readers find by way of the structure.
    pub fn wait_for_reads(&self) {
        full_fence!("ldu-look-for-reads");
        // Acquire: partner of the Release in `read`.
        if self.shared.reading.load(order!(Acquire, "ldu-no-reads")) {
            self.shared.guarded.with(|_| ());
        }
    }

    /// Applies what is logged.
    pub fn synchronize(&self) {
        self.shared.guarded.with(|inner| self.drain(inner));
    }

    /// The timer: applies what is logged if that was not tried by this function for so many ticks of
    /// [`clock::now`](crate::sync::clock::now), and no other thread is about to do it, unless somebody else has the lock. Says whether
    /// it did. Cheap enough to be called with every update.
    pub fn synchronize_if_due(&self, period: u64) -> bool {
        self.due
            .claim(period)
            .is_some_and(|_claim| self.shared.guarded.try_with(|inner| self.drain(inner)).is_some())
    }

    /// An item was dropped. If the calling core has logged much, and nobody else has the lock, this applies what that core has
    /// logged: what is dropped goes back to the allocator then, while it is in that core's cache.
    #[inline]
    pub(super) fn sweep(&self) {
        if self.queue.is_long() {
            self.sweep_own();
        }
    }

    #[cold]
    fn sweep_own(&self) {
        if mutation!("ldu-sweep") {
            // SAFETY: none: somebody else may have the lock.
            return unsafe { self.shared.guarded.alone(|inner| self.drain_own(inner)) };
        }
        if self.shared.guarded.try_with(|inner| self.drain_own(inner)).is_none() {
            // Who has it may have been preempted, while all others log more for it to apply: it gets this CPU.
            hint::yield_now();
        }
    }

    /// What has been done so far.
    pub fn statistics(&self) -> Statistics {
        self.shared.guarded.with(|inner| inner.statistics)
    }
}

impl<S: Structure<T>, T, Q: Queue, L> Drop for Deferred<S, T, Q, L> {
    fn drop(&mut self) {
        let queue = &self.queue;
        // SAFETY: nobody else has it any more.
        unsafe {
            self.shared.guarded.alone(|inner| {
                drain(queue, &mut Applier { inner, _items: PhantomData });
            });
        }
    }
}

impl<S: Structure<T> + Default, T, Q: Queue + Default, L: RawLock> Default
    for Deferred<S, T, Q, L>
{
    fn default() -> Self {
        Self::with_queue(S::default(), Q::default())
    }
}

impl<S: Structure<T>, T, Q: Queue, L> core::fmt::Debug for Deferred<S, T, Q, L> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Deferred").finish_non_exhaustive()
    }
}
