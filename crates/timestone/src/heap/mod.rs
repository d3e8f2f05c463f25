//! Objects in memory: where each of them is, and which are there.
//!
//! The heap is a range of addresses, which is reserved once and filled from its start. It is
//! divided into *runs* of 64 KiB. Each run has *slots* of one size, after a line that is left free.
//! A slot has one word that belongs to `mvrlu`, and then the object's words. An object's *place* is
//! the offset of its slot. It stays the same when the store is opened again, whatever the heap's
//! address is then.
//!
//! For each run the heap knows which slots are *live*: the slots whose allocation is on the disk
//! and whose end is not. The heap gives all other slots to `mvrlu`, which reuses them.

mod filling;
mod run;
pub mod words;

use std::collections::BTreeMap;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, AtomicU16, AtomicUsize, Ordering};

use manycore::mvrlu::Memory;
use manycore::session::Link;
use rustix::mm::{MapFlags, ProtFlags};

use crate::error::{Error, Result};
use crate::journal::record::{ALLOCATED, Entry};
use crate::sync::Mutex;
pub use filling::Filling;
use run::{RUN_BYTES, Run};

/// The offset of the object from which all others are reached.
pub const ROOT: u64 = run::FIRST as u64;
/// Words of that object.
pub const ROOT_WORDS: usize = 3;

/// The number of runs that are kept free for slots that threads take in advance.
const RUNS_KEPT: usize = 64;
/// The number of free slots of each size that are kept free, because most of them may be reserved
/// by other threads.
const SPARE_KEPT: usize = 4096;

/// The memory of a store's objects.
pub struct Heap {
    base: NonNull<u8>,
    bytes: usize,
    state: Mutex<State>,
    /// How many runs there are.
    runs: AtomicUsize,
    /// For each possible run, the size of its slots in `UNIT`s; 0 if there is no such run.
    units: Box<[AtomicU16]>,
}

/// What sizes of slots are multiples of.
const UNIT: usize = 32;

// SAFETY: the heap gives out memory by places; `mvrlu` decides which thread may access an object,
// or there is only one thread.
unsafe impl Send for Heap {}
// SAFETY: the heap's data about its runs is behind a lock; `mvrlu` decides which thread may access
// an object.
unsafe impl Sync for Heap {}

#[derive(Default)]
struct State {
    runs: Vec<Option<Run>>,
    /// What is known of the slots of a size.
    sizes: BTreeMap<usize, Size>,
}

#[derive(Default)]
struct Size {
    /// Slots that were given out and hold no object: `mvrlu` has them, or a transaction that is not
    /// on the disk yet.
    spare: usize,
    /// All runs before this one are full.
    first: usize,
}

impl Heap {
    /// Reserves `bytes` bytes of addresses, at least 8 MiB, and makes the root.
    ///
    /// # Errors
    ///
    /// That of the operating system.
    pub fn new(bytes: usize) -> Result<Arc<Self>> {
        let bytes = bytes.max(2 * RUNS_KEPT * RUN_BYTES).next_multiple_of(RUN_BYTES);
        let doing = || format!("reserve {bytes} bytes of addresses for objects");
        let (protection, flags) =
            (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE | MapFlags::NORESERVE);
        // SAFETY: a new mapping, at an address that the kernel chooses.
        let base =
            unsafe { rustix::mm::mmap_anonymous(std::ptr::null_mut(), bytes, protection, flags) };
        let base = base.map_err(|cause| Error::io(doing())(cause.into()))?;
        let base = NonNull::new(base.cast()).expect("the kernel maps nothing at 0");
        let mut root = Run::new(words::slot_bytes(ROOT_WORDS));
        root.give(0);
        root.set_live(0, true);
        let state = Mutex::new(State { runs: vec![Some(root)], ..State::default() });
        let units = (0..bytes / RUN_BYTES).map(|_| AtomicU16::new(0)).collect();
        let heap = Self { base, bytes, state, runs: AtomicUsize::new(1), units };
        heap.open_run(0, words::slot_bytes(ROOT_WORDS));
        Ok(Arc::new(heap))
    }

    /// Reserves the default number of addresses; or as many as the process gets, which may have a
    /// limit (`ulimit -v`), or run under a checker of its memory.
    ///
    /// # Errors
    ///
    /// The operating system's error, if the process gets fewer than 64 MiB.
    pub fn to_read() -> Result<Arc<Self>> {
        let (mut bytes, least) = (64 << 30, 64 << 20);
        loop {
            match Self::new(bytes) {
                Err(_) if bytes > least => bytes /= 2,
                result => return result,
            }
        }
    }

    /// Lets objects be found in a run.
    fn open_run(&self, index: usize, slot_bytes: usize) {
        let units = u16::try_from(slot_bytes / UNIT).expect("a slot is small");
        // Relaxed: a thread that knows an object's place has learned it where the object was
        // linked, after this.
        self.units[index].store(units, Ordering::Relaxed);
    }

    /// The words of the object at an offset, if there can be one: see
    /// [`has_object`](Self::has_object).
    pub fn object_words(&self, place: u64) -> Option<usize> {
        let index = usize::try_from(place).ok()? / RUN_BYTES;
        // Relaxed: see `open_run`.
        let units = self.units.get(index)?.load(Ordering::Relaxed);
        let words = (usize::from(units) * UNIT / 8).checked_sub(1)?;
        self.has_object(place, words).then_some(words)
    }

    /// Whether there is an object of `words` words at an offset, and not a free slot. The answer is
    /// not certain if the object is created or freed at the same time.
    #[inline]
    pub fn has_object(&self, place: u64, words: usize) -> bool {
        let slot_bytes = words::slot_bytes(words);
        let Some((index, _)) = run::position(place, slot_bytes) else { return false };
        // Relaxed: see `open_run`.
        let units = self.units.get(index).map_or(0, |units| units.load(Ordering::Relaxed));
        if usize::from(units) * UNIT != slot_bytes {
            return false;
        }
        // SAFETY: the place belongs to a slot within the mapping. The slot begins with a pointer of
        // `mvrlu`'s: to a version, which is elsewhere, or to another free slot.
        let head = unsafe { self.address(place).cast::<AtomicPtr<u8>>().as_ref() };
        // Relaxed: only looked at.
        let head = head.load(Ordering::Relaxed).addr();
        !(self.base.addr().get()..self.base.addr().get() + self.bytes).contains(&head)
    }

    /// The address of a place.
    #[inline]
    fn address(&self, place: u64) -> NonNull<u8> {
        debug_assert!((place as usize) < self.bytes, "a place outside of the heap");
        // SAFETY: places come from this heap, and are within its mapping.
        unsafe { self.base.add(place as usize) }
    }

    /// What `mvrlu` knows the object at a place by.
    #[inline]
    pub fn link<T>(&self, place: u64) -> Link<T> {
        Link::from_ptr(self.address(place).as_ptr().cast())
    }

    /// The place of an object.
    #[inline]
    pub fn place<T>(&self, link: Link<T>) -> u64 {
        (link.as_ptr().addr() - self.base.addr().get()) as u64
    }

    /// Fails if there may not be enough room for another object of `words` words.
    ///
    /// # Errors
    ///
    /// [`Error::Full`].
    pub fn check_room(&self, words: usize) -> Result<()> {
        // Relaxed: it says in time that there are few runs left, not when exactly.
        if self.runs.load(Ordering::Relaxed) + RUNS_KEPT <= self.bytes / RUN_BYTES {
            return Ok(());
        }
        let state = self.state.lock();
        let spare = state.sizes.get(&words::slot_bytes(words)).map_or(0, |size| size.spare);
        if spare > SPARE_KEPT {
            return Ok(());
        }
        let bytes = self.bytes;
        Err(Error::Full(format!("the heap has {bytes} bytes: make Options::heap_bytes larger")))
    }

    /// Notes that a transaction is on the disk that has created or freed this object.
    pub fn commit(&self, entry: Entry<'_>) {
        if !(entry.is_new() || entry.is_end()) {
            return;
        }
        let mut state = self.state.lock();
        let slot_bytes = words::slot_bytes(entry.size.into());
        let position = run::position(entry.place, slot_bytes);
        let (index, slot) = position.expect("an object is in a slot");
        let run = state.runs[index].as_mut().expect("an object is in a run");
        run.set_live(slot, !entry.is_end());
        let spare = &mut state.sizes.entry(slot_bytes).or_default().spare;
        *spare = if entry.is_end() { *spare + 1 } else { spare.saturating_sub(1) };
    }

    /// How many runs there are.
    pub fn runs(&self) -> usize {
        self.state.lock().runs.len()
    }

    /// Bytes of the runs that have slots.
    pub fn run_bytes(&self) -> u64 {
        (self.state.lock().runs.iter().flatten().count() * RUN_BYTES) as u64
    }

    /// The number of words of a run's objects, and the offsets of its live objects.
    pub fn live_in(&self, index: usize) -> (usize, Vec<u64>) {
        let state = self.state.lock();
        let Some(run) = &state.runs[index] else { return (ROOT_WORDS, Vec::new()) };
        let places = run.live().map(|slot| run::place(index, slot, run.slot_bytes()));
        (run.slot_bytes() / 8 - 1, places.collect())
    }

    /// All live objects: place and words.
    pub fn live(&self) -> impl Iterator<Item = (u64, usize)> + '_ {
        (0..self.runs()).flat_map(|index| {
            let (words, places) = self.live_in(index);
            places.into_iter().map(move |place| (place, words))
        })
    }

    /// The words of an object that no other thread uses.
    ///
    /// # Safety
    ///
    /// `mvrlu` does not use the heap yet, and the object at the offset has `words` words.
    unsafe fn words(&self, place: u64, words: usize) -> *mut u64 {
        debug_assert!(place as usize + 8 + words * 8 <= self.bytes);
        // SAFETY: the object is within the mapping, and its words are aligned as slots are.
        unsafe { self.address(place).as_ptr().cast::<u64>().add(1) }
    }

    /// The number of words of the objects around this offset; `None` if no object can be there.
    pub fn words_at(&self, place: u64) -> Option<usize> {
        let state = self.state.lock();
        let index = usize::try_from(place).ok()? / RUN_BYTES;
        let slot_bytes = state.runs.get(index)?.as_ref()?.slot_bytes();
        run::position(place, slot_bytes).map(|_| slot_bytes / 8 - 1)
    }

    /// Puts an object into a heap.
    ///
    /// # Errors
    ///
    /// [`Error::Full`].
    ///
    /// # Safety
    ///
    /// No domain has the heap, and no other thread.
    pub unsafe fn add(self: &Arc<Self>, words: &[u64]) -> Result<u64> {
        self.check_room(words.len())?;
        let mut address = None;
        let slot_bytes = words::slot_bytes(words.len());
        Shared(self.clone()).places(slot_bytes, 1, &mut |given| address = Some(given));
        let address = address.expect("a heap gives a slot if it has room");
        let place = (address.addr().get() - self.base.addr().get()) as u64;
        let whole = words::rounded(words.len());
        // SAFETY: the slot was just given, has that number of words, and no other thread has the
        // heap (contract of this function).
        unsafe {
            let target = self.words(place, whole);
            target.write_bytes(0, whole);
            target.copy_from_nonoverlapping(words.as_ptr(), words.len());
        }
        let size = u16::try_from(whole).expect("an object has few words");
        self.commit(Entry { place, size, first: 0, words: &[], flags: ALLOCATED });
        Ok(place)
    }

    /// Writes the object from which all others are reached.
    ///
    /// # Safety
    ///
    /// As of [`add`](Self::add).
    pub unsafe fn set_root(&self, words: [u64; ROOT_WORDS]) {
        // SAFETY: each heap has a root, and no other thread has the heap (contract of this
        // function).
        unsafe { self.words(ROOT, ROOT_WORDS).cast::<[u64; ROOT_WORDS]>().write(words) }
    }

    /// Writes the first words of an object.
    ///
    /// # Safety
    ///
    /// As of [`add`](Self::add), which has returned this place for an object of more words.
    pub unsafe fn set_first(&self, place: u64, first: [u64; 2]) {
        // SAFETY: the object has more words, and no other thread has the heap (contract of this
        // function).
        unsafe { self.words(place, first.len()).cast::<[u64; 2]>().write(first) }
    }

    /// An object that was found in this heap.
    ///
    /// # Panics
    ///
    /// If the heap has no such place.
    ///
    /// # Safety
    ///
    /// No thread writes to the heap while the result is used.
    pub unsafe fn read(&self, place: u64, words: usize) -> &[u64] {
        let words = words::rounded(words);
        let is_inside = place.is_multiple_of(8) && place < (self.bytes - 8 - words * 8) as u64;
        assert!(is_inside, "an object of {words} words at {place}: the store's data is damaged");
        // SAFETY: the mapping has the words, of any bits, and no thread writes them (contract of
        // this function).
        unsafe { std::slice::from_raw_parts(self.words(place, words), words) }
    }

    /// All objects as entries of an image. The root is in every heap, and is not made by an entry.
    ///
    /// # Safety
    ///
    /// `mvrlu` does not use the heap while the result is used.
    pub unsafe fn entries(&self) -> impl Iterator<Item = Entry<'_>> {
        self.live().map(|(place, words)| {
            // SAFETY: the object is live, so the mapping has its words, and no thread writes them
            // (contract of this function).
            let bytes =
                unsafe { std::slice::from_raw_parts(self.words(place, words).cast(), words * 8) };
            whole(place, bytes)
        })
    }
}

/// An object's entry in an image.
pub fn whole(place: u64, bytes: &[u8]) -> Entry<'_> {
    let entry = Entry::whole(place, bytes);
    if place == ROOT { Entry { flags: 0, ..entry } } else { entry }
}

impl Drop for Heap {
    fn drop(&mut self) {
        // SAFETY: `new` has made the mapping; the domain that had objects in it is gone, because it
        // had a share of this.
        let result = unsafe { rustix::mm::munmap(self.base.as_ptr().cast(), self.bytes) };
        debug_assert!(result.is_ok(), "the heap's mapping: {result:?}");
    }
}

/// The heap as the memory of a domain.
pub struct Shared(pub Arc<Heap>);

// SAFETY: slots of a size are aligned to 32 bytes, and a slot is given only once until `mvrlu`
// returns it. The domain has a share of the heap, so the mapping lives as long as the domain.
unsafe impl Memory for Shared {
    fn places(&self, size: usize, most: usize, give: &mut dyn FnMut(NonNull<u8>)) {
        let heap = &*self.0;
        let mut state = heap.state.lock();
        let first = state.sizes.entry(size).or_default().first;
        let has_slots = |run: &Option<Run>| {
            run.as_ref().is_some_and(|run| run.slot_bytes() == size && !run.is_given_out())
        };
        let open = state.runs.iter().skip(first).position(has_slots).map(|index| first + index);
        let index = open.unwrap_or_else(|| state.add_run(size, heap.bytes / RUN_BYTES));
        heap.open_run(index, size);
        heap.runs.store(state.runs.len(), Ordering::Relaxed); // Relaxed: under the lock
        let run = state.runs[index].as_mut().expect("the run was just found or made");
        let mut given = 0;
        while given < most
            && let Some(slot) = run.next_to_give()
        {
            run.give(slot);
            give(heap.address(run::place(index, slot, size)));
            given += 1;
        }
        let known = state.sizes.entry(size).or_default();
        (known.spare, known.first) = (known.spare + given, index);
    }
}

impl State {
    fn add_run(&mut self, slot_bytes: usize, runs_max: usize) -> usize {
        let free = self.runs.iter().position(Option::is_none);
        let index = free.unwrap_or_else(|| {
            assert!(self.runs.len() < runs_max, "a heap without a run that `check_room` has kept");
            self.runs.push(None);
            self.runs.len() - 1
        });
        self.runs[index] = Some(Run::new(slot_bytes));
        index
    }
}
