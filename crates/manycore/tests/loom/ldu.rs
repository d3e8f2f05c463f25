//! Deferred update: each object is in the structure alternately, the last update wins, and no
//! thread touches freed objects.

use std::ptr::NonNull;
use std::sync::Arc;

use loom::cell::UnsafeCell;
use loom::sync::Mutex;
use loom::sync::atomic::AtomicBool;
use loom::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use loom::thread;
use manycore::ldu::{
    Deferred, Global, Item, Node, Operation, PerCore, Queue, Rooted, Structure, Table, Target,
    drain,
};
use manycore::{RawLock, lock};

use crate::check;

/// An object with data that its owner writes before it inserts the object, and reads before it
/// retires it.
#[repr(C)]
struct Object {
    node: Node,
    value: UnsafeCell<u32>,
}

impl Object {
    fn new() -> Box<Self> {
        Box::new(Self { node: Node::new(), value: UnsafeCell::new(0) })
    }
}

/// Where an object is, and its structure's queue and state.
#[derive(Clone, Copy)]
struct Owned(NonNull<Object>);

// SAFETY: a test passes an object on to one owner at a time.
unsafe impl Send for Owned {}

impl Owned {
    fn log<Q: Queue>(self, operation: Operation, queue: &Q) {
        // SAFETY: the tests' owners alternate, and end before their objects.
        unsafe { Node::log(self.0.cast(), operation, queue) };
    }
}

/// The items in the structure, and those that were released.
#[derive(Default)]
struct Books {
    present: Vec<NonNull<Node>>,
    released: u32,
}

impl Target for Books {
    fn apply(&mut self, operation: Operation, node: NonNull<Node>) {
        // SAFETY: written before it was inserted, and not meanwhile: the model fails otherwise.
        let value = unsafe { node.cast::<Object>().as_ref() }.value.with(|value| unsafe { *value });
        assert_eq!(value, 1, "the object is not what it was prepared to be");
        let place = self.present.iter().position(|present| *present == node);
        match (operation, place) {
            (Operation::Insert, None) => self.present.push(node),
            (Operation::Remove, Some(place)) => drop(self.present.remove(place)),
            _ => panic!("{operation:?} twice in a row"),
        }
    }

    fn release(&mut self, node: NonNull<Node>) {
        assert!(!self.present.contains(&node), "released while it is in the structure");
        // SAFETY: no other thread reads it any more: the model fails otherwise.
        unsafe { node.cast::<Object>().as_ref() }.value.with_mut(|value| unsafe { *value = 2 });
        self.released += 1;
    }
}

/// A structure under a lock, and its queue.
struct Shared<Q> {
    queue: Q,
    books: Mutex<Books>,
}

// SAFETY: the books are the lock's, and the nodes in them are only compared.
unsafe impl<Q: Sync> Sync for Shared<Q> {}
// SAFETY: the books are the lock's, and the nodes in them are only compared.
unsafe impl<Q: Send> Send for Shared<Q> {}

impl<Q: Queue> Shared<Q> {
    fn new(queue: Q) -> Arc<Self> {
        Arc::new(Self { queue, books: Mutex::new(Books::default()) })
    }

    fn drain(&self) {
        let mut books = self.books.lock().unwrap();
        // SAFETY: the lock is held, under which alone a thread drains the queue.
        unsafe { drain(&self.queue, &mut *books) };
    }
}

use Operation::{Insert, Remove};

/// An owner goes through this history, and others drain meanwhile.
fn history<Q: Queue + Send + Sync + 'static>(queue: Q, history: &'static [Operation]) {
    let shared = Shared::new(queue);
    let object = Object::new();
    let owned = Owned(NonNull::from(&*object));
    // SAFETY: the object is new, and no other thread has it yet.
    object.value.with_mut(|value| unsafe { *value = 1 });
    let of_owner = shared.clone();
    let owner = thread::spawn(move || {
        let owned = owned;
        history.iter().for_each(|operation| owned.log(*operation, &of_owner.queue));
    });
    shared.drain();
    shared.drain();
    owner.join().unwrap();
    shared.drain();
    let books = shared.books.lock().unwrap();
    assert_eq!(!books.present.is_empty(), history.last() == Some(&Insert), "an update is lost");
}

#[test]
fn insert_and_remove() {
    check(3, || history(Global::new(), &[Insert, Remove, Insert]));
    check(2, || history(Global::new(), &[Insert, Remove, Insert, Remove]));
}

#[test]
fn with_other_queues() {
    check(2, || history(PerCore::new(), &[Insert, Remove, Insert]));
    check(2, || history(Rooted::new(Arc::new(Table::new(1))), &[Insert, Remove, Insert]));
}

#[test]
fn an_object_is_released_after_its_owner() {
    for operations in [&[][..], &[Insert, Remove]] {
        check(3, move || {
            let shared = Shared::new(Global::new());
            let object = Object::new();
            let owned = Owned(NonNull::from(&*object));
            let of_owner = shared.clone();
            let owner = thread::spawn(move || {
                // SAFETY: the object is freed at the end of the model.
                let this = unsafe { { owned }.0.as_ref() };
                // SAFETY: the object is new, and no other thread has it yet.
                this.value.with_mut(|value| unsafe { *value = 1 });
                operations.iter().for_each(|operation| owned.log(*operation, &of_owner.queue));
                // SAFETY: the object is retired only below, so that this owner may read it.
                assert_eq!(this.value.with(|value| unsafe { *value }), 1);
                // SAFETY: the object is absent by now, and its owner does not touch it any more.
                unsafe { Node::retire(owned.0.cast(), &of_owner.queue) };
            });
            shared.drain();
            owner.join().unwrap();
            shared.drain();
            assert_eq!(shared.books.lock().unwrap().released, 1);
        });
    }
}

#[test]
fn push_against_take() {
    check(3, || {
        let shared = Shared::new(Global::new());
        let objects = [Object::new(), Object::new()];
        let push = |shared: &Shared<Global>, owned: Owned| {
            // SAFETY: it lives to the end of the model, and no other thread has it yet.
            unsafe { owned.0.as_ref() }.value.with_mut(|value| unsafe { *value = 1 });
            owned.log(Insert, &shared.queue);
        };
        let [first, second] = [0, 1].map(|index: usize| Owned(NonNull::from(&*objects[index])));
        let of_pusher = shared.clone();
        let pusher = thread::spawn(move || push(&of_pusher, first));
        let of_drainer = shared.clone();
        let drainer = thread::spawn(move || of_drainer.drain());
        push(&shared, second);
        pusher.join().unwrap();
        drainer.join().unwrap();
        shared.drain();
        assert_eq!(shared.books.lock().unwrap().present.len(), 2, "an entry is lost");
    });
}

/// Two structures compete for one slot of a table. Entries that leave the slot are found by their
/// own structure.
#[test]
fn what_is_driven_out_is_found() {
    check(3, || {
        loom_cpu(0);
        let table = Arc::new(Table::new(1));
        let [one, other] = [(); 2].map(|()| Shared::new(Rooted::new(table.clone())));
        let objects = [Object::new(), Object::new()];
        let [first, second] = [0, 1].map(|index: usize| Owned(NonNull::from(&*objects[index])));
        for object in &objects {
            // SAFETY: the object is new, and no other thread has it yet.
            object.value.with_mut(|value| unsafe { *value = 1 });
        }
        first.log(Insert, &one.queue);
        let of_rival = other.clone();
        let rival = thread::spawn(move || {
            loom_cpu(0);
            { second }.log(Insert, &of_rival.queue);
        });
        one.drain();
        assert_eq!(one.books.lock().unwrap().present.len(), 1, "driven out, and not found");
        rival.join().unwrap();
        other.drain();
        assert_eq!(other.books.lock().unwrap().present.len(), 1);
    });
}

/// All on one core.
fn loom_cpu(cpu: u32) {
    manycore::sync::cpu::run_on(cpu);
}

/// A structure that counts.
#[derive(Default)]
struct Count(u32);

impl Structure<()> for Count {
    fn insert(&mut self, _: Item<'_, ()>) {
        self.0 += 1;
    }

    fn remove(&mut self, _: Item<'_, ()>) {
        self.0 -= 1;
    }
}

/// Data that the owner changes, and that a reader without the item reads.
struct Page(UnsafeCell<u32>);

// SAFETY: the model fails if two are at it at a time.
unsafe impl Sync for Page {}
// SAFETY: the model fails if two are at it at a time, in whatever threads.
unsafe impl Send for Page {}

/// A reader that has missed an insertion reads data that the owner changes after it has waited for
/// such readers.
#[test]
fn owners_wait_for_reads() {
    check(3, || {
        let count = Arc::new(Deferred::<Count, (), Global, lock::Futex>::default());
        let page = Arc::new(Page(UnsafeCell::new(0)));
        let (of_reader, page_of_reader) = (count.clone(), page.clone());
        let reader = thread::spawn(move || {
            of_reader.read(|count| {
                if count.0 == 0 {
                    // SAFETY: the page is in the structure, and its owner waits until this read is
                    // over.
                    page_of_reader.0.with(|page| unsafe { *page });
                }
            });
        });
        count.item(()).insert().keep();
        count.wait_for_reads();
        // SAFETY: who looks at it without knowing the item has ended.
        page.0.with_mut(|page| unsafe { *page = 1 });
        reader.join().unwrap();
        assert_eq!(count.read(|count| count.0), 1);
    });
}

/// A lock that must be free whenever a thread tries it.
struct Free(AtomicBool);

// SAFETY: one compare-and-swap at a time succeeds.
unsafe impl RawLock for Free {
    type Node = ();

    fn new() -> Self {
        Self(AtomicBool::new(false))
    }

    unsafe fn lock(&self, node: &mut ()) {
        // SAFETY: the node is `()`, of which the lock keeps nothing.
        assert!(unsafe { self.try_lock(node) }, "the model reads when no other thread is there");
    }

    unsafe fn try_lock(&self, (): &mut ()) -> bool {
        assert!(!self.0.load(Relaxed), "somebody else is at it, or was and does not say so");
        self.0.compare_exchange(false, true, Acquire, Relaxed).is_ok()
    }

    unsafe fn unlock(&self, (): &mut ()) {
        self.0.store(false, Release);
    }
}

/// A thread that finds a structure due for draining finds its lock free: no other thread is about
/// to drain it.
#[test]
fn one_is_at_it_when_it_is_due() {
    check(3, || {
        let count = Arc::new(Deferred::<Count, (), Global, Free>::default());
        count.item(()).insert().keep();
        let shared = count.clone();
        let other = thread::spawn(move || u64::from(shared.synchronize_if_due(0)));
        let drains = u64::from(count.synchronize_if_due(0)) + other.join().unwrap();
        assert!(drains > 0, "both leave it to the other");
        let statistics = count.statistics();
        assert_eq!((statistics.drains, statistics.applied), (drains, 1));
    });
}

/// A structure that looks at its items.
#[derive(Default)]
struct Pages(u32);

impl Pages {
    fn look(item: &Item<'_, Page>) {
        // SAFETY: no thread writes it before its end: the model fails otherwise.
        item.0.with(|page| unsafe { *page });
    }
}

impl Structure<Page> for Pages {
    fn insert(&mut self, item: Item<'_, Page>) {
        Self::look(&item);
        self.0 += 1;
    }

    fn remove(&mut self, item: Item<'_, Page>) {
        Self::look(&item);
        self.0 -= 1;
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        // SAFETY: the last owner drops the page, so that no other thread has it.
        self.0.with_mut(|page| unsafe { *page += 1 });
    }
}

/// A thread that drops an item drains its core's list. That also holds if other threads have left
/// entries there, or if an object has an entry in each of two lists.
fn sweeps<Q: Queue + Send + Sync + 'static>(queue: fn() -> Q) {
    check(2, move || {
        let set = Deferred::<Pages, Page, Q, lock::Futex>::with_queue(Pages::default(), queue());
        let (set, page) = (Arc::new(set), || Page(UnsafeCell::new(0)));
        let shared = set.clone();
        let other = thread::spawn(move || {
            loom_cpu(0);
            let item = shared.item(page()).insert();
            loom_cpu(1);
            drop(item);
        });
        loom_cpu(0);
        drop(set.item(page()).insert());
        other.join().unwrap();
        assert_eq!(set.read(|pages| pages.0), 0);
        assert_eq!(set.statistics().released, 2);
    });
}

#[test]
fn who_drops_sweeps_a_core() {
    sweeps(PerCore::new);
}

#[test]
fn who_drops_sweeps_a_place() {
    sweeps(|| Rooted::new(Arc::new(Table::new(1))));
}

/// Where reads are frequent an item is inserted and removed inline, and freed then, unless another
/// thread has the lock: then it is logged.
#[test]
fn an_update_is_applied_at_once_or_logged() {
    check(3, || {
        let set = Deferred::<Pages, Page, Global, lock::Futex>::default().eager_below(u64::MAX);
        let set = Arc::new(set);
        let shared = set.clone();
        let other = thread::spawn(move || {
            let item = shared.item(Page(UnsafeCell::new(0))).insert();
            assert_eq!(shared.read(|pages| pages.0), 1);
            drop(item);
        });
        set.read(|pages| assert!(pages.0 <= 1));
        other.join().unwrap();
        assert_eq!(set.read(|pages| pages.0), 0);
        let statistics = set.statistics();
        assert_eq!(statistics.at_once + statistics.applied, 2);
    });
}

/// An item that is removed inline is freed immediately, unless one of its entries is still in the
/// queue, or with the thread that drains the queue.
#[test]
fn who_frees_an_item_comes_after_who_drains() {
    check(3, || {
        type Set = Deferred<Pages, Page, Global, lock::Futex>;
        let set = Arc::new(Set::default().eager_below(u64::MAX));
        // SAFETY: the thread that has it ends before this.
        let shared: &'static Set = unsafe { &*Arc::as_ptr(&set) };
        // A thread that reads has the lock, so that these two are logged; they cancel, and an entry
        // is left.
        let item = shared.item(Page(UnsafeCell::new(0)));
        let item = shared.read(|_| item.insert().remove());
        let other = thread::spawn(move || drop(item.insert()));
        set.synchronize();
        other.join().unwrap();
        assert_eq!(set.read(|pages| pages.0), 0);
    });
}
