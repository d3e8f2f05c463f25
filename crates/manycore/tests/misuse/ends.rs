//! Ends of threads: destructors of thread-local values that use the library, before and after the
//! library's own data about the thread is gone; and handles that are such values.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, LazyLock};
use std::thread;

use manycore::collections::hash::{MvrluGrowingTable, RcuTable, RluTable};
use manycore::collections::interval::{CombinedTrees, HarrisLists, LoggedTrees, tabled};
use manycore::collections::list::{HarrisList, LazyList, MvrluList, RcuList};
use manycore::collections::queue::{OrderedQueue, TakeAll};
use manycore::collections::space::{BTreeMap, HashMap};
use manycore::collections::stack::{OrderedStack, TreiberStack};
use manycore::collections::tree::{MvrluTree, RcuTree};
use manycore::ldu::{Deferred, Item, PerCore, Structure};
use manycore::lock::{self, Adaptive};
use manycore::reclaim::{self, Config, Qsbr};
use manycore::{ConcurrentSet, Interval, ReverseMap, SetHandle};

thread_local! {
    /// What the thread does when this ends.
    static LATE: Late = const { Late(Cell::new(None)) };
    /// What ends with the thread.
    static KEPT: RefCell<Vec<Box<dyn std::any::Any>>> = const { RefCell::new(Vec::new()) };
}

struct Late(Cell<Option<fn()>>);

impl Drop for Late {
    fn drop(&mut self) {
        let use_it = self.0.take().expect("set by `uses`");
        use_it();
    }
}

/// Threads that use something when they end: only then, or also before, and with either of the two
/// thread-local values first. Destructors run in the order in which the values were first used, or
/// in the opposite order.
fn uses(use_it: fn()) {
    for round in 0..crate::ROUNDS / 20 + 4 {
        let thread = thread::spawn(move || {
            let late = || LATE.with(|late| late.0.set(Some(use_it)));
            match round % 4 {
                0 => late(),
                1 => {
                    use_it();
                    late();
                }
                2 => {
                    late();
                    use_it();
                }
                _ => {
                    late();
                    crate::quietly(|| {
                        let panics = || {
                            use_it();
                            panic!("in the middle of it")
                        };
                        assert!(catch_unwind(AssertUnwindSafe(panics)).is_err());
                    });
                }
            }
        });
        thread.join().expect("its end does not panic");
    }
}

/// A set that every thread may use. Each thread uses keys of its own.
fn set<S: ConcurrentSet<u64>>(set: &S) {
    let mut handle = set.handle();
    let key = manycore::sync::thread::id().into();
    handle.remove(&key);
    assert!(handle.insert(key) && handle.contains(&key) && handle.remove(&key));
}

macro_rules! sets {
    ($($name:ident: $type:ty = $new:expr;)*) => {$(
        #[test]
        fn $name() {
            static SET: LazyLock<$type> = LazyLock::new(|| $new);
            uses(|| set(&*SET));
            // A handle that ends with the thread, after the thread has used it.
            uses(|| {
                let mut handle = SET.handle();
                let _ = handle.contains(&7);
                _ = KEPT.try_with(|kept| kept.borrow_mut().push(Box::new(handle)));
            });
        }
    )*};
}

sets! {
    list_rcu: RcuList<u64, (), Adaptive> = RcuList::default();
    list_quiescent: RcuList<u64, (), Adaptive, Qsbr> = RcuList::default();
    list_lazy: LazyList<u64, Adaptive> = LazyList::default();
    list_harris: HarrisList<u64> = HarrisList::default();
    list_mvrlu: MvrluList<u64, ()> = MvrluList::default();
    table_rcu: RcuTable<u64, (), Adaptive> = RcuTable::new(8, Config::default());
    table_rlu: RluTable<u64, ()> = RluTable::new(8);
    table_growing: MvrluGrowingTable<u64, ()> = MvrluGrowingTable::default();
    tree_rcu: RcuTree<u64, Adaptive> = RcuTree::default();
    tree_space: BTreeMap<u64, ()> = BTreeMap::default();
    table_space: HashMap<u64, ()> = HashMap::default();
    tree_mvrlu: MvrluTree<u64, ()> = MvrluTree::default();
}

#[test]
fn queues_and_stacks() {
    static QUEUE: LazyLock<OrderedQueue<Box<u64>>> = LazyLock::new(OrderedQueue::default);
    static STACK: LazyLock<OrderedStack<Box<u64>>> = LazyLock::new(OrderedStack::default);
    static TREIBER: LazyLock<TreiberStack<Box<u64>>> = LazyLock::new(TreiberStack::default);
    static ALL: LazyLock<TakeAll<Box<u64>>> = LazyLock::new(TakeAll::default);
    uses(|| {
        QUEUE.handle().push(Box::new(1));
        STACK.handle().push(Box::new(1));
        TREIBER.handle().push(Box::new(1));
        ALL.push(Box::new(1));
        let one = (QUEUE.pop(), STACK.pop(), TREIBER.handle().pop(), ALL.take().next());
        assert!(one.0.is_some() && one.1.is_some() && one.2.is_some() && one.3.is_some());
        let mut handle = QUEUE.handle();
        handle.push(Box::new(2));
        _ = QUEUE.pop();
        _ = KEPT.try_with(|kept| kept.borrow_mut().push(Box::new(handle)));
    });
}

#[test]
fn intervals() {
    fn trees<M: ReverseMap>(map: &'static M) {
        let one = map.insert(map.interval(0, Interval { first: 1, order: 0, last: 2 }));
        let mut found = 0;
        map.overlaps(0, 0, 9, &mut |_| found += 1);
        assert!(found > 0);
        drop(one);
    }
    static LISTS: LazyLock<HarrisLists> = LazyLock::new(|| HarrisLists::new(1));
    static LOGGED: LazyLock<LoggedTrees> = LazyLock::new(|| LoggedTrees::new(1));
    static COMBINED: LazyLock<CombinedTrees> = LazyLock::new(|| CombinedTrees::new(1));
    static TABLED: LazyLock<manycore::collections::interval::TabledTrees> =
        LazyLock::new(|| tabled(1));
    uses(|| trees(&*LISTS));
    uses(|| trees(&*LOGGED));
    uses(|| trees(&*COMBINED));
    uses(|| trees(&*TABLED));
}

#[derive(Default)]
struct Count(u64);

impl Structure<Arc<u64>> for Count {
    fn insert(&mut self, _: Item<'_, Arc<u64>>) {
        self.0 += 1;
    }

    fn remove(&mut self, _: Item<'_, Arc<u64>>) {
        self.0 -= 1;
    }
}

/// Items that end with the thread that owns them.
#[test]
fn items_of_structures() {
    static COUNT: LazyLock<Deferred<Count, Arc<u64>, PerCore>> = LazyLock::new(Deferred::default);
    uses(|| {
        let present = COUNT.item(Arc::new(1)).insert();
        assert!(COUNT.read(|count| count.0) > 0);
        let absent = COUNT.item(Arc::new(2));
        _ = KEPT.try_with(|kept| kept.borrow_mut().push(Box::new((present, absent))));
    });
    assert_eq!(COUNT.read(|count| count.0), 0);
}

#[test]
fn the_process_domain() {
    uses(|| {
        reclaim::section(|guard| guard.defer(|| ()));
        let said = catch_unwind(|| reclaim::section(|_| std::panic::resume_unwind(Box::new(()))));
        assert!(said.is_err() && !reclaim::is_pinned());
        reclaim::section(|_| reclaim::section(|guard| guard.defer(|| reclaim::section(|_| ()))));
    });
    reclaim::synchronize();
}

macro_rules! locks {
    ($kind:ident, $acquire:ident: $($lock:ident),* $(,)?) => {$(
        #[test]
        #[allow(non_snake_case, reason = "named as the lock")]
        fn $lock() {
            static LOCK: lock_api::$kind<lock::$lock, u64> = lock_api::$kind::new(0);
            uses(|| {
                _ = KEPT.try_with(|kept| kept.borrow_mut().clear());
                *LOCK.$acquire() += 1;
                // Released by the end of the thread.
                let guard = LOCK.$acquire();
                _ = KEPT.try_with(|kept| kept.borrow_mut().push(Box::new(guard)));
            });
            assert!(*LOCK.$acquire() > 0);
        }
    )*};
}

mod mutex {
    use super::*;
    macro_rules! mutexes {
        ($($lock:ident),* $(,)?) => { locks!(Mutex, lock: $($lock),*); };
    }
    manycore::for_each_lock!(mutexes);
}

mod rw_lock {
    use super::*;
    macro_rules! rw_locks {
        ($($lock:ident),* $(,)?) => { locks!(RwLock, write: $($lock),*); };
    }
    manycore::for_each_rw_lock!(rw_locks);
}
