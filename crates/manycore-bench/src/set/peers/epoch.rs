//! Sets with reclamation by crossbeam-epoch.

use crossbeam_epoch::{Collector, Guard, LocalHandle, Shared};

use super::chain::{self, Domain, Node};
use crate::set::contenders::AnySet;
use crate::set::task::Task;

/// A collector of its own, so that a thread keeps its handle. With the crate's global collector,
/// each entry has to look for it.
struct Epoch(Collector);

// SAFETY: crossbeam-epoch runs a deferred destruction only after the end of all guards that were
// pinned when it was deferred.
unsafe impl Domain for Epoch {
    type Header = ();
    type Thread<'a> = LocalHandle;
    type Section<'a> = Guard;

    fn new() -> Self {
        Self(Collector::new())
    }

    fn register(&self) -> LocalHandle {
        self.0.register()
    }

    #[inline]
    fn enter(thread: &LocalHandle) -> Guard {
        thread.pin()
    }

    unsafe fn retire(section: &Guard, node: *mut Node<Self>) {
        // SAFETY: the node comes from a box, no link leads to it, and it is retired once (contract
        // of `Domain::retire`); its address is aligned, and so has no tag.
        unsafe { section.defer_destroy(Shared::from(node.cast_const())) };
    }
}

pub(super) fn chained(task: &Task) -> Box<dyn AnySet> {
    chain::chained::<Epoch>(task)
}
