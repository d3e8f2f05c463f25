//! The writes of a transaction, and the expected state after all of them.

use std::collections::BTreeMap;
use std::path::Path;

use timestone::{Map, Options, Session, Stop, Store, Transaction};

use crate::Outcome;

pub const THREADS: u64 = 2;
/// The number of transactions of each thread. They are numbered from 1.
pub const COMMITS: u64 = 200;

/// Changed by each transaction of any thread.
const TOTAL: u64 = u64::MAX;
/// The number of a thread's objects that each of its transactions changes. With 50, the journal is
/// half full several times.
const CHANGED: u64 = 50;

/// The number of the last commit of each thread that was acknowledged.
pub type Acknowledged = BTreeMap<u64, u64>;

/// The smallest possible journal, so that images are written beside commits.
pub fn options() -> Options {
    Options::default().with_journal_bytes(1 << 20).with_heap_bytes(64 << 20)
}

pub fn open(store: &Store) -> timestone::Result<Map<u64, u64>> {
    store.map("numbers")
}

fn changed(thread: u64) -> impl Iterator<Item = u64> {
    (0..CHANGED).map(move |place| thread * 1000 + place)
}

/// The object that the transaction of this number makes.
fn made(thread: u64, number: u64) -> u64 {
    (thread + 1) * 1_000_000 + number
}

/// The transaction of this number.
pub fn write(
    tx: &mut Transaction<'_, '_>,
    numbers: Map<u64, u64>,
    thread: u64,
    number: u64,
) -> Result<(), Stop> {
    for key in changed(thread).chain([made(thread, number)]) {
        numbers.insert(tx, key, number)?;
    }
    let total = numbers.get(tx, &TOTAL).unwrap_or(0);
    numbers.insert(tx, TOTAL, total + 1)?;
    Ok(())
}

/// Opens the store that a power cut has left, and returns a description of its fault: an
/// acknowledged transaction is missing, or a transaction is there only in part.
pub fn judge(directory: &Path, acknowledged: &Acknowledged) -> Outcome<Result<(), String>> {
    if !directory.is_dir() {
        // It may have been cut before anything was promised.
        return Ok(promised(&Acknowledged::new(), acknowledged));
    }
    let store = match Store::open_with(directory, options()) {
        Ok(store) => store,
        Err(error) => return Ok(Err(format!("the store cannot be opened: {error}"))),
    };
    let numbers = open(&store)?;
    let mut me = store.register()?;
    Ok(me.read(|now| consistent(now, numbers)).and_then(|found| promised(&found, acknowledged)))
}

fn promised(found: &Acknowledged, acknowledged: &Acknowledged) -> Result<(), String> {
    for (thread, least) in acknowledged {
        let found = found.get(thread).copied().unwrap_or(0);
        if found < *least {
            return Err(format!(
                "thread {thread}: {least} commits were acknowledged, and {found} are there"
            ));
        }
    }
    Ok(())
}

/// The number of each thread's last commit, if all of each transaction is there or nothing.
fn consistent(now: &impl Session, numbers: Map<u64, u64>) -> Result<Acknowledged, String> {
    let find = |key| numbers.get(now, &key).unwrap_or(0);
    let mut last = Acknowledged::new();
    for thread in 0..THREADS {
        let found = find(thread * 1000);
        if let Some(key) = changed(thread).find(|key| find(*key) != found) {
            return Err(format!("thread {thread}: {found}, and {} at {key}", find(key)));
        }
        let is_made = |number: &u64| find(made(thread, *number)) == *number;
        let made = (1..=COMMITS).take_while(is_made).count() as u64;
        if made != found || (found + 1..=COMMITS).any(|number| is_made(&number)) {
            return Err(format!("thread {thread}: {found} commits, which made {made} objects"));
        }
        last.insert(thread, found);
    }
    let (total, sum) = (find(TOTAL), last.values().sum::<u64>());
    if total != sum {
        return Err(format!("{total} commits by their counter, and {sum} by threads"));
    }
    Ok(last)
}
