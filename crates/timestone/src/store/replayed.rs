//! The heap as an operation sees and changes it that is run again.

use std::collections::BTreeMap;

use super::record::{push_made, push_written};
use super::stop::Stop;
use crate::heap::{Heap, words};
use crate::journal::operation::Operation;
use crate::journal::record::record_header;

/// An operation that is run again.
pub struct Replayed<'a> {
    heap: &'a Heap,
    seed: u64,
    changed: BTreeMap<u64, Changed>,
    /// The offsets of the objects that it will create.
    places: std::vec::IntoIter<u64>,
    /// Its later reads from outside of the store.
    inputs: &'a [u8],
    /// What it did not do in the first place.
    differs: Option<&'static str>,
}

/// An object that the operation has changed or made.
struct Changed {
    before: Box<[u64]>,
    after: Box<[u64]>,
    is_new: bool,
    is_locked: bool,
    is_end: bool,
}

impl<'a> Replayed<'a> {
    pub fn new(heap: &'a Heap, call: Operation<'a>, seed: u64) -> Self {
        let places = call.places().collect::<Vec<_>>().into_iter();
        let (changed, inputs) = (BTreeMap::new(), call.inputs);
        Self { heap, seed, changed, places, inputs, differs: None }
    }

    /// The difference between this run of the operation and the original run, after its end.
    pub fn differs(&self) -> Option<&'static str> {
        let left = [
            (!self.inputs.is_empty(), "it reads fewer inputs"),
            (self.places.len() > 0, "it makes fewer objects"),
        ];
        let left = left.into_iter().find_map(|(is_left, what)| is_left.then_some(what));
        self.differs.or(left)
    }

    /// The record of the words that it has written.
    pub fn record(&self) -> Vec<u64> {
        let mut record = record_header(0, 0, 0).to_vec();
        for (place, Changed { before, after, is_new, is_locked, is_end }) in &self.changed {
            if *is_new {
                push_made(&mut record, *place, after);
            }
            if *is_locked {
                push_written(&mut record, *place, after, before, *is_end);
            }
        }
        let length = u32::try_from(record.len() * 8).expect("it was shorter than a ring");
        [record[0], record[1]] = record_header(length, 0, 0);
        record
    }

    pub fn seed(&self) -> u64 {
        self.seed
    }

    pub fn heap(&self) -> &Heap {
        self.heap
    }

    /// Whether there can be an object of this number of words at an offset. It may also be one that
    /// this operation has created, which the heap does not know yet.
    pub fn has_object(&self, place: u64, words: usize) -> bool {
        match self.changed.get(&place) {
            Some(changed) => changed.after.len() == words::rounded(words),
            None => self.heap.has_object(place, words),
        }
    }

    /// The number of words of the object at a place; also of one that this operation has created.
    pub fn object_words(&self, place: u64) -> Option<usize> {
        let changed = self.changed.get(&place).map(|changed| changed.after.len());
        changed.or_else(|| self.heap.object_words(place))
    }

    pub fn object(&self, place: u64, words: usize) -> &[u64] {
        match self.changed.get(&place) {
            Some(changed) => &changed.after,
            None => self.before(place, words),
        }
    }

    fn before(&self, place: u64, words: usize) -> &'a [u64] {
        // SAFETY: no domain has the heap, and `Replay` fills it only when the operation has ended.
        unsafe { self.heap.read(place, words) }
    }

    fn locked(&mut self, place: u64, words: usize) -> &mut Changed {
        let before = self.before(place, words);
        let changed = self.changed.entry(place).or_insert_with(|| Changed {
            before: before.into(),
            after: before.into(),
            is_new: false,
            is_locked: false,
            is_end: false,
        });
        changed.is_locked = true;
        changed
    }

    pub fn lock(&mut self, place: u64, words: usize) -> &mut [u64] {
        &mut self.locked(place, words).after
    }

    pub fn free(&mut self, place: u64, words: usize) {
        self.locked(place, words).is_end = true;
    }

    /// Creates an object at its original offset.
    pub fn allocate(&mut self, first: &[u64]) -> Result<u64, Stop> {
        let place = self.places.next().ok_or_else(|| self.stop("it makes more objects"))?;
        let mut words = vec![0; words::rounded(first.len())];
        words[..first.len()].copy_from_slice(first);
        let (before, after) = (words.clone().into(), words.into());
        let new = Changed { before, after, is_new: true, is_locked: false, is_end: false };
        self.changed.insert(place, new);
        Ok(place)
    }

    /// The original result of the read, which must have this number of bytes.
    pub fn input(&mut self, bytes: usize) -> Result<&'a [u8], Stop> {
        let split = self.inputs.split_at_checked(bytes);
        let (input, rest) = split.ok_or_else(|| self.stop("it reads more inputs"))?;
        self.inputs = rest;
        Ok(input)
    }

    /// Notes why the operation cannot go on.
    fn stop(&mut self, what: &'static str) -> Stop {
        self.differs.get_or_insert(what);
        Stop::Cancel
    }
}
