//! The map of byte strings: as the standard library's by any sequence, with transactions, and by
//! more threads than CPUs.

use std::collections::BTreeMap;
use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use manycore::clock::Ordo;
use manycore::collections::bytes::{ByteMap, Error, From, Handle};
use manycore::mvrlu::Config;
use manycore::{ConcurrentMap, MapHandle};
use manycore_history::run::{self, Mix, Native, unless_interpreted};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

#[derive(Clone, Debug)]
enum Step {
    Get(u8),
    Set(u8, usize),
    Remove(u8),
    /// `lock_for`: with an action for an existing key, and one for a missing key.
    Change(u8, Option<usize>, Option<usize>),
    /// `lock_all`: each value gets one more byte, and every third record is removed.
    Bulk(Vec<u8>),
    Drop(u8),
    Begin,
    Commit,
    Abort,
    Clear,
    Walk,
}

/// A few keys, of several lengths, some of which are prefixes of others.
fn key(number: u8) -> Vec<u8> {
    let text = format!("{}", u32::from(number) * 0x0101_0101);
    text.as_bytes()[..text.len().min(usize::from(number) % 12)].to_vec()
}

/// Also of the lengths at which pairs change their kind.
fn value(length: usize) -> Vec<u8> {
    (0..length).map(|at| (at % 251) as u8).collect()
}

fn length() -> impl Strategy<Value = usize> {
    prop_oneof![6 => 0..40_usize, 1 => 450..520_usize, 1 => 4_060..4_110_usize, 1 => Just(70_000)]
}

fn step() -> impl Strategy<Value = Step> {
    let maybe = || prop::option::of(length());
    prop_oneof![
        4 => any::<u8>().prop_map(Step::Get),
        12 => (any::<u8>(), length()).prop_map(|(key, length)| Step::Set(key, length)),
        6 => any::<u8>().prop_map(Step::Remove),
        4 => (any::<u8>(), maybe(), maybe()).prop_map(|(k, there, not)| Step::Change(k, there, not)),
        2 => prop::collection::vec(any::<u8>(), 0..20).prop_map(Step::Bulk),
        1 => any::<u8>().prop_map(Step::Drop),
        1 => Just(Step::Begin),
        1 => Just(Step::Commit),
        1 => Just(Step::Abort),
        1 => Just(Step::Walk),
        1 => Just(Step::Clear),
    ]
}

fn all(me: &mut Handle<'_>) -> Model {
    let mut found = Model::new();
    me.for_each(|key, value| {
        assert_eq!(found.insert(key.to_vec(), value.to_vec()), None, "a key twice");
        true
    });
    found
}

/// The same by going from each key to the next.
fn walk(me: &mut Handle<'_>) -> Model {
    let mut found = Model::new();
    let mut from = me.next(From::First, |key, value| (key.to_vec(), value.to_vec()));
    while let Some((key, value)) = from {
        from = me.next(From::After(&key), |key, value| (key.to_vec(), value.to_vec()));
        assert_eq!(found.insert(key, value), None, "a key twice");
    }
    found
}

fn in_parts(me: &mut Handle<'_>, parts: usize) -> Model {
    let mut found = Model::new();
    for part in 0..parts {
        me.for_each_of(part, parts, |key, value| {
            assert_eq!(found.insert(key.to_vec(), value.to_vec()), None, "a key twice");
            true
        });
    }
    found
}

fn take(me: &mut Handle<'_>, model: &mut Model, step: &Step) {
    match step {
        Step::Get(k) => {
            let found = me.get(&key(*k), <[u8]>::to_vec);
            assert_eq!(found.as_ref(), model.get(&key(*k)));
        }
        Step::Set(k, length) => {
            let had = model.insert(key(*k), value(*length)).is_some();
            assert_eq!(me.set(&key(*k), &value(*length)), Ok(had));
        }
        Step::Remove(k) => {
            let had = model.remove(&key(*k)).is_some();
            assert_eq!(me.remove(&key(*k)), Ok(had));
        }
        Step::Change(k, there, not) => {
            let k = key(*k);
            let mut locked = me.lock_for(&k).unwrap();
            let known = model.get(&k).map(Vec::as_slice);
            assert_eq!(locked.value(), known);
            match if known.is_some() { there } else { not } {
                Some(length) => {
                    locked.put(&value(*length)).unwrap();
                    model.insert(k.clone(), value(*length));
                }
                None => {
                    locked.remove();
                    model.remove(&k);
                }
            }
            assert_eq!(locked.value(), model.get(&k).map(Vec::as_slice));
            locked.commit();
        }
        Step::Bulk(numbers) => bulk(me, model, numbers),
        Step::Drop(k) => {
            let k = key(*k);
            let mut locked = me.lock_for(&k).unwrap();
            locked.put(b"nobody sees it").unwrap();
        }
        Step::Walk => {
            assert_eq!(walk(me), *model);
            for key in model.keys() {
                assert!(me.next(From::At(key), |at, _| at == key).unwrap());
            }
            assert_eq!(in_parts(me, 3), *model);
        }
        Step::Clear => {
            me.clear().unwrap();
            model.clear();
        }
        Step::Begin | Step::Commit | Step::Abort => unreachable!("the caller does that"),
    }
}

fn bulk(me: &mut Handle<'_>, model: &mut Model, numbers: &[u8]) {
    let keys: Vec<_> = numbers.iter().map(|number| key(*number)).collect();
    let mut locked = me.lock_all(keys.iter().map(Vec::as_slice)).unwrap();
    for (index, key) in keys.iter().enumerate() {
        assert_eq!(locked.value(index), model.get(key).map(Vec::as_slice));
        if index % 3 == 2 {
            locked.remove(index);
            model.remove(key);
        } else {
            let longer = [locked.value(index).unwrap_or_default(), b"+"].concat();
            locked.put(index, &longer).unwrap();
            model.insert(key.clone(), longer);
        }
    }
    locked.commit();
}

fn agrees(steps: &[Step]) {
    let map = <ByteMap>::default();
    let (mut me, mut other) = (map.handle(), map.handle());
    let (mut model, mut before) = (Model::new(), None);
    for step in steps {
        match step {
            Step::Begin => {
                let begun = me.begin();
                assert_eq!(begun, if before.is_none() { Ok(()) } else { Err(Error::Already) });
                before.get_or_insert_with(|| model.clone());
            }
            Step::Commit => {
                let had = before.take().map(|_| ());
                assert_eq!(me.commit(), had.ok_or(Error::NoTransaction));
            }
            Step::Abort => {
                let had = before.take().map(|before| model = before);
                assert_eq!(me.abort(), had.ok_or(Error::NoTransaction));
            }
            step => take(&mut me, &mut model, step),
        }
        // Others see what was committed.
        if matches!(step, Step::Walk) {
            assert_eq!(all(&mut other), *before.as_ref().unwrap_or(&model));
        }
    }
    if let Some(before) = before {
        drop(me);
        model = before;
    }
    assert_eq!(all(&mut other), model);
    assert_eq!(walk(&mut other), model);
    let bytes: usize = model.iter().map(|(key, value)| key.len() + value.len()).sum();
    assert_eq!((map.len(), map.bytes()), (model.len(), bytes));
}

#[test]
fn any_sequence_is_as_of_the_standard_library() {
    let usual = ProptestConfig::default();
    let cases = unless_interpreted(usual.cases / 2, 2);
    let config = ProptestConfig { cases, failure_persistence: None, ..usual };
    let steps = prop::collection::vec(step(), 0..unless_interpreted(300, 40));
    let outcome = TestRunner::new(config).run(&steps, |steps| {
        agrees(&steps);
        Ok(())
    });
    outcome.unwrap_or_else(|failure| panic!("{failure}"));
}

const KEYS: u64 = unless_interpreted(20_000, 200);

#[test]
fn it_grows_and_is_cleared() {
    let map = <ByteMap>::default();
    let mut me = map.handle();
    for round in 0..3_u64 {
        for key in 0..KEYS {
            assert_eq!(me.set(&key.to_be_bytes(), &round.to_be_bytes()), Ok(false));
        }
        assert_eq!(map.len() as u64, KEYS);
        assert_eq!(map.bytes() as u64, KEYS * 16);
        assert_eq!(walk(&mut me).len() as u64, KEYS);
        let mut seen = 0;
        me.for_each(|_, _| {
            seen += 1;
            seen < 10
        });
        assert_eq!(seen, 10);
        me.clear().unwrap();
        assert!(map.is_empty() && all(&mut me).is_empty() && map.bytes() == 0);
    }
}

/// The table also grows in a transaction. If that is aborted, claimed buckets are split off
/// afterwards.
#[test]
fn it_grows_in_transactions() {
    let map = <ByteMap>::default();
    let mut me = map.handle();
    for is_committed in [false, true, false] {
        me.begin().unwrap();
        for key in 0..KEYS {
            me.set(&key.to_be_bytes(), b"value").unwrap();
        }
        assert_eq!(walk(&mut me).len() as u64, KEYS);
        if is_committed {
            me.commit().unwrap()
        } else {
            me.abort().unwrap()
        }
        assert!(!is_committed || !map.is_empty());
        assert_eq!(walk(&mut me).len(), map.len());
    }
    assert_eq!(map.len() as u64, KEYS);
}

#[test]
fn a_transaction_that_is_too_large_fails_and_no_more() {
    let config = Config::default().with_segments_max(16);
    let map = ByteMap::new(Ordo::default(), config, 100_000);
    let mut me = map.handle();
    me.set(b"before", b"1").unwrap();
    me.begin().unwrap();
    let failed = (0..100_000_u64).find_map(|key| me.set(&key.to_be_bytes(), b"").err());
    assert_eq!(failed, Some(Error::TooLarge));
    assert_eq!(me.set(b"more", b""), Err(Error::Failed));
    assert_eq!(me.clear(), Err(Error::Failed));
    assert_eq!(me.commit(), Err(Error::Failed));
    assert_eq!(all(&mut me), Model::from([(b"before".to_vec(), b"1".to_vec())]));
    let keys: Vec<_> = (0..100_000_u64).map(u64::to_be_bytes).collect();
    let too_many = me.lock_all(keys.iter().map(<[u8; 8]>::as_slice)).err();
    assert_eq!(too_many, Some(Error::TooLarge));
    assert_eq!(me.set(b"after", b"2"), Ok(false));
    assert_eq!(map.len(), 2);
}

#[test]
fn who_keeps_others_out_is_told_of_misuse() {
    let map = <ByteMap>::default();
    let (mut me, mut other) = (map.handle(), map.handle());
    assert_eq!(me.let_others_in(), Err(Error::NoTransaction));
    me.keep_others_out().unwrap();
    assert_eq!(me.keep_others_out(), Err(Error::Already));
    assert_eq!(me.begin(), Err(Error::Already));
    assert_eq!(other.try_begin(), Err(Error::Busy));
    me.set(b"mine", b"1").unwrap();
    me.clear().unwrap();
    me.set(b"mine", b"2").unwrap();
    me.let_others_in().unwrap();
    other.try_begin().unwrap();
    assert_eq!(other.let_others_in(), Err(Error::Already));
    other.remove(b"mine").unwrap();
    // Dropped in a transaction, it is aborted, and the gate is open.
    drop(other);
    assert_eq!(me.get(b"mine", <[u8]>::to_vec).as_deref(), Some(&b"2"[..]));
    me.begin().unwrap();
}

/// The caller's function runs once, however many threads want the record.
#[test]
fn visitors_run_exactly_once() {
    const THREADS: u64 = unless_interpreted(8, 3);
    const ROUNDS: u64 = unless_interpreted(20_000, 30);
    let map = <ByteMap>::default();
    let asked = AtomicU64::new(0);
    thread::scope(|s| {
        for _ in 0..THREADS {
            s.spawn(|| {
                let mut me = map.handle();
                for round in 0..ROUNDS {
                    let key = (round % 4).to_be_bytes();
                    let mut locked = me.lock_for(&key).unwrap();
                    let before =
                        locked.value().map_or(0, |v| u64::from_be_bytes(v.try_into().unwrap()));
                    asked.fetch_add(1, Ordering::Relaxed);
                    locked.put(&(before + 1).to_be_bytes()).unwrap();
                    locked.commit();
                }
            });
        }
    });
    let sum: u64 = all(&mut map.handle())
        .into_values()
        .map(|v| u64::from_be_bytes(v.try_into().unwrap()))
        .sum();
    assert_eq!((sum, asked.into_inner()), (THREADS * ROUNDS, THREADS * ROUNDS));
}

/// Threads move money between accounts, by bulk and by transactions, while records are inserted and
/// removed and the table grows. Every snapshot has the same sum.
#[test]
fn a_sum_is_kept_at_every_moment() {
    const ACCOUNTS: u64 = unless_interpreted(64, 8);
    const ROUNDS: u64 = unless_interpreted(3_000, 10);
    let map = <ByteMap>::default();
    let account = |number: u64| [b"account", &number.to_be_bytes()[..]].concat();
    let worth = |value: &[u8]| i64::from_be_bytes(value[..8].try_into().unwrap());
    let mut me = map.handle();
    (0..ACCOUNTS).for_each(|n| _ = me.set(&account(n), &100_i64.to_be_bytes()).unwrap());
    thread::scope(|s| {
        let threads: Vec<_> = (0..unless_interpreted(6, 2))
            .map(|seed| {
                let map = &map;
                s.spawn(move || {
                    let (mut me, mut random) = (map.handle(), fastrand::Rng::with_seed(seed));
                    for round in 0..ROUNDS {
                        let (from, to) = (random.u64(..ACCOUNTS), random.u64(..ACCOUNTS));
                        let keys = [account(from), account(to)];
                        // A value of some length; sums read its first eight bytes.
                        let padded =
                            |n: i64, pad: usize| [&n.to_be_bytes()[..], &value(pad)].concat();
                        if round % 64 == 0 {
                            me.begin().unwrap();
                            for (key, more) in [(&keys[0], -7), (&keys[1], 7)] {
                                let now = me.get(key, worth).unwrap();
                                me.set(key, &padded(now + more, 9)).unwrap();
                            }
                            if round % 128 == 0 {
                                me.abort().unwrap()
                            } else {
                                me.commit().unwrap()
                            }
                        }
                        let mut both = me.lock_all(keys.iter().map(Vec::as_slice)).unwrap();
                        let pad = random.usize(..5_000);
                        for (index, more) in [(0, -3), (1, 3)] {
                            let now = both.value(index).map(worth).unwrap();
                            both.put(index, &padded(now + more, pad)).unwrap();
                        }
                        both.commit();
                        me.set(&[b"other", &random.u16(..).to_be_bytes()[..]].concat(), b"")
                            .unwrap();
                        me.remove(&[b"other", &random.u16(..).to_be_bytes()[..]].concat()).unwrap();
                    }
                })
            })
            .collect();
        let mut audits = 0;
        loop {
            let (mut sum, mut accounts) = (0, 0);
            me.for_each(|key, value| {
                if key.starts_with(b"account") {
                    sum += worth(value);
                    accounts += 1;
                }
                true
            });
            assert_eq!((sum, accounts), (100 * ACCOUNTS as i64, ACCOUNTS));
            audits += 1;
            if threads.iter().all(thread::ScopedJoinHandle::is_finished) {
                break;
            }
        }
        assert!(audits > 0);
    });
    assert_eq!(all(&mut me).len(), map.len());
}

/// A thread that walks from key to key finds every permanent record once, while others insert and
/// remove records.
#[test]
fn a_walk_comes_to_every_record_that_stays() {
    const STAY: u64 = unless_interpreted(2_000, 20);
    let map = <ByteMap>::default();
    let mut me = map.handle();
    (0..STAY).for_each(|key| _ = me.set(&key.to_be_bytes(), b"stays").unwrap());
    let is_over = AtomicBool::new(false);
    thread::scope(|s| {
        for seed in 0..3 {
            let (map, is_over) = (&map, &is_over);
            s.spawn(move || {
                let (mut me, mut random) = (map.handle(), fastrand::Rng::with_seed(seed));
                let mut round = 0;
                while !is_over.load(Ordering::Relaxed) {
                    round += 1;
                    // More and more of them: the table grows.
                    let key = (STAY + random.u64(..(round / 4 + 1).min(8 * STAY))).to_be_bytes();
                    if random.bool() { me.set(&key, b"goes") } else { me.remove(&key) }.unwrap();
                    if round % 4_096 == 0 {
                        me.set(&random.u64(..STAY).to_be_bytes(), b"stays").unwrap();
                    }
                }
            });
        }
        let _end = End(&is_over);
        for _ in 0..unless_interpreted(10, 1) {
            let stay = walk(&mut me).into_iter().filter(|(_, value)| value == b"stays");
            let stay: Vec<_> =
                stay.map(|(key, _)| u64::from_be_bytes(key.try_into().unwrap())).collect();
            assert_eq!(stay, (0..STAY).collect::<Vec<_>>());
        }
    });
}

/// When it is dropped, even after a failure, it makes the other threads stop.
struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Readers and writers continue while the map is cleared again and again.
#[test]
fn it_is_cleared_beside_others() {
    let map = <ByteMap>::default();
    thread::scope(|s| {
        let writers: Vec<_> = (0..4)
            .map(|seed| {
                let map = &map;
                s.spawn(move || {
                    let (mut me, mut random) = (map.handle(), fastrand::Rng::with_seed(seed));
                    for _ in 0..unless_interpreted(20_000, 50) {
                        let key = random.u16(..2_000).to_be_bytes();
                        match random.u8(..4) {
                            0 => _ = me.remove(&key).unwrap(),
                            1 => _ = me.get(&key, |value| assert_eq!(value, [key, key].concat())),
                            _ => _ = me.set(&key, &[key, key].concat()).unwrap(),
                        }
                    }
                })
            })
            .collect();
        let mut me = map.handle();
        while !writers.iter().all(thread::ScopedJoinHandle::is_finished) {
            me.clear().unwrap();
            me.for_each(|key, value| {
                assert_eq!(value, [key, key].concat());
                true
            });
        }
    });
    assert_eq!(all(&mut map.handle()).len(), map.len());
}

/// A panic in a function that is called with a record leaves the map unchanged, and other threads
/// continue.
#[test]
fn a_panic_changes_nothing() {
    let map = <ByteMap>::default();
    map.handle().set(b"key", b"value").unwrap();
    let panicked = thread::scope(|s| {
        s.spawn(|| {
            let mut me = map.handle();
            let mut locked = me.lock_for(b"key").unwrap();
            locked.put(b"other").unwrap();
            panic::resume_unwind(Box::new(()));
        })
        .join()
        .is_err()
    });
    assert!(panicked);
    let mut me = map.handle();
    let caught = panic::catch_unwind(AssertUnwindSafe(|| {
        me.get(b"key", |_| panic::resume_unwind(Box::new(())))
    }));
    assert!(caught.is_err());
    assert_eq!(me.get(b"key", <[u8]>::to_vec).as_deref(), Some(&b"value"[..]));
    assert_eq!(me.set(b"key", b"third"), Ok(true));
}

/// Numbers as bytes, for the check of histories.
#[derive(Default)]
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

#[test]
fn it_is_linearizable() {
    for threads in [2, 3, unless_interpreted(8, 3)] {
        run::check_map(Native, &Mix::native(threads), &Numbers::default());
    }
}
