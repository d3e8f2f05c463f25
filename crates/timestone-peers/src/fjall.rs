//! fjall: a log-structured merge tree.

use std::path::Path;

use fjall::{Database, Keyspace, KeyspaceCreateOptions, PersistMode};

use crate::engine::{Engine, Failure, Promise, Worker};

struct Fjall {
    database: Database,
    numbers: Keyspace,
    mode: Option<PersistMode>,
}

pub fn open(directory: &Path, promise: Promise) -> Result<Box<dyn Engine>, Failure> {
    let mode = (promise == Promise::Durable).then_some(PersistMode::SyncData);
    let database = Database::builder(directory).open()?;
    let numbers = database.keyspace("numbers", KeyspaceCreateOptions::default)?;
    Ok(Box::new(Fjall { database, numbers, mode }))
}

impl Engine for Fjall {
    fn worker(&self) -> Result<Box<dyn Worker + '_>, Failure> {
        Ok(Box::new(FjallWorker(self)))
    }
}

struct FjallWorker<'a>(&'a Fjall);

impl Worker for FjallWorker<'_> {
    fn get(&mut self, key: u64) -> Result<Option<u64>, Failure> {
        let value = self.0.numbers.get(key.to_be_bytes())?;
        let number = |value: fjall::UserValue| value.as_ref().try_into().map(u64::from_le_bytes);
        Ok(value.map(number).transpose()?)
    }

    fn put(&mut self, keys: &[u64], value: u64) -> Result<(), Failure> {
        let mut batch = self.0.database.batch().durability(self.0.mode);
        for key in keys {
            batch.insert(&self.0.numbers, key.to_be_bytes(), value.to_le_bytes());
        }
        Ok(batch.commit()?)
    }
}
