//! A tournament finds the run whose item comes first: it is a tree in which each node has the
//! better of the two below.

use alloc::vec::Vec;

use crate::sync::cell::UnsafeCell;

/// The key of a run that has no item.
pub(super) const NONE: u64 = u64::MAX;

/// A key, and its owner. In a cell, so that the simulator charges for it.
struct Node(UnsafeCell<(u64, usize)>);

impl Node {
    fn new() -> Self {
        Self(UnsafeCell::new((NONE, 0)))
    }

    fn get(&self) -> (u64, usize) {
        // SAFETY: only `set` writes, which borrows the node mutably.
        self.0.with(|node| unsafe { *node })
    }

    fn set(&mut self, to: (u64, usize)) {
        // SAFETY: `&mut self`: no other reference to the node is in use.
        self.0.with_mut(|node| unsafe { *node = to });
    }
}

/// A tree of keys, smallest at the root.
///
/// The nodes below node `i` are `2 * i` and `2 * i + 1`; the root is 1; the last half are the
/// leaves.
pub(super) struct Tournament {
    nodes: Vec<Node>,
    leaves: usize,
}

impl Tournament {
    pub fn new() -> Self {
        Self { nodes: Vec::new(), leaves: 0 }
    }

    /// Adds a leaf without a key. Its number is the number of leaves before it.
    pub fn add(&mut self) {
        if self.leaves == self.nodes.len() / 2 {
            let leaves: Vec<_> = (0..self.leaves).map(|leaf| self.key(leaf)).collect();
            let nodes = 4 * self.leaves.max(1);
            self.nodes.clear();
            self.nodes.resize_with(nodes, Node::new);
            leaves.into_iter().enumerate().for_each(|(leaf, key)| self.set(leaf, key));
        }
        self.leaves += 1;
    }

    fn key(&self, leaf: usize) -> u64 {
        self.nodes[self.nodes.len() / 2 + leaf].get().0
    }

    /// Gives a leaf a key.
    pub fn set(&mut self, leaf: usize, key: u64) {
        let mut node = self.nodes.len() / 2 + leaf;
        self.nodes[node].set((key, leaf));
        while node > 1 {
            node /= 2;
            let better = self.nodes[2 * node].get().min(self.nodes[2 * node + 1].get());
            self.nodes[node].set(better);
        }
    }

    /// The smallest key, and its owner; none if there are no keys.
    pub fn winner(&self) -> Option<(u64, usize)> {
        self.nodes.get(1).map(Node::get).filter(|(key, _)| *key != NONE)
    }
}

#[cfg(all(test, not(loom), not(feature = "sim")))]
mod tests {
    use alloc::vec;

    use super::*;

    #[test]
    fn the_smallest_wins_whatever_changes() {
        let (mut tournament, mut keys) = (Tournament::new(), vec![]);
        assert_eq!(tournament.winner(), None);
        let mut random = 1_u64;
        for step in 0..if cfg!(miri) { 100 } else { 2_000 } {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            if step % 50 == 0 {
                tournament.add();
                keys.push(NONE);
            }
            let leaf = (random >> 33) as usize % keys.len();
            keys[leaf] = if random >> 62 == 0 { NONE } else { random >> 20 };
            tournament.set(leaf, keys[leaf]);
            let smallest = keys.iter().copied().zip(0..).min();
            assert_eq!(tournament.winner(), smallest.filter(|(key, _)| *key != NONE));
        }
    }
}
