//! Copying the objects of a store into a heap of their own, close together.
//!
//! The catalog names the structures, and each is walked: the structure determines which words of an
//! object are places. Objects to which nothing leads stay behind, and so do nodes of maps that have
//! no key any more.

use std::sync::Arc;

use super::catalog::{self, Known};
use super::list;
use super::ordered::{INNER, children_at};
use super::queue;
use super::read_only::ReadOnly;
use super::registry;
use super::transaction::sealed::Objects;
use super::trie::{NODE, NODE_WORDS};
use crate::error::{Error, Result};
use crate::heap::{Heap, ROOT, ROOT_WORDS};

struct Compaction<'a> {
    from: &'a ReadOnly,
    to: &'a Arc<Heap>,
}

/// Copies all structures into an empty heap.
///
/// # Safety
///
/// No domain and no other thread uses the new heap.
pub unsafe fn copy(from: &ReadOnly, to: &Arc<Heap>) -> Result<()> {
    let compaction = Compaction { from, to };
    let mut first = 0;
    // Each entry leads to the next: so the last one comes first.
    for known in catalog::all(from).iter().rev() {
        let root = compaction.structure(known)?;
        first = compaction.add(&known.moved(first, root))?;
    }
    let mut root = [0; ROOT_WORDS];
    root.copy_from_slice(from.object(ROOT, ROOT_WORDS));
    root[0] = first;
    let operations = root[registry::FIRST];
    root[registry::FIRST] = compaction.list(operations, operations == 0)?;
    // SAFETY: no other thread uses the new heap, as the caller ensures.
    unsafe { to.set_root(root) };
    Ok(())
}

impl Compaction<'_> {
    fn add(&self, words: &[u64]) -> Result<u64> {
        // SAFETY: a `Compaction` is there only in `copy`, whose contract is the same.
        unsafe { self.to.add(words) }
    }

    fn structure(&self, known: &Known<'_>) -> Result<u64> {
        let sizes = catalog::sizes(&known.schema);
        match (known.schema.split_once(" from "), &*sizes) {
            (Some(("a map", _)), [_, _]) => self.map(known.root),
            (Some(("an ordered map", _)), [key, _]) => self.tree(known.root, key.div_ceil(8)),
            _ if known.schema.starts_with("a queue of ") => self.queue(known.root),
            _ if known.schema.starts_with("a list of ") => self.linked(known.root),
            _ => Err(Error::Schema {
                name: known.name.clone(),
                found: known.schema.clone(),
                wanted: "a structure that this version knows".to_owned(),
            }),
        }
    }

    /// All words of an object, whose size follows from its offset.
    fn whole(&self, place: u64) -> Vec<u64> {
        let words = self.from.words_at(place);
        self.from.object(place, words).to_vec()
    }

    fn map(&self, root: u64) -> Result<u64> {
        self.add(&self.children(root)?)
    }

    /// The words of a map's node, with the new offsets of its children.
    fn children(&self, node: u64) -> Result<Vec<u64>> {
        let words = &self.from.object(node, NODE_WORDS)[..NODE_WORDS];
        words.iter().map(|word| self.child(*word)).collect()
    }

    /// The new word for a child: 0 if the child has no key, and its leaf if it has only one.
    fn child(&self, word: u64) -> Result<u64> {
        if word & NODE == 0 {
            return self.list(word, word == 0);
        }
        let words = self.children(word & !NODE)?;
        let mut there = words.iter().filter(|word| **word != 0);
        match (there.next(), there.next()) {
            (None, _) => Ok(0),
            (Some(only), None) if only & NODE == 0 => Ok(*only),
            _ => Ok(self.add(&words)? | NODE),
        }
    }

    /// Copies a list of objects, each of which begins with the offset of the next.
    fn list(&self, first: u64, is_empty: bool) -> Result<u64> {
        if is_empty {
            return Ok(0);
        }
        self.chain(first).map(|places| places[0])
    }

    /// The new offsets of the objects of a non-empty list.
    fn chain(&self, first: u64) -> Result<Vec<u64>> {
        let (mut all, mut place) = (Vec::new(), first);
        while place != 0 {
            let words = self.whole(place);
            place = words[0];
            all.push(words);
        }
        let (mut places, mut next) = (Vec::new(), 0);
        for mut words in all.into_iter().rev() {
            words[0] = next;
            next = self.add(&words)?;
            places.push(next);
        }
        places.reverse();
        Ok(places)
    }

    fn tree(&self, root: u64, key_words: usize) -> Result<u64> {
        let mut words = self.whole(root);
        words[0] = self.node(words[0], key_words)?;
        self.add(&words)
    }

    fn node(&self, word: u64, key_words: usize) -> Result<u64> {
        let mut words = self.whole(word & !INNER);
        if word & INNER == 0 {
            return self.add(&words);
        }
        let (first, keys) = (children_at(key_words), words[0] as usize);
        for child in &mut words[first..=first + keys] {
            *child = self.node(*child, key_words)?;
        }
        Ok(self.add(&words)? | INNER)
    }

    /// The objects of a list with their new offsets. The words of an object can be written only
    /// once both neighbours have new offsets.
    fn linked(&self, root: u64) -> Result<u64> {
        let mut old = vec![root];
        let mut place = self.from.object(root, list::ROOT_WORDS)[list::BEHIND];
        while place != 0 && place != root {
            old.push(place);
            place = self.whole(place)[list::BEHIND];
        }
        let new: Vec<u64> =
            old.iter().map(|place| self.add(&self.whole(*place))).collect::<Result<_>>()?;
        if old.len() > 1 {
            for (index, place) in new.iter().enumerate() {
                let before = new[(index + new.len() - 1) % new.len()];
                let behind = new[(index + 1) % new.len()];
                // SAFETY: a `Compaction` exists only in `copy`, whose contract is the same; the
                // object was just added, with more words than these.
                unsafe { self.to.set_first(*place, [before, behind]) };
            }
        }
        Ok(new[0])
    }

    fn queue(&self, root: u64) -> Result<u64> {
        let front = self.from.object(root, queue::ROOT_WORDS)[0];
        let nodes = self.chain(self.from.object(front, queue::END_WORDS)[0])?;
        let ends = [nodes.first(), nodes.last()].map(|node| *node.expect("a list with a node"));
        let [front, back] = ends.map(|node| self.add(&[node]));
        self.add(&[front?, back?])
    }
}
