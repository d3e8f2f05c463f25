//! An adaptive radix tree (ART): a tree over the bytes of keys, read and changed in sessions.
//!
//! # Idea
//!
//! ```text
//!   anchor --> [ "" : t ]                        a node: its path, a link for each next byte
//!                   |
//!              [ "t" : e o ] -----------> (to)
//!                    |
//!              [ "te" : a n ; end ] ----> (te)    the key that ends here
//!                     |  \
//!                  (tea)  [ "ten" : d t ; end ]   ...
//! ```
//!
//! A node is there where keys part. Its *path* is all bytes with which the keys below it begin, of
//! which it has the number, its *depth*, and the last 8, its *tail*. It has a link for each byte
//! that follows, and one for the key that ends there: so a key may be the begin of another. A leaf
//! has the whole key, which says whether it is the one. Bytes between two nodes, at which no keys
//! part, are skipped.
//!
//! A node has room for 4, 16, 48 or all 256 bytes. One that is full is replaced by a larger one,
//! one that has become small by a smaller one, and one with a single link by what that leads to.
//!
//! # Why an operation on one key needs no snapshot
//!
//! It reads the latest of each object, so that a node and what is below it may be of two moments.
//! Three things never change: the path of a node, all of it counted from the beginning of keys and
//! not from the node above; the key of a leaf; and so what a link can lead to.
//!
//! 1. At each commit, a node that can be reached has all keys of the tree below it that begin with
//!    its path. For the way to it from the anchor takes at each node the byte of its path there,
//!    and the way to such a key takes the same.
//! 2. A walk reads a node at a moment when that can be reached, or reads what it had just before it
//!    was freed, which was after the walk had found it. By induction: at the moment that counts for
//!    the node above, the link was there. So these moments are in the order of the walk, and within
//!    the call.
//! 3. If the key begins with the node's path, and the node has no link for its next byte, then at
//!    that moment the key was not in the tree, by 1. If the link leads to a leaf of another key,
//!    likewise. If it leads to a node whose path the key does not have, likewise; the walk may not
//!    notice this where bytes are skipped, and go on: then it ends at no leaf, or at one whose key
//!    begins with that path, so is another, and says the same.
//! 4. If it leads to a leaf with the key, the leaf was in the tree at the moment at which it was
//!    read, or just before it was freed. What the session that freed it had there meanwhile,
//!    no other sees ([`mvrlu`](crate::mvrlu), *Two views*).
//!
//! Nothing else is needed of nodes that come between others or go: one that comes between changes
//! the link above, and not what is below.
//!
//! # Why a change is where it belongs
//!
//! A node that can be locked was not freed, and so can be reached; by 1, it is where keys that
//! begin with its path belong.
//!
//! - A key is added at a link of a node that leads nowhere: that node is locked, and the link read
//!   again. If the node is full, it is freed, and the link above it, whose node is locked and which
//!   is read again, leads to a larger one.
//! - A key is added where another is, or a node whose path it does not have: the node of that link
//!   is locked, and the link is read again. It says all about what is below, since paths and keys
//!   do not change.
//! - A value is replaced: its leaf is locked.
//! - A key is removed: its leaf is freed, and the node of its link locked; if only one link is left
//!   there, or few, the node is freed, and the one above locked.
//!
//! Nobody waits for a lock, so that threads cannot wait for each other. In a snapshot or a
//! transaction the tree is of one moment. A link that is locked and as the snapshot has it proves
//! where a key belongs, since a thread that moves that place changes the link.
//!
//! # Source
//!
//! V. Leis, A. Kemper and T. Neumann, "The adaptive radix tree: ARTful indexing for main-memory
//! databases", ICDE 2013, and V. Leis et al., "The ART of practical synchronization", DaMoN 2016,
//! whose lock-coupled and optimistic trees keep in a node the bytes since the node above, and so
//! change it when another comes between. That a node has all of its path, which never changes, and
//! that a replacement and the link to it are one transaction, is ours, as are the parts of a wide
//! node, and ends in place of a byte that ends each key.
//!
//! # Memory order
//!
//! That of the domain's sessions: nothing is shared here but what [`deref`](RawSession::deref)
//! returns and [`try_lock`](RawSession::try_lock) gives.
//!
//! # Cost
//!
//! A look-up reads a node for each byte at which keys part, at most one for each byte of the key,
//! and a leaf: no matter how many keys there are. A node of 4 is one line. A change of a value
//! copies a leaf twice, to the log and back: 24 bytes. A new key copies a node likewise: 56 to 456
//! bytes, or of a wide one 256. Keys and values that are not numbers are objects of their own.
//!
//! # When not to use it
//!
//! Where keys are compared by more than their bytes. Where whole ranges are read: leaves are one
//! object a key, and a B+tree has 30 keys in one.

mod check;
mod cursor;
mod dismantle;
mod insert;
mod key;
mod load;
mod node;
mod place;
mod range;
mod remove;
mod walk;

use core::borrow::Borrow;
use core::ops::{Bound, RangeBounds};

use super::structure::{Change, Observe, Ordered, Seek, Structure};
use super::word::{Datum, Word};
use crate::session::{Conflict, Link, RawSession, View};
pub use check::Nodes;
use cursor::Cursor;
pub use key::ArtKey;
use node::{Anchor, Below, Leaf, Path};
use place::Place;
pub use range::Range;
use walk::{Changed, Way};

/// An adaptive radix tree.
#[derive(Debug)]
pub struct Art;

impl Structure for Art {
    type Parts<K: Datum, V: Datum> = Link<Anchor>;
    type Settings = ();

    const VIEW: View = View::Latest;

    fn create<K: Datum, V: Datum, S: RawSession>(_settings: (), handle: &mut S) -> Link<Anchor> {
        super::create(handle, Anchor { root: Below::NONE })
    }

    unsafe fn for_each<'s, K: Datum, V: Datum, S: RawSession>(
        parts: &Link<Anchor>,
        session: &'s S,
        mut f: impl FnMut(&'s Word<K>, &'s Word<V>) -> bool,
    ) {
        // SAFETY: the session is a snapshot (contract of this function).
        let mut leaves = unsafe { Cursor::all(*parts, session, &()) };
        // SAFETY: the cursor is of this session, which is a snapshot.
        while let Some((_, leaf)) = unsafe { leaves.next::<K, V, S>(session, &()) } {
            if !f(&leaf.key, &leaf.value) {
                return;
            }
        }
    }

    unsafe fn dismantle<K: Datum, V: Datum, S: RawSession>(anchor: Link<Anchor>, handle: &mut S) {
        // SAFETY: the contract of this function.
        unsafe { Self::dismantle_nodes::<K, V, S>(anchor, handle) };
    }
}

impl Art {
    /// Tells of the object that has to stay as it is for a key to stay away.
    ///
    /// # Safety
    ///
    /// In the session in which the walk was.
    unsafe fn observe_absence<K: Datum + ArtKey, V: Datum, S: RawSession>(
        anchor: Link<Anchor>,
        session: &S,
        key: &[u8],
        way: &Way,
        observer: &impl Observe<S>,
    ) {
        if !observer.is_interested() {
            return;
        }
        // SAFETY: the contract of this function.
        unsafe {
            let slot = match Self::place::<K, V, S>(anchor, session, key, way) {
                Ok(Place::Between(parting)) => parting.slot,
                // In a snapshot nothing changes.
                Ok(Place::Free) | Err(Changed) => way.slot,
            };
            Self::observe(session, slot, observer);
        }
    }

    /// Puts a key in that a walk has not found.
    ///
    /// # Safety
    ///
    /// As of [`Seek::change`], in the session in which the walk was.
    unsafe fn insert<K: Datum + ArtKey, V: Datum, S: RawSession>(
        anchor: Link<Anchor>,
        session: &mut S,
        key: &[u8],
        way: &Way,
        leaf: impl FnOnce(&mut S) -> Leaf<K, V>,
    ) -> Result<(), Conflict> {
        // SAFETY: the contract of this function; what `leaf` makes is in the tree if the session
        // commits. The key's bytes are not used any more when that is called.
        unsafe {
            let place = Self::place::<K, V, S>(anchor, session, key, way);
            match place.map_err(|Changed| Conflict::Retry)? {
                Place::Free => {
                    let leaf = leaf(session);
                    let leaf: Link<Leaf<K, V>> = session.alloc(leaf);
                    Self::add(session, way, leaf.into())
                }
                Place::Between(parting) => {
                    let path = Path::of(key, parting.common);
                    let byte = key.get(parting.common).copied();
                    let leaf = leaf(session);
                    let leaf = session.alloc(leaf);
                    Self::part_ways(session, &parting, path, byte, leaf)
                }
            }
        }
    }
}

impl<K, Q> Seek<K, Q> for Art
where
    K: Datum + ArtKey + Borrow<Q>,
    Q: ArtKey + ?Sized,
{
    #[inline]
    unsafe fn find<'s, V: Datum, S: RawSession>(
        parts: &Link<Anchor>,
        session: &'s S,
        key: &Q,
        observer: &impl Observe<S>,
    ) -> Option<(&'s Word<K>, &'s Word<V>)> {
        let bytes = key.bytes();
        let key = bytes.as_ref();
        // SAFETY: the contract of this function is that of `walk`.
        unsafe {
            let (way, found) = Self::walk::<K, V, S>(*parts, session, key);
            match found {
                Some(found) if found.is_there => {
                    observer.observe(found.link);
                    Some((&found.leaf.key, &found.leaf.value))
                }
                _ => {
                    Self::observe_absence::<K, V, S>(*parts, session, key, &way, observer);
                    None
                }
            }
        }
    }

    #[inline]
    unsafe fn change<V: Datum, S: RawSession, R>(
        parts: &Link<Anchor>,
        session: &mut S,
        key: &Q,
        observer: &impl Observe<S>,
        make: impl FnOnce(&mut S) -> Word<K>,
        f: impl FnOnce(&mut S, Option<&V>) -> (Change<V>, R),
    ) -> Result<(R, isize), Conflict> {
        let (anchor, bytes) = (*parts, key.bytes());
        let key = bytes.as_ref();
        // SAFETY: the session is open (contract of this function), and what it has found stays
        // until its end. Words that leave the tree are freed once, by the thread that has their
        // leaf locked.
        unsafe {
            let (way, found) = Self::walk::<K, V, S>(anchor, session, key);
            let found = found.filter(|found| found.is_there);
            let found = found.map(|found| (found.link, found.leaf.value));
            let (change, result) = f(session, found.as_ref().map(|(_, value)| value.get()));
            let more = match (found, change) {
                (Some((link, _)), Change::Keep) => {
                    observer.observe(link);
                    0
                }
                (None, Change::Keep | Change::Remove) => {
                    Self::observe_absence::<K, V, S>(anchor, session, key, &way, observer);
                    0
                }
                (Some((link, old)), Change::Put(value)) => {
                    let leaf = &mut *session.try_lock(link)?;
                    if !leaf.value.is(old) {
                        return Err(Conflict::Retry);
                    }
                    leaf.value = value;
                    old.free(session)?;
                    0
                }
                (None, Change::Put(value)) => {
                    let leaf = |session: &mut S| Leaf { key: make(session), value };
                    Self::insert(anchor, session, key, &way, leaf)?;
                    1
                }
                (Some((link, old)), Change::Remove) => {
                    Self::unlink(session, &way)?;
                    let leaf: Leaf<K, V> = Self::take(session, link)?;
                    if !leaf.value.is(old) {
                        return Err(Conflict::Retry);
                    }
                    leaf.key.free(session)?;
                    old.free(session)?;
                    -1
                }
            };
            Ok((result, more))
        }
    }
}

impl<K, Q> Ordered<K, Q> for Art
where
    K: Datum + ArtKey + Borrow<Q>,
    Q: ArtKey + ?Sized,
{
    type Range<'r, V: Datum, S: RawSession + 'r, O: Observe<S>> = Range<'r, K, V, S, O>;

    unsafe fn range<'r, V: Datum, S: RawSession, O: Observe<S>>(
        parts: &Link<Anchor>,
        session: &'r S,
        range: &impl RangeBounds<Q>,
        observer: O,
    ) -> Range<'r, K, V, S, O> {
        let bytes = |bound: Bound<&Q>| bound.map(|key| key.bytes().as_ref().to_vec());
        let bounds = [bytes(range.start_bound()), bytes(range.end_bound())];
        // SAFETY: the contract of this function.
        unsafe { Self::range_of(*parts, session, bounds, observer) }
    }
}
