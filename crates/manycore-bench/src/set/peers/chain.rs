//! A list and a hash table that are read without a lock and written under one, like manycore's
//! `rcu`, over several libraries that reclaim memory. This compares the libraries with what goes
//! with them: here nodes come from the allocator, as these libraries have it, while manycore's come
//! from memory of the structure's own.

use std::marker::PhantomData;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use manycore::lock::Adaptive;
use manycore::sync::CachePadded;
use manycore_traits::{ConcurrentSet, RawLock, SetHandle};

use crate::set::contenders::AnySet;
use crate::set::task::Task;

/// Frees memory when nobody can be on it any more.
///
/// # Safety
///
/// What was retired is not freed before all sections have ended that had begun by then.
pub unsafe trait Domain: Send + Sync + Sized + 'static {
    /// What it needs in each node.
    type Header: Default + Send + Sync + 'static;

    /// What it knows a thread by.
    type Thread<'a>;

    /// A section of a thread.
    type Section<'a>;

    /// Empty.
    fn new() -> Self;

    /// The calling thread takes part.
    fn register(&self) -> Self::Thread<'_>;

    /// Begins a section, which ends when it is dropped.
    fn enter<'a>(thread: &'a Self::Thread<'_>) -> Self::Section<'a>;

    /// Frees a node, later.
    ///
    /// # Safety
    ///
    /// The node came from `Box`, no link leads to it, and nobody else retires it.
    unsafe fn retire(section: &Self::Section<'_>, node: *mut Node<Self>);
}

/// A key in a chain.
#[repr(C)]
pub struct Node<D: Domain> {
    /// What the domain needs.
    pub header: D::Header,
    next: AtomicPtr<Self>,
    /// Whether it was taken out. Read and written by writers.
    removed: AtomicBool,
    key: u64,
}

/// A sorted chain and the lock of its writers.
#[repr(align(32))]
struct Chain<D: Domain, L> {
    head: AtomicPtr<Node<D>>,
    lock: L,
}

/// Where a key is, or would be.
struct Place<'s, D: Domain> {
    link: &'s AtomicPtr<Node<D>>,
    before: Option<&'s Node<D>>,
    node: *mut Node<D>,
    found: bool,
}

impl<D: Domain, L: RawLock> Chain<D, L> {
    fn new() -> Self {
        Self { head: AtomicPtr::new(null_mut()), lock: L::new() }
    }

    #[inline]
    fn find<'s>(&'s self, key: u64, _section: &'s D::Section<'_>) -> Place<'s, D> {
        let (mut link, mut before) = (&self.head, None);
        loop {
            let node = link.load(Ordering::Acquire); // Acquire: partner of the Release in `set`
            // SAFETY: null, or a node that could be reached during the section, and is not freed
            // before it ends.
            let Some(there) = (unsafe { node.as_ref() }) else {
                return Place { link, before, node, found: false };
            };
            if there.key >= key {
                return Place { link, before, node, found: there.key == key };
            }
            (link, before) = (&there.next, Some(there));
        }
    }

    /// Runs what writes, with the key's place as it is then; it was at `place` before.
    fn write<R>(
        &self,
        place: Place<D>,
        key: u64,
        section: &D::Section<'_>,
        write: impl FnOnce(&Place<D>) -> R,
    ) -> R {
        // SAFETY: the node stays in place until the lock is released; what is done in between does
        // not panic.
        unsafe {
            let mut queue = L::Node::default();
            self.lock.lock(&mut queue);
            // Relaxed, both: written by writers, of which this is the only one.
            let removed = place.before.is_some_and(|node| node.removed.load(Ordering::Relaxed));
            let holds = !removed && place.link.load(Ordering::Relaxed) == place.node;
            let place = if holds { place } else { self.find(key, section) };
            let result = write(&place);
            self.lock.unlock(&mut queue);
            result
        }
    }

    #[inline]
    fn contains(&self, key: u64, section: &D::Section<'_>) -> bool {
        self.find(key, section).found
    }

    fn insert(&self, key: u64, section: &D::Section<'_>) -> bool {
        let place = self.find(key, section);
        if place.found {
            return false;
        }
        let node = Box::new(Node {
            header: D::Header::default(),
            next: AtomicPtr::new(null_mut()),
            removed: AtomicBool::new(false),
            key,
        });
        self.write(place, key, section, |place| {
            if !place.found {
                node.next.store(place.node, Ordering::Relaxed); // Relaxed: released by the line below
                place.link.store(Box::into_raw(node), Ordering::Release); // Release: partner of the Acquire in `find`
            }
            !place.found
        })
    }

    fn remove(&self, key: u64, section: &D::Section<'_>) -> bool {
        let place = self.find(key, section);
        if !place.found {
            return false;
        }
        let taken = self.write(place, key, section, |place| {
            if !place.found {
                return None;
            }
            // SAFETY: found, and so not null, and there as long as the section.
            let old = unsafe { &*place.node };
            old.removed.store(true, Ordering::Relaxed); // Relaxed: for writers
            let next = old.next.load(Ordering::Relaxed); // Relaxed: changed by writers only
            place.link.store(next, Ordering::Release); // Release: as in `insert`
            Some(place.node)
        });
        // SAFETY: from `Box`, and this thread has led the link past it.
        taken.inspect(|node| unsafe { D::retire(section, *node) }).is_some()
    }
}

impl<D: Domain, L> Drop for Chain<D, L> {
    fn drop(&mut self) {
        let mut node = *self.head.get_mut();
        while !node.is_null() {
            // SAFETY: from `Box`, and nobody else's now.
            node = *unsafe { Box::from_raw(node) }.next.get_mut();
        }
    }
}

/// Chains with a domain. Keys are spread over them if there are several.
struct Chains<D: Domain, L> {
    // Before the domain: chains free their nodes themselves.
    chains: Box<[Chain<D, L>]>,
    domain: D,
}

/// An empty list or hash table.
pub fn chained<D: Domain>(task: &Task) -> Box<dyn AnySet> {
    fn new<D: Domain, L: RawLock + 'static>(chains: u64) -> Box<dyn AnySet> {
        let chains = (0..chains).map(|_| Chain::<D, L>::new()).collect();
        Box::new(Chains { chains, domain: D::new() })
    }
    if task.structure == "hash" {
        new::<D, Adaptive>(task.keys.buckets)
    } else {
        new::<D, CachePadded<Adaptive>>(1)
    }
}

struct Handle<'a, D: Domain, L> {
    chains: &'a [Chain<D, L>],
    thread: D::Thread<'a>,
    /// A handle stays with its thread.
    _thread: PhantomData<*mut ()>,
}

impl<D: Domain, L> Handle<'_, D, L> {
    /// As manycore's hash tables have it.
    #[inline]
    fn chain(&self, key: u64) -> &Chain<D, L> {
        let mixed = key.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        &self.chains[((u128::from(mixed) * self.chains.len() as u128) >> 64) as usize]
    }
}

impl<D: Domain, L: RawLock + 'static> ConcurrentSet<u64> for Chains<D, L> {
    type Handle<'a> = Handle<'a, D, L>;

    fn handle(&self) -> Handle<'_, D, L> {
        Handle { chains: &self.chains, thread: self.domain.register(), _thread: PhantomData }
    }
}

impl<D: Domain, L: RawLock> SetHandle<u64> for Handle<'_, D, L> {
    #[inline]
    fn contains(&mut self, key: &u64) -> bool {
        self.chain(*key).contains(*key, &D::enter(&self.thread))
    }

    #[inline]
    fn insert(&mut self, key: u64) -> bool {
        self.chain(key).insert(key, &D::enter(&self.thread))
    }

    #[inline]
    fn remove(&mut self, key: &u64) -> bool {
        self.chain(*key).remove(*key, &D::enter(&self.thread))
    }
}
