//! Entries in the order of their keys, from either end, in a session that sees one moment.

use alloc::vec::Vec;
use core::marker::PhantomData;
use core::ops::Bound;

use super::Art;
use super::cursor::{Cursor, Side};
use super::key::ArtKey;
use super::node::{Anchor, Below};
use crate::collections::versioned::structure::Observe;
use crate::collections::versioned::word::Datum;
use crate::session::{Link, RawSession};

/// The entries of a range.
pub struct Range<'r, K, V, S, O> {
    anchor: Link<Anchor>,
    session: &'r S,
    observer: O,
    bounds: [Bound<Vec<u8>>; 2],
    /// The position for the next entry from one end, once it was asked for, and the last entry that
    /// came from there: the other end stops at that.
    ends: [(Option<Cursor>, Below); 2],
    is_over: bool,
    entries: PhantomData<fn() -> (&'r K, &'r V)>,
}

opaque! { [K, V, S, O] Range<'_, K, V, S, O>, "Range"; }

/// Refuses a range that ends before it begins.
fn check(bounds: &[Bound<Vec<u8>>; 2]) {
    if let [
        Bound::Included(first) | Bound::Excluded(first),
        Bound::Included(last) | Bound::Excluded(last),
    ] = bounds
    {
        let is_nothing = matches!(bounds, [Bound::Excluded(_), Bound::Excluded(_)]);
        assert!(first <= last, "a range that begins after its end");
        assert!(first < last || !is_nothing, "a range that begins and ends without one key");
    }
}

impl Art {
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
    pub(super) unsafe fn range_of<'r, K: Datum, V: Datum, S: RawSession, O: Observe<S>>(
        anchor: Link<Anchor>,
        session: &'r S,
        bounds: [Bound<Vec<u8>>; 2],
        observer: O,
    ) -> Range<'r, K, V, S, O> {
        check(&bounds);
        let ends = [(None, Below::NONE), (None, Below::NONE)];
        Range { anchor, session, observer, bounds, ends, is_over: false, entries: PhantomData }
    }

    /// The entries of keys that begin with these bytes.
    ///
    /// # Safety
    ///
    /// As of [`range_of`](Self::range_of).
    pub(in crate::collections) unsafe fn prefix<'r, K, V, S, O>(
        anchor: Link<Anchor>,
        session: &'r S,
        prefix: &[u8],
        observer: O,
    ) -> Range<'r, K, V, S, O>
    where
        K: Datum,
        V: Datum,
        S: RawSession,
        O: Observe<S>,
    {
        // The least key after all keys with this prefix: the last byte that can grow is one more.
        let mut next = prefix.to_vec();
        while next.pop_if(|byte| *byte == u8::MAX).is_some() {}
        let end = match next.last_mut() {
            None => Bound::Unbounded,
            Some(byte) => {
                *byte += 1;
                Bound::Excluded(next)
            }
        };
        // SAFETY: a snapshot of the tree's domain, which changes nothing while the range is used
        // (contract of this function, that of `range_of`).
        unsafe {
            Self::range_of(anchor, session, [Bound::Included(prefix.to_vec()), end], observer)
        }
    }
}

impl<'r, K, V, S, O> Range<'r, K, V, S, O>
where
    K: Datum + ArtKey,
    V: Datum,
    S: RawSession,
    O: Observe<S>,
{
    /// The next entry from an end, unless it is beyond the other.
    fn from(&mut self, side: Side) -> Option<(&'r K, &'r V)> {
        if self.is_over {
            return None;
        }
        self.is_over = true;
        let (session, observer, anchor) = (self.session, &self.observer, self.anchor);
        let bounds = self.bounds.each_ref().map(|bound| bound.as_ref().map(Vec::as_slice));
        let (near, far) = (side as usize, 1 - side as usize);
        let until = self.ends[far].1;
        let (cursor, last) = &mut self.ends[near];
        // SAFETY: the session lasts as long as `'r`, and changes nothing (contract of `range_of`);
        // so objects that it has found stay.
        unsafe {
            let cursor = cursor.get_or_insert_with(|| {
                Cursor::at_bound::<K, V, S>(anchor, session, bounds[near], side, observer)
            });
            let (link, leaf) = match side {
                Side::Front => cursor.next::<K, V, S>(session, observer),
                Side::Back => cursor.next_back::<K, V, S>(session, observer),
            }?;
            if until == link.into() {
                return None;
            }
            let is_within = |key: &[u8]| match (bounds[far], side) {
                (Bound::Unbounded, _) => true,
                (Bound::Included(end), Side::Front) => key <= end,
                (Bound::Excluded(end), Side::Front) => key < end,
                (Bound::Included(end), Side::Back) => key >= end,
                (Bound::Excluded(end), Side::Back) => key > end,
            };
            let is_bounded = !matches!(bounds[far], Bound::Unbounded);
            if is_bounded && !is_within(leaf.key.get().bytes().as_ref()) {
                return None;
            }
            observer.observe(link);
            *last = link.into();
            self.is_over = false;
            Some((leaf.key.get(), leaf.value.get()))
        }
    }
}

impl<'r, K, V, S, O> Iterator for Range<'r, K, V, S, O>
where
    K: Datum + ArtKey,
    V: Datum,
    S: RawSession,
    O: Observe<S>,
{
    type Item = (&'r K, &'r V);

    fn next(&mut self) -> Option<Self::Item> {
        self.from(Side::Front)
    }
}

impl<K, V, S, O> DoubleEndedIterator for Range<'_, K, V, S, O>
where
    K: Datum + ArtKey,
    V: Datum,
    S: RawSession,
    O: Observe<S>,
{
    fn next_back(&mut self) -> Option<Self::Item> {
        self.from(Side::Back)
    }
}
