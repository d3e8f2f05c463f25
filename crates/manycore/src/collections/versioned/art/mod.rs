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
//! A node is where keys differ. Its *path* is the bytes with which all keys below it begin. The
//! node stores the number of these bytes, its *depth*, and the last 8 of them, its *tail*. It has a
//! link for each byte that follows, and one for the key that ends there, so one key may be a prefix
//! of another. A leaf has the whole key, which a search compares with its own. Bytes between two
//! nodes, at which keys do not differ, are skipped.
//!
//! A node has room for 4, 16, 48 or all 256 bytes. A full node is replaced by a larger one, and a
//! node that has become small by a smaller one. A node with a single link is replaced by that
//! link's target.
//!
//! # Why an operation on one key needs no snapshot
//!
//! A walk reads the latest version of each object, so a node and its child may be of two moments.
//! Three things never change: the path of a node, which is counted from the beginning of keys and
//! not from the node above; the key of a leaf; and thus the set of keys to which a link can lead.
//!
//! 1. At each commit, a node that can be reached has below it all keys of the tree that begin with
//!    its path: the walk to such a key takes, at each node above, the byte of the path at that
//!    place, as the walk to the node does.
//! 2. A walk reads a node at a moment when it can be reached. Or it reads the node's last state
//!    before it was freed, which was after the walk had found it. By induction: the link to the
//!    node was there at the moment that counts for the node above. So these moments are in the
//!    order of the walk, and within the call.
//! 3. If the key begins with the node's path, and the node has no link for its next byte, then by 1
//!    the key was not in the tree at that moment. The same holds if the link leads to a leaf of
//!    another key, or to a node whose path the key does not have. Where bytes are skipped, the walk
//!    may not notice the last case, and go on. Then it ends at no leaf, or at a leaf whose key
//!    begins with that path. This is another key, so the result is the same.
//! 4. If the link leads to a leaf with the key, the leaf was in the tree when it was read, or just
//!    before it was freed. Changes that the freeing session made to it meanwhile are not visible to
//!    other sessions ([`mvrlu`](crate::mvrlu), *Two views*).
//!
//! Nodes that are inserted or removed between others need no further argument: inserting a node
//! changes the link above, and not the nodes below.
//!
//! # Why a change is where it belongs
//!
//! A node that can be locked was not freed, so it can be reached; by 1, keys that begin with its
//! path belong below it.
//!
//! - A key is added at a link of a node that leads nowhere. That node is locked, and the link read
//!   again. If the node is full, it is freed, and the link above it leads to a larger one. The node
//!   of that link is locked, and the link is read again.
//! - A key is added where there is another key, or a node whose path the key does not have. The
//!   node of that link is locked, and the link is read again. The link is enough to check, since
//!   the paths and keys below it do not change.
//! - A value is replaced: its leaf is locked.
//! - A key is removed. Its leaf is freed, and the node of its link locked. If one or few links are
//!   left there, the node is freed, and the node above is locked.
//!
//! No thread waits for a lock, so there is no deadlock. In a snapshot or a transaction the tree is
//! of one moment. If a link is locked and unchanged since the snapshot, it proves where a key
//! belongs, since a thread that moves that position changes the link.
//!
//! # Source
//!
//! V. Leis, A. Kemper and T. Neumann, "The adaptive radix tree: ARTful indexing for main-memory
//! databases", ICDE 2013, and V. Leis et al., "The ART of practical synchronization", DaMoN 2016.
//! Their lock-coupled and optimistic trees store in a node the bytes since the node above, and so
//! change the node when another is inserted between the two. Our own parts are a node's whole path,
//! which never changes; a replacement and the link to it in one transaction; the parts of a wide
//! node; and links for keys that end at a node, in place of a byte that ends each key.
//!
//! # Memory order
//!
//! The order is that of the domain's sessions: only results of [`deref`](RawSession::deref) and
//! copies by [`try_lock`](RawSession::try_lock) are shared here.
//!
//! # Cost
//!
//! A look-up reads a leaf, and a node for each byte at which keys differ: at most one for each byte
//! of the key, whatever the number of keys. A node of 4 is one line. A change of a value copies a
//! leaf twice, to the log and back: 24 bytes. A new key also copies a node: 56 to 456 bytes, or for
//! a wide one 256. Keys and values that are not numbers are objects of their own.
//!
//! # When not to use it
//!
//! Where the order of keys is not that of their bytes. Where whole ranges are read: each leaf is
//! one object with one key, and a B+tree has 30 keys in an object.

mod check;
mod cursor;
mod dismantle;
mod insert;
mod insert_point;
mod key;
mod load;
mod node;
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
use insert_point::InsertPoint;
pub use key::ArtKey;
use node::{Anchor, Below, Leaf, Path};
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
        // SAFETY: the domain is the tree's, and no other thread has the tree (contract of this
        // function).
        unsafe { Self::dismantle_nodes::<K, V, S>(anchor, handle) };
    }
}

impl Art {
    /// Returns the object that has to stay unchanged for a key to stay missing.
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
        // SAFETY: the session is the one of the walk (contract of this function), so that what the
        // walk has found stays until its end.
        unsafe {
            let slot = match Self::insert_point::<K, V, S>(anchor, session, key, way) {
                Ok(InsertPoint::Between(parting)) => parting.slot,
                // In a snapshot nothing changes.
                Ok(InsertPoint::Free) | Err(Changed) => way.slot,
            };
            Self::observe(session, slot, observer);
        }
    }

    /// Inserts a key that a walk has not found.
    ///
    /// # Safety
    ///
    /// As for [`Seek::change`], in the session of the walk.
    unsafe fn insert<K: Datum + ArtKey, V: Datum, S: RawSession>(
        anchor: Link<Anchor>,
        session: &mut S,
        key: &[u8],
        way: &Way,
        leaf: impl FnOnce(&mut S) -> Leaf<K, V>,
    ) -> Result<(), Conflict> {
        // SAFETY: the contract of this function; the result of `leaf` is in the tree if the session
        // commits. The key's bytes are not used any more when `leaf` is called.
        unsafe {
            let place = Self::insert_point::<K, V, S>(anchor, session, key, way);
            match place.map_err(|Changed| Conflict::Retry)? {
                InsertPoint::Free => {
                    let leaf = leaf(session);
                    let leaf: Link<Leaf<K, V>> = session.alloc(leaf);
                    Self::add(session, way, leaf.into())
                }
                InsertPoint::Between(parting) => {
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
        // SAFETY: the session is one of the tree's domain (contract of this function), which is
        // what `walk` asks for.
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
        // SAFETY: the session is open (contract of this function), and objects that it has found
        // stay until its end. Words that leave the tree are freed once, by the thread that has
        // their leaf locked.
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
        // SAFETY: a snapshot of the tree's domain, which changes nothing while the range is used
        // (contract of this function).
        unsafe { Self::range_of(*parts, session, bounds, observer) }
    }
}
