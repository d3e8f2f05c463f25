//! Statistics: the records of every acquisition, wait and release in the shared mapping.
//!
//! Compiled into the lock functions only if statistics are requested (`STATS`). Counts are exact.
//! Every wait is timed, since waits are long anyway. Holds are timed only now and then, since
//! reading the clock twice costs more than the lock.

mod asked;
mod blocked;
pub mod handovers;
mod held;
mod index;
mod loaded;
mod mapping;
mod modules;
mod orders;
mod process;
mod queues;
mod records;
mod room;
mod slabs;
mod stacks;
mod this_thread;
mod thread_entries;
mod unwind;
mod waiters;

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use manycore::sync::{clock, thread};
use manycore_stats::{FRAMES, Kind, Mapping, Record, SLOTS, Slab, Slot};

pub use asked::may_not_ask;
pub use mapping::times_are_coarse;
pub use process::{forked, open};

// Relaxed throughout: a counter is a number that the command adds up, and orders nothing.

/// The object that an event is about.
pub struct Object<'a> {
    /// Where it is.
    pub address: *const (),
    /// The object's field for the number of its record in the mapping. Before the object's first
    /// event, it has the value that [`initialised`] noted, or 0.
    pub record: &'a AtomicU32,
    /// What it is.
    pub kind: Kind,
    /// The caller of the function that reports the event.
    pub caller: usize,
}

/// How an object was acquired.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// By one thread at a time.
    Exclusive,
    /// By a reader.
    Shared,
}

/// What an attempt to acquire does if the object is not free.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Attempt {
    /// The attempt waits for as long as it takes.
    Waits,
    /// The attempt gives up, immediately or after a time.
    GivesUp,
}

/// Counts an acquisition. `last_cpu` is one more than the CPU of the previous acquisition, and is
/// protected by the object.
#[inline]
pub fn acquired(object: &Object, mode: Mode, attempt: Attempt, last_cpu: Option<&AtomicU32>) {
    let Some(slab) = slab() else { return acquired_without_slab(object, mode) };
    let slot = slot(slab, object);
    held::push(slab, object, mode, attempt);
    bump(if mode == Mode::Shared { &slot.shared } else { &slot.acquired });
    if let Some(last) = last_cpu {
        let cpu = this_thread::cpu() + 1;
        let before = last.load(Ordering::Relaxed);
        if before != cpu {
            last.store(cpu, Ordering::Relaxed);
            if before != 0 {
                bump(&slot.handoffs);
            }
        }
    }
    let left = slab.until_hold.load(Ordering::Relaxed);
    if left == 0 {
        start_hold(slab, object);
    } else {
        slab.until_hold.store(left - 1, Ordering::Relaxed);
    }
}

/// Counts an acquisition in the record itself.
#[cold]
fn acquired_without_slab(object: &Object, mode: Mode) {
    let Some(mapping) = mapping::get() else { return };
    let record = records::get(mapping, records::of(mapping, object));
    let counter = if mode == Mode::Shared { &record.shared } else { &record.acquired };
    counter.fetch_add(1, Ordering::Relaxed);
}

/// Starts to measure the calling thread's hold: notes the object's address, and the time.
#[cold]
fn start_hold(slab: &Slab, object: &Object) {
    let [measured, since] = thread::local().words.get();
    let now = clock::now();
    // A hold without an observed end (another thread unlocked) is abandoned after some time.
    if measured == 0 || now.wrapping_sub(since) > mapping::FORGOTTEN_TICKS {
        thread::local().words.set([object.address as u64, now]);
    }
    slab.until_hold.store(gap(slab, mapping::HOLD_PERIOD), Ordering::Relaxed);
}

/// Called before the object is released: ends the measurement of a hold, if it is this object's.
#[inline]
pub fn releasing(address: *const (), record: &AtomicU32) {
    let local = thread::local();
    if local.words.get()[0] == address as u64 {
        end_hold(record);
    }
    // As in `slab`.
    manycore::sync::process::generation();
    // SAFETY: null, or a slab of a mapping, which is never unmapped: `slabs::attach` has put it
    // there.
    match unsafe { local.extension.get().cast::<Slab>().as_ref() } {
        Some(slab) => held::pop(slab, address),
        None => held::pop_of_another(address),
    }
}

#[cold]
fn end_hold(record: &AtomicU32) {
    let [_, since] = thread::local().words.get();
    thread::local().words.set([0; 2]);
    let ticks = clock::now().wrapping_sub(since);
    let Some(mapping) = mapping::get() else { return };
    count_hold(mapping, records::get(mapping, record.load(Ordering::Relaxed)), ticks);
}

fn count_hold(mapping: &Mapping, record: &Record, ticks: u64) {
    record.holds.fetch_add(1, Ordering::Relaxed);
    record.hold.fetch_add(ticks, Ordering::Relaxed);
    record.hold_max.fetch_max(ticks, Ordering::Relaxed);
    records::distributions(mapping, record).hold.count(ticks);
}

/// A wait that is under way.
pub struct Wait {
    started: u64,
    /// The object's number, 0 for none. The object may be freed when the wait is over.
    number: u32,
    /// Whether the thread is counted in the lock's queue.
    is_queued: bool,
    /// For a condition variable: whether this continues a wait that was counted.
    is_resumed: bool,
    /// If this wait is sampled.
    sample: Option<Sample>,
}

/// The notes at the start of a sampled wait.
struct Sample {
    /// The stack's number.
    stack: u32,
    /// The return address of the call that had taken the lock; 0 if that is unknown.
    holder: u64,
    /// The thread's CPU time.
    cpu_ns: u64,
}

impl Wait {
    /// Notes the start of a wait for a lock that thread `owner` has; 0 if the owner is not known.
    pub fn for_lock(object: &Object, owner: u32, mode: Mode, attempt: Attempt) -> Self {
        let number = number(object);
        if attempt == Attempt::Waits
            && let Some(slab) = slab()
        {
            held::wanted(slab, object, mode);
        }
        let holder = |mapping: &Mapping| held::holder(mapping, object.address, owner);
        let mut wait = Self::begin(number, object.caller, holder);
        if records::is_own(number)
            && let (Some(mapping), Some(slab)) = (mapping::get(), slab())
        {
            wait.is_queued = queues::join(records::get(mapping, number), wait.started);
            slab.waiting_since.store(wait.started, Ordering::Relaxed);
            slab.gives_up.store(u32::from(attempt != Attempt::Waits), Ordering::Relaxed);
            slab.waiting.store(number, Ordering::Relaxed);
        }
        wait
    }

    /// Notes the start of a wait for a condition variable with this [`number`], in a function that
    /// `caller` has called. It may continue another wait.
    pub fn for_condition(number: u32, caller: usize, is_resumed: bool) -> Self {
        let wait = Self { is_resumed, ..Self::begin(number, caller, |_| 0) };
        if wait.sample.is_some()
            && let Some(mapping) = mapping::get()
        {
            handovers::want_waker(mapping, number);
        }
        wait
    }

    fn begin(number: u32, caller: usize, holder: impl FnOnce(&Mapping) -> u64) -> Self {
        let is_sampled = slab().is_some_and(|slab| {
            let left = slab.until_spin.load(Ordering::Relaxed);
            let next = left.checked_sub(1).unwrap_or_else(|| gap(slab, mapping::SPIN_PERIOD));
            slab.until_spin.store(next, Ordering::Relaxed);
            left == 0
        });
        // Before the wait and not after it, when the thread holds the lock: unwinding takes some
        // microseconds.
        let sample = is_sampled.then(|| {
            let noted = |mapping| (holder(mapping), stacks::here(mapping, caller, FRAMES));
            let (holder, stack) = mapping::get().map_or((0, 0), noted);
            Sample { stack, holder, cpu_ns: this_thread::cpu_ns() }
        });
        Self { started: clock::now(), number, is_queued: false, is_resumed: false, sample }
    }

    /// Counts the wait for a lock.
    pub fn end(self, mode: Mode, timed_out: bool) {
        let slab = slab();
        // Before the clock is read and anything is counted: a reader counts no part of the wait
        // twice.
        if let Some(slab) = slab {
            slab.waiting.store(0, Ordering::Relaxed);
        }
        let now = clock::now();
        let ticks = now.wrapping_sub(self.started);
        let Some(mapping) = mapping::get() else { return };
        let record = records::get(mapping, self.number);
        if self.is_queued {
            queues::leave(record, now);
        }
        if mode == Mode::Shared {
            record.contended_shared.fetch_add(1, Ordering::Relaxed);
        }
        let cpu_ns = self.count(mapping, ticks, timed_out);
        let Some(slab) = slab else { return };
        let class = records::class(self.number);
        thread_entries::waited(mapping, slab, class, ticks);
        if let Some((sample, cpu_ns)) = self.sample.zip(cpu_ns) {
            let thread_entry =
                thread_entries::of(mapping, slab.thread_entry.load(Ordering::Relaxed));
            thread_entry.cpu_ns.store(cpu_ns, Ordering::Relaxed);
            thread_entry.spin_ns.fetch_add(cpu_ns.saturating_sub(sample.cpu_ns), Ordering::Relaxed);
            thread_entry.sampled.fetch_add(1, Ordering::Relaxed);
            blocked::count(mapping, class, sample.holder, sample.stack, ticks);
        }
    }

    /// Counts the wait for a condition variable. The wait for its mutex afterwards counts for the
    /// mutex.
    pub fn end_of_condition(self, timed_out: bool) {
        let ticks = clock::now().wrapping_sub(self.started);
        let Some(mapping) = mapping::get() else { return };
        self.count(mapping, ticks, timed_out);
        let Some(slab) = slab() else { return };
        let class = records::class(self.number);
        thread_entries::waited_for_condition(mapping, slab, class, ticks, !self.is_resumed);
        if let Some(sample) = &self.sample
            && let Some(waker) = handovers::waker(mapping, self.number)
        {
            blocked::count(mapping, class, waker, sample.stack, ticks);
        }
    }

    /// Counts the wait; returns the thread's CPU time if the wait is sampled.
    fn count(&self, mapping: &Mapping, ticks: u64, timed_out: bool) -> Option<u64> {
        let record = records::get(mapping, self.number);
        record.contended.fetch_add(1, Ordering::Relaxed);
        if timed_out {
            record.timeouts.fetch_add(1, Ordering::Relaxed);
        }
        // Release: partner of the command's Acquire; if the command finds the wait counted, it does
        // not find it under way.
        record.wait.fetch_add(ticks, Ordering::Release);
        record.wait_max.fetch_max(ticks, Ordering::Relaxed);
        records::distributions(mapping, record).wait.count(ticks);
        let sample = self.sample.as_ref()?;
        let cpu_ns = this_thread::cpu_ns();
        record.spin_ns.fetch_add(cpu_ns.saturating_sub(sample.cpu_ns), Ordering::Relaxed);
        record.sampled.fetch_add(1, Ordering::Relaxed);
        waiters::count(mapping, records::class(self.number), sample.stack, ticks);
        Some(cpu_ns)
    }
}

/// The object's number in the mapping. If it has none, it gets one now; 0 without statistics.
pub fn number(object: &Object) -> u32 {
    mapping::get().map_or(0, |mapping| records::of(mapping, object))
}

/// The number of events without a measurement until the next one: a random number, `period - 1` on
/// average. With a fixed number, a thread that takes two locks alternately would always have the
/// same one measured.
fn gap(slab: &Slab, period: u32) -> u32 {
    let mut dice = slab.dice.load(Ordering::Relaxed);
    if dice == 0 {
        dice = clock::now() as u32 | 1;
    }
    // Marsaglia, "Xorshift RNGs", 2003.
    dice ^= dice << 13;
    dice ^= dice >> 17;
    dice ^= dice << 5;
    slab.dice.store(dice, Ordering::Relaxed);
    ((u64::from(dice) * u64::from(2 * period - 1)) >> 32) as u32
}

/// Notes the place where an object is initialised. It takes no room unless it is used.
#[inline]
pub fn initialised(record: &AtomicU32, caller: usize) {
    if let Some(mapping) = mapping::get() {
        records::initialised(mapping, record, caller);
    }
}

/// Called when the object is destroyed: its record may serve the next object of its class.
pub fn destroyed(record: &AtomicU32) {
    if let Some(mapping) = mapping::get() {
        records::retire(mapping, record.load(Ordering::Relaxed));
    }
}

/// Called when the program has closed a library: other libraries may get its addresses.
pub fn unloaded() {
    if let Some(mapping) = mapping::get() {
        modules::look_for_unloaded(mapping);
    }
}

/// The calling thread's counters; `None` if statistics could not be opened, or there are more
/// threads than slabs.
#[inline]
fn slab() -> Option<&'static Slab> {
    // Notices a fork: otherwise a child would count in its parent's statistics.
    manycore::sync::process::generation();
    let slab = thread::local().extension.get().cast::<Slab>();
    if slab.is_null() {
        return slabs::attach();
    }
    // SAFETY: `slabs::attach` has put a slab of the mapping there, which is never unmapped.
    Some(unsafe { &*slab })
}

/// The calling thread's counters for an object.
#[inline]
fn slot<'a>(slab: &'a Slab, object: &Object) -> &'a Slot {
    let number = object.record.load(Ordering::Relaxed);
    let slot = &slab.slots[number as usize % SLOTS];
    if number != 0 && slot.record.load(Ordering::Relaxed) == number {
        slot
    } else {
        take_slot(slab, object)
    }
}

/// Gives an object the slot of another one in this thread's slab.
#[cold]
fn take_slot<'a>(slab: &'a Slab, object: &Object) -> &'a Slot {
    let mapping = mapping::get().expect("a slab is part of the mapping");
    let number = records::of(mapping, object);
    let slot = &slab.slots[number as usize % SLOTS];
    let before = slot.record.load(Ordering::Relaxed);
    if before != number {
        flush(mapping, slab, slot, records::get(mapping, before));
        slot.record.store(number, Ordering::Relaxed);
    }
    slot
}

/// Moves a slot's counts to its record and to the thread's entry.
fn flush(mapping: &Mapping, slab: &Slab, slot: &Slot, record: &Record) {
    let acquired = slot.acquired.load(Ordering::Relaxed) + slot.shared.load(Ordering::Relaxed);
    let thread_entry = thread_entries::of(mapping, slab.thread_entry.load(Ordering::Relaxed));
    thread_entry.acquired.fetch_add(acquired, Ordering::Relaxed);
    let counts = [
        (&slot.acquired, &record.acquired),
        (&slot.shared, &record.shared),
        (&slot.handoffs, &record.handoffs),
    ];
    for (from, to) in counts {
        to.fetch_add(from.load(Ordering::Relaxed), Ordering::Relaxed);
        from.store(0, Ordering::Relaxed);
    }
}

/// Adds one to a counter that only this thread writes.
#[inline]
fn bump(counter: &AtomicU64) {
    counter.store(counter.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
}
