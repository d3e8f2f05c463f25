//! redb: copy-on-write B-trees in one file.

use std::path::Path;

use redb::{Database, Durability, ReadableDatabase, TableDefinition};

use crate::engine::{Engine, Failure, Promise, Worker};

const NUMBERS: TableDefinition<'_, u64, u64> = TableDefinition::new("numbers");

struct Redb {
    database: Database,
    durability: Durability,
}

pub fn open(directory: &Path, promise: Promise) -> Result<Box<dyn Engine>, Failure> {
    let durability = match promise {
        Promise::Durable => Durability::Immediate,
        Promise::Eventual => Durability::None,
    };
    let database = Database::create(directory.join("redb"))?;
    Ok(Box::new(Redb { database, durability }))
}

impl Engine for Redb {
    fn worker(&self) -> Result<Box<dyn Worker + '_>, Failure> {
        Ok(Box::new(RedbWorker(self)))
    }
}

struct RedbWorker<'a>(&'a Redb);

impl Worker for RedbWorker<'_> {
    fn get(&mut self, key: u64) -> Result<Option<u64>, Failure> {
        let table = self.0.database.begin_read()?.open_table(NUMBERS)?;
        Ok(table.get(key)?.map(|value| value.value()))
    }

    fn put(&mut self, keys: &[u64], value: u64) -> Result<(), Failure> {
        let mut transaction = self.0.database.begin_write()?;
        transaction.set_durability(self.0.durability)?;
        let mut table = transaction.open_table(NUMBERS)?;
        for key in keys {
            table.insert(key, value)?;
        }
        drop(table);
        Ok(transaction.commit()?)
    }
}
