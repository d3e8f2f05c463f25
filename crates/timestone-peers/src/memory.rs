//! A map of `manycore` without a store: what durability costs.

use std::path::Path;

use manycore::collections::space::{Handle, HashMap};

use crate::engine::{Engine, Failure, Promise, Worker};

struct Memory(HashMap<u64, u64>);

struct MemoryWorker<'m> {
    map: &'m HashMap<u64, u64>,
    me: Handle<'m>,
}

pub fn open(_directory: &Path, _promise: Promise) -> Result<Box<dyn Engine>, Failure> {
    Ok(Box::new(Memory(HashMap::new())))
}

impl Engine for Memory {
    fn worker(&self) -> Result<Box<dyn Worker + '_>, Failure> {
        Ok(Box::new(MemoryWorker { map: &self.0, me: self.0.space().handle() }))
    }
}

impl Worker for MemoryWorker<'_> {
    fn get(&mut self, key: u64) -> Result<Option<u64>, Failure> {
        Ok(self.map.by(&mut self.me).get(&key))
    }

    fn put(&mut self, keys: &[u64], value: u64) -> Result<(), Failure> {
        if let [key] = keys {
            self.map.by(&mut self.me).set(*key, value);
            return Ok(());
        }
        self.me.transact(|tx| {
            keys.iter().try_for_each(|key| tx.set(self.map, *key, value).map(|_| ()))
        });
        Ok(())
    }
}
