//! The chains of a directory.

use alloc::boxed::Box;

use manycore::session::Link;
use manycore::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};

use super::{Head, Node};
use crate::name::chain_of;
use crate::sync::Shared;

/// The names in a directory.
pub(crate) struct Names {
    pub(super) head: Shared<Link<Head>>,
    /// From a box; null before the first name.
    pub(super) chains: AtomicPtr<Chains>,
}

pub(super) struct Chains {
    pub all: Box<[Chain]>,
    /// Whether a thread that removes the directory from now on sees them.
    pub are_known: AtomicBool,
}

/// Names whose hashes are between two bounds.
#[repr(align(64))]
pub(super) struct Chain {
    pub root: Shared<Link<Node>>,
    pub changed: AtomicU64,
}

impl Names {
    pub fn modified(&self) -> u64 {
        // Relaxed: as all attributes.
        self.all().iter().map(|chain| chain.changed.load(Ordering::Relaxed)).max().unwrap_or(0)
    }

    pub(super) fn chains(&self) -> Option<&Chains> {
        // Acquire: partner of the exchange in `make_chains`.
        let chains = self.chains.load(Ordering::Acquire);
        // SAFETY: null, or from a box that is there for as long as this is.
        unsafe { chains.as_ref() }
    }

    /// All chains that there are.
    pub(super) fn all(&self) -> &[Chain] {
        self.chains().map_or(&[], |chains| &chains.all)
    }

    pub(super) fn chain(&self, hash: u64) -> Option<&Chain> {
        let all = &self.chains()?.all;
        Some(&all[chain_of(hash, all.len())])
    }
}

impl Drop for Names {
    fn drop(&mut self) {
        let chains = *self.chains.get_mut();
        if !chains.is_null() {
            // SAFETY: from a box, and no thread has the directory any more.
            drop(unsafe { Box::from_raw(chains) });
        }
    }
}
