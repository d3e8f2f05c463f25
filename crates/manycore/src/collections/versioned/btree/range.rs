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
use crate::sync::hint;

/// A position between two entries.
struct Gap<'r, K, V, const LEAF: usize> {
    link: Link<Leaf<K, V, LEAF>>,
    leaf: &'r Leaf<K, V, LEAF>,
    /// The number of entries of the leaf before the position.
    at: usize,
}

/// The entries between two gaps.
pub struct Range<'r, K, V, S, O, const LEAF: usize, const INNER: usize> {
    anchor: Link<Anchor>,
    session: &'r S,
    observer: O,
    front: Gap<'r, K, V, LEAF>,
    /// The number of entries of the leaf at the front that are before the back.
    limit: usize,
    /// `None` until a caller asks for the last entry of a range without an end.
    back: Option<Gap<'r, K, V, LEAF>>,
    /// The inner nodes on the way to the leaf at the back.
    path: Path,
}

/// Prefetches the first lines of the keys and of the values of the next leaf. The core's own
/// prefetcher continues from there.
fn prefetch<K, V, const LEAF: usize>(link: Link<Leaf<K, V, LEAF>>) {
    let leaf = link.as_ptr();
    if !leaf.is_null() {
        for begin in [0, Leaf::<K, V, LEAF>::VALUES] {
            hint::prefetch(leaf.wrapping_byte_add(begin));
            hint::prefetch(leaf.wrapping_byte_add(begin + LINE));
        }
    }
}

/// Bytes of a cache line.
const LINE: usize = 64;

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
        // SAFETY: the session is one of the tree's domain (contract of this function), which is
        // what `walk` asks for.
        unsafe { Self::walk::<K, V, S>(anchor, session, |_| Ordering::Greater, |_| ()).1 }
    }

    /// The entries of a range.
    ///
    /// # Panics
    ///
    /// If the range begins after its end, as for ranges of the standard library's maps.
    ///
    /// # Safety
    ///
    /// The caller is in a snapshot of the tree's domain, and changes nothing as long as it uses the
    /// result.
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
        // SAFETY: the contract of this function is that of `walk`, which finds the leaf.
        let front = unsafe {
            let (link, leaf) = match start {
                Bound::Included(key) | Bound::Excluded(key) => {
                    Self::walk::<K, V, S>(anchor, session, order(key), |_| ())
                }
                Bound::Unbounded => Self::walk(anchor, session, |_| Ordering::Greater, |_| ()),
            };
            Gap { link, leaf, at: leaf.partition(|key| is_before(key, start)) }
        };
        observer.observe(front.link);
        let limit = front.leaf.len();
        let mut range =
            Range { anchor, session, observer, front, limit, back: None, path: Path::new() };
        if let Bound::Included(key) | Bound::Excluded(key) = end {
            // SAFETY: the session is a snapshot of the tree's domain, and lasts as long as the
            // range (contract of this function).
            let back = unsafe { range.set_back(order(key)) };
            // SAFETY: the session lasts (contract of this function), and has found the leaf.
            back.at = unsafe { back.leaf.partition(|key| is_within(key, end)) };
            range.meet();
        } else {
            prefetch(range.front.leaf.end.next);
        }
        range
    }
}

impl<'r, K, V, S, O, const LEAF: usize, const INNER: usize> Range<'r, K, V, S, O, LEAF, INNER>
where
    K: Datum,
    V: Datum,
    S: RawSession,
    O: Observe<S>,
{
    /// Sets the back to the end of the leaf in which a key is or would be.
    ///
    /// # Safety
    ///
    /// As for [`entries`](BPlus::entries), with this session.
    unsafe fn set_back(&mut self, order: impl Fn(&K) -> Ordering) -> &mut Gap<'r, K, V, LEAF> {
        let path = &mut self.path;
        let over = |node| path.push(node);
        // SAFETY: the session is a snapshot of the tree's domain, and lasts as long as the range
        // (contract of this function).
        let (link, leaf) = unsafe {
            BPlus::<LEAF, INNER>::walk::<K, V, S>(self.anchor, self.session, order, over)
        };
        if link != self.front.link {
            self.observer.observe(link);
        }
        self.back.insert(Gap { link, leaf, at: leaf.len() })
    }

    /// Whether both ends are in one leaf.
    fn is_last(&self) -> bool {
        self.back.as_ref().is_some_and(|back| back.link == self.front.link)
    }

    /// Compares the ends after one of them has moved to another leaf.
    fn meet(&mut self) {
        self.limit = match &self.back {
            Some(back) if back.link == self.front.link => back.at,
            _ => self.front.leaf.len(),
        };
    }

    /// The entry at an index of a leaf.
    fn entry(leaf: &'r Leaf<K, V, LEAF>, at: usize) -> (&'r K, &'r V) {
        // SAFETY: the leaf was found in a session that lasts as long as `'r` (contract of
        // `entries`); its keys and values live as long.
        unsafe { (read(&leaf.keys()[at]).get(), read(&leaf.values()[at]).get()) }
    }

    /// Moves the front to the next leaf.
    fn step(&mut self) {
        let link = self.front.leaf.end.next;
        // SAFETY: the session lasts, and has found the leaf (contract of `entries`).
        self.front = Gap { link, leaf: unsafe { &*self.session.deref(link) }, at: 0 };
        self.meet();
        if !self.is_last() {
            self.observer.observe(link);
        }
        prefetch(self.front.leaf.end.next);
    }

    /// Moves the back to the leaf before this one. Returns false if there is none, or if
    /// comparisons of keys contradict each other.
    fn step_back(&mut self, from: Link<Leaf<K, V, LEAF>>) -> bool {
        let mut child = untyped(from);
        let mut level = self.path.length;
        loop {
            let Some(above) = level.checked_sub(1) else { return false };
            level = above;
            // SAFETY: the session lasts, and has found the nodes of the path (contract of
            // `entries`).
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
        self.back = Some(Gap { link, leaf, at: leaf.len() });
        self.meet();
        if !self.is_last() {
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

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        while self.front.at >= self.limit {
            if self.is_last() || self.front.leaf.end.next.is_null() {
                return None;
            }
            self.step();
        }
        self.front.at += 1;
        Some(Self::entry(self.front.leaf, self.front.at - 1))
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
        if self.back.is_none() {
            // SAFETY: the session lasts (contract of `entries`).
            unsafe { self.set_back(|_| Ordering::Less) };
            self.meet();
        }
        loop {
            let is_last = self.is_last();
            let first = if is_last { self.front.at } else { 0 };
            let back = self.back.as_mut()?;
            if back.at > first {
                back.at -= 1;
                let (leaf, at) = (back.leaf, back.at);
                if is_last {
                    self.limit = at;
                }
                return Some(Self::entry(leaf, at));
            }
            let link = back.link;
            if is_last || !self.step_back(link) {
                return None;
            }
        }
    }
}
