//! A B+tree whose nodes know where they end (B-link), read and changed in sessions.
//!
//! # Idea
//!
//! ```text
//!   anchor ----> [     30     60     ]                     inner: keys, and what is below each
//!                 /      |      \
//!   [10 20 |30] -> [30 40 50 |60] -> [60 70 80 |]          leaves: keys, values | end, next
//! ```
//!
//! A node is one object. It holds the keys from its beginning, which never changes, to its *end*,
//! where the next node of its level begins. A full leaf is split: its upper part becomes a new leaf
//! to its right, which is linked from the parent in the same transaction, and so on upwards. A leaf
//! with few keys is merged with its right or left neighbour, if they have the same parent; then the
//! right one of the two is freed. At every commit the leaves have each key once.
//!
//! # Why an operation on one key needs no snapshot
//!
//! A walk reads the latest version of each node, so a parent and its child may be of two moments. A
//! node always begins at the same key. So the searched key is in the node that the walk reaches, or
//! to its right, where the node's end says so. That also holds for a node that is freed meanwhile:
//! it shows its contents at the time it was freed, which is after the walk has begun. So an answer
//! from such a node is correct for that moment, which is within the call.
//!
//! A change locks the leaf, and checks again that the key is before its end. If so, the leaf is
//! where the key belongs, since a leaf that was merged into another cannot be locked. It also locks
//! the other nodes that it changes, a parent or a neighbour, and checks that their links are as the
//! walk found them. No thread waits for a lock, so there is no deadlock.
//!
//! In a snapshot or a transaction the tree is of one moment, and the same checks hold by
//! themselves. If a leaf is locked and unchanged since the snapshot, it proves where a key belongs,
//! since a thread that moves that position locks the leaf.
//!
//! # Keys
//!
//! A key that separates two leaves remains when the entry from which it comes is removed. So it is
//! a clone, and belongs to the border between the leaves: when these are merged, it is freed.
//! Borders between inner nodes are also borders between leaves, and use the same keys.
//!
//! # Source
//!
//! P. L. Lehman and S. B. Yao, "Efficient locking for concurrent operations on B-trees", TODS 1981,
//! for ends and links to the right. V. Lanin and D. Shasha, "A symmetric concurrent B-tree
//! algorithm", FJCC 1986, for merges into the left node. J. Kim et al., "MV-RLU: Scaling
//! read-log-update with multi-versioning", ASPLOS 2019, have nodes of a tree as objects. Our own
//! part is that a split and its changes above are one transaction, so that a tree of one moment is
//! complete.
//!
//! # Memory order
//!
//! The order is that of the domain's sessions: only results of [`deref`](RawSession::deref) and
//! copies by [`try_lock`](RawSession::try_lock) are shared here.
//!
//! # Cost
//!
//! A look-up reads one node a level, and touches some of its lines. A change copies its leaf twice,
//! to the log and back: 512 bytes. Keys and values that are not numbers are objects of their own,
//! and a comparison follows a link.
//!
//! # When not to use it
//!
//! Where keys are only looked up one by one: a hash table has one level. Where all threads change
//! one key.

mod check;
mod dismantle;
mod grow;
mod load;
mod node;
mod range;
mod shrink;

use core::borrow::Borrow;
use core::cmp::Ordering;
use core::ops::RangeBounds;

use super::structure::{Change, Observe, Ordered, Seek, Structure};
use super::word::{Datum, Word};
use crate::session::{Conflict, Link, RawSession, View};
use crate::sync::mutation;
use node::{Anchor, Inner, Leaf, read};
pub use range::Range;

/// A B+tree with at most this many entries in a leaf, and at most this many keys in an inner node:
/// 3 or more of each.
#[derive(Debug)]
pub struct BPlus<const LEAF: usize, const INNER: usize>;

/// Leaves of 512 bytes, inner nodes of 1 KiB.
pub type Usual = BPlus<30, 61>;

/// The largest number of levels of inner nodes: more than fit into any memory.
const HEIGHT_MAX: usize = 32;

/// The inner nodes that a walk has passed, one for each level; the last one is at the lowest level.
struct Path {
    nodes: [Link<()>; HEIGHT_MAX],
    length: usize,
}

impl Path {
    fn new() -> Self {
        Self { nodes: [Link::NULL; HEIGHT_MAX], length: 0 }
    }

    fn push<T>(&mut self, node: Link<T>) {
        self.nodes[self.length] = Link::from_ptr(node.as_ptr());
        self.length += 1;
    }

    /// The node of the lowest level. None if a leaf is the root, or that level is the leaves'.
    fn pop<T>(&mut self) -> Option<Link<T>> {
        self.length = self.length.checked_sub(1)?;
        Some(Link::from_ptr(self.nodes[self.length].as_ptr()))
    }
}

/// A link to a node, together with the node's level, which determines its type.
fn typed<T>(node: Link<()>) -> Link<T> {
    Link::from_ptr(node.as_ptr())
}

impl<const LEAF: usize, const INNER: usize> BPlus<LEAF, INNER> {
    const SIZES: () = assert!(LEAF >= 3 && INNER >= 3, "a node has room for three keys at least");

    /// The leaf in which a key is, or would be. `order` compares a key of the tree with the
    /// searched one.
    ///
    /// # Safety
    ///
    /// In a session of the domain to which the tree belongs.
    #[inline]
    unsafe fn walk<K: Datum, V: Datum, S: RawSession>(
        anchor: Link<Anchor>,
        session: &S,
        order: impl Fn(&K) -> Ordering,
        mut passed: impl FnMut(Link<Inner<K, INNER>>),
    ) -> (Link<Leaf<K, V, LEAF>>, &Leaf<K, V, LEAF>) {
        // SAFETY: the session is open (contract of this function); the anchor stays as long as the
        // tree, and links that a session has found lead to nodes that stay until its end. The
        // number of levels determines the types of nodes: a node never changes its level.
        unsafe {
            let Anchor { root, height } = *session.deref(anchor);
            let mut below = root;
            for _ in 0..height {
                let mut link = typed::<Inner<K, INNER>>(below);
                let mut node = &*session.deref(link);
                while node.end.is_passed(&order) {
                    link = node.end.next;
                    node = &*session.deref(link);
                }
                passed(link);
                below = node.at(node.place(&order));
            }
            let mut link = typed::<Leaf<K, V, LEAF>>(below);
            let mut leaf = &*session.deref(link);
            while leaf.end.is_passed(&order) {
                link = leaf.end.next;
                leaf = &*session.deref(link);
            }
            (link, leaf)
        }
    }
}

/// The order of a key of the tree and the searched one.
#[inline]
fn order<K: Borrow<Q>, Q: Ord + ?Sized>(key: &Q) -> impl Fn(&K) -> Ordering {
    move |of_tree| of_tree.borrow().cmp(key)
}

impl<const LEAF: usize, const INNER: usize> Structure for BPlus<LEAF, INNER> {
    type Parts<K: Datum, V: Datum> = Link<Anchor>;
    type Settings = ();

    const VIEW: View = View::Latest;

    fn create<K: Datum, V: Datum, S: RawSession>(_settings: (), handle: &mut S) -> Link<Anchor> {
        const { Self::SIZES };
        let root = super::create(handle, Leaf::<K, V, LEAF>::new());
        super::create(handle, Anchor { root: Link::from_ptr(root.as_ptr()), height: 0 })
    }

    unsafe fn for_each<'s, K: Datum, V: Datum, S: RawSession>(
        parts: &Link<Anchor>,
        session: &'s S,
        mut f: impl FnMut(&'s Word<K>, &'s Word<V>) -> bool,
    ) {
        // SAFETY: the contract of this function is that of `first_leaf`; links that a snapshot has
        // found lead to nodes that stay until its end.
        unsafe {
            let mut leaf = Self::first_leaf::<K, V, S>(*parts, session);
            loop {
                if !leaf.keys().iter().zip(leaf.values()).all(|(key, value)| f(key, value)) {
                    return;
                }
                if leaf.end.next.is_null() {
                    return;
                }
                leaf = &*session.deref(leaf.end.next);
            }
        }
    }

    unsafe fn dismantle<K: Datum, V: Datum, S: RawSession>(anchor: Link<Anchor>, handle: &mut S) {
        // SAFETY: the domain is the tree's, and no other thread has the tree (contract of this
        // function).
        unsafe { Self::dismantle_levels::<K, V, S>(anchor, handle) };
    }
}

impl<K, Q, const LEAF: usize, const INNER: usize> Seek<K, Q> for BPlus<LEAF, INNER>
where
    K: Datum + Ord + Clone + Borrow<Q>,
    Q: Ord + ?Sized,
{
    #[inline]
    unsafe fn find<'s, V: Datum, S: RawSession>(
        parts: &Link<Anchor>,
        session: &'s S,
        key: &Q,
        observer: &impl Observe<S>,
    ) -> Option<(&'s Word<K>, &'s Word<V>)> {
        let order = order(key);
        // SAFETY: the contract of this function is that of `walk`, which has found the leaf.
        unsafe {
            let (link, leaf) = Self::walk::<K, V, S>(*parts, session, &order, |_| ());
            observer.observe(link);
            let at = leaf.search(&order).ok()?;
            Some((&leaf.keys()[at], read(&leaf.values()[at])))
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
        let (anchor, order) = (*parts, order(key));
        // SAFETY: the session is open (contract of this function), and objects that it has found
        // stay until its end. References into the leaf are not used any more when the leaf is
        // locked, which may be this session's own copy already. Words that leave the tree are freed
        // once, by the thread that has their leaf locked.
        unsafe {
            let mut path = Path::new();
            let (link, leaf) =
                Self::walk::<K, V, S>(anchor, session, &order, |node| path.push(node));
            let found = leaf.search(&order).ok().map(|at| *read(&leaf.values()[at]));
            let (change, result) = f(session, found.as_ref().map(|value| value.get()));
            if matches!(change, Change::Keep) || found.is_none() && matches!(change, Change::Remove)
            {
                observer.observe(link);
                return Ok((result, 0));
            }
            let leaf = session.try_lock(link)?;
            if (*leaf).end.is_passed(&order) && !mutation!("btree-trusts") {
                return Err(Conflict::Retry);
            }
            let more = match ((*leaf).search(&order), found, change) {
                (Ok(at), Some(found), Change::Put(value)) if (*leaf).values()[at].is(found) => {
                    (*leaf).replace(at, value);
                    found.free(session)?;
                    0
                }
                (Err(at), None, Change::Put(value)) => {
                    let key = make(session);
                    Self::add(session, anchor, &mut path, (link, leaf), at, (key, value))?;
                    1
                }
                (Ok(at), Some(found), Change::Remove) if (*leaf).values()[at].is(found) => {
                    let (key, _) = (*leaf).remove(at);
                    key.free(session)?;
                    found.free(session)?;
                    Self::shrink(session, anchor, &mut path, (link, leaf))?;
                    -1
                }
                // Another has been faster.
                _ => return Err(Conflict::Retry),
            };
            Ok((result, more))
        }
    }
}

impl<K, Q, const LEAF: usize, const INNER: usize> Ordered<K, Q> for BPlus<LEAF, INNER>
where
    K: Datum + Borrow<Q>,
    Q: Ord + ?Sized,
{
    type Range<'r, V: Datum, S: RawSession + 'r, O: Observe<S>> =
        Range<'r, K, V, S, O, LEAF, INNER>;

    unsafe fn range<'r, V: Datum, S: RawSession, O: Observe<S>>(
        parts: &Link<Anchor>,
        session: &'r S,
        range: &impl RangeBounds<Q>,
        observer: O,
    ) -> Self::Range<'r, V, S, O> {
        // SAFETY: a snapshot of the tree's domain, which changes nothing while the range is used
        // (contract of this function).
        unsafe { Self::entries(*parts, session, range, observer) }
    }
}
