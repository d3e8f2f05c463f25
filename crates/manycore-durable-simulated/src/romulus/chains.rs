//! A set in words: sorted lists of nodes, one for each bucket.

use super::copies::{Changes, Copies};
use crate::persistence::{Persistence, WORDS};

/// Words of a node: the key, the next node, and an allocator's words before each.
const NODE: usize = 4;
/// The word that leads to the first free node.
const FREE: usize = 0;
/// The word behind the last node that was ever made.
const END: usize = 1;

/// Where the set's parts are.
#[derive(Clone, Copy, Debug)]
pub struct Chains {
    buckets: usize,
}

/// What changes a set, as one word that is not 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// Puts a key in.
    Insert(u64),
    /// Takes a key out.
    Remove(u64),
}

impl Request {
    /// The word.
    pub fn encode(self) -> u64 {
        match self {
            Self::Insert(key) => key << 2 | 1,
            Self::Remove(key) => key << 2 | 2,
        }
    }

    /// What the word says.
    pub fn decode(word: u64) -> Self {
        match word & 3 {
            1 => Self::Insert(word >> 2),
            _ => Self::Remove(word >> 2),
        }
    }
}

impl Chains {
    /// This many lists.
    pub fn new(buckets: usize) -> Self {
        Self { buckets }
    }

    /// Words for this many keys.
    pub fn words(self, keys: usize) -> usize {
        self.first_node() + NODE * (keys + 1)
    }

    fn first_node(self) -> usize {
        (WORDS + self.buckets).next_multiple_of(NODE)
    }

    fn bucket(self, key: u64) -> usize {
        WORDS + (key % self.buckets as u64) as usize
    }

    /// The link that leads to the first node whose key is not smaller, and that node.
    fn find(self, load: impl Fn(usize) -> u64, key: u64) -> (usize, usize) {
        let mut link = self.bucket(key);
        loop {
            let node = load(link) as usize;
            if node == 0 || load(node) >= key {
                return (link, node);
            }
            link = node + 1;
        }
    }

    /// Whether a key is there.
    pub fn contains<P: Persistence>(self, copies: &Copies<P>, key: u64) -> bool {
        let (_, node) = self.find(|word| copies.load(word), key);
        node != 0 && copies.load(node) == key
    }

    /// Does what is requested; returns whether the set has changed.
    pub fn apply<P: Persistence>(self, changes: &mut Changes<'_, P>, request: Request) -> bool {
        let (Request::Insert(key) | Request::Remove(key)) = request;
        let (link, node) = self.find(|word| changes.load(word), key);
        let is_there = node != 0 && changes.load(node) == key;
        match request {
            Request::Insert(_) if !is_there => {
                let new = self.take_node(changes);
                changes.store(new, key);
                changes.store(new + 1, node as u64);
                changes.store(link, new as u64);
                true
            }
            Request::Remove(_) if is_there => {
                changes.store(link, changes.load(node + 1));
                changes.store(node + 1, changes.load(FREE));
                changes.store(FREE, node as u64);
                true
            }
            _ => false,
        }
    }

    fn take_node<P: Persistence>(self, changes: &mut Changes<'_, P>) -> usize {
        match changes.load(FREE) as usize {
            0 => {
                let node = (changes.load(END) as usize).max(self.first_node());
                changes.store(END, (node + NODE) as u64);
                node
            }
            node => {
                changes.store(FREE, changes.load(node + 1));
                node
            }
        }
    }

    /// All keys, bucket by bucket.
    pub fn keys<P: Persistence>(self, copies: &Copies<P>) -> Vec<u64> {
        let mut keys = Vec::new();
        for bucket in 0..self.buckets {
            let mut node = copies.load(WORDS + bucket) as usize;
            while node != 0 {
                keys.push(copies.load(node));
                node = copies.load(node + 1) as usize;
            }
        }
        keys
    }
}
