//! A list and a hash table for several reclamation libraries. Readers take no lock and writers take
//! one, as in manycore's `rcu`.
//!
//! This compares the libraries together with their usual allocation: nodes here come from the
//! allocator, as those libraries expect, while manycore's nodes come from the structure's own
//! memory.

use std::marker::PhantomData;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use manycore::lock::Adaptive;
use manycore::sync::CachePadded;
use manycore_traits::{ConcurrentSet, RawLock, SetHandle};

use crate::set::contenders::AnySet;
use crate::set::task::Task;

/// A reclamation library: frees a node once no thread can hold a reference to it.
///
/// # Safety
///
/// A retired node is freed only after the end of all sections that had begun when it was retired.
pub unsafe trait Domain: Send + Sync + Sized + 'static {
    /// The library's data in each node.
    type Header: Default + Send + Sync + 'static;

    /// The library's data for a thread.
    type Thread<'a>;

    /// A thread's section: nodes that it finds there stay allocated until the section ends.
    type Section<'a>;

    /// Creates a domain.
    fn new() -> Self;

    /// Registers the calling thread.
    fn register(&self) -> Self::Thread<'_>;

    /// Begins a section. It ends when the result is dropped.
    fn enter<'a>(thread: &'a Self::Thread<'_>) -> Self::Section<'a>;

    /// Frees a node after the sections that may still use it.
    ///
    /// # Safety
    ///
    /// The node came from `Box`, no link leads to it, and it is retired once.
    unsafe fn retire(section: &Self::Section<'_>, node: *mut Node<Self>);
}

/// A key in a chain.
#[repr(C)]
pub struct Node<D: Domain> {
    /// The domain's data.
    pub header: D::Header,
    next: AtomicPtr<Self>,
    /// Whether the node was removed. Only writers use it.
    removed: AtomicBool,
    key: u64,
}

/// A sorted chain and the lock of its writers.
#[repr(align(32))]
struct Chain<D: Domain, L> {
    head: AtomicPtr<Node<D>>,
    lock: L,
}

/// The nodes between which a key is or would be.
struct Window<'s, D: Domain> {
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
    fn find<'s>(&'s self, key: u64, _section: &'s D::Section<'_>) -> Window<'s, D> {
        let (mut link, mut before) = (&self.head, None);
        loop {
            let node = link.load(Ordering::Acquire); // Acquire: partner of the Release in `set`
            // SAFETY: null, or a node that a link led to during the section, so that it is not
            // freed before the section ends.
            let Some(there) = (unsafe { node.as_ref() }) else {
                return Window { link, before, node, found: false };
            };
            if there.key >= key {
                return Window { link, before, node, found: there.key == key };
            }
            (link, before) = (&there.next, Some(there));
        }
    }

    /// Runs `write` with the lock held and with the key's present window. `window` is where the key
    /// was before.
    fn write<R>(
        &self,
        window: Window<D>,
        key: u64,
        section: &D::Section<'_>,
        write: impl FnOnce(&Window<D>) -> R,
    ) -> R {
        // SAFETY: the node stays until the lock is released, and the code in between does not
        // panic.
        unsafe {
            let mut queue = L::Node::default();
            self.lock.lock(&mut queue);
            // Relaxed, both: only writers write them, and this is the only writer.
            let removed = window.before.is_some_and(|node| node.removed.load(Ordering::Relaxed));
            let holds = !removed && window.link.load(Ordering::Relaxed) == window.node;
            let window = if holds { window } else { self.find(key, section) };
            let result = write(&window);
            self.lock.unlock(&mut queue);
            result
        }
    }

    #[inline]
    fn contains(&self, key: u64, section: &D::Section<'_>) -> bool {
        self.find(key, section).found
    }

    fn insert(&self, key: u64, section: &D::Section<'_>) -> bool {
        let window = self.find(key, section);
        if window.found {
            return false;
        }
        let node = Box::new(Node {
            header: D::Header::default(),
            next: AtomicPtr::new(null_mut()),
            removed: AtomicBool::new(false),
            key,
        });
        self.write(window, key, section, |window| {
            if !window.found {
                node.next.store(window.node, Ordering::Relaxed); // Relaxed: released by the line below
                window.link.store(Box::into_raw(node), Ordering::Release); // Release: partner of the Acquire in `find`
            }
            !window.found
        })
    }

    fn remove(&self, key: u64, section: &D::Section<'_>) -> bool {
        let window = self.find(key, section);
        if !window.found {
            return false;
        }
        let taken = self.write(window, key, section, |window| {
            if !window.found {
                return None;
            }
            // SAFETY: the key was found, so the node is not null; it stays until the section ends.
            let old = unsafe { &*window.node };
            old.removed.store(true, Ordering::Relaxed); // Relaxed: for writers
            let next = old.next.load(Ordering::Relaxed); // Relaxed: changed by writers only
            window.link.store(next, Ordering::Release); // Release: as in `insert`
            Some(window.node)
        });
        // SAFETY: the node comes from `Box`, and this thread has made the link lead past it.
        taken.inspect(|node| unsafe { D::retire(section, *node) }).is_some()
    }
}

impl<D: Domain, L> Drop for Chain<D, L> {
    fn drop(&mut self) {
        let mut node = *self.head.get_mut();
        while !node.is_null() {
            // SAFETY: the node comes from `Box`, and no other thread has it now.
            node = *unsafe { Box::from_raw(node) }.next.get_mut();
        }
    }
}

/// Chains with a domain. Keys are spread over them if there are several.
struct Chains<D: Domain, L> {
    // Declared before the domain: chains free their nodes themselves.
    chains: Box<[Chain<D, L>]>,
    domain: D,
}

/// Makes an empty list or hash table.
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
    /// Makes the handle stay with its thread.
    _thread: PhantomData<*mut ()>,
}

impl<D: Domain, L> Handle<'_, D, L> {
    /// The chain of a key, as in manycore's hash tables.
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
