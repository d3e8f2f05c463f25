//! Threads in one address space: some operations touch a page that is not there yet, others map and
//! unmap memory.
//!
//! A fault needs an unchanged address space, and a mapping changes it: they are the readers and the
//! writers of `mmap_lock`. Since Linux 6.4 a fault takes only the lock of its mapping if possible,
//! and then does not wait for a writer of another mapping.

use std::io;
use std::sync::RwLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use super::jobs::{ALLOW_MORE, explained};
use super::{Answer, Counter, Order, PAGE, count, map, touch, unmap};
use crate::failure::Failure;

/// The size of each thread's part of the one mapping in which all threads touch pages.
const PART: usize = 1024 * 1024;
/// The size of the memory that is mapped at a time, and of the touched part of it.
const MAPPING: usize = 64 * 1024;
const TOUCHED: usize = 4 * PAGE;

/// Runs the load.
pub fn run(order: &Order, update: f64) -> Result<Answer, Failure> {
    if !(0.0..=100.0).contains(&update) {
        return Err(Failure::Usage(format!(
            "an update share of {update}: it is between 0 and 100 %"
        )));
    }
    play(order, update)
        .map_err(|error| Failure::Failed(format!("the load on the address space: {error}")))
}

fn play(order: &Order, update: f64) -> io::Result<Answer> {
    let heap = Heap::new(order.parallel as usize * PART)?;
    let enough = AtomicU64::new(0);
    let counters: Vec<Counter> = (0..order.parallel).map(|_| Counter(AtomicU64::new(0))).collect();
    let gate = RwLock::new(());
    thread::scope(|scope| {
        // They begin when this is gone: all at once.
        let closed = gate.write().expect("no thread panics that has it");
        let mut threads = Vec::new();
        // Waits during their creation are observed, too.
        let begin = Instant::now();
        for (number, counter) in counters.iter().enumerate() {
            let (part, enough, gate) = (Part { start: heap.part(number), next: 0 }, &enough, &gate);
            let random = fastrand::Rng::with_seed(order.seed.wrapping_add(number as u64));
            let thread = thread::Builder::new().spawn_scoped(scope, move || {
                drop(gate.read());
                work(part, update, random, counter, enough)
            });
            threads.push(thread.map_err(|error| {
                // Relaxed: the gate, which opens afterwards, makes it visible to the existing
                // threads. They end at once.
                enough.store(1, Ordering::Relaxed);
                let what = format!("make thread {} of {}", number + 1, order.parallel);
                explained(&error, &what, ALLOW_MORE)
            })?);
        }
        drop(closed);
        let (operations, elapsed_ns) = count(order, &counters, &enough);
        for thread in threads {
            thread.join().expect("no thread panics")?;
        }
        Ok(Answer { operations, elapsed_ns, whole_ns: begin.elapsed().as_nanos() as f64 })
    })
}

fn work(
    mut part: Part,
    update: f64,
    mut random: fastrand::Rng,
    counter: &Counter,
    enough: &AtomicU64,
) -> io::Result<()> {
    // Relaxed: an order that is seen a little later does no harm.
    while enough.load(Ordering::Relaxed) == 0 {
        if random.f64() * 100.0 < update {
            remap()?;
        } else {
            part.fault()?;
        }
        counter.count();
    }
    Ok(())
}

/// Maps memory, touches some of it, and unmaps it.
fn remap() -> io::Result<()> {
    let at = map(MAPPING)?;
    // SAFETY: mapped just now, and no other thread knows of it.
    unsafe { touch(at, TOUCHED) };
    // SAFETY: `map` has just made the mapping; no other code knows it, and it is not used again.
    unsafe { unmap(at, MAPPING) }
}

/// The mapping in which threads touch pages.
struct Heap {
    start: *mut u8,
    bytes: usize,
}

impl Heap {
    fn new(bytes: usize) -> io::Result<Self> {
        let heap = Self { start: map(bytes)?, bytes };
        // SAFETY: our own mapping. One fault would make many pages otherwise; where there are no
        // huge pages it fails, and does not matter.
        unsafe { libc::madvise(heap.start.cast(), bytes, libc::MADV_NOHUGEPAGE) };
        Ok(heap)
    }

    /// The part of a thread, by its number.
    fn part(&self, number: usize) -> *mut u8 {
        assert!((number + 1) * PART <= self.bytes, "a part for each thread");
        // SAFETY: within the mapping, as just asserted.
        unsafe { self.start.add(number * PART) }
    }
}

impl Drop for Heap {
    fn drop(&mut self) {
        // SAFETY: the mapping of `new`; the threads that used it have ended. Fails for bad
        // arguments only.
        let _ = unsafe { unmap(self.start, self.bytes) };
    }
}

/// A thread's part of the heap, and the page that it touches next.
struct Part {
    start: *mut u8,
    next: usize,
}

// SAFETY: no two threads have the same part, and the heap is there until all threads have ended.
unsafe impl Send for Part {}

impl Part {
    /// Touches a page that is not mapped yet. When all pages are mapped, unmaps them.
    fn fault(&mut self) -> io::Result<()> {
        if self.next == PART {
            // SAFETY: the thread's own part; nothing is kept in it.
            if unsafe { libc::madvise(self.start.cast(), PART, libc::MADV_DONTNEED) } != 0 {
                return Err(io::Error::last_os_error());
            }
            self.next = 0;
        }
        // SAFETY: the page is within the thread's own part of the mapping, which stays mapped.
        unsafe { touch(self.start.add(self.next), PAGE) };
        self.next += PAGE;
        Ok(())
    }
}
