//! A structure's new nodes until other threads can find them, and the end of nodes.

use alloc::boxed::Box;
use core::ops::Deref;
use core::ptr::{NonNull, drop_in_place};

use super::bag::Garbage;
use super::handle::{Guard, Handle};
use super::nodes::are_kept;

impl Guard<'_> {
    /// A new node, made in a section of the domain, which is
    /// [for such nodes](super::Domain::of_nodes).
    #[inline]
    pub(crate) fn node<T>(&self, value: T) -> UnpublishedNode<'_, T> {
        let place = if are_kept::<T>() {
            let Handle { domain, record, .. } = self.handle();
            debug_assert!(domain.nodes.bytes >= size_of::<T>(), "a domain of other nodes");
            // SAFETY: the pool belongs to the thread that has the record, which is this one, and
            // the reference ends with the statement.
            let place = unsafe { &mut *record.pool.get() }.take(&domain.nodes).cast::<T>();
            // SAFETY: `take` returns memory for a node of this domain, as large as a `T` and
            // aligned for it by `Nodes::of`, that is in no other use.
            unsafe { place.write(value) };
            // SAFETY: memory within a chunk is not null.
            unsafe { NonNull::new_unchecked(place) }
        } else {
            NonNull::from(Box::leak(Box::new(value)))
        };
        UnpublishedNode { guard: self, place }
    }

    /// As [`retire`](Guard::retire), for a node.
    ///
    /// # Safety
    ///
    /// The node comes from [`UnpublishedNode::into_raw`], of this domain, and is retired once. Only
    /// threads that are in a section now use it. Any thread may drop its contents, at any time
    /// until the domain is dropped.
    #[inline]
    pub(crate) unsafe fn retire_node<T: Send>(&self, node: *mut T) {
        if are_kept::<T>() {
            let bytes = self.handle().domain.nodes.bytes;
            self.handle().retire(Garbage { object: node.cast(), destroy: None }, bytes);
        } else {
            // SAFETY: a node that is not kept comes from a box, made in `node`; the rest is the
            // contract of this function, which is that of `retire`.
            unsafe { self.retire(node) };
        }
    }
}

/// A node that no other thread knows. If it is dropped, it is freed.
pub(crate) struct UnpublishedNode<'g, T> {
    guard: &'g Guard<'g>,
    place: NonNull<T>,
}

impl<T> UnpublishedNode<'_, T> {
    /// Where it is, for a link that leads there.
    #[inline]
    pub fn as_ptr(&self) -> *mut T {
        self.place.as_ptr()
    }

    /// Publishes the node: it is valid until it is retired, or its structure is dropped.
    #[inline]
    pub fn into_raw(self) -> NonNull<T> {
        let place = self.place;
        core::mem::forget(self);
        place
    }
}

impl<T> Deref for UnpublishedNode<'_, T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        // SAFETY: `node` has initialised it, and it stays until `drop` or `into_raw`; others may
        // have a link to it, but only shared access.
        unsafe { self.place.as_ref() }
    }
}

impl<T> Drop for UnpublishedNode<'_, T> {
    fn drop(&mut self) {
        if are_kept::<T>() {
            // SAFETY: `into_raw` has not given it to others, so no thread has it; `node` has taken
            // it from this domain.
            unsafe { self.guard.handle().end_node(self.place.as_ptr().cast()) };
        } else {
            // SAFETY: `node` has made it by a box, and it was not given to others by `into_raw`.
            drop(unsafe { Box::from_raw(self.place.as_ptr()) });
        }
    }
}

/// Drops the contents of a node when its structure is dropped. The node's memory is freed with the
/// domain.
///
/// # Safety
///
/// The node comes from [`UnpublishedNode::into_raw`], and no thread can use it any more.
pub(crate) unsafe fn end_with_structure<T>(node: *mut T) {
    if are_kept::<T>() {
        // SAFETY: `UnpublishedNode` has made it, and no thread has it any more (contract of this
        // function); its memory is the domain's.
        unsafe { drop_in_place(node) };
    } else {
        // SAFETY: a node that is not kept comes from a box, made in `node`, and no thread has it
        // any more (contract of this function).
        drop(unsafe { Box::from_raw(node) });
    }
}

#[cfg(all(test, not(any(loom, manycore_bare, feature = "sim"))))]
mod tests {
    use super::super::config::Config;
    use super::super::domain::Domain;
    use super::super::nodes::LARGEST;
    use super::*;
    use alloc::sync::Arc;

    #[test]
    fn memory_is_used_again() {
        let domain = Domain::of_nodes::<[u64; 3]>(Config::default(), 0);
        let mut handle = domain.register();
        let mut bytes = 0;
        for round in 0..20 {
            let guard = handle.pin(); // so that none of them is another's memory
            for number in 0..1000 {
                let node = guard.node([number; 3]).into_raw().as_ptr();
                // SAFETY: `into_raw` was not called, and it is retired once.
                unsafe { guard.retire_node(node) };
            }
            drop(guard);
            handle.synchronize();
            if round == 0 {
                bytes = domain.node_bytes();
            }
        }
        assert!((1000 * 24..3 * 1000 * 24).contains(&bytes), "{bytes}");
        assert_eq!(domain.node_bytes(), bytes);
    }

    #[test]
    fn a_node_that_nobody_was_told_of_is_gone() {
        let domain = Domain::of_nodes::<Arc<()>>(Config::default(), 0);
        let handle = domain.register();
        let (guard, counted) = (handle.pin(), Arc::new(()));
        let first = guard.node(counted.clone());
        let place = first.as_ptr();
        assert_eq!(Arc::strong_count(&first), 2);
        drop(first);
        assert_eq!(Arc::strong_count(&counted), 1);
        assert_eq!(guard.node(counted.clone()).as_ptr(), place, "its memory is the next one's");
    }

    #[test]
    fn nodes_are_dropped_with_the_domain() {
        let counted = Arc::new(());
        let domain = Domain::of_nodes::<Arc<()>>(Config::default(), 0);
        let handle = domain.register();
        let guard = handle.pin();
        for _ in 0..100 {
            let node = guard.node(counted.clone()).into_raw().as_ptr();
            // SAFETY: `into_raw` was not called, and it is retired once.
            unsafe { guard.retire_node(node) };
        }
        assert_eq!(Arc::strong_count(&counted), 101, "the thread is inside");
        drop(guard);
        drop(handle);
        drop(domain);
        assert_eq!(Arc::strong_count(&counted), 1);
    }

    /// Nodes do not overlap, are aligned, and keep their contents, whatever their size and whether
    /// or not they are boxes.
    fn are_apart<T: Copy + PartialEq + core::fmt::Debug>(make: fn(u8) -> T, bytes_min: usize) {
        let domain = Domain::of_nodes::<T>(Config::default(), bytes_min);
        let handle = domain.register();
        let guard = handle.pin();
        let nodes: alloc::vec::Vec<_> = (0..200).map(|number| guard.node(make(number))).collect();
        for (number, node) in (0..).zip(&nodes) {
            assert!(node.as_ptr().is_aligned());
            assert_eq!(**node, make(number));
        }
        let mut places: alloc::vec::Vec<_> =
            nodes.iter().map(|node| node.as_ptr().addr()).collect();
        places.sort_unstable();
        let bytes = size_of::<T>().max(bytes_min);
        assert!(places.windows(2).all(|pair| pair[1] - pair[0] >= bytes));
    }

    #[test]
    fn nodes_of_all_sizes() {
        #[derive(Clone, Copy, PartialEq, Debug)]
        #[repr(align(64))]
        struct Line(u8);
        are_apart(|number| number, 0);
        are_apart(|number| [number; 17], 0);
        are_apart(u128::from, 0);
        are_apart(u128::from, 40);
        are_apart(|number| [number; LARGEST], 0);
        are_apart(|number| [number; LARGEST + 1], 0);
        are_apart(Line, 0);
        assert!(are_kept::<[u8; LARGEST]>() && !are_kept::<[u8; LARGEST + 1]>());
        assert!(are_kept::<u128>() && !are_kept::<Line>());
    }
}
