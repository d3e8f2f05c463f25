//! Lists and hashes in the kernel: `bench` on the boot line; and names in directories,
//! `bench=names`. It counts; times of an emulated machine say nothing.

mod names;

use alloc::format;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicI64, Ordering};

use manycore::collections::Locked;
use manycore::collections::hash::{ChainedTable, MvrluTable, RcuTable, RluTable};
use manycore::collections::list::{LockedList, MvrluList, RcuList, RluList};
use manycore::lock::Adaptive;
use manycore::{ConcurrentSet, SetHandle, mvrlu, rlu};

use super::selftest::on_all_cpus;
use crate::arch::cpu;
use crate::println;
use crate::watch::counters::{Event, total};

/// Keys are below this; half of them are there.
const KEYS: u64 = 512;
const BUCKETS: usize = 64;
const OPERATIONS: u64 = 2_000;
/// Operations of a hundred that insert or remove.
const UPDATES: [u64; 3] = [2, 20, 50];

/// How keys are chosen.
#[derive(Clone, Copy)]
enum Keys {
    /// Each as often as any other.
    Uniform,
    /// The n-th a n-th as often as the first.
    Zipf,
}

/// Pseudo-random numbers, the same at each boot.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}

/// The cumulative weights of the keys.
fn weights() -> Vec<u64> {
    let mut sum = 0;
    (1..=KEYS)
        .map(|rank| {
            sum += (1 << 32) / rank;
            sum
        })
        .collect()
}

fn choose(keys: Keys, weights: &[u64], random: &mut Random) -> u64 {
    let number = random.next();
    match keys {
        Keys::Uniform => number % KEYS,
        Keys::Zipf => {
            let at = number % weights[weights.len() - 1];
            let rank = weights.partition_point(|&sum| sum <= at) as u64;
            rank * 167 % KEYS // frequent keys are not neighbours: 167 and 512 have no common divisor
        }
    }
}

/// What a mechanism has counted.
trait Counted {
    fn counts(&self) -> String {
        String::new()
    }
}

macro_rules! counted {
    ($($set:ty: $($name:ident)*;)*) => {$(
        impl Counted for $set {
            fn counts(&self) -> String {
                let stats = self.domain().stats();
                let mut text = String::new();
                $(text += &format!(" {}={}", stringify!($name), stats.$name);)*
                text
            }
        }
    )*};
}
counted! {
    MvrluList<u64, ()>: commits aborts versions hops periods forced;
    MvrluTable<u64, ()>: commits aborts versions hops periods forced;
    RluList<u64, ()>: commits aborts copies steals waits;
    RluTable<u64, ()>: commits aborts copies steals waits;
}
impl Counted for RcuList<u64, (), Adaptive> {}
impl Counted for RcuTable<u64, (), Adaptive> {}
impl Counted for LockedList<u64, (), Adaptive> {}
impl Counted for Locked<ChainedTable<u64, ()>, Adaptive> {}

fn measure<S>(name: &str, updates: u64, keys: Keys, set: S)
where
    S: ConcurrentSet<u64> + Counted + Send + Sync + 'static,
{
    let mut handle = set.handle();
    (0..KEYS).step_by(2).for_each(|key| {
        handle.insert(key);
    });
    drop(handle);
    let shared = Arc::new((set, AtomicI64::new(KEYS as i64 / 2), weights()));
    let (sleeps, switches) = (total(Event::FutexSleeps), total(Event::Switches));
    let of_threads = shared.clone();
    on_all_cpus(move |number| {
        let (set, size, weights) = &*of_threads;
        let mut handle = set.handle();
        let mut random = Random(0x9e37_79b9_7f4a_7c15 + number as u64);
        for _ in 0..OPERATIONS {
            let key = choose(keys, weights, &mut random);
            let change = match random.next() % 200 {
                dice if dice < updates => i64::from(handle.insert(key)),
                dice if dice < 2 * updates => -i64::from(handle.remove(&key)),
                _ => {
                    core::hint::black_box(handle.contains(&key));
                    0
                }
            };
            size.fetch_add(change, Ordering::Relaxed); // Relaxed: the threads are waited for
        }
    });
    let (set, size, _) = &*shared;
    let mut handle = set.handle();
    let found = (0..KEYS).filter(|key| handle.contains(key)).count() as i64;
    let expected = size.load(Ordering::Relaxed); // Relaxed: as above
    assert!(
        found == expected,
        "{name}: the structure has {found} keys, but the results of the operations add up to {expected}"
    );
    let keys = match keys {
        Keys::Uniform => "uniform",
        Keys::Zipf => "zipf",
    };
    println!(
        "bench {name} updates={updates}% keys={keys} operations={}{} lock_sleeps={} switches={}",
        OPERATIONS * cpu::count() as u64,
        set.counts(),
        total(Event::FutexSleeps) - sleeps,
        total(Event::Switches) - switches
    );
}

/// What the boot line asks for.
pub fn run(what: &str) -> bool {
    match what.split_once(':').unwrap_or((what, "")) {
        ("", _) => sets(),
        ("names", workload) => names::run(workload),
        _ => {
            println!("bench={what}: it is bench, bench=names or bench=names:WORKLOAD");
            false
        }
    }
}

/// Runs all structures, mechanisms, rates of updates and distributions of keys.
fn sets() -> bool {
    for updates in UPDATES {
        for keys in [Keys::Uniform, Keys::Zipf] {
            measure("list lock", updates, keys, LockedList::<u64, (), Adaptive>::default());
            measure("list rcu", updates, keys, RcuList::<u64, (), Adaptive>::default());
            measure("list rlu", updates, keys, RluList::<u64, ()>::default());
            measure("list mvrlu", updates, keys, MvrluList::<u64, ()>::default());
            let chained = ChainedTable::new(BUCKETS);
            measure("hash lock", updates, keys, Locked::<_, Adaptive>::new(chained));
            let rcu =
                RcuTable::<u64, (), Adaptive>::new(BUCKETS, manycore::reclaim::Config::default());
            measure("hash rcu", updates, keys, rcu);
            let rlu = RluTable::<u64, ()>::with_buckets(rlu::Domain::default(), BUCKETS);
            measure("hash rlu", updates, keys, rlu);
            let mvrlu = MvrluTable::<u64, ()>::with_buckets(mvrlu::Domain::default(), BUCKETS);
            measure("hash mvrlu", updates, keys, mvrlu);
        }
    }
    println!("kernel faults: {}", total(Event::KernelFaults));
    total(Event::KernelFaults) == 0
}
