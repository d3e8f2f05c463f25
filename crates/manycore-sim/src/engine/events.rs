//! When each CPU and each timer is to go on: a heap in which an entry can be moved.

use crate::machine::Cycles;

/// What has a time: a CPU, or beyond those a thread's timer.
pub(crate) type Id = u32;

/// A moment, and whose it is: ordered by time, then by number. Times stay below 2^48 cycles, more than a day.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key(u64);

impl Key {
    /// Before all others.
    pub(crate) const ALWAYS: Self = Self(0);

    /// After all others.
    pub(crate) const NEVER: Self = Self(u64::MAX);

    pub(crate) fn new(time: Cycles, id: Id) -> Self {
        debug_assert!(id < 1 << 16);
        Self(time << 16 | u64::from(id))
    }

    pub(crate) fn time(self) -> Cycles {
        self.0 >> 16
    }

    pub(crate) fn id(self) -> Id {
        (self.0 & 0xFFFF) as Id
    }
}

const ABSENT: u32 = u32::MAX;
/// Children a node: a flat heap touches fewer lines of the host.
const ARITY: usize = 4;

/// The moments to come, the earliest first.
#[derive(Debug, Default)]
pub(crate) struct Events {
    heap: Vec<Key>,
    /// Where in the heap each id is.
    places: Vec<u32>,
}

impl Events {
    /// Makes room for ids below the number.
    pub(crate) fn grow(&mut self, ids: usize) {
        if self.places.len() < ids {
            self.places.resize(ids, ABSENT);
            self.heap.reserve(ids - self.heap.len());
        }
    }

    /// The earliest.
    #[inline]
    pub(crate) fn first(&self) -> Option<Key> {
        self.heap.first().copied()
    }

    /// The earliest but for the first.
    #[inline]
    pub(crate) fn second(&self) -> Key {
        let end = self.heap.len().min(ARITY + 1);
        self.heap.get(1..end).and_then(|keys| keys.iter().min().copied()).unwrap_or(Key::NEVER)
    }

    /// All of them, in no order that means anything, but the same in every run.
    pub(crate) fn all(&self) -> &[Key] {
        &self.heap
    }

    /// Sets or moves an id's moment.
    pub(crate) fn set(&mut self, id: Id, time: Cycles) {
        let key = Key::new(time, id);
        let place = self.places[id as usize];
        if place == ABSENT {
            self.heap.push(key);
            self.rise(self.heap.len() - 1);
        } else {
            let before = std::mem::replace(&mut self.heap[place as usize], key);
            if key < before { self.rise(place as usize) } else { self.sink(place as usize) }
        }
    }

    /// An id's moment, if it has one.
    pub(crate) fn time_of(&self, id: Id) -> Option<Cycles> {
        let place = *self.places.get(id as usize)?;
        self.heap.get(place as usize).map(|key| key.time())
    }

    /// Takes an id's moment away, if it has one.
    pub(crate) fn remove(&mut self, id: Id) {
        let place = self.places[id as usize];
        if place == ABSENT {
            return;
        }
        self.places[id as usize] = ABSENT;
        let last = self.heap.pop().expect("the id is in the heap");
        let place = place as usize;
        if let Some(removed) = self.heap.get_mut(place) {
            let before = std::mem::replace(removed, last);
            if last < before { self.rise(place) } else { self.sink(place) }
        }
    }

    fn rise(&mut self, mut place: usize) {
        let key = self.heap[place];
        while place > 0 {
            let parent = (place - 1) / ARITY;
            if self.heap[parent] < key {
                break;
            }
            self.put(place, self.heap[parent]);
            place = parent;
        }
        self.put(place, key);
    }

    fn sink(&mut self, mut place: usize) {
        let key = self.heap[place];
        loop {
            let first = place * ARITY + 1;
            let end = (first + ARITY).min(self.heap.len());
            let Some(children) = self.heap.get(first..end) else { break };
            let (mut least, mut at) = (key, place);
            for (child, other) in children.iter().enumerate() {
                if *other < least {
                    (least, at) = (*other, first + child);
                }
            }
            if at == place {
                break;
            }
            self.put(place, least);
            place = at;
        }
        self.put(place, key);
    }

    fn put(&mut self, place: usize, key: Key) {
        self.heap[place] = key;
        self.places[key.id() as usize] = place as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_first_whatever_is_moved() {
        let mut random = fastrand::Rng::with_seed(3);
        let mut events = Events::default();
        events.grow(64);
        let mut model = std::collections::BTreeMap::new();
        for _ in 0..20_000 {
            let id = random.u32(0..64);
            if random.u8(0..4) == 0 {
                events.remove(id);
                model.remove(&id);
            } else {
                let time = random.u64(0..1000);
                events.set(id, time);
                model.insert(id, time);
            }
            let mut keys: Vec<_> = model.iter().map(|(id, time)| Key::new(*time, *id)).collect();
            keys.sort();
            assert_eq!(events.first(), keys.first().copied());
            assert_eq!(events.second(), keys.get(1).copied().unwrap_or(Key::NEVER));
            assert_eq!(events.time_of(id), model.get(&id).copied());
        }
    }
}
