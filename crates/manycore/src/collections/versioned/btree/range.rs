//! Entries in the order of their keys, from either end, in a session that sees one moment.

use core::borrow::Borrow;
use core::cmp::Ordering;
use core::ops::{Bound, RangeBounds};

use super::grow::untyped;
use super::node::{Anchor, Inner, Leaf, read};
use super::{BPlus, Path, order, typed};
use crate::collections::versioned::structure::Observe;
use crate::collections::versioned::word::Datum;
use crate::session::{Link, RawSession};

/// A place between entries.
struct Gap<'r, K, V, const LEAF: usize> {
    link: Link<Leaf<K, V, LEAF>>,
    leaf: &'r Leaf<K, V, LEAF>,
    /// How many entries of the leaf are before the next one.
    at: usize,
}

/// The entries between two gaps.
pub struct Range<'r, K, V, S, O, const LEAF: usize, const INNER: usize> {
    session: &'r S,
    observer: O,
    front: Gap<'r, K, V, LEAF>,
    back: Gap<'r, K, V, LEAF>,
    /// The inner nodes over which the leaf at the back is reached.
    path: Path,
}

opaque! {
    [K, V, S, O, const LEAF: usize, const INNER: usize] Range<'_, K, V, S, O, LEAF, INNER>, "Range";
}

impl<const LEAF: usize, const INNER: usize> BPlus<LEAF, INNER> {
    /// The leaf with the smallest keys.
    ///
    /// # Safety
    ///
    /// In a session of the domain to which the tree belongs.
    pub(super) unsafe fn first_leaf<K: Datum, V: Datum, S: RawSession>(
        anchor: Link<Anchor>,
        session: &S,
    ) -> &Leaf<K, V, LEAF> {
        // SAFETY: the contract of this function.
        unsafe { Self::walk::<K, V, S>(anchor, session, |_| Ordering::Greater, |_| ()).1 }
    }

    /// The entries of a range.
    ///
    /// # Panics
    ///
    /// If the range begins after its end, as of the standard library's.
    ///
    /// # Safety
    ///
    /// To be called in a snapshot of the tree's domain, which changes nothing as long as the result
    /// is used.
    pub(super) unsafe fn entries<'r, K, V, Q, S, O>(
        anchor: Link<Anchor>,
        session: &'r S,
        range: &impl RangeBounds<Q>,
        observer: O,
    ) -> Range<'r, K, V, S, O, LEAF, INNER>
    where
        K: Datum + Borrow<Q>,
        V: Datum,
        Q: Ord + ?Sized,
        S: RawSession,
        O: Observe<S>,
    {
        let (start, end) = (range.start_bound(), range.end_bound());
        if let (
            Bound::Included(first) | Bound::Excluded(first),
            Bound::Included(last) | Bound::Excluded(last),
        ) = (start, end)
        {
            let is_nothing = matches!((start, end), (Bound::Excluded(_), Bound::Excluded(_)));
            assert!(first <= last, "a range that begins after its end");
            assert!(first < last || !is_nothing, "a range that begins and ends without one key");
        }
        let is_before = |key: &K, bound: Bound<&Q>| match bound {
            Bound::Included(first) => key.borrow() < first,
            Bound::Excluded(first) => key.borrow() <= first,
            Bound::Unbounded => false,
        };
        let is_within = |key: &K, bound: Bound<&Q>| match bound {
            Bound::Included(last) => key.borrow() <= last,
            Bound::Excluded(last) => key.borrow() < last,
            Bound::Unbounded => true,
        };
        let mut path = Path::new();
        // SAFETY: the contract of this function is that of `walk`, which has found the leaves.
        unsafe {
            let front = match start {
                Bound::Included(key) | Bound::Excluded(key) => {
                    Self::walk::<K, V, S>(anchor, session, order(key), |_| ())
                }
                Bound::Unbounded => Self::walk(anchor, session, |_| Ordering::Greater, |_| ()),
            };
            let over = |node| path.push(node);
            let back = match end {
                Bound::Included(key) | Bound::Excluded(key) => {
                    Self::walk::<K, V, S>(anchor, session, order(key), over)
                }
                Bound::Unbounded => Self::walk(anchor, session, |_| Ordering::Less, over),
            };
            let at = front.1.partition(|key| is_before(key, start));
            let front = Gap { link: front.0, leaf: front.1, at };
            let at = back.1.partition(|key| is_within(key, end));
            let back = Gap { link: back.0, leaf: back.1, at };
            observer.observe(front.link);
            if front.link != back.link {
                observer.observe(back.link);
            }
            Range { session, observer, front, back, path }
        }
    }
}

impl<'r, K, V, S, O, const LEAF: usize, const INNER: usize> Range<'r, K, V, S, O, LEAF, INNER>
where
    K: Datum,
    V: Datum,
    S: RawSession,
    O: Observe<S>,
{
    /// Whether both ends are in one leaf, with nothing between them.
    fn is_empty(&self) -> bool {
        self.front.link == self.back.link && self.front.at >= self.back.at
    }

    /// The entry at a place of a leaf.
    fn entry(leaf: &'r Leaf<K, V, LEAF>, at: usize) -> (&'r K, &'r V) {
        // SAFETY: the leaf was found in a session that lasts as long as `'r` (contract of
        // `entries`); its keys and values live as long.
        unsafe { (read(&leaf.keys()[at]).get(), read(&leaf.values()[at]).get()) }
    }

    /// The front goes on to the next leaf.
    fn step(&mut self) {
        let link = self.front.leaf.end.next;
        // SAFETY: the session lasts, and has found the leaf (contract of `entries`).
        self.front = Gap { link, leaf: unsafe { &*self.session.deref(link) }, at: 0 };
        if link != self.back.link {
            self.observer.observe(link);
        }
    }

    /// Moves the back to the previous leaf. False if there is none; contradictory comparisons of
    /// keys can have that effect, too.
    fn step_back(&mut self) -> bool {
        let mut child = untyped(self.back.link);
        let mut level = self.path.length;
        loop {
            let Some(above) = level.checked_sub(1) else { return false };
            level = above;
            // SAFETY: the session lasts, and has come over the path (contract of `entries`).
            let node =
                unsafe { &*self.session.deref(typed::<Inner<K, INNER>>(self.path.nodes[level])) };
            match node.position(child) {
                None => return false,
                Some(0) => child = self.path.nodes[level],
                Some(place) => {
                    child = node.at(place - 1);
                    break;
                }
            }
        }
        for node in &mut self.path.nodes[level + 1..self.path.length] {
            *node = child;
            // SAFETY: the session lasts (contract of `entries`) and has found the node, on a level
            // of inner nodes.
            let inner = unsafe { &*self.session.deref(typed::<Inner<K, INNER>>(child)) };
            child = inner.at(inner.len());
        }
        let link = typed(child);
        // SAFETY: the session lasts (contract of `entries`) and has found the node, on the level of
        // leaves.
        let leaf: &Leaf<K, V, LEAF> = unsafe { &*self.session.deref(link) };
        self.back = Gap { link, leaf, at: leaf.len() };
        if link != self.front.link {
            self.observer.observe(link);
        }
        true
    }
}

impl<'r, K, V, S, O, const LEAF: usize, const INNER: usize> Iterator
    for Range<'r, K, V, S, O, LEAF, INNER>
where
    K: Datum,
    V: Datum,
    S: RawSession,
    O: Observe<S>,
{
    type Item = (&'r K, &'r V);

    fn next(&mut self) -> Option<Self::Item> {
        while !self.is_empty() {
            if self.front.at < self.front.leaf.len() {
                self.front.at += 1;
                return Some(Self::entry(self.front.leaf, self.front.at - 1));
            }
            if self.front.leaf.end.next.is_null() {
                return None;
            }
            self.step();
        }
        None
    }
}

impl<K, V, S, O, const LEAF: usize, const INNER: usize> DoubleEndedIterator
    for Range<'_, K, V, S, O, LEAF, INNER>
where
    K: Datum,
    V: Datum,
    S: RawSession,
    O: Observe<S>,
{
    fn next_back(&mut self) -> Option<Self::Item> {
        while !self.is_empty() {
            if self.back.at > 0 {
                self.back.at -= 1;
                return Some(Self::entry(self.back.leaf, self.back.at));
            }
            if !self.step_back() {
                return None;
            }
        }
        None
    }
}
