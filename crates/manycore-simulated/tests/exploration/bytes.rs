//! The map of byte strings: records that are locked, transactions, and the table that grows while
//! versions are discarded as early as possible.

use manycore_history::run::{self, Explored, Mix};
use manycore_sim::thread;
use manycore_simulated::collections::bytes::{ByteMap, Handle};
use manycore_simulated::{ConcurrentMap, MapHandle, mvrlu};

use crate::explore;

/// Looks for a grace period after each session.
fn eager() -> ByteMap {
    let config = mvrlu::Config::default()
        .with_segment_bytes(1024)
        .with_segments(2)
        .with_segments_max(64)
        .with_hops_max(0)
        .with_versions_max(0);
    ByteMap::with_fixed_hashes(Default::default(), config, 0)
}

struct Numbers(ByteMap);

struct Member<'a>(Handle<'a>);

fn number(value: &[u8]) -> u64 {
    u64::from_be_bytes(value.try_into().unwrap())
}

impl ConcurrentMap<u64, u64> for Numbers {
    type Handle<'a> = Member<'a>;

    fn handle(&self) -> Member<'_> {
        Member(self.0.handle())
    }
}

impl MapHandle<u64, u64> for Member<'_> {
    fn get(&mut self, key: &u64) -> Option<u64> {
        self.0.get(&key.to_be_bytes(), number)
    }

    fn insert(&mut self, key: u64, value: u64) -> Option<u64> {
        let key = key.to_be_bytes();
        let mut locked = self.0.lock_for(&key).unwrap();
        let old = locked.value().map(number);
        locked.put(&value.to_be_bytes()).unwrap();
        locked.commit();
        old
    }

    fn remove(&mut self, key: &u64) -> Option<u64> {
        let key = key.to_be_bytes();
        let mut locked = self.0.lock_for(&key).unwrap();
        let old = locked.value().map(number);
        locked.remove();
        locked.commit();
        old
    }
}

/// The map begins with enough records for a bucket to be divided soon, and to have a chain.
#[test]
fn records() {
    for (seed, there) in [(0, 0), (1, 5), (2, 11)] {
        let threads = 2 + seed as u32 % 2;
        let mix = Mix {
            operations: 6,
            keys: 6,
            inserts: 55,
            removes: 35,
            ..Mix::explored(threads, seed)
        };
        explore().schedules(500).check(|| {
            let map = Numbers(eager());
            (100..100 + there).for_each(|key| _ = map.handle().insert(key, 0));
            run::check_map(Explored, &mix, &map);
        });
    }
}

/// Two records have the same sum at every moment, whether they are changed together or in a
/// transaction, which may be aborted. Meanwhile all other records of the map are cleared.
#[test]
fn several_records_change_at_one_moment() {
    explore().schedules(700).check(|| {
        let map = eager();
        for key in [&b"one"[..], b"two"] {
            map.handle().set(key, &50_u64.to_be_bytes()).unwrap();
        }
        thread::parallel(3, |me| {
            let mut handle = map.handle();
            for round in 0..2_u64 {
                match (u64::from(me) + round) % 3 {
                    0 => {
                        let keys = [&b"one"[..], b"two", b"one"];
                        let mut all = handle.lock_all(keys).unwrap();
                        let (one, two) =
                            (all.value(2).map_or(0, number), all.value(1).map_or(0, number));
                        all.put(0, &(one - 1).to_be_bytes()).unwrap();
                        all.put(1, &(two + 1).to_be_bytes()).unwrap();
                        all.commit();
                    }
                    1 => {
                        handle.begin().unwrap();
                        let two = handle.get(b"two", number).unwrap();
                        handle.set(b"between", b"nobody sees it").unwrap();
                        handle.clear().unwrap();
                        handle.set(b"two", &(two - 1).to_be_bytes()).unwrap();
                        handle.set(b"one", &(101 - two).to_be_bytes()).unwrap();
                        if me == 0 { handle.abort().unwrap() } else { handle.commit().unwrap() }
                    }
                    _ => {
                        let (mut sum, mut records) = (0, 0);
                        handle.for_each(|_, value| {
                            sum += number(value);
                            records += 1;
                            true
                        });
                        assert_eq!((sum, records), (100, 2), "a look at two moments");
                        assert!(!handle.contains(b"between"), "what a transaction had in between");
                    }
                }
            }
        });
        assert_eq!(map.len(), 2);
    });
}
