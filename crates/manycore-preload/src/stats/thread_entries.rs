//! An entry for each thread: its data, which stay after it has ended.
//!
//! An entry is never given to another thread. A thread's CPU time is noted when it ends, by a
//! destructor of thread-specific data. For threads that do not end before their process does, it is
//! noted at the end of the process.

use core::ffi::c_void;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use manycore::sync::thread;
use manycore_stats::{
    Mapping, Slab, THREAD_ENTRIES, ThreadEntry, WAITS, WAITS_APART, WAITS_PROBES,
};
use syscalls::{Errno, Sysno, raw_syscall};

use super::room::{self, Part};
use super::{index, mapping, records, this_thread};

/// One more than the key of the thread-specific data; 0 for none.
static KEY: AtomicU32 = AtomicU32::new(0);

/// Values of keys below this one are in the thread itself, so setting them allocates nothing.
const KEYS_INSIDE: u32 = 32;

// Relaxed throughout, unless noted: counters are independent of each other, and a thread that does
// not see the key yet does without.

/// Has threads tell when they end.
pub fn prepare() {
    let mut key = 0;
    // SAFETY: the destructor is a function of this library, which is never unloaded.
    unsafe {
        if libc::pthread_key_create(&mut key, Some(thread_ends)) != 0 {
            return;
        }
        if key < KEYS_INSIDE {
            KEY.store(key + 1, Ordering::Relaxed);
        } else {
            libc::pthread_key_delete(key);
        }
    }
}

/// Gives the calling thread an entry. One thread at a time does this.
pub fn give(mapping: &Mapping) -> u32 {
    let number = mapping.header.thread_entries.load(Ordering::Relaxed);
    let with_waits = (number as usize + 1) * WAITS_APART + WAITS_PROBES;
    let has_room = |_: &&ThreadEntry| {
        number > 0
            && room::has(mapping, Part::ThreadEntries, number as usize + 1)
            && room::has(mapping, Part::Waits, with_waits.min(WAITS))
    };
    let Some(thread_entry) = mapping.thread_entries.get(number as usize).filter(has_room) else {
        mapping.thread_entries[0].thread.fetch_add(1, Ordering::Relaxed);
        return 0;
    };
    let [first, second] = &NAME;
    match (number, first.load(Ordering::Relaxed)) {
        (1, name) if name != 0 => {
            thread_entry.name[0].store(name, Ordering::Relaxed);
            thread_entry.name[1].store(second.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        _ => this_thread::note_name(&thread_entry.name),
    }
    // Release: partner of the command's Acquire.
    thread_entry.thread.store(thread::kernel_id(), Ordering::Release);
    mapping.header.thread_entries.store(number + 1, Ordering::Relaxed);
    number
}

/// Arranges that the end of the calling thread, which has this slab, is noticed.
pub fn watch(slab: &Slab) {
    if let Some(key) = KEY.load(Ordering::Relaxed).checked_sub(1) {
        // SAFETY: the key is this library's own, made in `prepare` and not deleted; `thread_ends`
        // alone uses the value.
        unsafe { libc::pthread_setspecific(key, core::ptr::from_ref(slab).cast()) };
    }
}

/// The name of the only thread of a forked child, until the thread has an entry: by then the child
/// may not be allowed any system calls.
static NAME: [AtomicU64; 2] = [const { AtomicU64::new(0) }; 2];

/// Called in the child of a fork: the calling thread has no slab any more.
pub fn forked() {
    this_thread::note_name(&NAME);
    if let Some(key) = KEY.load(Ordering::Relaxed).checked_sub(1) {
        // SAFETY: the key is this library's own, made in `prepare` and not deleted; `thread_ends`
        // alone uses the value.
        unsafe { libc::pthread_setspecific(key, core::ptr::null()) };
    }
}

extern "C" fn thread_ends(slab: *mut c_void) {
    if let Some(mapping) = mapping::get() {
        // SAFETY: the value of the key is a slab, see `watch`, of a mapping that is never unmapped.
        note_end(mapping, unsafe { &*slab.cast::<Slab>() });
    }
}

/// Notes what the calling thread has used until now.
fn note_end(mapping: &Mapping, slab: &Slab) {
    let number = slab.thread_entry.load(Ordering::Relaxed);
    if number == 0 {
        return;
    }
    let thread_entry = of(mapping, number);
    // The CPU time of a running thread is in its account only after a precise request.
    thread_entry.cpu_ns.store(this_thread::cpu_ns(), Ordering::Relaxed);
    // SAFETY: the structure consists of numbers, for which zero is a value, and is as large as the
    // kernel writes.
    let usage = unsafe {
        let mut usage: libc::rusage = core::mem::zeroed();
        raw_syscall!(Sysno::getrusage, libc::RUSAGE_THREAD, &raw mut usage);
        usage
    };
    let ns = |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1_000;
    this_thread::note_name(&thread_entry.name);
    thread_entry.user_ns.store(ns(usage.ru_utime), Ordering::Relaxed);
    thread_entry.kernel_ns.store(ns(usage.ru_stime), Ordering::Relaxed);
    // Release: partner of the command's Acquire; a thread that sees the end sees the times.
    thread_entry.ended.store(1, Ordering::Release);
}

/// Notes the end of the process, with the threads that it still has.
pub fn process_ends(mapping: &Mapping) {
    // SAFETY: null, or a slab of a mapping that is never unmapped: `slabs::attach` has put it
    // there.
    if let Some(slab) = unsafe { thread::local().extension.get().cast::<Slab>().as_ref() } {
        note_end(mapping, slab);
    }
    let used = mapping.header.slabs.load(Ordering::Relaxed) as usize;
    for slab in mapping.slabs.iter().take(used) {
        let thread_entry = of(mapping, slab.thread_entry.load(Ordering::Relaxed));
        if thread_entry.ended.load(Ordering::Relaxed) == 0
            && let Some(ns) = cpu_ns(slab.thread.load(Ordering::Relaxed))
        {
            thread_entry.cpu_ns.store(ns, Ordering::Relaxed);
        }
    }
}

/// The CPU time of a living thread of this process, in nanoseconds.
fn cpu_ns(thread: u32) -> Option<u64> {
    // As the kernel makes the number of a thread's clock: its number, inverted, then "of a thread"
    // and "scheduled time".
    let clock = !(thread as i32) << 3 | 4 | 2;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel writes one timespec, into `time`.
    let done = unsafe { raw_syscall!(Sysno::clock_gettime, clock, &raw mut time) };
    Errno::from_ret(done).ok()?;
    Some(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

/// The entry with this number; entry 0 if there is none.
pub fn of(mapping: &Mapping, number: u32) -> &ThreadEntry {
    &mapping.thread_entries[number as usize % THREAD_ENTRIES]
}

/// Counts a wait of the thread for the lock with this record, which took this many ticks.
pub fn waited(mapping: &Mapping, slab: &Slab, record: u32, ticks: u64) {
    let number = slab.thread_entry.load(Ordering::Relaxed);
    let thread_entry = of(mapping, number);
    thread_entry.contended.fetch_add(1, Ordering::Relaxed);
    thread_entry.wait.fetch_add(ticks, Ordering::Relaxed);
    note(mapping, number, record, ticks, true);
}

/// Counts a wait for a condition variable. It may turn out to be part of a lock, so its waits are
/// in no sum. A wait that continues another one is not new.
pub fn waited_for_condition(mapping: &Mapping, slab: &Slab, record: u32, ticks: u64, is_new: bool) {
    note(mapping, slab.thread_entry.load(Ordering::Relaxed), record, ticks, is_new);
}

fn note(mapping: &Mapping, thread_entry: u32, record: u32, ticks: u64, is_new: bool) {
    if thread_entry == 0 || !records::is_own(record) {
        return;
    }
    let key = u64::from(thread_entry) << 32 | u64::from(record);
    let first = thread_entry as usize * WAITS_APART + record as usize % WAITS_APART;
    let mut places = (0..WAITS_PROBES).map(|probe| &mapping.waits[(first + probe) % WAITS]);
    if let Some(place) = places.find(|place| index::claim(&place.key, key).is_some()) {
        place.contended.fetch_add(is_new.into(), Ordering::Relaxed);
        place.wait.fetch_add(ticks, Ordering::Relaxed);
    }
}
