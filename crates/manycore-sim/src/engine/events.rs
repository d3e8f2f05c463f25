//! The next event of each CPU and each timer, in a heap whose entries can be moved.

use crate::machine::Cycles;

/// The owner of a time: a CPU, or, with a number beyond those, a thread's timer.
pub(crate) type Id = u32;

/// A moment and its owner, ordered by time, then by number. Times stay below 2^48 cycles, more than
/// a day.
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

    /// The derived order, in one instruction.
    #[inline]
    pub(crate) fn earlier(self, other: Self) -> Self {
        Self(self.0.min(other.0))
    }
}

const ABSENT: u32 = u32::MAX;
/// The number of children of a node. A flat heap touches fewer cache lines of the host.
const ARITY: usize = 4;

/// Future moments, the earliest first.
#[derive(Debug)]
pub(crate) struct Events {
    /// The heap, and [`Key::NEVER`] up to a length at which every node has all its children.
    heap: Vec<Key>,
    len: usize,
    /// The index in the heap of each id.
    places: Vec<u32>,
}

impl Default for Events {
    fn default() -> Self {
        Self { heap: vec![Key::NEVER; ARITY + 1], len: 0, places: Vec::new() }
    }
}

impl Events {
    /// Makes room for ids below `ids`.
    pub(crate) fn grow(&mut self, ids: usize) {
        if self.places.len() < ids {
            self.places.resize(ids, ABSENT);
            self.heap.resize(ARITY * ids + 1, Key::NEVER);
        }
    }

    /// The earliest entry; [`Key::NEVER`] if there is none.
    #[inline]
    pub(crate) fn first(&self) -> Key {
        self.heap[0]
    }

    /// The second earliest entry.
    #[inline]
    pub(crate) fn second(&self) -> Key {
        self.first_child(0)
    }

    /// The earliest child of a node.
    #[inline]
    fn first_child(&self, place: usize) -> Key {
        let first = place * ARITY + 1;
        let [a, b, c, d] = self.heap[first..first + ARITY].try_into().expect("this many there are");
        a.earlier(b).earlier(c.earlier(d))
    }

    /// All entries, in an arbitrary order that is the same in every run.
    pub(crate) fn all(&self) -> &[Key] {
        &self.heap[..self.len]
    }

    /// Sets or moves an id's moment.
    pub(crate) fn set(&mut self, id: Id, time: Cycles) {
        let key = Key::new(time, id);
        let place = self.places[id as usize];
        if place == ABSENT {
            self.len += 1;
            self.rise(self.len - 1, key);
        } else {
            self.replace(place as usize, key);
        }
    }

    /// An id's moment, if it has one.
    pub(crate) fn time_of(&self, id: Id) -> Option<Cycles> {
        let place = *self.places.get(id as usize)?;
        self.heap.get(place as usize).map(|key| key.time())
    }

    /// Removes an id's moment, if it has one.
    pub(crate) fn remove(&mut self, id: Id) {
        let place = self.places[id as usize];
        if place == ABSENT {
            return;
        }
        self.places[id as usize] = ABSENT;
        self.len -= 1;
        let last = std::mem::replace(&mut self.heap[self.len], Key::NEVER);
        if place as usize != self.len {
            self.replace(place as usize, last);
        }
    }

    /// Stores a key at an index, and restores the heap's order.
    #[inline]
    fn replace(&mut self, place: usize, key: Key) {
        if key < self.heap[place] { self.rise(place, key) } else { self.sink(place, key) }
    }

    fn rise(&mut self, mut place: usize, key: Key) {
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

    fn sink(&mut self, mut place: usize, key: Key) {
        loop {
            let least = self.first_child(place);
            if key < least {
                break;
            }
            let below = self.places[least.id() as usize] as usize;
            self.put(place, least);
            place = below;
        }
        self.put(place, key);
    }

    #[inline]
    fn put(&mut self, place: usize, key: Key) {
        self.heap[place] = key;
        self.places[key.id() as usize] = place as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_earliest_comes_first_after_any_move() {
        let mut random = fastrand::Rng::with_seed(3);
        let mut events = Events::default();
        events.grow(20);
        events.set(19, 5);
        events.grow(64);
        assert_eq!(events.time_of(19), Some(5));
        events.remove(19);
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
            let key = |place: usize| keys.get(place).copied().unwrap_or(Key::NEVER);
            assert_eq!((events.first(), events.second()), (key(0), key(1)));
            assert_eq!(events.all().len(), keys.len());
            assert_eq!(events.time_of(id), model.get(&id).copied());
        }
    }
}
