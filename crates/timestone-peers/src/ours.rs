//! TimeStone.

use std::collections::VecDeque;
use std::path::Path;

use timestone::{Durability, Map, Member, Options, Store, Ticket};

use crate::engine::{Engine, Failure, Promise, Worker};

struct Ours {
    map: Map<u64, u64>,
    store: Store,
}

struct OurWorker<'s> {
    map: Map<u64, u64>,
    me: Member<'s>,
    tickets: VecDeque<Ticket<'s, ()>>,
}

pub fn open(directory: &Path, promise: Promise) -> Result<Box<dyn Engine>, Failure> {
    let durability = match promise {
        Promise::Durable => Durability::Durable,
        Promise::Eventual => Durability::EVENTUAL,
    };
    let store = Store::open_with(directory, Options::default().with_durability(durability))?;
    Ok(Box::new(Ours { map: store.map("numbers")?, store }))
}

impl Engine for Ours {
    fn worker(&self) -> Result<Box<dyn Worker + '_>, Failure> {
        let me = self.store.register()?;
        Ok(Box::new(OurWorker { map: self.map, me, tickets: VecDeque::new() }))
    }
}

impl Worker for OurWorker<'_> {
    fn get(&mut self, key: u64) -> Result<Option<u64>, Failure> {
        Ok(self.me.read(|now| self.map.get(now, &key)))
    }

    fn put(&mut self, keys: &[u64], value: u64) -> Result<(), Failure> {
        let map = self.map;
        Ok(self
            .me
            .run(|tx| keys.iter().try_for_each(|key| map.insert(tx, *key, value).map(|_| ())))?)
    }

    fn begin_put(&mut self, keys: &[u64], value: u64) -> Result<(), Failure> {
        let map = self.map;
        let put = self
            .me
            .submit(|tx| keys.iter().try_for_each(|key| map.insert(tx, *key, value).map(|_| ())))?;
        self.tickets.push_back(put);
        Ok(())
    }

    fn finish(&mut self) -> Result<(), Failure> {
        let last = self.tickets.pop_back();
        self.tickets.clear();
        last.map_or(Ok(()), |last| Ok(last.wait()?))
    }
}
