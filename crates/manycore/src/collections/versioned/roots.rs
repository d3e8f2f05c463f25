//! Maps with a fixed number of parts: one part, or several chains with keys placed by hash.

use alloc::boxed::Box;
use core::hash::Hash;
use core::marker::PhantomData;

use super::{Arrangement, Chain, Placement, Shape, Versioned, create};
use crate::collections::hashing::bucket_of;
use crate::session::object::Embedded;
use crate::session::{Conflict, Link, RawSession, Sessions, View};

/// All keys are in one part, of this shape. So the part is in the order of the keys.
#[derive(Debug)]
pub struct One<F>(PhantomData<F>);

/// Keys are spread over chains.
#[derive(Debug)]
pub struct Hashed;

/// Where a part of this shape begins.
pub(super) type Root<K, V, F> = Link<<F as Shape>::Node<K, V>>;

impl<F: Shape> Arrangement for One<F> {
    type Parts<K: Copy, V: Copy> = Root<K, V, F>;

    const VIEW: View = F::VIEW;
}

impl Arrangement for Hashed {
    type Parts<K: Copy, V: Copy> = Roots<K, V>;

    const VIEW: View = Chain::VIEW;
}

/// The first nodes of chains, in an array: a node's address follows from its number, and no table
/// has to be read before it.
pub struct Roots<K: Copy, V: Copy>(Box<[AlignedRoot<<Chain as Shape>::Node<K, V>>]>);

opaque! { [K: Copy, V: Copy] Roots<K, V>, "Roots"; }

/// Aligned as objects are, so that each read of a root touches only one line.
#[repr(C, align(32))]
struct AlignedRoot<T>(Embedded<T>);

// SAFETY: a root is moved only with its map, which then has no open session. Entries are reached
// only through handles, which exist only for keys and values that are `Send` and `Sync`.
unsafe impl<K: Copy, V: Copy> Send for Roots<K, V> {}
// SAFETY: a root's contents are read and changed in sessions, as an object's data are. Entries are
// reached only through handles, which exist only for keys and values that are `Send` and `Sync`.
unsafe impl<K: Copy, V: Copy> Sync for Roots<K, V> {}

impl<K: Copy, V: Copy> Roots<K, V> {
    fn new(chains: usize) -> Self {
        Self((0..chains).map(|_| AlignedRoot(Embedded::new(Chain::first()))).collect())
    }

    #[inline]
    fn link(place: &AlignedRoot<<Chain as Shape>::Node<K, V>>) -> Root<K, V, Chain> {
        // The whole node may be changed through a shared reference.
        Embedded::link(core::ptr::from_ref(&place.0).cast_mut())
    }

    fn iter(&self) -> impl Iterator<Item = Root<K, V, Chain>> {
        self.0.iter().map(Self::link)
    }
}

impl<K: Copy + Hash, V: Copy> Roots<K, V> {
    #[inline]
    fn of(&self, key: &K) -> Root<K, V, Chain> {
        Self::link(&self.0[bucket_of(key, self.0.len())])
    }
}

/// Operations work on the part that contains the key.
macro_rules! placed {
    ($shape:ty, ($parts:ident, $key:ident) => $root:expr, $roots:expr) => {
        #[inline]
        unsafe fn get<V: Copy, S: RawSession>(
            $parts: &Self::Parts<K, V>,
            session: &S,
            $key: &K,
        ) -> Option<V> {
            // SAFETY: the session is one of the domain to which the parts belong, by the view or a
            // snapshot (contract of this function), and the root is one of the parts, which are of
            // this shape.
            unsafe { <$shape>::get(session, $root, $key) }
        }

        #[inline]
        unsafe fn insert<V: Copy, S: RawSession>(
            $parts: &Self::Parts<K, V>,
            session: &mut S,
            key: K,
            value: V,
            keep: bool,
        ) -> Result<Option<V>, Conflict> {
            let $key = &key;
            // SAFETY: the session is one of the domain to which the parts belong, by the view or a
            // snapshot (contract of this function), and the root is one of the parts, which are of
            // this shape.
            unsafe { <$shape>::insert(session, $root, key, value, keep) }
        }

        #[inline]
        unsafe fn remove<V: Copy, S: RawSession>(
            $parts: &Self::Parts<K, V>,
            session: &mut S,
            $key: &K,
        ) -> Result<Option<V>, Conflict> {
            // SAFETY: the session is one of the domain to which the parts belong, by the view or a
            // snapshot (contract of this function), and the root is one of the parts, which are of
            // this shape.
            unsafe { <$shape>::remove(session, $root, $key) }
        }

        unsafe fn for_each<V: Copy, S: RawSession>(
            $parts: &Self::Parts<K, V>,
            session: &S,
            mut f: impl FnMut(&K, &V),
        ) {
            for root in $roots {
                let visit = |key: &K, value: &V| {
                    f(key, value);
                    true
                };
                // SAFETY: the session is one of the domain to which the parts belong, by the view
                // or a snapshot (contract of this function), and the root is one of the parts,
                // which are of this shape.
                unsafe { <$shape>::visit(session, root, None, visit) };
            }
        }
    };
}

// This function has a name of its own, so that the macro's key is used.
#[inline]
fn only<K, R>(root: R, _key: &K) -> R {
    root
}

impl<K: Copy + Ord, F: Shape> Placement<K> for One<F> {
    placed!(F, (parts, key) => only(*parts, key), [*parts]);
}

impl<K: Copy + Ord + Hash> Placement<K> for Hashed {
    placed!(Chain, (parts, key) => parts.of(key), parts.iter());
}

impl<K: Copy, V: Copy, M: Sessions, F: Shape> Versioned<K, V, M, One<F>> {
    /// Creates one without entries, in a domain that has nothing else.
    pub(in crate::collections) fn with_one_part(domain: M) -> Self {
        let parts = create(&mut domain.register(), F::first());
        Self { domain, parts }
    }
}

impl<K: Copy, V: Copy, M: Sessions> Versioned<K, V, M, Hashed> {
    /// Makes `chains` parts without entries, in a domain that has nothing else.
    pub(in crate::collections) fn with_chains(domain: M, chains: usize) -> Self {
        assert!(chains > 0, "a hash table has one bucket at least");
        Self { domain, parts: Roots::new(chains) }
    }
}
