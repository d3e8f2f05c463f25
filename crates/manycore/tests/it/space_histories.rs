//! An order explains the reads and writes of transactions over maps in a space on native threads,
//! more than CPUs: ranges, inserted keys and removed keys.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use manycore::collections::hash::FixedState;
use manycore::collections::space::{HashMap, Limit, Map, Space, Transaction};
use manycore::collections::versioned::art::Art;
use manycore::collections::versioned::btree::BPlus;
use manycore::collections::versioned::{Ordered, Seek, Structure};
use manycore::session::{Conflict, Sessions};
use manycore::sync::hint;
use manycore::{mvrlu, rlu};
use manycore_history::history;
use manycore_history::run::unless_interpreted;
use manycore_history::snapshot::{self, Isolation};

const KEYS: u64 = 6;
const ROUNDS: u64 = unless_interpreted(200, 12);
/// The least number of commits. A history with fewer shows little, so the threads continue until
/// then.
const COMMITTED_AT_LEAST: u64 = ROUNDS / 2;

/// A map of versions; and for keys that it does not have, the version at which they were removed.
struct Versions<P: Structure, M: Sessions + 'static> {
    there: Map<u64, u64, P, M>,
    gone: HashMap<u64, u64, FixedState, M>,
}

impl<P, M: Sessions> Versions<P, M>
where
    P: Seek<u64, u64> + Ordered<u64, u64> + Structure<Settings: Default>,
{
    /// All versions, by a range over those that are there.
    fn read(
        &self,
        tx: &Transaction<'_, '_, '_, M>,
        seen: &mut snapshot::Transaction,
        from_back: bool,
    ) -> [u64; KEYS as usize] {
        let mut all = [0; KEYS as usize];
        let entries = tx.range(&self.there, 0..KEYS).map(|(key, version)| (*key, *version));
        let there: Vec<_> = if from_back { entries.rev().collect() } else { entries.collect() };
        there.iter().for_each(|&(key, version)| all[key as usize] = version);
        for (key, version) in (0..).zip(&mut all) {
            if *version == 0 {
                *version = tx.get(&self.gone, &key).copied().unwrap_or(0);
            }
            seen.read(key, *version);
        }
        all
    }

    /// Reads all keys, gives two of them a unique version, perhaps by removing one, and reads
    /// again.
    fn change<'m>(
        &'m self,
        tx: &mut Transaction<'_, '_, 'm, M>,
        seen: &mut snapshot::Transaction,
        changed: [u64; 2],
        version: u64,
    ) -> Result<(), Conflict> {
        let mut all = self.read(tx, seen, version.is_multiple_of(2));
        for (nth, key) in (0..).zip(changed) {
            // Others come in between, also where there is one CPU.
            if version.is_multiple_of(3) {
                hint::yield_now();
            }
            let old = std::mem::replace(&mut all[key as usize], version);
            if old == version {
                continue;
            }
            if (version + nth).is_multiple_of(3) {
                tx.delete(&self.there, &key)?;
                tx.set(&self.gone, key, version)?;
            } else {
                tx.insert(&self.there, key, version)?;
                tx.delete(&self.gone, &key)?;
            }
            seen.write(key, old, version);
        }
        self.read(tx, seen, version.is_multiple_of(5));
        Ok(())
    }
}

fn an_order_explains_it<P, M: Sessions + 'static>(
    space: &Space<M>,
    threads: u32,
    isolation: Isolation,
) where
    P: Seek<u64, u64> + Ordered<u64, u64> + Structure<Settings: Default>,
{
    let clock = history::Clock::new();
    let versions = Versions::<P, M> { there: Map::new_in(space), gone: HashMap::new_in(space) };
    // Each key is in one of the maps, so a transaction that changes it locks its place there. If a
    // key were in neither map, two transactions could each put it into another map without a
    // conflict.
    (0..KEYS).for_each(|key| _ = versions.gone.set(key, 0));
    // Some keys that no thread requests, so that there is more than one node.
    (0..10).for_each(|n| _ = versions.there.set(100 + n, 0));
    let limit = Limit::attempts(1);
    let limit = if isolation.serializable { limit.serializable() } else { limit };
    let committed = AtomicU64::new(0);
    let work = |me: u32| {
        let mut random = fastrand::Rng::with_seed(me.into());
        let (mut member, mut log) = (space.handle(), Vec::new());
        let enough = || committed.load(Ordering::Relaxed) >= COMMITTED_AT_LEAST;
        for round in (1..).take_while(|&round| round <= ROUNDS || !enough()) {
            let mut seen = snapshot::Transaction::begin(&clock, me);
            let (changed, version) =
                ([(); 2].map(|()| random.u64(..KEYS)), u64::from(me) << 32 | round);
            let ended =
                member.transact_with(limit, |tx| versions.change(tx, &mut seen, changed, version));
            log.push(match ended {
                Ok(()) => {
                    committed.fetch_add(1, Ordering::Relaxed);
                    seen.commit(&clock)
                }
                Err(_) => {
                    hint::yield_now();
                    seen.abort(&clock)
                }
            });
        }
        log
    };
    let logs = thread::scope(|scope| {
        let work = &work;
        let workers: Vec<_> = (0..threads).map(|me| scope.spawn(move || work(me))).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect::<Vec<_>>()
    });
    if let Err(violation) = snapshot::check(&logs, isolation) {
        panic!("no order explains it: {violation}");
    }
}

fn all<P, M: Sessions + Default + 'static>(isolation: Isolation)
where
    P: Seek<u64, u64> + Ordered<u64, u64> + Structure<Settings: Default>,
{
    [2, unless_interpreted(12, 3)].into_iter().for_each(|threads| {
        an_order_explains_it::<P, M>(&Space::default(), threads, isolation);
    });
}

#[test]
fn of_the_radix_tree() {
    all::<Art, mvrlu::Domain>(Isolation::STRICT);
    all::<Art, rlu::Domain>(Isolation::STRICT);
}

#[test]
fn of_the_radix_tree_with_transactions_that_are_serializable() {
    all::<Art, mvrlu::Domain>(Isolation::STRICT_SERIALIZABLE);
    all::<Art, rlu::Domain>(Isolation::STRICT_SERIALIZABLE);
}

#[test]
fn of_the_b_tree() {
    all::<BPlus<3, 3>, mvrlu::Domain>(Isolation::STRICT);
    all::<BPlus<3, 3>, rlu::Domain>(Isolation::STRICT);
}

#[test]
fn of_the_b_tree_with_transactions_that_are_serializable() {
    all::<BPlus<3, 3>, mvrlu::Domain>(Isolation::STRICT_SERIALIZABLE);
    all::<BPlus<3, 3>, rlu::Domain>(Isolation::STRICT_SERIALIZABLE);
}
