//! The hash map: a bucket's entry is there when its byte is, writers do not lose others' changes,
//! and a key is found whichever table it is in.

use std::hash::{BuildHasherDefault, Hash, Hasher};
use std::sync::Arc;

use loom::cell::UnsafeCell;
use loom::thread;
use manycore::collections::HashMap;

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

/// A number; the checker sees its reads and its write.
pub(crate) struct Seen(UnsafeCell<u64>);

impl Seen {
    pub(crate) fn new(number: u64) -> Self {
        let seen = Self(UnsafeCell::new(0));
        // SAFETY: no other thread has it; the checker notes the write.
        seen.0.with_mut(|place| unsafe { *place = number });
        seen
    }

    pub(crate) fn get(&self) -> u64 {
        // SAFETY: it does not change; the checker reports a read that is not ordered after its
        // write.
        self.0.with(|number| unsafe { *number })
    }

    /// Notes that it is not to be read any more.
    pub(crate) fn end(&self) {
        // SAFETY: the checker reports a read that is not ordered before it.
        self.0.with_mut(|place| unsafe { *place = u64::MAX });
    }
}

// SAFETY: it is not changed; the checker reports races.
unsafe impl Sync for Seen {}
// SAFETY: it consists of a number, which any thread may use.
unsafe impl Send for Seen {}

impl PartialEq for Seen {
    fn eq(&self, other: &Self) -> bool {
        self.get() == other.get()
    }
}

impl Eq for Seen {}

impl Hash for Seen {
    fn hash<H: Hasher>(&self, _hasher: &mut H) {}
}

type Map = HashMap<Seen, Seen, BuildHasherDefault<Same>>;

fn put(map: &Map, key: u64) {
    map.pin().insert(Seen::new(key), Seen::new(10 * key));
}

fn remove(map: &Map, key: u64) {
    assert!(map.pin().remove(&Seen::new(key)).is_some(), "{key} is lost");
}

/// The value of a key, if it is there.
fn value(map: &Map, key: u64) -> Option<u64> {
    map.pin().get(&Seen::new(key)).map(Seen::get)
}

fn has(map: &Map, key: u64) {
    assert_eq!(value(map, key), Some(10 * key), "{key} is lost");
}

/// A map of the keys from 1 to this one, with this number of buckets.
fn map(keys: u64, buckets: usize) -> Arc<Map> {
    let map = Map::with_capacity_and_hasher(4 * buckets, BuildHasherDefault::default());
    (1..=keys).for_each(|key| put(&map, key));
    Arc::new(map)
}

/// Enough for a further line or two.
const WIDE: usize = 32;

fn beside(map: &Arc<Map>, does: impl FnOnce(&Map) + Send + 'static) -> thread::JoinHandle<()> {
    let map = map.clone();
    thread::spawn(move || does(&map))
}

#[test]
fn a_look_beside_what_comes() {
    check(2, || {
        let map = map(1, 1);
        let other = beside(&map, |map| put(map, 2));
        assert!([None, Some(20)].contains(&value(&map, 2)));
        has(&map, 1);
        other.join().unwrap();
        has(&map, 2);
    });
}

/// The reader finds another entry in the slot, and reads its key.
#[test]
fn a_slot_is_used_again() {
    check(2, || {
        let map = map(1, 1);
        let other = beside(&map, |map| {
            remove(map, 1);
            put(map, 2);
        });
        assert!([None, Some(20)].contains(&value(&map, 2)));
        other.join().unwrap();
        assert_eq!((value(&map, 1), value(&map, 2)), (None, Some(20)));
    });
}

#[test]
fn a_value_is_replaced() {
    check(2, || {
        let map = map(1, 1);
        let other = beside(&map, |map| {
            map.pin().insert(Seen::new(1), Seen::new(11));
        });
        assert!([Some(10), Some(11)].contains(&value(&map, 1)));
        other.join().unwrap();
        assert_eq!(value(&map, 1), Some(11));
    });
}

/// Two threads each insert a key into the overflow line.
#[test]
fn two_writers_of_a_further_line() {
    check(2, || {
        let map = map(7, WIDE);
        let other = beside(&map, |map| put(map, 8));
        put(&map, 9);
        other.join().unwrap();
        (7..=9).for_each(|key| has(&map, key));
    });
}

#[test]
fn a_look_into_a_line_that_comes() {
    check(2, || {
        let map = map(6, WIDE);
        let other = beside(&map, |map| put(map, 7));
        assert!([None, Some(70)].contains(&value(&map, 7)));
        other.join().unwrap();
        has(&map, 7);
    });
}

#[test]
fn a_look_into_a_further_line() {
    check(2, || {
        let map = map(7, WIDE);
        let other = beside(&map, |map| put(map, 8));
        assert!([None, Some(80)].contains(&value(&map, 8)));
        other.join().unwrap();
    });
}

/// One thread's entry is found through an entry that another thread has written later.
#[test]
fn a_look_past_what_is_taken_out() {
    check(2, || {
        let map = map(8, WIDE);
        let putting = beside(&map, |map| put(map, 9));
        let taking = beside(&map, |map| remove(map, 8));
        assert!([None, Some(90)].contains(&value(&map, 9)));
        putting.join().unwrap();
        taking.join().unwrap();
        has(&map, 9);
    });
}

/// A map that has begun to grow. One thread moves the bucket and publishes the next table.
#[test]
fn a_look_while_a_bucket_is_moved() {
    check(2, || {
        let map = map(7, 1);
        let moving = beside(&map, |map| put(map, 8));
        has(&map, 7);
        moving.join().unwrap();
        (1..=8).for_each(|key| has(&map, key));
    });
}

/// A thread begins to grow, another moves a bucket, and the key is found all the time.
#[test]
fn a_look_while_it_grows() {
    check(2, || {
        let map = map(6, 1);
        let growing = beside(&map, |map| put(map, 7));
        let moving = beside(&map, |map| put(map, 8));
        has(&map, 1);
        growing.join().unwrap();
        moving.join().unwrap();
        (1..=8).for_each(|key| has(&map, key));
    });
}
