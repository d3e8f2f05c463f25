//! Runs of a mix of operations: a correct collection passes, and a fault in an incorrect one is
//! found.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use manycore_history::run::{self, Explored, Mix, Native};
use manycore_sim::backend;
use manycore_sim::explore::Exploration;
use manycore_traits::{ConcurrentMap, ConcurrentSet, MapHandle, SetHandle};

/// A map under a lock. If it is torn, a removal is two steps: a look-up, and then the removal.
struct Locked {
    values: Mutex<BTreeMap<u64, u64>>,
    torn: bool,
}

impl ConcurrentMap<u64, u64> for Locked {
    type Handle<'a> = &'a Self;

    fn handle(&self) -> &Self {
        self
    }
}

impl MapHandle<u64, u64> for &Locked {
    fn get(&mut self, key: &u64) -> Option<u64> {
        self.values.lock().unwrap().get(key).copied()
    }

    fn insert(&mut self, key: u64, value: u64) -> Option<u64> {
        self.values.lock().unwrap().insert(key, value)
    }

    fn remove(&mut self, key: &u64) -> Option<u64> {
        if !self.torn {
            return self.values.lock().unwrap().remove(key);
        }
        let before = self.get(key);
        std::thread::yield_now();
        self.values.lock().unwrap().remove(key);
        before
    }
}

#[test]
fn a_locked_map_is_linearizable() {
    let map = Locked { values: Mutex::default(), torn: false };
    run::check_map(Native, &Mix::native(4), &map);
}

#[test]
#[should_panic(expected = "not linearizable: key 0")]
fn a_torn_one_is_not() {
    // For as long as it takes.
    for seed in 0.. {
        let map = Locked { values: Mutex::default(), torn: true };
        run::check_map(Native, &Mix { keys: 1, seed, ..Mix::native(4) }, &map);
    }
}

/// Bits in a word; an insertion is one step, or two.
struct Bits {
    word: AtomicU64,
    torn: bool,
}

impl Bits {
    fn new(torn: bool) -> Self {
        Self { word: AtomicU64::new(0), torn }
    }

    /// Changes the word as one step.
    fn update(&self, change: impl Fn(u64) -> u64) -> u64 {
        backend::rmw((&raw const self.word).addr());
        self.word.fetch_update(SeqCst, SeqCst, |word| Some(change(word))).unwrap()
    }

    fn load(&self) -> u64 {
        backend::load((&raw const self.word).addr());
        self.word.load(SeqCst)
    }
}

impl ConcurrentSet<u64> for Bits {
    type Handle<'a> = &'a Self;

    fn handle(&self) -> &Self {
        self
    }
}

impl SetHandle<u64> for &Bits {
    fn contains(&mut self, key: &u64) -> bool {
        self.load() >> key & 1 == 1
    }

    fn insert(&mut self, key: u64) -> bool {
        if self.torn && self.contains(&key) {
            return false;
        }
        let before = self.update(|word| word | 1 << key);
        self.torn || before >> key & 1 == 0
    }

    fn remove(&mut self, key: &u64) -> bool {
        self.update(|word| word & !(1 << key)) >> key & 1 == 1
    }
}

#[test]
fn schedules_of_a_set_of_bits() {
    for seed in 0..3 {
        let program = || run::check_set(Explored, &Mix::explored(3, seed), &Bits::new(false));
        Exploration::default().schedules(300).check(program);
    }
}

#[test]
fn a_schedule_tears_an_insertion() {
    let found = (0..10).find_map(|seed| {
        let program = || run::check_set(Explored, &Mix::explored(3, seed), &Bits::new(true));
        Exploration::default().schedules(300).run(program).err()
    });
    let text = found.expect("one mix in ten meets it").failure.to_string();
    assert!(text.contains("not linearizable: key"), "{text}");
}
