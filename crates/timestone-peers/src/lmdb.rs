//! LMDB, by the crate heed: copy-on-write pages in a mapping.

use std::path::Path;

use heed::byteorder::NativeEndian;
use heed::types::U64;
use heed::{Database, Env, EnvFlags, EnvOpenOptions};

use crate::engine::{Engine, Failure, Promise, Worker};

type Numbers = Database<U64<NativeEndian>, U64<NativeEndian>>;

struct Lmdb {
    environment: Env,
    numbers: Numbers,
}

pub fn open(directory: &Path, promise: Promise) -> Result<Box<dyn Engine>, Failure> {
    let mut options = EnvOpenOptions::new();
    options.map_size(1 << 30);
    if promise == Promise::Eventual {
        // SAFETY: if the system crashes the database may be lost, but this benchmark makes a new
        // one each time.
        unsafe { options.flags(EnvFlags::NO_SYNC) };
    }
    // SAFETY: no other process changes the file, which is in a private directory of this process.
    let environment = unsafe { options.open(directory)? };
    let mut transaction = environment.write_txn()?;
    let numbers = environment.create_database(&mut transaction, None)?;
    transaction.commit()?;
    Ok(Box::new(Lmdb { environment, numbers }))
}

impl Engine for Lmdb {
    fn worker(&self) -> Result<Box<dyn Worker + '_>, Failure> {
        Ok(Box::new(LmdbWorker(self)))
    }
}

struct LmdbWorker<'a>(&'a Lmdb);

impl Worker for LmdbWorker<'_> {
    fn get(&mut self, key: u64) -> Result<Option<u64>, Failure> {
        let transaction = self.0.environment.read_txn()?;
        Ok(self.0.numbers.get(&transaction, &key)?)
    }

    fn put(&mut self, keys: &[u64], value: u64) -> Result<(), Failure> {
        let mut transaction = self.0.environment.write_txn()?;
        for key in keys {
            self.0.numbers.put(&mut transaction, key, &value)?;
        }
        Ok(transaction.commit()?)
    }
}
