//! Maps over sessions: as the standard library's by one thread; snapshots and transactions of many
//! keys by more threads than CPUs.

use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::thread;

use manycore::clock::Ordo;
use manycore::collections::hash::{GrowingTable, MvrluGrowingTable, MvrluTable, RluTable};
use manycore::collections::list::{MvrluList, RluList};
use manycore::collections::tree::{MvrluTree, RluTree};
use manycore::collections::versioned::{
    Chain, Growing, Hashed, One, Placement, Reads, Search, Versioned,
};
use manycore::session::{RawSession, Sessions};
use manycore::{ConcurrentMap, MapHandle, mvrlu};
use manycore_history::run::{self, Mix, Native, unless_interpreted};

/// The entries from a key to another, in their order.
trait Range: Placement<u64> + Sized {
    fn range<M: Sessions, S: RawSession>(
        now: &Reads<'_, u64, u64, M, Self, S>,
        from: u64,
        to: u64,
    ) -> Vec<(u64, u64)> {
        let mut found = Vec::new();
        now.for_each(|key, value| found.push((*key, *value)));
        found.retain(|(key, _)| (from..to).contains(key));
        found.sort_unstable();
        found
    }
}

impl Range for Hashed {}
impl Range for Growing {}

macro_rules! in_order {
    ($($shape:ident),*) => {$(
        impl Range for One<$shape> {
            fn range<M: Sessions, S: RawSession>(
                now: &Reads<'_, u64, u64, M, Self, S>,
                from: u64,
                to: u64,
            ) -> Vec<(u64, u64)> {
                let mut found = Vec::new();
                now.range(from..to, |key, value| found.push((*key, *value)));
                found
            }
        }
    )*};
}
in_order!(Chain, Search);

/// Random operations by one thread, as on the standard library's map.
fn is_as_the_standard_library<M: Sessions, P: Range>(map: &Versioned<u64, u64, M, P>) {
    let mut handle = ConcurrentMap::handle(map);
    let (mut standard, mut random) = (BTreeMap::new(), fastrand::Rng::with_seed(1));
    for value in 0..unless_interpreted(10_000, 200) {
        let key = random.u64(..100);
        match random.u8(..5) {
            0 => assert_eq!(handle.get(&key), standard.get(&key).copied()),
            1 => {
                let to = key + random.u64(..50);
                let found = handle.snapshot(|now| P::range(now, key, to));
                assert!(found.into_iter().eq(standard.range(key..to).map(|(k, v)| (*k, *v))));
            }
            2 | 3 => assert_eq!(handle.insert(key, value), standard.insert(key, value)),
            _ => assert_eq!(handle.remove(&key), standard.remove(&key)),
        }
        if value % unless_interpreted(100, 20) == 0 {
            // Several operations in one transaction, which sees what it has done.
            let keys = [key, key / 2, key + 1];
            let (removed, found) = handle.transact(|tx| {
                let removed = [tx.remove(&keys[0])?, tx.remove(&keys[1])?];
                tx.insert(keys[2], value)?;
                Ok((removed, keys.map(|key| tx.get(&key))))
            });
            assert_eq!(removed, [standard.remove(&keys[0]), standard.remove(&keys[1])]);
            standard.insert(keys[2], value);
            assert_eq!(found, keys.map(|key| standard.get(&key).copied()));
        }
    }
}

const PAIRS: u64 = unless_interpreted(50, 6);

/// Each pair of keys has one entry, which threads move between the two. A reader finds exactly one
/// key of each pair, and the same sum.
fn scans_see_one_moment<M: Sessions, P: Range>(map: &Versioned<u64, u64, M, P>, threads: u64)
where
    Versioned<u64, u64, M, P>: Sync,
{
    let mut handle = ConcurrentMap::handle(map);
    let mut keys: Vec<_> = (0..PAIRS).collect();
    fastrand::Rng::with_seed(7).shuffle(&mut keys);
    keys.iter().for_each(|pair| _ = handle.insert(2 * pair, *pair));
    thread::scope(|s| {
        for me in 0..threads {
            s.spawn(move || {
                let (mut handle, mut random) =
                    (ConcurrentMap::handle(map), fastrand::Rng::with_seed(me));
                for round in 0..unless_interpreted(300, 10) {
                    let pair = random.u64(..PAIRS);
                    handle.transact(|tx| {
                        let (from, to) = match tx.get(&(2 * pair)) {
                            Some(_) => (2 * pair, 2 * pair + 1),
                            None => (2 * pair + 1, 2 * pair),
                        };
                        let value = tx.remove(&from)?.expect("one of the pair is there");
                        assert_eq!(tx.insert(to, value)?, None);
                        Ok(())
                    });
                    if round % 8 == 0 {
                        let from = 2 * random.u64(..PAIRS);
                        let found = handle.snapshot(|now| P::range(now, from, 2 * PAIRS));
                        let pairs = found.iter().map(|(key, value)| (key / 2, *value));
                        let all = (from / 2..PAIRS).map(|pair| (pair, pair));
                        assert!(pairs.eq(all), "a scan of two moments: {found:?}");
                    }
                }
            });
        }
    });
}

macro_rules! tests {
    ($($name:ident => $make:expr;)*) => {
        $(
            mod $name {
                use super::*;

                #[test]
                fn as_the_standard_library() {
                    is_as_the_standard_library(&$make);
                }

                #[test]
                fn one_moment() {
                    scans_see_one_moment(&$make, unless_interpreted(8, 3));
                }

                #[test]
                fn linearizable() {
                    run::check_map(Native, &Mix::native(unless_interpreted(8, 3)), &$make);
                }
            }
        )*
    };
}

/// It begins with one bucket, and has one more for each two keys: threads are always about to
/// divide some.
fn growing<M: Sessions + Default>() -> Versioned<u64, u64, M, Growing> {
    Versioned::with_keys_per_bucket(M::default(), 0, 2)
}

/// Values for which there is no room in a bucket: all entries hang in chains.
#[test]
fn large_entries_grow_too() {
    type Large = [u64; 20];
    const KEYS: u64 = unless_interpreted(500, 40);
    let map = MvrluGrowingTable::<u64, Large>::default();
    let mut handle = ConcurrentMap::handle(&map);
    (0..KEYS).for_each(|key| assert_eq!(handle.insert(key, [key; 20]), None));
    (0..KEYS).step_by(3).for_each(|key| assert_eq!(handle.remove(&key), Some([key; 20])));
    (0..KEYS).step_by(5).for_each(|key| _ = handle.insert(key, [0; 20]));
    for key in 0..KEYS {
        let expected = match (key % 5, key % 3) {
            (0, _) => Some([0; 20]),
            (_, 0) => None,
            _ => Some([key; 20]),
        };
        assert_eq!(handle.get(&key), expected, "{key}");
    }
    assert!(map.buckets() as u64 >= KEYS * 3 / 5, "{} buckets", map.buckets());
}

/// If the system provides large pages on request, a large table gets them.
#[test]
#[cfg_attr(miri, ignore = "the interpreter has no pages")]
fn large_tables_ask_for_large_pages() {
    if !std::path::Path::new("/sys/kernel/mm/transparent_hugepage").exists() {
        return;
    }
    // In a process of its own: other tests give such pages back meanwhile.
    const ALONE: &str = "MANYCORE_TEST_ALONE";
    if std::env::var_os(ALONE).is_none() {
        let name = "versioned::large_tables_ask_for_large_pages";
        let mut alone = std::process::Command::new(std::env::current_exe().unwrap());
        let output = alone.args(["--exact", name]).env(ALONE, "1").output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && text.contains("1 passed"), "{text}");
        return;
    }
    // KiB of all mappings that were asked for so.
    let asked = || -> u64 {
        let smaps = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let mut size = 0;
        let mut all = 0;
        for line in smaps.lines() {
            if let Some(rest) = line.strip_prefix("Size:") {
                size = rest.trim().trim_end_matches(" kB").parse().unwrap();
            } else if let Some(flags) = line.strip_prefix("VmFlags:") {
                all += if flags.split_whitespace().any(|flag| flag == "hg") { size } else { 0 };
            }
        }
        all
    };
    let before = asked();
    let table = MvrluGrowingTable::<u64, u64>::with_capacity(mvrlu::Domain::default(), 300_000);
    let bytes = 128 * table.buckets() as u64;
    // But for the ends, up to 64 KiB each.
    assert!(asked() - before >= bytes / 1024 - 128, "{} KiB of {bytes} bytes", asked() - before);
}

/// A key whose hash is that of many others.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Alike(u64);

impl Hash for Alike {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(if self.0 < 1000 { 0 } else { self.0 });
    }
}

/// A bucket has more entries than one transaction can free. It is not split, and everything else
/// continues.
fn more_than_can_be_divided<M: Sessions>(domain: M) {
    let map = GrowingTable::with_keys_per_bucket(domain, 0, 1);
    let mut handle = ConcurrentMap::handle(&map);
    for key in 0..3000 {
        assert_eq!(handle.insert(Alike(key), key), None);
    }
    assert!(map.buckets() > 1000, "{} buckets", map.buckets());
    // From the midst of the chain, too.
    for key in (0..3000).rev().step_by(2) {
        assert_eq!(handle.remove(&Alike(key)), Some(key));
    }
    (0..3000).step_by(4).for_each(|key| assert_eq!(handle.insert(Alike(key), 1), Some(key)));
    for key in 0..3000 {
        let expected = [Some(1), None, Some(key), None][key as usize % 4];
        assert_eq!(handle.get(&Alike(key)), expected, "{key}");
    }
    let mut found = 0;
    handle.snapshot(|now| now.for_each(|_, _| found += 1));
    assert_eq!(found, 1500);
}

#[test]
#[cfg_attr(miri, ignore = "takes minutes in the interpreter")]
fn long_chains_are_not_divided() {
    let small = || mvrlu::Config::default().with_segment_bytes(1024).with_segments_max(8);
    more_than_can_be_divided(mvrlu::Domain::<Ordo>::new(Ordo::default(), small()));
    more_than_can_be_divided(<manycore::rlu::Domain>::default());
}

/// Threads insert their own keys and remove some again, while others read the permanent keys, and
/// all keys.
#[test]
fn nothing_is_lost_while_it_grows() {
    const THREADS: u64 = 4;
    const EACH: u64 = unless_interpreted(4_000, 40);
    let map = MvrluGrowingTable::<u64, u64>::default();
    thread::scope(|s| {
        for me in 0..THREADS {
            let map = &map;
            s.spawn(move || {
                let mut handle = ConcurrentMap::handle(map);
                for n in 0..EACH {
                    let key = n * THREADS + me;
                    assert_eq!(handle.insert(key, key), None);
                    let known = n / 7 * THREADS + me;
                    assert_eq!(handle.get(&known), Some(known), "known since before");
                    if n % unless_interpreted(1000, 10) == 0 {
                        let mut own = 0;
                        handle.snapshot(|now| {
                            now.for_each(|key, _| own += u64::from(key % THREADS == me));
                        });
                        assert_eq!(own, n + 1, "in a snapshot of {} buckets", map.buckets());
                    }
                }
            });
        }
    });
    let mut handle = ConcurrentMap::handle(&map);
    (0..THREADS * EACH).for_each(|key| assert_eq!(handle.get(&key), Some(key)));
    // Some thousand, unless a thread was preempted for long while it made room for more: others go
    // on without.
    assert!(map.buckets() > 1, "{} buckets", map.buckets());
}

tests! {
    growing_mvrlu => super::growing::<manycore::mvrlu::Domain>();
    growing_rlu => super::growing::<manycore::rlu::Domain>();
    list_mvrlu => MvrluList::<u64, u64>::default();
    hash_mvrlu => MvrluTable::<u64, u64>::new(7);
    bst_mvrlu => MvrluTree::<u64, u64>::default();
    list_rlu => RluList::<u64, u64>::default();
    hash_rlu => RluTable::<u64, u64>::new(7);
    bst_rlu => RluTree::<u64, u64>::default();
    bst_rlu_defer => RluTree::<u64, u64>::new(manycore::rlu::Domain::deferring());
}
