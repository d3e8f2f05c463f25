//! A balanced tree of intervals for one thread. Its nodes belong to the caller.

use core::cmp::Ordering;
use core::ptr::{self, NonNull};

use crate::Interval;
use crate::sync::cell::UnsafeCell;
use crate::sync::{const_new, hint};

/// An interval with its place in a tree.
#[derive(Debug)]
pub struct Entry {
    interval: Interval,
    links: UnsafeCell<Links>,
}

type Link = *const Entry;

#[derive(Clone, Copy, Debug)]
struct Links {
    /// To what comes before, and to what comes after.
    below: [Link; 2],
    /// The largest last number of the interval and of those below.
    reach: u64,
    /// The number of nodes on the longest way down, with this one.
    height: u8,
}

// SAFETY: only functions of the entry's tree read and write its links, and no thread does if it is
// in no tree (contract of `IntervalTree::insert`); one thread at a time uses a tree.
unsafe impl Send for Entry {}
// SAFETY: a shared reference gives the interval only, which does not change while the entry exists.
unsafe impl Sync for Entry {}

impl Entry {
    const_new! {
        /// Creates one in no tree.
        pub fn new(interval: Interval) -> Self {
            let links = Links { below: [ptr::null(); 2], reach: interval.last, height: 1 };
            Self { interval, links: UnsafeCell::new(links) }
        }
    }

    /// The interval.
    pub fn interval(&self) -> Interval {
        self.interval
    }
}

/// An AVL tree of intervals, ordered by their first numbers; each node stores the largest last
/// number below it.
///
/// Invariant: the links from `root` lead to each entry that was inserted and not removed, by
/// exactly one path. The heights of an entry's two sides differ by at most one.
#[derive(Debug)]
pub struct IntervalTree {
    root: Link,
}

// SAFETY: entries are valid as long as they are in the tree (contract of `insert`), and only the
// tree reads and writes their links.
unsafe impl Send for IntervalTree {}

impl IntervalTree {
    /// Creates one without intervals.
    #[must_use]
    pub const fn new() -> Self {
        Self { root: ptr::null() }
    }

    /// Puts an entry in.
    ///
    /// # Safety
    ///
    /// The entry is in no tree, and does not move until it is removed from this one.
    pub unsafe fn insert(&mut self, entry: NonNull<Entry>) {
        let new = entry.as_ptr().cast_const();
        // SAFETY: the entry is in this tree, where it stays and does not move (contract of this
        // function).
        let last = unsafe { entry.as_ref() }.interval.last;
        set_links(new, Links { below: [ptr::null(); 2], reach: last, height: 1 });
        self.root = inserted(self.root, new);
    }

    /// Takes an entry out.
    ///
    /// # Safety
    ///
    /// It is in this tree.
    pub unsafe fn remove(&mut self, entry: NonNull<Entry>) {
        self.root = removed(self.root, entry.as_ptr().cast_const());
    }

    /// Calls `found` for each interval that has a number from `first` to `last`, in order.
    pub fn overlaps(&self, first: u64, last: u64, found: &mut dyn FnMut(Interval)) {
        visit(self.root, first, last, found);
    }

    /// Whether there is no interval.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.root.is_null()
    }
}

impl Default for IntervalTree {
    fn default() -> Self {
        Self::new()
    }
}

// A tree calls the functions below with null, with entries of its own, or with the entry that it is
// about to insert.

fn interval(entry: Link) -> Interval {
    // SAFETY: callers pass entries of their tree, or the one that it is about to insert: these are
    // valid (contract of `IntervalTree::insert`), and an interval does not change.
    unsafe { (*entry).interval }
}

fn links(entry: Link) -> Links {
    // SAFETY: the entry is valid, as callers pass entries of their tree; only the tree writes their
    // links, and callers have borrowed it.
    unsafe { (*entry).links.with(|links| *links) }
}

fn set_links(entry: Link, new: Links) {
    // SAFETY: the entry is valid, as callers pass entries of their tree; they have borrowed it
    // mutably, and no reference to links is kept.
    unsafe { (*entry).links.with_mut(|links| *links = new) };
}

/// By first number and order; entries that are equal in both are ordered by their addresses.
fn compare(a: Link, b: Link) -> Ordering {
    interval(a).cmp(&interval(b)).then(a.addr().cmp(&b.addr()))
}

fn height(entry: Link) -> u8 {
    if entry.is_null() { 0 } else { links(entry).height }
}

/// Sets an entry's child, and updates the rest of its links.
fn update(entry: Link, below: [Link; 2]) {
    let (mut reach, mut deepest) = (interval(entry).last, 0);
    for side in below.into_iter().filter(|side| !side.is_null()) {
        let of_side = links(side);
        reach = reach.max(of_side.reach);
        deepest = deepest.max(of_side.height);
    }
    set_links(entry, Links { below, reach, height: deepest + 1 });
}

/// Rotates: the entry's child on one side becomes the top, and the child's subtree on the other
/// side moves to the entry. Returns the top.
fn rotated(entry: Link, side: usize) -> Link {
    let of_entry = links(entry).below;
    let top = of_entry[side];
    let mut of_top = links(top).below;
    let mut below = of_entry;
    below[side] = of_top[1 - side];
    update(entry, below);
    of_top[1 - side] = entry;
    update(top, of_top);
    top
}

/// Sets an entry's child, whose height differs from the other child's by two at most; returns the
/// top of the rebalanced subtree.
fn balanced(entry: Link, mut below: [Link; 2]) -> Link {
    let heights = below.map(height);
    let side = usize::from(heights[1] > heights[0]);
    if heights[0].abs_diff(heights[1]) < 2 {
        update(entry, below);
        return entry;
    }
    let of_side = links(below[side]).below;
    if height(of_side[1 - side]) > height(of_side[side]) {
        below[side] = rotated(below[side], 1 - side);
    }
    update(entry, below);
    rotated(entry, side)
}

fn inserted(root: Link, new: Link) -> Link {
    if root.is_null() {
        return new;
    }
    let mut below = links(root).below;
    hint::unforeseen_branch();
    let side = usize::from(compare(new, root) == Ordering::Greater);
    below[side] = inserted(below[side], new);
    balanced(root, below)
}

fn removed(root: Link, entry: Link) -> Link {
    assert!(!root.is_null(), "the entry is not in this tree");
    let mut below = links(root).below;
    hint::unforeseen_branch();
    match compare(entry, root) {
        Ordering::Equal => match below {
            [rest, none] | [none, rest] if none.is_null() => rest,
            [before, after] => {
                let (first, rest) = without_first(after);
                balanced(first, [before, rest])
            }
        },
        order => {
            let side = usize::from(order == Ordering::Greater);
            below[side] = removed(below[side], entry);
            balanced(root, below)
        }
    }
}

/// The first entry, and what is left without it.
fn without_first(root: Link) -> (Link, Link) {
    let below = links(root).below;
    if below[0].is_null() {
        return (root, below[1]);
    }
    let (first, rest) = without_first(below[0]);
    (first, balanced(root, [rest, below[1]]))
}

fn visit(root: Link, first: u64, last: u64, found: &mut dyn FnMut(Interval)) {
    if root.is_null() {
        return;
    }
    let Links { below, reach, .. } = links(root);
    hint::unforeseen_branch();
    if reach < first {
        return;
    }
    visit(below[0], first, last, found);
    let interval = interval(root);
    if interval.first <= last {
        if interval.last >= first {
            found(interval);
        }
        visit(below[1], first, last, found);
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::vec::Vec;

    use super::*;

    /// Checks the tree's invariants; returns height and reach.
    fn check(root: Link) -> (u8, u64) {
        if root.is_null() {
            return (0, 0);
        }
        let of_root = links(root);
        let [(left, reach_left), (right, reach_right)] = of_root.below.map(check);
        assert!(left.abs_diff(right) < 2, "out of balance");
        let reach = interval(root).last.max(reach_left).max(reach_right);
        assert_eq!((of_root.height, of_root.reach), (left.max(right) + 1, reach));
        (of_root.height, reach)
    }

    #[test]
    fn a_list_of_intervals_agrees() {
        let mut seed = 42_u64;
        let mut below = |limit: u64| {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            seed % limit
        };
        let entries: Vec<Entry> = (0..300)
            .map(|order| {
                let first = below(200);
                Entry::new(Interval { first, order: order / 2, last: first + below(20) })
            })
            .collect();
        let mut tree = IntervalTree::new();
        let mut present = BTreeMap::new();
        for _ in 0..if cfg!(miri) { 60 } else { 6_000 } {
            let index = below(300) as usize;
            let entry = NonNull::from(&entries[index]);
            // SAFETY: `present` says whether the entry is in the tree; the entries outlive that.
            unsafe {
                match present.remove(&index) {
                    Some(()) => tree.remove(entry),
                    None => {
                        present.insert(index, ());
                        tree.insert(entry);
                    }
                }
            }
            let (first, mut found) = (below(220), Vec::new());
            let last = first + below(10);
            tree.overlaps(first, last, &mut |interval| found.push(interval));
            let mut expected: Vec<_> =
                present.keys().map(|index| entries[*index].interval()).collect();
            expected.retain(|interval| interval.first <= last && interval.last >= first);
            expected.sort();
            assert_eq!(found, expected);
            check(tree.root);
        }
    }
}
