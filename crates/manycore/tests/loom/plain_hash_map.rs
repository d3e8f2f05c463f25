//! The hash map for plain data, with buckets of two entries: no entry is torn, writers do not lose
//! others' changes, and a key is found whichever table it is in.

use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

use loom::cell::UnsafeCell;
use loom::thread;
use manycore::collections::PlainHashMap;
use manycore::collections::hash::PlainHashMapHandle;

use crate::check;

/// All keys are in one bucket, with the same byte.
#[derive(Default)]
struct Same;

impl Hasher for Same {
    fn write(&mut self, _bytes: &[u8]) {}

    fn finish(&self) -> u64 {
        0
    }
}

type Hashes = BuildHasherDefault<Same>;
/// With values of two words, which are to fit together.
type Map = PlainHashMap<u64, [u64; 2], Hashes>;
type Words = PlainHashMap<u64, u64, Hashes>;
type WordsHandle<'a> = PlainHashMapHandle<'a, u64, u64, Hashes>;
/// Created before it is used, because creating one orders the threads.
type Handle<'a> = PlainHashMapHandle<'a, u64, [u64; 2], Hashes>;

fn put(map: &Handle, key: u64, value: u64) {
    map.insert(key, [value, value + key]);
}

fn remove(map: &Handle, key: u64) {
    assert!(map.remove(&key).is_some(), "{key} is lost");
}

/// The value of a key, if it is there.
fn value(map: &Handle, key: u64) -> Option<u64> {
    map.get(&key).map(|[value, sum]| {
        assert_eq!(sum, value + key, "it is torn");
        value
    })
}

fn has(map: &Handle, key: u64) {
    assert_eq!(value(map, key), Some(10 * key), "{key} is lost");
}

/// A map of the keys from 1 to this one, with this number of buckets.
fn map(keys: u64, buckets: usize) -> Arc<Map> {
    let map = Map::with_capacity_and_hasher(5 * buckets, Hashes::default());
    (1..=keys).for_each(|key| put(&map.handle(), key, 10 * key));
    Arc::new(map)
}

/// Enough for a further line or two.
const WIDE: usize = 32;

/// In one section, because the beginning of a section orders the thread.
fn beside(map: &Arc<Map>, does: impl FnOnce(&Handle) + Send + 'static) -> thread::JoinHandle<()> {
    let map = map.clone();
    thread::spawn(move || {
        let handle = map.handle();
        let _section = handle.iter();
        does(&handle);
    })
}

#[test]
fn a_look_beside_what_comes() {
    check(2, || {
        let map = map(1, 1);
        let other = beside(&map, |map| put(map, 2, 20));
        let own = map.handle();
        assert!([None, Some(20)].contains(&value(&own, 2)));
        has(&own, 1);
        other.join().unwrap();
        has(&own, 2);
    });
}

/// The reader has found an entry, and another one is written to its slot.
#[test]
fn a_slot_is_used_again() {
    check(2, || {
        let map = map(1, 1);
        let other = beside(&map, |map| {
            remove(map, 1);
            put(map, 2, 20);
        });
        let own = map.handle();
        assert!([None, Some(10)].contains(&value(&own, 1)));
        other.join().unwrap();
        assert_eq!((value(&own, 1), value(&own, 2)), (None, Some(20)));
    });
}

/// The same key is inserted into the slot again: a reader there finds one value or the other.
#[test]
fn a_slot_is_used_again_by_its_key() {
    check(2, || {
        let map = map(1, 1);
        let other = beside(&map, |map| {
            remove(map, 1);
            put(map, 1, 11);
        });
        let own = map.handle();
        assert!([None, Some(10), Some(11)].contains(&value(&own, 1)));
        other.join().unwrap();
        assert_eq!(value(&own, 1), Some(11));
    });
}

#[test]
fn a_value_is_replaced() {
    check(2, || {
        let map = map(1, 1);
        let other = beside(&map, |map| put(map, 1, 11));
        let own = map.handle();
        assert!([Some(10), Some(11)].contains(&value(&own, 1)));
        other.join().unwrap();
        assert_eq!(value(&own, 1), Some(11));
    });
}

/// A number: the map decides which thread may access it.
struct Shared(UnsafeCell<u64>);
// SAFETY: shared on purpose: the checker reports accesses that are not ordered.
unsafe impl Sync for Shared {}
// SAFETY: it consists of a number, which any thread may use.
unsafe impl Send for Shared {}

/// A thread that sees a change of the map also sees the changing thread's earlier writes.
fn what_was_before_is_known(keys: u64, does: fn(&WordsHandle), is_done: fn(&WordsHandle) -> bool) {
    check(2, move || {
        let map = Words::with_capacity_and_hasher(5 * WIDE, Hashes::default());
        (1..=keys).for_each(|key| assert_eq!(map.insert(key, 0), None));
        let shared = Arc::new((map, Shared(UnsafeCell::new(0))));
        let other = shared.clone();
        let other = thread::spawn(move || {
            let handle = other.0.handle();
            let _section = handle.iter();
            // SAFETY: the other thread reads it only once the map is changed.
            other.1.0.with_mut(|number| unsafe { *number = 7 });
            does(&handle);
        });
        let own = shared.0.handle();
        if is_done(&own) {
            // SAFETY: it was written before the map was changed, and is not any more.
            assert_eq!(shared.1.0.with(|number| unsafe { *number }), 7);
        }
        other.join().unwrap();
    });
}

#[test]
fn a_word_is_replaced() {
    what_was_before_is_known(
        1,
        |map| assert_eq!(map.insert(1, 1), Some(0)),
        |map| map.get(&1) == Some(1),
    );
}

#[test]
fn a_key_of_a_further_line_is_taken_out() {
    what_was_before_is_known(
        3,
        |map| assert_eq!(map.remove(&3), Some(0)),
        |map| map.get(&3).is_none(),
    );
}

/// Two threads each insert a key into the overflow line.
#[test]
fn two_writers_of_a_further_line() {
    check(2, || {
        let map = map(3, WIDE);
        let other = beside(&map, |map| put(map, 4, 40));
        let own = map.handle();
        put(&own, 5, 50);
        other.join().unwrap();
        (3..=5).for_each(|key| has(&own, key));
    });
}

#[test]
fn a_look_into_a_line_that_comes() {
    for keys in [2, 4] {
        check(2, move || {
            let map = map(keys, WIDE);
            let next = keys + 1;
            let other = beside(&map, move |map| put(map, next, 10 * next));
            let own = map.handle();
            assert!([None, Some(10 * next)].contains(&value(&own, next)));
            other.join().unwrap();
            has(&own, next);
        });
    }
}

#[test]
fn a_look_into_a_further_line() {
    check(2, || {
        let map = map(4, WIDE);
        let other = beside(&map, |map| {
            remove(map, 4);
            put(map, 4, 41);
        });
        let own = map.handle();
        assert!([None, Some(40), Some(41)].contains(&value(&own, 4)));
        other.join().unwrap();
    });
}

/// A map that has begun to grow. One thread moves the bucket and publishes the next table.
#[test]
fn a_look_while_a_bucket_is_moved() {
    check(2, || {
        let map = map(3, 1);
        let moving = beside(&map, |map| put(map, 4, 40));
        let own = map.handle();
        has(&own, 3);
        moving.join().unwrap();
        (1..=4).for_each(|key| has(&own, key));
    });
}

/// A thread begins to grow, another moves a bucket, and the key is found all the time.
#[test]
fn a_look_while_it_grows() {
    check(2, || {
        let map = map(2, 1);
        let growing = beside(&map, |map| put(map, 3, 30));
        let moving = beside(&map, |map| put(map, 4, 40));
        let own = map.handle();
        has(&own, 1);
        growing.join().unwrap();
        moving.join().unwrap();
        (1..=4).for_each(|key| has(&own, key));
    });
}
