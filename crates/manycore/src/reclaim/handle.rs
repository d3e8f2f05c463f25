//! A thread's access to a domain, and its sections.

use alloc::boxed::Box;
use core::cell::Cell;
use core::fmt;
use core::ptr::null_mut;

use super::bag::{Bag, CAPACITY, Garbage};
use super::domain::{Domain, EpochScan, Stacks, Whose};
use super::record::{Own, Slot};
use crate::sync::atomic::Ordering;
use crate::sync::{clock, hint, time};
use crate::thread_registry::EachThreadRegistersItsOwn;

/// Up to `FEW` expired objects are freed together. If each retirement freed one, then all that
/// freeing touches would stay in the cache all the time. More than `BACKLOG` are freed together,
/// too, to get rid of them.
const FEW: usize = 32;
const BACKLOG: usize = 2000;
/// A thread that has retired this many objects destroys about as many. The number is so low that no
/// operation takes long; with 1, a hash table's updates are 3 % slower.
const BURST: usize = 8;

/// After this many objects a thread reads the clock, and scans for expired objects if its last scan
/// was that many ticks ago. So scans are a small part of the time. A thread that retires slowly
/// also keeps little garbage, which would take room in the CPU's cache from its structure.
const ASKS: usize = 8;
const PERIOD_TICKS: u64 = 1 << 17;
/// The same where a scan takes some microseconds: for a system call, or for other CPUs' lines.
const PERIOD_TICKS_DEAR: u64 = 1 << 19;
/// The same where many threads scan, because they delay each other.
const ASKS_OF_MANY: usize = 32;

/// A thread's access to a [`Domain`]. It stays with the thread.
///
/// When the handle is dropped, the thread's retired objects that are not yet freed pass to the next
/// handle, and to other threads. A series of handles costs as much as a single one, and some
/// nanoseconds for each handle.
pub struct Handle<'d> {
    pub(super) domain: &'d Domain,
    pub(super) record: &'d Slot,
    /// How many guards there are.
    depth: Cell<usize>,
    /// Whether it is destroying something, or looking for it.
    is_collecting: Cell<bool>,
    _stays: EachThreadRegistersItsOwn,
}

impl Domain {
    /// The calling thread's access to the domain. A thread may have several.
    #[inline]
    pub fn register(&self) -> Handle<'_> {
        Handle::new(self, self.take_record())
    }
}

impl<'d> Handle<'d> {
    /// The caller has the record.
    #[inline]
    pub(super) fn new(domain: &'d Domain, record: &'d Slot) -> Self {
        record.take_over();
        Self {
            domain,
            record,
            depth: Cell::new(0),
            is_collecting: Cell::new(false),
            _stays: EachThreadRegistersItsOwn::default(),
        }
    }

    /// The thread's private data, which passes to the next thread when this one has ended.
    #[inline]
    fn own(&self) -> &Own {
        // SAFETY: this handle has claimed the record until it is dropped, and is not `Send`: this
        // thread has the record.
        unsafe { self.record.own() }
    }

    /// The domain.
    pub fn domain(&self) -> &'d Domain {
        self.domain
    }

    /// Begins a section: objects that can be reached during the guard's life are not freed before
    /// it is dropped.
    ///
    /// Sections may be nested. A guard that is forgotten keeps all garbage from being freed until
    /// the handle is dropped.
    #[inline]
    pub fn pin(&self) -> Guard<'_> {
        let depth = self.depth.get();
        self.depth.set(depth + 1);
        if depth == 0 {
            self.enter();
        }
        Guard { handle: self }
    }

    /// Whether the thread is inside a section of this handle: for assertions.
    pub fn is_pinned(&self) -> bool {
        self.depth.get() > 0
    }

    /// Whether it is destroying retired objects: then the caller is a destructor, or is called by
    /// one.
    pub fn is_destroying(&self) -> bool {
        self.is_collecting.get()
    }

    /// Waits until every section of other threads has ended that began before the call. Then it
    /// frees what it can.
    ///
    /// # Panics
    ///
    /// If a guard of this handle was forgotten, or the thread is inside a section by another
    /// handle: it would wait for ever.
    pub fn synchronize(&mut self) {
        self.synchronize_outside();
    }

    /// Does the same where the type cannot exclude guards, or where destructors have the handle,
    /// too. Panics if there is a guard.
    pub fn synchronize_outside(&self) {
        assert!(!self.is_pinned(), "the thread would wait for a section of its own");
        self.close_bag();
        self.domain.close_parked();
        self.domain.synchronize();
        self.collect(Stacks::All);
    }

    /// Frees all objects that can be freed now, of all threads, without waiting.
    pub fn collect_now(&mut self) {
        self.close_bag();
        // The model checker has enough to do; `synchronize` does the same.
        if !cfg!(loom) {
            self.domain.close_parked();
        }
        self.domain.advance(None);
        self.collect(Stacks::Expired);
    }

    #[inline]
    pub(super) fn enter(&self) {
        self.own().sections.set(self.own().sections.get().saturating_add(1));
        self.domain.enter(self.record);
    }

    #[inline]
    pub(super) fn leave(&self) {
        self.record.leave();
        if self.is_owing() {
            self.settle();
        }
    }

    /// Runs a function outside the thread's section. Sections that begin meanwhile, such as those
    /// of destructors, are sections of their own. If one of them still exists at the end, it goes
    /// on, and keeps its protection.
    #[inline]
    pub(super) fn unpinned<R>(&self, f: impl FnOnce() -> R) -> R {
        /// Enters the section again, also after a panic of `f` or of a destructor that runs at the
        /// end of the section.
        struct Back<'a, 'd>(&'a Handle<'d>, usize);
        impl Drop for Back<'_, '_> {
            fn drop(&mut self) {
                let Self(handle, depth) = *self;
                let inner = handle.depth.get();
                handle.depth.set(inner + depth);
                if inner == 0 {
                    handle.enter();
                }
            }
        }
        let back = Back(self, self.depth.replace(0));
        back.0.leave();
        f()
    }

    /// Whether the thread is to free something that has expired, or to check for it.
    #[inline]
    pub(super) fn is_owing(&self) -> bool {
        self.own().owed.get() >= BURST
    }

    /// Pins the thread for as long as the handle lives, for a [`QsbrHandle`](super::QsbrHandle).
    pub(super) fn pin_forever(&self) {
        self.depth.set(1);
        self.enter();
    }

    /// The same once more, without guards that were forgotten.
    pub(super) fn forget_guards(&self) {
        self.depth.set(1);
    }

    #[inline]
    pub(super) fn retire(&self, garbage: Garbage, bytes: usize) {
        let mut bag = self.own().bag.get();
        if bag.is_null() {
            bag = self.open_bag();
        }
        // SAFETY: the bag is from `open_bag`, and reached through `Own`, which is this thread's;
        // this is the only reference to it.
        let bag = unsafe { &mut *bag };
        bag.push(garbage, bytes);
        let full = bag.len() == CAPACITY;
        self.record.count_retired(bytes);
        self.own().owed.set(self.own().owed.get() + 1);
        let batch = self.own().batch.get() + 1;
        self.own().batch.set(batch);
        let batch_bytes = self.own().batch_bytes.get().saturating_add(bytes);
        self.own().batch_bytes.set(batch_bytes);
        let due = batch >= self.domain.config.batch
            || batch_bytes > self.own().bag_bytes_max.get()
            || batch.is_multiple_of(ASKS) && self.is_long_ago(batch);
        if full || due {
            self.close_bag();
        }
        if due {
            self.own().batch.set(0);
            self.own().batch_bytes.set(0);
            self.own().looked.set(clock::now());
            self.own().is_due.set(true);
            self.own().owed.set(self.own().owed.get().max(BURST));
        }
    }

    #[cold]
    fn open_bag(&self) -> *mut Bag {
        let mut bag = self.own().spare.replace(null_mut());
        if bag.is_null() {
            bag = Box::into_raw(Bag::new());
        }
        // SAFETY: a spare bag or a new one, both from `Box::into_raw` and in no other place; the
        // reference ends with the statement.
        self.record.count_retired(unsafe { &mut *bag }.open());
        self.own().bag.set(bag);
        bag
    }

    /// Puts the bag where others find it.
    #[cold]
    fn close_bag(&self) {
        self.record.close_bag(self.own(), self.domain.epoch_to_close());
    }

    /// Called after a section: frees about as many expired objects as were retired.
    fn settle(&self) {
        let Some(_collecting) = self.begin_collecting() else {
            return; // a destructor has a section of its own
        };
        let owed = self.own().owed.replace(0);
        if self.own().is_due.replace(false) {
            self.check_garbage();
        }
        // As many as were retired, so that the allocator reuses memory that it has just got back.
        // Four times as many if more than one bag is expired.
        let share = if self.record.expired.is_empty() { 1 } else { 4 };
        for _ in 0..share * owed {
            if !self.destroy_one() {
                return;
            }
        }
    }

    /// Finds expired objects, and waits if there is too much garbage. To be called when a check is
    /// due.
    #[cold]
    fn check_garbage(&self) {
        self.domain.close_parked();
        let (now, mut held, mut whose) = (self.domain.now(), 0, Whose::OwnAndGone);
        // If another thread has begun an epoch since, this one need not.
        if now == self.own().seen.get() {
            let scan = self.advance();
            held = scan.held;
            // A thread that has blocked the epoch since the last scan has probably lost its CPU,
            // and so have others. Until these run again, running threads free their garbage. With
            // many CPUs, some thread blocks the epoch most of the time.
            if scan.blocker.is_some() && !self.domain.has_many_cpus() {
                whose = Whose::Everybodys;
            }
        }
        let expired = self.harvest(whose, Stacks::Expired);
        if expired <= FEW || expired > BACKLOG {
            self.destroy_all();
        }
        if held > self.pressure() {
            self.wait_for_room();
        }
    }

    /// Begins the next epoch if no pinned thread prevents it; reports a thread that does.
    fn advance(&self) -> EpochScan<'d> {
        let scan = self.domain.advance(Some(self.own().sections.get()));
        match scan.blocker {
            Some(blocker) => self.domain.tell_of(blocker),
            None => self.own().sections.set(0),
        }
        scan
    }

    /// Whether this thread's last scan is so long ago that it should scan now that it has retired
    /// this many objects.
    fn is_long_ago(&self, batch: usize) -> bool {
        if self.domain.has_many_cpus() && !batch.is_multiple_of(ASKS_OF_MANY) {
            return false;
        }
        let is_dear = self.domain.looks_are_dear();
        let period = if is_dear { PERIOD_TICKS_DEAR } else { PERIOD_TICKS };
        clock::has_passed(self.own().looked.get(), period)
    }

    /// The number of held bytes from which on threads wait. It leaves some space for threads in the
    /// middle of a section.
    fn pressure(&self) -> usize {
        let limit = self.domain.config.limit_bytes;
        limit - limit / 8
    }

    fn wait_for_room(&self) {
        let (start, mut pause_ns) = (time::now(), 1_000);
        self.domain.waits.fetch_add(1, Ordering::Relaxed); // Relaxed: a statistic
        self.close_bag();
        loop {
            self.domain.close_parked();
            self.harvest(Whose::Everybodys, Stacks::Expired);
            self.destroy_all();
            if self.domain.held_bytes() <= self.pressure() {
                return;
            }
            let blocker = self.advance().blocker;
            // The blocker may be this thread, in a section of another handle. Then nothing changes
            // while it waits.
            let is_vain = blocker.is_some_and(|blocker| self.domain.is_own(blocker));
            if is_vain || time::has_passed(start, self.domain.config.wait_ns_max()) {
                self.domain.overruns.fetch_add(1, Ordering::Relaxed); // Relaxed: a statistic
                return;
            }
            hint::sleep(pause_ns);
            pause_ns = (pause_ns * 2).min(1_000_000);
        }
    }

    /// Frees what can be freed, of all threads.
    fn collect(&self, stacks: Stacks) {
        if let Some(_collecting) = self.begin_collecting() {
            self.own().is_due.set(false);
            self.harvest(Whose::Everybodys, stacks);
            self.destroy_all();
        }
    }

    /// Takes the garbage that can be freed; returns the number of its objects.
    fn harvest(&self, whose: Whose, stacks: Stacks) -> usize {
        self.own().seen.set(self.domain.now());
        self.own().bag_bytes_max.set(self.domain.bag_bytes_max());
        self.domain.harvest_all(whose, stacks, self.record)
    }

    /// Destroys all garbage that this thread has taken.
    fn destroy_all(&self) {
        self.empty();
        for bag in self.record.expired.take() {
            self.own().emptying.set(Box::into_raw(bag));
            self.empty();
        }
    }

    /// The same for the bag at hand.
    fn empty(&self) {
        while !self.own().emptying.get().is_null() {
            self.destroy_one();
        }
    }

    /// Destroys an unused object; returns whether there was one.
    #[inline]
    fn destroy_one(&self) -> bool {
        let mut bag = self.own().emptying.get();
        if bag.is_null() {
            let Some(next) = self.record.expired.take().next() else { return false };
            bag = Box::into_raw(next);
            self.own().emptying.set(bag);
        }
        // SAFETY: from `Box::into_raw`, and in `emptying` of this thread only. The reference is
        // last used before a destructor runs, which may come back here.
        let open = unsafe { &mut *bag };
        let (Garbage { object, destroy }, bytes) = open.pop();
        let is_empty = open.len() == 0;
        // Before the destructor, which may panic.
        self.record.count_freed(bytes);
        if is_empty {
            self.own().emptying.set(null_mut());
            self.keep(bag);
        }
        // SAFETY: `harvest` puts a bag on an expired stack only after three epochs, so that no
        // section is open that could have found the object; it was retired once, to be destroyed so
        // (contract of `retire_with` and `retire_node`).
        unsafe {
            match destroy {
                Some(destroy) => destroy(object),
                None => self.end_node(object),
            }
        }
        true
    }

    /// A node that was retired, or that no other thread knew.
    ///
    /// # Safety
    ///
    /// The node belongs to a domain, and no thread can use it any more.
    pub(super) unsafe fn end_node(&self, node: *mut ()) {
        let nodes = &self.domain.nodes;
        // SAFETY: the node is of this domain, and no thread has it any more (contract of this
        // function).
        unsafe { nodes.end(node) };
        // SAFETY: the pool belongs to the thread that has the record, which is this one, and the
        // reference ends with the statement. The destructor has run above, so that it cannot be in
        // the middle of this. The memory is a node's: as large as a `Free` and aligned for it, by
        // `Nodes::of`.
        unsafe { (*self.record.pool.get()).list.give(node.cast(), &nodes.batches) };
    }

    /// Keeps an empty bag for later, or frees it.
    fn keep(&self, bag: *mut Bag) {
        let other = self.own().spare.replace(bag);
        if !other.is_null() {
            // SAFETY: from `Box::into_raw`; it was the spare one and so is empty, and is no longer
            // reached from `Own`.
            drop(unsafe { Box::from_raw(other) });
        }
    }

    /// A guard that ends the collection when it is dropped. `None` if a collection is under way,
    /// and this is a destructor that it runs.
    fn begin_collecting(&self) -> Option<Reset<'_>> {
        (!self.is_collecting.replace(true)).then(|| Reset(&self.is_collecting))
    }
}

/// A section with a handle of its own. By it, structures show that a thread without a handle is
/// inside.
pub(crate) struct Section<'d> {
    handle: Handle<'d>,
}

impl<'d> Handle<'d> {
    /// Begins a section that lasts as long as the handle.
    #[inline]
    pub(crate) fn into_section(self) -> Section<'d> {
        core::mem::forget(self.pin());
        Section { handle: self }
    }
}

impl Section<'_> {
    /// A guard of the section.
    #[inline]
    pub fn guard(&self) -> Guard<'_> {
        self.handle.pin()
    }
}

impl Drop for Section<'_> {
    #[inline]
    fn drop(&mut self) {
        // The guard that `into_section` has forgotten.
        drop(Guard { handle: &self.handle });
    }
}

struct Reset<'a>(&'a Cell<bool>);

impl Drop for Reset<'_> {
    fn drop(&mut self) {
        self.0.set(false);
    }
}

impl Drop for Handle<'_> {
    fn drop(&mut self) {
        // Whether or not a guard was forgotten: none is left that could be used.
        self.record.leave();
        self.record.leave_to_next();
    }
}

impl fmt::Debug for Handle<'_> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.debug_struct("Handle")
            .field("thread", &self.record.thread())
            .field("depth", &self.depth.get())
            .finish_non_exhaustive()
    }
}

/// A section: objects that can be reached during it are not freed.
#[must_use = "the section ends when the guard is dropped, at once if it is not kept"]
pub struct Guard<'h> {
    handle: &'h Handle<'h>,
}

impl<'h> Guard<'h> {
    /// The handle that it is of.
    #[must_use]
    pub fn handle(&self) -> &'h Handle<'h> {
        self.handle
    }

    /// Ends the section and begins another, unless the thread has other guards. For a thread that
    /// reads for long and has no reference at the moment, such as between two parts of a scan.
    /// Garbage that waits for this thread can then be freed. At the end of a section destructors
    /// may run.
    #[inline]
    pub fn repin(&mut self) {
        self.repin_after(|| ());
    }

    /// Ends the section, runs a function, and begins another section. No thread has to wait for the
    /// function, which may sleep. If the thread has other guards, the function runs in the section.
    #[inline]
    pub fn repin_after<R>(&mut self, f: impl FnOnce() -> R) -> R {
        if self.handle.depth.get() == 1 { self.handle.unpinned(f) } else { f() }
    }

    /// Drops the value, some time after every section has ended that is open now.
    ///
    /// # Safety
    ///
    /// The object comes from `Box::into_raw`, and is retired once. It cannot be reached from its
    /// structure any more, so that only threads that are in a section now use it. Any thread may
    /// drop it, at any time until the domain is dropped.
    #[inline]
    pub unsafe fn retire<T: Send>(&self, value: *mut T) {
        /// # Safety
        ///
        /// It comes from `Box::into_raw`, and no thread has it.
        unsafe fn destroy<T>(value: *mut ()) {
            // SAFETY: the pointer comes from `Box<T>::into_raw`, and no other thread has the object
            // any more (contract of this function).
            drop(unsafe { Box::from_raw(value.cast::<T>()) });
        }
        // SAFETY: `destroy` is valid for pointers from `Box<T>::into_raw`. By the contract of this
        // function no new thread can find the value, it is retired once, and any thread may drop
        // it.
        unsafe { self.retire_with(value.cast(), size_of::<T>(), destroy::<T>) };
    }

    /// Calls `destroy` with the object, some time after every section has ended that is open now.
    /// Until then the object counts for this many bytes. For objects that are not in a box. Does
    /// not allocate, except for a bag now and then.
    ///
    /// # Safety
    ///
    /// Only threads that are in a section now use the object. After these sections any thread may
    /// call `destroy` with it, once, at any time until the domain is dropped.
    #[inline]
    pub unsafe fn retire_with(&self, object: *mut (), bytes: usize, destroy: unsafe fn(*mut ())) {
        self.handle.retire(Garbage { object, destroy: Some(destroy) }, bytes);
    }

    /// Calls a function some time after every section has ended that is open now. Any thread may
    /// call it, at the end of one of its sections, or when the domain is dropped.
    pub fn defer(&self, f: impl FnOnce() + Send + 'static) {
        /// # Safety
        ///
        /// It comes from `Box::into_raw`, and no thread has it.
        unsafe fn run<F: FnOnce()>(f: *mut ()) {
            // SAFETY: the pointer comes from `Box<F>::into_raw`, and is passed here once (contract
            // of this function).
            let f = unsafe { Box::from_raw(f.cast::<F>()) };
            f();
        }
        fn retire<F: FnOnce() + Send + 'static>(guard: &Guard, f: F) {
            let f = Box::into_raw(Box::new(f));
            // SAFETY: `run` is valid for pointers from `Box<F>::into_raw`; no other thread knows
            // the box, and any thread may run `F` (`Send`) at any time (`'static`).
            unsafe { guard.retire_with(f.cast(), size_of::<F>(), run::<F>) };
        }
        retire(self, f);
    }
}

impl Drop for Guard<'_> {
    #[inline]
    fn drop(&mut self) {
        let depth = self.handle.depth.get() - 1;
        self.handle.depth.set(depth);
        if depth == 0 {
            self.handle.leave();
        }
    }
}

impl fmt::Debug for Guard<'_> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.debug_struct("Guard").field("handle", self.handle).finish()
    }
}
