//! Operations on objects that they have just made, by the program's own pointers.

use std::sync::Arc;

use timestone::device::Simulated;
use timestone::{Blob, Error, Map, Operation, Operations, Ptr, Session, Stop, Store, Transaction};
use zerocopy::{FromBytes, Immutable, IntoBytes};

use crate::store::options;

/// An object of a size that no structure of the store has: there is no run of it before.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable)]
#[repr(C)]
struct Page {
    words: [u64; 40],
    next: Ptr<Page>,
}

/// Puts pages before the first one. Each is read, locked and changed before the operation ends, and
/// one more ends with it.
fn add_pages(tx: &mut Transaction<'_, '_>, count: &u64) -> Result<(), Stop> {
    let first: Ptr<Ptr<Page>> = tx.root("pages")?;
    let mut next = *tx.deref(first);
    for number in 0..*count {
        let before = if next.is_null() { 0 } else { tx.deref(next).words[0] };
        let page = tx.alloc(Page { words: [number + 1; 40], next })?;
        tx.lock_const(page)?;
        tx.lock(page)?.words[0] += before;
        next = page;
    }
    *tx.lock(first)? = next;
    let spare = tx.alloc(Page { words: [7; 40], next })?;
    // SAFETY: no object leads to this one, which the test has just made.
    unsafe { tx.free(spare) }
}

/// Writes a blob, stores the second half of its bytes as another, and frees the first.
fn add_blob(tx: &mut Transaction<'_, '_>, bytes: &u64) -> Result<(), Stop> {
    let map: Map<u64, Blob> = tx.map("blobs")?;
    let all: Vec<u8> = (0..*bytes).map(|at| at as u8).collect();
    let blob = Blob::write(tx, &all)?;
    let half = blob.read(tx).split_off(all.len() / 2);
    let other = Blob::write(tx, &half)?;
    map.insert(tx, 1, other)?;
    // SAFETY: no object leads to this one, which the test has just made.
    unsafe { blob.free(tx) }
}

const PAGES: Operation<u64> = Operation::new("add pages", 1, add_pages);
const BLOB: Operation<u64> = Operation::new("add blob", 1, add_blob);
const ALL: Operations = &[&PAGES, &BLOB];

fn open(disk: &Simulated) -> timestone::Result<Store> {
    // A ring in which a record of two blobs and one of the call have room.
    let options = options().with_ring_bytes(256 << 10).with_operations(ALL);
    Store::open_on(Arc::new(disk.clone()), options)
}

/// First words of the pages, the last one first.
fn pages(store: &Store) -> Vec<u64> {
    let first: Ptr<Ptr<Page>> = store.root("pages").unwrap();
    store.register().unwrap().read_latest(|now| {
        let (mut words, mut next) = (Vec::new(), *now.deref(first));
        while !next.is_null() {
            let page = now.deref(next);
            words.push(page.words[0]);
            next = page.next;
        }
        words
    })
}

#[test]
fn they_find_them_when_they_are_run_again() {
    let disk = Simulated::new();
    let store = open(&disk).unwrap();
    store.root::<Ptr<Page>>("pages").unwrap();
    let blobs: Map<u64, Blob> = store.map("blobs").unwrap();
    store.checkpoint().unwrap();
    let mut me = store.register().unwrap();
    me.call(&PAGES, &3).unwrap();
    me.call(&BLOB, &20_000).unwrap();
    me.call(&PAGES, &2).unwrap();
    assert_eq!(store.stats().operations, 3, "the journal has calls, to be run again");
    let (wanted, words) = (pages(&store), [9, 7, 6, 3, 1]);
    assert_eq!(wanted, words);

    let again = open(&disk.survivor()).expect("the operations do again what they did");
    assert_eq!(again.stats().recovered, 3);
    assert_eq!(pages(&again), wanted);
    let blob = again.register().unwrap().read(|now| blobs.get(now, &1).unwrap().read(now));
    assert_eq!(blob.len(), 10_000);
    assert!(blob.iter().zip(10_000_u64..).all(|(byte, at)| *byte == at as u8));
}

/// A pointer to nothing is refused in both, and so is one to an object of another size.
#[test]
fn they_find_nothing_else() {
    fn strange(tx: &mut Transaction<'_, '_>, _: &u64) -> Result<(), Stop> {
        let page = tx.alloc(Page { words: [1; 40], next: Ptr::NULL })?;
        let other = Ptr::<u64>::read_from_bytes(page.as_bytes()).expect("pointers are as long");
        let seen = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| *tx.deref(other)));
        let map: Map<u64, u64> = tx.map("map")?;
        (0..20).try_for_each(|key| map.insert(tx, key, u64::from(seen.is_err())).map(|_| ()))
    }
    const STRANGE: Operation<u64> = Operation::new("strange", 1, strange);
    let (disk, options) = (Simulated::new(), options().with_operations(&[&STRANGE]));
    let store = Store::open_on(Arc::new(disk.clone()), options).unwrap();
    let map: Map<u64, u64> = store.map("map").unwrap();
    store.checkpoint().unwrap();
    store.register().unwrap().call(&STRANGE, &0).unwrap();
    assert_eq!(store.stats().operations, 1);
    let again = Store::open_on(Arc::new(disk.survivor()), options);
    let again = again.unwrap_or_else(|error: Error| panic!("not recovered: {error}"));
    assert_eq!(again.register().unwrap().read(|now| map.get(now, &3)), Some(1));
}
