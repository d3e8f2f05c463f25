//! Queues and stacks instead of trees: threads add, and a few take much out at a time.

use manycore_traits::Interval;

use super::any_map::{AnyMap, Handle};

/// The number of items that an operation takes which does not update.
pub(super) const BATCH: usize = 64;

/// A queue or a stack.
pub(super) trait Bag: Default + Send + Sync {
    /// A thread's access.
    type Handle<'a>
    where
        Self: 'a;

    /// The calling thread's access.
    fn handle(&self) -> Self::Handle<'_>;

    /// Adds an item.
    fn push(handle: &mut Self::Handle<'_>, item: Interval);

    /// Takes back the thread's last item, or otherwise takes any item.
    fn take_back(handle: &mut Self::Handle<'_>);

    /// Takes some items: up to [`BATCH`], or all if the structure can only take all.
    fn take(&self, found: &mut dyn FnMut(Interval));
}

/// The stacks or queues of one run, by number.
pub(super) struct Bags<P>(Vec<P>);

impl<P: Bag> Bags<P> {
    pub fn new(count: usize) -> Self {
        Self((0..count).map(|_| P::default()).collect())
    }
}

impl<P: Bag> AnyMap for Bags<P> {
    fn trees(&self) -> usize {
        self.0.len()
    }

    fn handle(&self, _: usize, reuse: bool) -> Box<dyn Handle + '_> {
        let access = |bag| Access { handle: P::handle(bag), has_added: false };
        Box::new(Own::<P> { bags: self.0.iter().map(access).collect(), reuse })
    }

    fn overlaps(&self, bag: usize, _: u64, found: &mut (dyn FnMut(Interval) + Send)) {
        self.0[bag].take(found);
    }

    fn count(&self, _: usize) -> Option<usize> {
        None
    }

    fn tend(&self, _: usize, _: u64) {}

    fn put_off_max(&self) -> u64 {
        0
    }

    fn statistics(&self, _: &mut dyn FnMut(&'static str, u64)) {}
}

/// A thread's access to all of them.
struct Own<'a, P: Bag + 'a> {
    bags: Vec<Access<'a, P>>,
    reuse: bool,
}

struct Access<'a, P: Bag + 'a> {
    handle: P::Handle<'a>,
    /// Whether the last operation added an item.
    has_added: bool,
}

impl<P: Bag> Handle for Own<'_, P> {
    fn update(&mut self, bag: usize, fresh: Interval) {
        let Access { handle, has_added } = &mut self.bags[bag];
        *has_added = !(*has_added && self.reuse);
        match *has_added {
            true => P::push(handle, fresh),
            false => P::take_back(handle),
        }
    }
}

impl Bag for crossbeam_queue::SegQueue<Interval> {
    type Handle<'a> = &'a Self;

    fn handle(&self) -> &Self {
        self
    }

    fn push(queue: &mut &Self, item: Interval) {
        crossbeam_queue::SegQueue::push(queue, item);
    }

    fn take_back(queue: &mut &Self) {
        std::hint::black_box(queue.pop());
    }

    fn take(&self, found: &mut dyn FnMut(Interval)) {
        (0..BATCH).map_while(|_| self.pop()).for_each(found);
    }
}

/// Defines the bags of one build of the library.
macro_rules! bags {
    ($library:ident) => {
        /// Queues and stacks.
        mod bag {
            use std::collections::VecDeque;

            use manycore_traits::{Interval, RawLock};
            use $library::clock::{Clock, Counter, Ordo, RelaxedClock};
            use $library::collections::queue::TakeAll;
            use $library::collections::stack::{TreiberHandle, TreiberStack};
            use $library::ldu::ordered::{self, Discipline, Newest, Oldest, Ordered};
            use $library::lock::Adaptive;
            use $library::sync::cell::UnsafeCell;

            use crate::rmap::any_map::AnyMap;
            use crate::rmap::bag_workload::{BATCH, Bag, Bags};

            impl<D: Discipline + 'static, C: Clock + Default> Bag for Ordered<Interval, D, C> {
                type Handle<'a>
                    = (&'a Self, ordered::Handle<'a, Interval, D, C, Adaptive>)
                where
                    Self: 'a;

                fn handle(&self) -> Self::Handle<'_> {
                    (self, self.handle())
                }

                fn push((_, handle): &mut Self::Handle<'_>, item: Interval) {
                    handle.push(item);
                }

                fn take_back((bag, handle): &mut Self::Handle<'_>) {
                    std::hint::black_box(handle.take_back().or_else(|| bag.pop()));
                }

                fn take(&self, found: &mut dyn FnMut(Interval)) {
                    struct Sink<'a>(&'a mut dyn FnMut(Interval));
                    impl Extend<Interval> for Sink<'_> {
                        fn extend<I: IntoIterator<Item = Interval>>(&mut self, items: I) {
                            items.into_iter().for_each(|item| (self.0)(item));
                        }
                    }
                    self.pop_into(BATCH, &mut Sink(found));
                }
            }

            impl Bag for TakeAll<Interval> {
                type Handle<'a> = &'a Self;

                fn handle(&self) -> &Self {
                    self
                }

                fn push(queue: &mut &Self, item: Interval) {
                    TakeAll::push(queue, item);
                }

                fn take_back(queue: &mut &Self) {
                    std::hint::black_box(TakeAll::take(queue).last());
                }

                fn take(&self, found: &mut dyn FnMut(Interval)) {
                    self.take().for_each(found);
                }
            }

            impl Bag for TreiberStack<Interval> {
                type Handle<'a> = TreiberHandle<'a, Interval>;

                fn handle(&self) -> Self::Handle<'_> {
                    self.handle()
                }

                fn push(handle: &mut Self::Handle<'_>, item: Interval) {
                    handle.push(item);
                }

                fn take_back(handle: &mut Self::Handle<'_>) {
                    std::hint::black_box(handle.pop());
                }

                fn take(&self, found: &mut dyn FnMut(Interval)) {
                    let mut handle = self.handle();
                    (0..BATCH).map_while(|_| handle.pop()).for_each(found);
                }
            }

            /// An item, in a cell so that the simulator charges for it.
            type Item = UnsafeCell<Interval>;

            /// A queue, or else a stack, under a lock.
            pub(super) struct Locked<L, const QUEUE: bool> {
                lock: L,
                items: UnsafeCell<VecDeque<Item>>,
            }

            // SAFETY: the items are with the thread that has the lock.
            unsafe impl<L: RawLock, const QUEUE: bool> Sync for Locked<L, QUEUE> {}

            impl<L: RawLock, const QUEUE: bool> Default for Locked<L, QUEUE> {
                fn default() -> Self {
                    Self { lock: L::new(), items: UnsafeCell::new(VecDeque::new()) }
                }
            }

            impl<L: RawLock, const QUEUE: bool> Locked<L, QUEUE> {
                fn with_lock(&self, does: impl FnOnce(&mut VecDeque<Item>)) {
                    let mut node = L::Node::default();
                    // SAFETY: the lock is held meanwhile, with a node that lives as long; the code
                    // in between does not panic.
                    unsafe {
                        self.lock.lock(&mut node);
                        self.items.with_mut(|items| does(&mut *items));
                        self.lock.unlock(&mut node);
                    }
                }

                fn pop(items: &mut VecDeque<Item>) -> Option<Interval> {
                    let next = if QUEUE { items.front() } else { items.back() };
                    // SAFETY: the lock is held, and no thread changes an item that is linked.
                    let item = next.map(|item| item.with(|item| unsafe { *item }));
                    let _ = if QUEUE { items.pop_front() } else { items.pop_back() };
                    item
                }
            }

            impl<L: RawLock, const QUEUE: bool> Bag for Locked<L, QUEUE> {
                type Handle<'a>
                    = &'a Self
                where
                    Self: 'a;

                fn handle(&self) -> &Self {
                    self
                }

                fn push(bag: &mut &Self, item: Interval) {
                    bag.with_lock(|items| {
                        items.push_back(Item::new(item));
                        items.back().expect("just put there").with_mut(|_| ());
                    });
                }

                fn take_back(bag: &mut &Self) {
                    bag.with_lock(|items| {
                        std::hint::black_box(items.pop_back());
                    });
                }

                fn take(&self, found: &mut dyn FnMut(Interval)) {
                    self.with_lock(|items| {
                        (0..BATCH).map_while(|_| Self::pop(items)).for_each(found);
                    });
                }
            }

            fn bags<P: Bag + 'static>(count: usize) -> Option<Box<dyn AnyMap>> {
                Some(Box::new(Bags::<P>::new(count)))
            }

            type Of<D, C> = Ordered<Interval, D, C>;

            /// The library's queues, and its stacks.
            pub(super) const QUEUES: &[&str] =
                &["ordered", "ordered-relaxed", "ordered-counter", "take-all"];
            pub(super) const STACKS: &[&str] =
                &["ordered", "ordered-relaxed", "ordered-counter", "treiber"];

            pub(super) fn queues(name: &str, count: usize) -> Option<Box<dyn AnyMap>> {
                match name {
                    "ordered" => bags::<Of<Oldest, Ordo>>(count),
                    "ordered-relaxed" => bags::<Of<Oldest, RelaxedClock<Ordo>>>(count),
                    "ordered-counter" => bags::<Of<Oldest, Counter>>(count),
                    "take-all" => bags::<TakeAll<Interval>>(count),
                    _ => None,
                }
            }

            pub(super) fn stacks(name: &str, count: usize) -> Option<Box<dyn AnyMap>> {
                match name {
                    "ordered" => bags::<Of<Newest, Ordo>>(count),
                    "ordered-relaxed" => bags::<Of<Newest, RelaxedClock<Ordo>>>(count),
                    "ordered-counter" => bags::<Of<Newest, Counter>>(count),
                    "treiber" => bags::<TreiberStack<Interval>>(count),
                    _ => None,
                }
            }
        }
    };
}
pub(super) use bags;
