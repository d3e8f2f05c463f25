//! Structures of the program's own.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use timestone::device::Simulated;
use timestone::{Durability, Error, Isolation, Ptr, ReadOnly, Session, Snapshot, Stop, Store};
use zerocopy::{FromBytes, Immutable, IntoBytes};

use crate::store::{open, options};

/// A node of a tree that is not balanced.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
struct Node {
    key: u32,
    count: u32,
    left: Ptr<Node>,
    right: Ptr<Node>,
}

type Root = Ptr<Ptr<Node>>;

/// Counts a key.
fn add(tx: &mut timestone::Transaction<'_, '_>, root: Root, key: u32) -> Result<(), Stop> {
    let (mut place, mut parent) = (*tx.deref(root), None);
    while !place.is_null() {
        let node = *tx.deref(place);
        if node.key == key {
            tx.lock(place)?.count += 1;
            return Ok(());
        }
        parent = Some((place, key < node.key));
        place = if key < node.key { node.left } else { node.right };
    }
    let new = tx.alloc(Node { key, count: 1, left: Ptr::NULL, right: Ptr::NULL })?;
    match parent {
        None => *tx.lock(root)? = new,
        Some((parent, true)) => tx.lock(parent)?.left = new,
        Some((parent, false)) => tx.lock(parent)?.right = new,
    }
    Ok(())
}

fn counts(session: &impl Session, root: Root) -> Vec<(u32, u32)> {
    fn visit(session: &impl Session, at: Ptr<Node>, into: &mut Vec<(u32, u32)>) {
        if !at.is_null() {
            let node = *session.deref(at);
            visit(session, node.left, into);
            into.push((node.key, node.count));
            visit(session, node.right, into);
        }
    }
    let mut all = Vec::new();
    visit(session, *session.deref(root), &mut all);
    all
}

#[test]
fn a_tree_of_the_programs_own_is_as_threads_have_left_it_after_a_crash() {
    let disk = Simulated::new();
    let store = open(&disk);
    let root: Root = store.root("tree").unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let store = &store;
            scope.spawn(move || {
                let mut me = store.register().unwrap();
                let mut rng = fastrand::Rng::with_seed(thread);
                for _ in 0..500 {
                    let key = rng.u32(..100);
                    me.run_with(Durability::EVENTUAL, |tx| add(tx, root, key)).unwrap();
                }
            });
        }
    });
    store.sync().unwrap();
    let before = store.register().unwrap().read(|now| counts(now, root));
    assert_eq!(before.iter().map(|(_, count)| count).sum::<u32>(), 2000);
    let again = open(&disk.survivor());
    let root: Root = again.root("tree").unwrap();
    assert_eq!(again.register().unwrap().read(|now| counts(now, root)), before);
    let read = ReadOnly::open_on(Arc::new(disk.survivor()), options()).unwrap();
    assert_eq!(counts(&read, read.root("tree").unwrap()), before);
}

#[test]
fn what_was_freed_is_used_again_and_old_snapshots_have_it() {
    let store = open(&Simulated::new());
    let root: Root = store.root("node").unwrap();
    let (mut me, mut other) = (store.register().unwrap(), store.register().unwrap());
    let mut places = std::collections::HashSet::new();
    for key in 0..10_000 {
        me.run_with(Durability::EVENTUAL, |tx| {
            let old = *tx.deref(root);
            let new = tx.alloc(Node { key, count: 0, left: Ptr::NULL, right: Ptr::NULL })?;
            *tx.lock(root)? = new;
            if !old.is_null() {
                // SAFETY: no object leads to it any more, and the program forgets it.
                unsafe { tx.free(old) }?;
            }
            Ok(())
        })
        .unwrap();
        places.insert(me.read(|now| *now.deref(root)));
        if key % 1000 == 7 {
            store.sync().unwrap();
            let seen = other.read(|now| now.deref(*now.deref(root)).key);
            assert_eq!(seen, key);
        }
    }
    assert!(places.len() < 6000, "{} places", places.len());
}

/// What a look says that leads nowhere.
fn refusal<R>(look: impl FnOnce(&Snapshot<'_, '_>) -> R) -> String {
    let store = open(&Simulated::new());
    let mut me = store.register().unwrap();
    let panic = catch_unwind(AssertUnwindSafe(|| me.read(|now| _ = look(now)))).unwrap_err();
    panic.downcast_ref::<String>().unwrap().clone()
}

#[test]
fn pointers_that_lead_to_no_object_are_refused() {
    let said = refusal(|now| now.deref(Ptr::<Node>::NULL).key);
    assert!(said.contains("Ptr(0) leads to no object of 24 bytes"), "{said}");
    for place in [1, 63, 65, 1 << 20, 1 << 40, u64::MAX] {
        let ptr = Ptr::<Node>::read_from_bytes(place.as_bytes()).unwrap();
        refusal(|now| now.deref(ptr).key);
    }
    let store = open(&Simulated::new());
    let root: Root = store.root("node").unwrap();
    let mut me = store.register().unwrap();
    let large = Ptr::<[u64; 100]>::read_from_bytes(root.as_bytes()).unwrap();
    let another_size = catch_unwind(AssertUnwindSafe(|| me.read(|now| now.deref(large)[0])));
    assert!(another_size.is_err(), "an object has its size");
    assert!(matches!(store.root::<u64>("node"), Err(Error::Schema { .. })));
}

#[test]
fn a_place_that_is_free_is_no_object() {
    let store = open(&Simulated::new());
    let root: Root = store.root("node").unwrap();
    let mut me = store.register().unwrap();
    let made = me.run(|tx| {
        tx.lock(root)?;
        let node = Node { key: 1, count: 0, left: Ptr::NULL, right: Ptr::NULL };
        (0..100).map(|_| tx.alloc(node)).collect::<Result<Vec<_>, _>>()
    });
    let made = made.unwrap();
    me.run(|tx| {
        // SAFETY: no object leads to them. When they are free, and not reused, the store refuses
        // the program's later uses of them.
        made.iter().try_for_each(|ptr| unsafe { tx.free(*ptr) })
    })
    .unwrap();
    // Old versions go with those that come.
    for _ in 0..100 {
        for _ in 0..1000 {
            me.run_with(Durability::EVENTUAL, |tx| tx.lock(root).map(|_| ())).unwrap();
        }
        store.sync().unwrap();
        let look = || me.read(|now| now.deref(made[50]).key);
        if catch_unwind(AssertUnwindSafe(look)).is_err() {
            return;
        }
    }
    panic!("the place of an object that has ended is still one");
}

#[test]
fn two_that_lock_what_they_read_do_not_both_commit() {
    let store = open(&Simulated::new());
    let (a, b) = (store.root::<u64>("a").unwrap(), store.root::<u64>("b").unwrap());
    let (mut me, mut other) = (store.register().unwrap(), store.register().unwrap());
    for isolation in [Isolation::Snapshot, Isolation::Serializable] {
        let mut attempts = 0;
        let run = me.run_with(isolation, |tx| {
            attempts += 1;
            let seen = *tx.deref(b);
            if attempts == 1 {
                other.run(|tx| tx.lock(b).map(|b| *b += 1)).unwrap();
            }
            *tx.lock(a)? = seen;
            if isolation == Isolation::Snapshot {
                tx.lock_const(b)?;
            }
            Ok(())
        });
        run.unwrap();
        assert_eq!(attempts, 2, "{isolation:?}");
    }
}

#[test]
fn the_largest_object_is_kept() {
    let disk = Simulated::new();
    let store = Store::open_on(Arc::new(disk.clone()), options()).unwrap();
    let root: Ptr<[u8; 8184]> = store.root("large").unwrap();
    let mut me = store.register().unwrap();
    me.run(|tx| tx.lock(root).map(|bytes| bytes[8183] = 7)).unwrap();
    let again = open(&disk.survivor());
    let root: Ptr<[u8; 8184]> = again.root("large").unwrap();
    assert_eq!(again.register().unwrap().read(|now| now.deref(root)[8183]), 7);
}
