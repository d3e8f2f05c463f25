//! Transactions of 16 requests.

use std::collections::BTreeSet;

use manycore_traits::Conflict;

use super::database::{Changes, Parts, Rows, Session, Table};
use super::task::Task;
use crate::index::key_of;
use crate::popularity::Ranks;

/// Requests of a transaction.
pub(super) const REQUESTS: usize = 16;

/// Each thread draws this many records before the start, and then uses them again and again.
const DRAWN: usize = 1 << 16;

/// A transaction: the keys of its records, all different, each with whether it adds to the record.
pub(super) type Requests = [(u64, bool); REQUESTS];

/// The part in which a record is.
pub(super) fn part(key: u64) -> u64 {
    key >> 58
}

/// What a thread draws from.
pub(super) struct Draws {
    random: fastrand::Rng,
    records: u64,
    /// The share of requests that write.
    update: f64,
    /// The drawn ranks; empty if all records are equally popular.
    drawn: Box<[u64]>,
    next: usize,
}

impl Draws {
    pub fn new(task: &Task, seed: u64, ranks: &Ranks) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let drawn = ranks.draw(DRAWN, &mut random);
        let (records, update) = (task.size.records, task.update / 100.0);
        Self { random, records, update, drawn, next: 0 }
    }

    fn record(&mut self) -> u64 {
        if self.drawn.is_empty() {
            return self.random.u64(..self.records);
        }
        self.next = (self.next + 1) % self.drawn.len();
        self.drawn[self.next]
    }

    pub fn draw(&mut self) -> Requests {
        let mut requests = [(0, false); REQUESTS];
        for number in 0..REQUESTS {
            let mut key = key_of(self.record());
            // Popular ranks would otherwise take long to draw, if there are few.
            while requests[..number].iter().any(|(known, _)| *known == key) {
                key = key_of(self.random.u64(..self.records));
            }
            requests[number] = (key, self.random.f64() < self.update);
        }
        requests
    }
}

/// Puts in the records.
pub(super) fn fill(session: &mut dyn Session, task: &Task, between: &mut dyn FnMut()) {
    for number in 0..task.size.records {
        let key = key_of(number);
        session.transact(Parts::ALL, &mut |rows| rows.set(Table::Record, key, [0; 4]));
        between();
    }
}

/// Runs a transaction; returns how many records it has added to.
pub(super) fn run(session: &mut dyn Session, requests: &Requests) -> u64 {
    let mut parts = Parts::default();
    requests.iter().for_each(|(key, _)| parts.add(part(*key)));
    let writes = requests.iter().filter(|(_, writes)| *writes).count() as u64;
    if writes == 0 {
        session.read(parts, &mut |rows| {
            for (key, _) in requests {
                std::hint::black_box(rows.get(Table::Record, *key));
            }
        });
    } else {
        session.transact(parts, &mut |rows| transact(rows, requests));
    }
    writes
}

fn transact(rows: &mut dyn Changes, requests: &Requests) -> Result<(), Conflict> {
    for (key, writes) in requests {
        let row = rows.get(Table::Record, *key);
        match row {
            Some(row) if *writes => {
                let [count, ..] = row;
                rows.set(Table::Record, *key, [count + 1, row[1], row[2], row[3]])?;
            }
            _ => _ = std::hint::black_box(row),
        }
    }
    Ok(())
}

/// Whether all that was added is there, and all records.
pub(super) fn verify(
    session: &mut dyn Session,
    task: &Task,
    added: u64,
    between: &mut dyn FnMut(),
) -> Result<(), String> {
    let (mut sum, mut missing) = (0, BTreeSet::new());
    session.read(Parts::ALL, &mut |rows: &dyn Rows| {
        for number in 0..task.size.records {
            match rows.get(Table::Record, key_of(number)) {
                Some([count, ..]) => sum += count,
                None => _ = missing.insert(number),
            }
            between();
        }
    });
    if let Some(missing) = missing.first() {
        return Err(format!("record {missing} is not there at the end"));
    }
    match sum == added {
        true => Ok(()),
        false => Err(format!("of {added} that were added to records, {sum} are there")),
    }
}
