//! The threads that execute one call at a time and may block with it:
//! [blocking workers](manycore_channel::blocking_worker).
//!
//! Under the mechanism `thread` each route has workers of its own; the pool has a few, for calls
//! that cannot be tried without blocking.

use core::cell::UnsafeCell;
use core::ffi::c_void;
use core::sync::atomic::{AtomicU32, Ordering};

use manycore::sync::{cpu, tuning};

use super::affinity;
use super::attempt::{Attempt, attempt, finish, is_non_blocking, is_plain_send};
use super::internal_fds;
use super::raw;
use super::settings::Maker;
use super::slab::{Slab, Zeroed};
use manycore_channel::blocking_worker::BlockingWorker;
use manycore_channel::call::{Answer, Kind};
use manycore_channel::slot::{IN_PLACE, Order, Reply, Slot};
use manycore_channel::stack::Stack;

/// The most workers of a process, with any mechanism. Beyond that, calls that may block stay in
/// place.
pub const WORKERS_MAX: usize = 4096;

/// A worker, and its thread.
#[derive(Debug)]
#[repr(C)]
pub struct Record {
    worker: BlockingWorker,
    /// The CPU to which it is bound, plus one; 0: none.
    cpu: AtomicU32,
    /// The kernel's id; 0 before it runs.
    thread: AtomicU32,
    pool: UnsafeCell<*const WorkerPool>,
}

// SAFETY: `pool` is written before the thread is made that reads it; all else is atomic.
unsafe impl Sync for Record {}
// SAFETY: it consists of a shut gate, numbers, and null pointers, all of which may be zero.
unsafe impl Zeroed for Record {}

/// All workers of a process.
#[derive(Debug)]
pub struct WorkerPool {
    all: Slab<Record, WORKERS_MAX>,
    /// Records without a thread that were used before.
    free: Stack,
    /// Records that were ever used.
    used: AtomicU32,
    /// Threads that there are.
    alive: AtomicU32,
}

impl WorkerPool {
    /// None yet.
    pub const fn new() -> Self {
        Self {
            all: Slab::new(),
            free: Stack::new(),
            used: AtomicU32::new(0),
            alive: AtomicU32::new(0),
        }
    }

    /// How many threads there are.
    pub fn alive(&self) -> u32 {
        self.alive.load(Ordering::Relaxed) // Relaxed: a number for reports
    }

    /// How a stack finds its links.
    fn link<'a>(all: &'a [Record]) -> impl Fn(u32) -> &'a AtomicU32 {
        |number| &all[number as usize].worker.below
    }

    /// A worker off the stack.
    pub fn take(&self, home: &Stack) -> Option<u32> {
        home.pop(Self::link(self.all.get()?))
    }

    /// Puts a worker that was taken, and was sent nothing, onto another stack.
    pub fn put(&self, worker: u32, home: &Stack) {
        if let Some(all) = self.all.get() {
            home.push(worker, Self::link(all));
        }
    }

    /// Makes a thread, bound to the CPU if one is given. `limit` is the largest number of threads.
    /// Returns `None` if there are `limit`, or if the kernel refuses one.
    ///
    /// # Safety
    ///
    /// All signals are blocked.
    pub unsafe fn make(&'static self, maker: Maker, cpu: Option<u16>, limit: u32) -> Option<u32> {
        let all = self.all.get()?;
        // SAFETY: all signals are blocked (contract of this function).
        if self.alive() >= limit || !unsafe { maker.may_make() } {
            return None;
        }
        let more = |alive| (alive < limit).then_some(alive + 1);
        // Relaxed, both: only the number matters.
        self.alive.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok()?;
        let made = self.record(all).and_then(|number| {
            let record = &all[number as usize];
            // Relaxed: the thread's creation orders it.
            record.cpu.store(cpu.map_or(0, |cpu| u32::from(cpu) + 1), Ordering::Relaxed);
            // SAFETY: the record was taken, so only this thread has it, and it has no thread yet.
            unsafe { *record.pool.get() = self };
            let argument = core::ptr::from_ref(record).cast_mut().cast::<c_void>();
            // SAFETY: all signals are blocked, and `may_make` has said yes; `run` expects a record,
            // which is never freed.
            let is_made = unsafe { maker.make(run, argument) };
            if !is_made {
                self.free.push(number, Self::link(all));
            }
            is_made.then_some(number)
        });
        if made.is_none() {
            self.alive.fetch_sub(1, Ordering::Relaxed); // Relaxed: as above
        }
        made
    }

    /// A record without a thread.
    fn record(&self, all: &[Record]) -> Option<u32> {
        let old = self.free.pop(Self::link(all));
        old.or_else(|| {
            let more = |used| (used < WORKERS_MAX as u32).then_some(used + 1);
            // Relaxed, both: the number alone.
            self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok()
        })
    }

    /// Makes the worker execute the call, and wait on `home` afterwards.
    ///
    /// # Safety
    ///
    /// The caller has taken the worker off a stack, or made it, and has sent it nothing; the slot
    /// is initialised, no other thread has it, and it stays until it is answered; `home` is never
    /// freed.
    pub unsafe fn send(&self, worker: u32, slot: *const Slot, home: *const Stack) {
        if let Some(all) = self.all.get() {
            // SAFETY: the worker is the caller's, slot and stack stay (contract of this function),
            // and records are never freed.
            unsafe { all[worker as usize].worker.send(slot, home) };
        }
    }

    /// Has the worker's thread end.
    ///
    /// # Safety
    ///
    /// As in [`send`](Self::send).
    pub unsafe fn end(&self, worker: u32) {
        if let Some(all) = self.all.get() {
            // SAFETY: the worker is the caller's (contract of this function), and records are never
            // freed.
            unsafe { all[worker as usize].worker.end() };
        }
    }

    /// Empties the pool in the child of a fork.
    ///
    /// # Safety
    ///
    /// The calling thread is the only one of the process, and executes nothing here.
    pub unsafe fn forked(&self) {
        // SAFETY: the caller is the only thread (contract of this function), so that no record is
        // in use.
        unsafe { self.all.clear() };
        self.free.clear();
        self.used.store(0, Ordering::Relaxed); // Relaxed, both: there is no other thread
        self.alive.store(0, Ordering::Relaxed);
    }
}

/// Signals that our threads do not block: glibc's two, by which it reaches all threads, and the
/// interrupting one.
pub const OPEN_SIGNALS: u64 = raw::signals(&[32, 33, super::INTERRUPT]);

/// A worker's life.
extern "C" fn run(argument: *mut c_void) -> *mut c_void {
    // SAFETY: `make` passes its record, which is there for good.
    let record = unsafe { &*argument.cast::<Record>() };
    // Relaxed: written before this thread was made.
    let cpu = record.cpu.load(Ordering::Relaxed).checked_sub(1).map(|cpu| cpu as u16);
    let mut bound = affinity::bind_new(cpu);
    raw::block(!OPEN_SIGNALS);
    let thread = raw::thread_id();
    record.thread.store(thread, Ordering::Relaxed); // Relaxed: for a thread that looks at a dump
    // SAFETY: `make` has written it before this thread was made; workers are never freed.
    let pool = unsafe { &**record.pool.get() };
    let number = pool.number(record);
    let spin = if cpu::count() > 1 { tuning::spin_limit() } else { 0 };
    record.worker.work(
        spin,
        |home| pool.put(number, home),
        |slot| {
            affinity::bind_again(cpu, &mut bound);
            // SAFETY: the slot was sent to this worker, which answers it after this.
            unsafe { execute(slot, thread) }
        },
    );
    if let Some(all) = pool.all.get() {
        pool.free.push(number, WorkerPool::link(all));
    }
    pool.alive.fetch_sub(1, Ordering::Relaxed); // Relaxed: as in `make`
    core::ptr::null_mut()
}

impl WorkerPool {
    fn number(&self, record: &Record) -> u32 {
        let first = self.all.get().map_or(core::ptr::null(), <[Record]>::as_ptr);
        ((core::ptr::from_ref(record).addr() - first.addr()) / size_of::<Record>()) as u32
    }
}

/// Executes a call that may block.
///
/// # Safety
///
/// The slot is the caller's to execute.
unsafe fn execute(slot: &Slot, thread: u32) -> Reply {
    let order = slot.order();
    // SeqCst: partner of the load in `Slot::signal`; before `is_cancelled` is read.
    slot.executor.store(thread, Ordering::SeqCst);
    let ends_at_once =
        || order.kind.ends_early() && (order.done > 0 || !is_non_blocking(order.call.args[0]));
    let answer = if !(slot.is_cancelled() && ends_at_once()) {
        // SAFETY: this thread executes the call (contract of this function), for which the program
        // waits: the targets of its arguments are valid.
        unsafe { until_done(slot, &order) }
    } else if order.done > 0 {
        order.done as Answer
    } else {
        raw::error(libc::EINTR)
    };
    if slot.released() {
        // The signal that may have been sent comes here, and not in the next call.
        raw::thread_id();
    }
    if order.descriptor >= 0 {
        internal_fds::close(order.descriptor);
    }
    Reply { answer, signal: signal_of(answer) }
}

/// Executes the call. Repeats it if a signal interrupted it that was meant for an earlier call,
/// because nothing was transferred then.
///
/// First tries a send without blocking, so that the caller learns when a part of it is done.
///
/// # Safety
///
/// `order` is the slot's, and only this thread executes it: the targets of its call's arguments are
/// valid until it is answered.
unsafe fn until_done(slot: &Slot, order: &Order) -> Answer {
    let mut done = order.done;
    let is_cancelled = || slot.is_cancelled();
    // SAFETY: this thread executes the call, for which the program waits: the targets of its
    // arguments are valid.
    unsafe {
        if done == 0 && order.kind == Kind::Waits && is_plain_send(&order.call) {
            match attempt(&order.call, order.kind, &mut done) {
                Attempt::Done(answer) => return answer,
                Attempt::Later { .. } | Attempt::Blocks => {}
            }
        }
        if done > 0 {
            slot.note_part();
            return finish(&order.call, done, is_cancelled);
        }
        loop {
            let answer = raw::execute(&order.call);
            if answer != raw::error(libc::EINTR) || is_cancelled() || order.kind == Kind::Quick {
                return answer;
            }
        }
    }
}

/// The signal that the call sent to the calling thread, and that is not pending any more; 0 if
/// there is none.
pub fn signal_of(answer: Answer) -> i32 {
    let of = |errno, signal| answer == raw::error(errno) && raw::take_pending(signal);
    if of(libc::EPIPE, libc::SIGPIPE) {
        libc::SIGPIPE
    } else if of(libc::EFBIG, libc::SIGXFSZ) {
        libc::SIGXFSZ
    } else {
        0
    }
}

/// Answers a call without having done anything.
///
/// # Safety
///
/// As in [`Slot::answer`].
pub unsafe fn refuse(slot: *const Slot) {
    // SAFETY: the caller executes the call, and has not answered it (contract of this function).
    unsafe { Slot::answer(slot, Reply { answer: IN_PLACE, signal: 0 }) };
}
