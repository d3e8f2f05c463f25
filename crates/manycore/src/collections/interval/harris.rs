//! `harris`: lists of intervals without locks, in the place of trees.
//!
//! # Idea
//!
//! An insertion must not wait for a removal, and reads are rare. So intervals are in a [list
//! without locks](crate::collections::list::HarrisList), the newest first. An insertion is one
//! compare-and-swap at the front. A removal marks the interval, and searches from the front to
//! unlink it from its predecessor. A reader reads the whole list, and sorts its results.
//!
//! # Source
//!
//! T. Harris, "A pragmatic implementation of non-blocking linked-lists", DISC 2001. J. Kyong's
//! thesis on LDU compares with such a list in place of a reverse map's tree. Unlike the paper's
//! list, ours has no order.
//!
//! # Memory order
//!
//! The order is that of the [list's links](crate::collections::list::HarrisList): an insertion
//! publishes the interval with the compare-and-swap at the front, and a reader reads each link with
//! `Acquire`. An interval does not change while it is in the list. A thread that has removed an
//! interval retires it in the same section, so no thread reads freed memory.
//!
//! # Cost
//!
//! A removal reads all nodes that were inserted later, each of which another thread may have
//! written; a reader reads all nodes.
//!
//! # When not to use it
//!
//! Where there are many intervals, or readers. It serves for comparisons.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::mem::forget;
use core::ptr::NonNull;

use crate::collections::list::{Links, Node};
use crate::reclaim::{Config, CpuHandles};
use crate::sync::CachePadded;
use crate::{Interval, ReverseMap};

/// Lists of intervals without locks.
pub struct HarrisLists {
    // Before the domain, in whose memory the nodes are.
    lists: Box<[CachePadded<Links<Interval>>]>,
    handles: CpuHandles,
}

/// An interval that is in no list.
pub struct AbsentLinked<'a> {
    map: &'a HarrisLists,
    list: &'a Links<Interval>,
    interval: Interval,
}

/// An interval that is in its list. When this is dropped, the interval is removed.
pub struct PresentLinked<'a> {
    map: &'a HarrisLists,
    list: &'a Links<Interval>,
    interval: Interval,
    /// Pushed on the list, and not taken.
    node: NonNull<Node<Interval>>,
}

// SAFETY: it consists of two references, and the right to remove the node, which one thread at a
// time has; any thread may drop the node's interval.
unsafe impl Send for PresentLinked<'_> {}

impl HarrisLists {
    /// Makes `lists` lists.
    #[must_use]
    pub fn new(lists: usize) -> Self {
        let lists = (0..lists).map(|_| CachePadded(Links::new())).collect();
        Self { lists, handles: CpuHandles::of_nodes::<Node<Interval>>(Config::default()) }
    }
}

impl PresentLinked<'_> {
    fn take_out(&self) {
        // SAFETY: `insert` has pushed the node on this list, and both callers, `remove` and `drop`,
        // give up the handle: the node is removed once.
        self.map.handles.section(|guard| unsafe { self.list.take(self.node, guard) });
    }
}

impl Drop for PresentLinked<'_> {
    fn drop(&mut self) {
        self.take_out();
    }
}

impl ReverseMap for HarrisLists {
    type Absent<'a>
        = AbsentLinked<'a>
    where
        Self: 'a;

    type Present<'a>
        = PresentLinked<'a>
    where
        Self: 'a;

    fn trees(&self) -> usize {
        self.lists.len()
    }

    fn interval(&self, tree: usize, interval: Interval) -> AbsentLinked<'_> {
        AbsentLinked { map: self, list: &self.lists[tree], interval }
    }

    fn insert<'a>(&'a self, interval: AbsentLinked<'a>) -> PresentLinked<'a> {
        let AbsentLinked { map, list, interval } = interval;
        let node = map.handles.section(|guard| list.push(interval, guard));
        PresentLinked { map, list, interval, node }
    }

    fn remove<'a>(&'a self, interval: PresentLinked<'a>) -> AbsentLinked<'a> {
        interval.take_out();
        let absent =
            AbsentLinked { map: interval.map, list: interval.list, interval: interval.interval };
        forget(interval);
        absent
    }

    fn overlaps(
        &self,
        tree: usize,
        first: u64,
        last: u64,
        found: &mut (dyn FnMut(Interval) + Send),
    ) {
        let mut overlapping = Vec::new();
        self.handles.section(|guard| {
            self.lists[tree].visit(guard, &mut |interval| {
                if interval.first <= last && interval.last >= first {
                    overlapping.push(*interval);
                }
            });
        });
        overlapping.sort_unstable();
        overlapping.into_iter().for_each(found);
    }

    fn statistics(&self, visit: &mut dyn FnMut(&'static str, u64)) {
        self.handles.domain().statistics(visit);
    }
}

impl core::fmt::Debug for HarrisLists {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("HarrisLists").field("lists", &self.lists.len()).finish_non_exhaustive()
    }
}

impl core::fmt::Debug for AbsentLinked<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("AbsentLinked").field("interval", &self.interval).finish_non_exhaustive()
    }
}

impl core::fmt::Debug for PresentLinked<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("PresentLinked").field("interval", &self.interval).finish_non_exhaustive()
    }
}
