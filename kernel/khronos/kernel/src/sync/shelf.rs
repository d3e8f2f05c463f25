//! Values that many threads use, and that any may remove: the targets of descriptors.
//!
//! A thread that uses a value announces that in a place of its own, and checks whether the value is
//! still there (hazard pointers: M. Michael, 2004). So threads that use values, even the same one,
//! write no common cache line. A thread that removes a value drops it, unless another thread uses
//! it: then it is left behind, and a user drops it at its end.
//!
//! A thread has several places. The value's number chooses the place: so a thread that removes a
//! number's value does not read lines that users of other numbers write.

use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Deref;
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};

use manycore::sync::CachePadded;
use once_cell::race::OnceBox;

use super::order::Rank;
use super::spin::Spin;

/// Places of a thread.
const PLACES: usize = 8;
/// The most threads that have a row. Other threads count their uses.
const ROWS: usize = 64;

struct Row<T> {
    is_taken: CachePadded<AtomicBool>,
    places: [CachePadded<AtomicPtr<T>>; PLACES],
}

/// Where threads say what they use.
pub struct Users<T> {
    rows: [OnceBox<Row<T>>; ROWS],
    /// Values that were taken away while they were used.
    left: Spin<Vec<Arc<T>>>,
    left_count: AtomicUsize,
}

impl<T> Users<T> {
    /// No threads.
    pub const fn new() -> Self {
        Self {
            rows: [const { OnceBox::new() }; ROWS],
            left: Spin::new(Rank::Files, Vec::new()),
            left_count: AtomicUsize::new(0),
        }
    }

    /// Gives a new thread a row, if there is one; returns its number.
    pub fn join(&self) -> Option<usize> {
        let new = || {
            Box::new(Row {
                is_taken: CachePadded(AtomicBool::new(false)),
                places: [const { CachePadded(AtomicPtr::new(ptr::null_mut())) }; PLACES],
            })
        };
        // Acquire: partner of the Release in `part`
        self.rows
            .iter()
            .position(|row| !row.get_or_init(new).is_taken.swap(true, Ordering::Acquire))
    }

    /// The thread with this row goes. It uses nothing.
    pub fn part(&self, row: usize) {
        if let Some(row) = self.rows[row].get() {
            row.is_taken.store(false, Ordering::Release); // Release: partner of the Acquire in `join`
        }
    }

    fn place(&self, row: usize, number: usize) -> Option<&AtomicPtr<T>> {
        Some(&*self.rows.get(row)?.get()?.places[number % PLACES])
    }

    /// Whether a thread uses it, by a number like this; by any if there is none.
    fn is_used(&self, value: &Arc<T>, number: Option<usize>) -> bool {
        let value = Arc::as_ptr(value).cast_mut();
        let range = number.map_or(0..PLACES, |number| number % PLACES..number % PLACES + 1);
        let rows = self.rows.iter().map_while(OnceBox::get);
        // SeqCst: after its removal; partner of the stores in `lend` and `drop`.
        let uses = |place: &CachePadded<AtomicPtr<T>>| place.load(Ordering::SeqCst) == value;
        rows.flat_map(|row| &row.places[range.clone()]).any(uses)
    }

    /// Drops a removed value, or leaves it to its users.
    fn give_up(&self, value: Arc<T>, number: usize) {
        if !self.is_used(&value, Some(number)) {
            return;
        }
        self.left_count.fetch_add(1, Ordering::SeqCst); // SeqCst: partner of the load in `drop`
        self.left.lock().push(value);
        // A user that has ended before that has not seen it.
        self.sweep();
    }

    #[cold]
    fn sweep(&self) {
        let mut left = self.left.lock();
        let unused = left.extract_if(.., |value| !self.is_used(value, None)).collect::<Vec<_>>();
        drop(left); // dropping may take time
        // SeqCst: partner of the load in `drop`, as in `give_up`.
        self.left_count.fetch_sub(unused.len(), Ordering::SeqCst);
    }
}

/// A place for a value.
pub struct Shelf<T> {
    /// From `Arc::into_raw`, or null; changed with the lock held.
    value: AtomicPtr<T>,
    lock: CachePadded<Spin<()>>,
}

// SAFETY: it owns one reference of an `Arc`, which may be sent if its value is `Send` and `Sync`.
unsafe impl<T: Send + Sync> Send for Shelf<T> {}
// SAFETY: a shared reference gives out clones of the `Arc`, which many threads may have.
unsafe impl<T: Send + Sync> Sync for Shelf<T> {}

impl<T> Shelf<T> {
    /// An empty one.
    pub const fn new() -> Self {
        Self {
            value: AtomicPtr::new(ptr::null_mut()),
            lock: CachePadded(Spin::new(Rank::Files, ())),
        }
    }

    /// Stores a value, or none. Meanwhile no other thread does so. Calls `f` with whether there was
    /// a value before. All users of the shelf pass the same number and users.
    pub fn put(
        &self,
        value: Option<Arc<T>>,
        number: usize,
        users: &Users<T>,
        f: impl FnOnce(bool),
    ) {
        let new = value.map_or(ptr::null(), Arc::into_raw).cast_mut();
        let lock = self.lock.lock();
        // SeqCst: before the read of the users; partner of the second load in `lend`.
        let old = self.value.swap(new, Ordering::SeqCst);
        f(!old.is_null());
        drop(lock);
        if !old.is_null() {
            // SAFETY: the shelf's pointer comes from `Arc::into_raw`, and the swap has taken its
            // reference out, once.
            users.give_up(unsafe { Arc::from_raw(old) }, number);
        }
    }

    /// The value, counted.
    pub fn get(&self) -> Option<Arc<T>> {
        let _lock = self.lock.lock();
        let value = self.value.load(Ordering::Relaxed); // Relaxed: under the lock
        if value.is_null() {
            return None;
        }
        // SAFETY: from `Arc::into_raw`, and the shelf's reference is there while the lock is held.
        unsafe {
            Arc::increment_strong_count(value);
            Some(Arc::from_raw(value))
        }
    }

    /// The value, for the thread that has this row.
    pub fn lend<'a>(
        &self,
        row: Option<usize>,
        number: usize,
        users: &'a Users<T>,
    ) -> Option<Lent<'a, T>> {
        let place = row.and_then(|row| users.place(row, number));
        // Relaxed: the thread's own
        let Some(place) = place.filter(|place| place.load(Ordering::Relaxed).is_null()) else {
            return self.get().map(Lent::Counted);
        };
        loop {
            let value = self.value.load(Ordering::Acquire); // Acquire: partner of the swap in `put`
            // SeqCst, both: partners of the swap in `put` and of the load in `is_used`. Either the
            // user sees that the value has changed, or the removing thread sees the use.
            place.store(value, Ordering::SeqCst);
            if self.value.load(Ordering::SeqCst) != value {
                continue;
            }
            // SAFETY: null, or used since before its removal, and so not dropped before the place
            // is empty again.
            let value = unsafe { value.as_ref() }?;
            return Some(Lent::Said { value, place, users });
        }
    }
}

impl<T> Drop for Shelf<T> {
    fn drop(&mut self) {
        let value = *self.value.get_mut();
        if !value.is_null() {
            // SAFETY: the pointer comes from `Arc::into_raw`, and its reference is the shelf's,
            // which no thread has any more.
            drop(unsafe { Arc::from_raw(value) });
        }
    }
}

/// A value in use.
pub enum Lent<'a, T> {
    /// The thread has said so.
    Said {
        /// The value.
        value: &'a T,
        /// Where it is said.
        place: &'a AtomicPtr<T>,
        /// The threads that use it.
        users: &'a Users<T>,
    },
    /// It is counted.
    Counted(Arc<T>),
}

impl<T> Deref for Lent<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        match self {
            Self::Said { value, .. } => value,
            Self::Counted(value) => value,
        }
    }
}

impl<T> Drop for Lent<'_, T> {
    fn drop(&mut self) {
        let Self::Said { place, users, .. } = self else { return };
        // SeqCst, both: partners of the addition in `give_up` and of the load in `is_used`. Either
        // this sees that the value was left, or the leaving thread sees that it is not used.
        place.store(ptr::null_mut(), Ordering::SeqCst);
        if users.left_count.load(Ordering::SeqCst) > 0 {
            users.sweep();
        }
    }
}
