//! The callers' view of the pool's workers: one for each CPU, started at its first call, and the
//! calls on their way to it.

mod work;

use core::ffi::c_void;
use core::sync::atomic::{AtomicI32, AtomicPtr, AtomicU32, Ordering};

use manycore::sync::{clock, hint};
use syscalls::{Sysno, raw_syscall};

use super::blocking::Blocking;
use super::internal_fds;
use super::raw;
use super::settings::Maker;
use super::slab::Zeroed;
use super::uring::{self, Feed};
use super::waits::{BELL, Table};
use manycore_channel::queue::{Bell, Calls, Cancelled, Queue};
use manycore_channel::slot::Slot;

const NEW: u32 = 0;
const STARTING: u32 = 1;
const RUNNING: u32 = 2;
const ENDING: u32 = 3;

/// How many ticks, some milliseconds, a caller waits for a worker that another thread makes.
const PATIENCE: u64 = 1 << (24 - raw::SLOWER);

/// A worker, and the calls on their way to it. All zero: it has not started.
#[derive(Debug)]
#[repr(C, align(128))]
pub struct CpuWorker {
    pub(crate) calls: Queue<Calls>,
    pub(crate) cancelled: Queue<Cancelled>,
    pub(crate) bell: Bell,
    state: AtomicU32,
    pub(crate) cpu: AtomicU32,
    epoll: AtomicI32,
    pub(crate) event: AtomicI32,
    /// For the mechanism `uring`: the ring whose completions the worker waits for, when asked to.
    pub(crate) feed: AtomicPtr<Feed>,
    /// Routes that have their calls executed here.
    pub routes: AtomicU32,
    pub(crate) waits: Table,
    pub(crate) blocking: AtomicPtr<Blocking>,
}

// SAFETY: it consists of empty queues, a silent bell, numbers and null pointers, all of which may
// be zero.
unsafe impl Zeroed for CpuWorker {}

impl CpuWorker {
    /// Queues a call; returns false if there is no worker, and none can be made now.
    ///
    /// # Safety
    ///
    /// The slot is initialised, no other thread uses it, and it stays until it is answered; all
    /// signals are blocked.
    pub unsafe fn send(
        &'static self,
        slot: *mut Slot,
        cpu: u16,
        blocking: &'static Blocking,
        maker: Maker,
    ) -> bool {
        // SAFETY: all signals are blocked (contract of this function).
        if !unsafe { self.is_running(cpu, blocking, maker) } {
            return false;
        }
        // SAFETY: the slot is in no queue, and stays until it is answered, for which it is taken
        // out (contract of this function).
        unsafe { self.calls.push(slot) };
        if self.bell.ring() {
            self.wake();
        }
        true
    }

    /// Whether there is a worker. Makes one if there was none; returns false if that is impossible
    /// now.
    ///
    /// # Safety
    ///
    /// All signals are blocked.
    pub unsafe fn is_running(
        &'static self,
        cpu: u16,
        blocking: &'static Blocking,
        maker: Maker,
    ) -> bool {
        // Acquire: partner of the Release in `start`.
        let is_running = self.state.load(Ordering::Acquire) == RUNNING;
        // SAFETY: all signals are blocked (contract of this function).
        is_running || unsafe { self.start(cpu, blocking, maker) }
    }

    /// Makes the running worker wait for a ring as well; returns false if the kernel refuses.
    pub fn feed(&self, feed: &'static Feed, ring: i32) -> bool {
        // Release: partner of the Acquire in `attend`.
        self.feed.store(core::ptr::from_ref(feed).cast_mut(), Ordering::Release);
        uring::listen(self.epoll(), libc::EPOLL_CTL_ADD, ring)
    }

    /// What the worker sleeps in.
    pub fn epoll(&self) -> i32 {
        self.epoll.load(Ordering::Relaxed) // Relaxed: acquired with the state
    }

    /// Makes a queued call end with `EINTR`. Call it once for each call.
    ///
    /// # Safety
    ///
    /// The slot stays until it is answered and has left the queue ([`Slot::is_noted`]).
    pub unsafe fn cancel(&self, slot: *mut Slot) {
        // SAFETY: the slot is in no queue of this link, since it is requested only once, and stays
        // until it was taken out (contract of this function).
        unsafe { self.cancelled.push(slot) };
        if self.bell.ring() {
            self.wake();
        }
    }

    /// Ends the worker. No call may be in flight.
    pub fn end(&self) {
        // AcqRel: Acquire, partner of the Release in `start`, for the event's number. Release: the
        // worker reads the state after it was woken; no other data depends on it.
        if self.state.swap(ENDING, Ordering::AcqRel) == RUNNING {
            self.wake();
        }
    }

    /// Whether the worker is to end: by itself.
    pub fn is_ending(&self) -> bool {
        // Relaxed: the state changes when no call is in flight.
        self.state.load(Ordering::Relaxed) == ENDING
    }

    fn wake(&self) {
        let one = 1u64;
        let event = self.event.load(Ordering::Relaxed); // Relaxed: acquired with the state
        // SAFETY: the kernel reads eight bytes, which are in this frame.
        unsafe { raw_syscall!(Sysno::write, event, &raw const one, 8) };
    }

    /// Makes the worker, or waits until another has made it. Returns whether it is there.
    ///
    /// # Safety
    ///
    /// All signals are blocked in this thread.
    #[cold]
    unsafe fn start(&'static self, cpu: u16, blocking: &'static Blocking, maker: Maker) -> bool {
        // Acquire on failure: partner of the Release below, for the worker. Relaxed on success:
        // only one thread goes on.
        match self.state.compare_exchange(NEW, STARTING, Ordering::Relaxed, Ordering::Acquire) {
            Ok(_) => {}
            Err(STARTING) => return self.is_started(),
            Err(state) => return state == RUNNING,
        }
        // SAFETY: all signals are blocked: the callers ask for that.
        let started = unsafe { self.make(cpu, blocking, maker) };
        // Release: partner of the Acquire in `is_running`. A refused request may be granted another
        // time.
        self.state.store(if started { RUNNING } else { NEW }, Ordering::Release);
        started
    }

    /// Waits until another thread has made the worker, for the time of some system calls. It does
    /// not wait for ever: if a handler has interrupted this thread in `malloc`, the other thread
    /// may need a lock of the allocator that this thread holds.
    fn is_started(&self) -> bool {
        let start = clock::now();
        loop {
            // Acquire: partner of the Release in `start`.
            match self.state.load(Ordering::Acquire) {
                STARTING if !clock::has_passed(start, PATIENCE) => hint::sleep_zero(),
                state => return state == RUNNING,
            }
        }
    }

    /// Makes the worker, and the objects by which it waits. Returns whether it did.
    ///
    /// # Safety
    ///
    /// All signals are blocked in this thread, which alone has taken the state from new to
    /// starting.
    unsafe fn make(&'static self, cpu: u16, blocking: &'static Blocking, maker: Maker) -> bool {
        // SAFETY: all signals are blocked, as the callers' contracts require. Checked last, because
        // it takes longest.
        let may_make = || unsafe { maker.may_make() };
        if !internal_fds::has_numbers() || !self.waits.is_there() || !may_make() {
            return false;
        }
        // SAFETY: the first two calls take numbers only; the kernel reads the event, which is in
        // this frame.
        let (epoll, event) = unsafe {
            let epoll = internal_fds::make(|| {
                raw_syscall!(Sysno::epoll_create1, libc::EPOLL_CLOEXEC) as i32
            });
            let flags = libc::EFD_CLOEXEC | libc::EFD_NONBLOCK;
            let event = internal_fds::make(|| raw_syscall!(Sysno::eventfd2, 0, flags) as i32);
            let on =
                libc::epoll_event { events: (libc::EPOLLIN | libc::EPOLLET) as u32, u64: BELL };
            raw_syscall!(Sysno::epoll_ctl, epoll, libc::EPOLL_CTL_ADD, event, &raw const on);
            (epoll, event)
        };
        if epoll < 0 || event < 0 {
            [epoll, event].into_iter().filter(|fd| *fd >= 0).for_each(internal_fds::close);
            return false;
        }
        // Relaxed, all: the thread's creation, and the state, order them.
        self.epoll.store(epoll, Ordering::Relaxed);
        self.event.store(event, Ordering::Relaxed);
        self.cpu.store(u32::from(cpu), Ordering::Relaxed);
        self.blocking.store(core::ptr::from_ref(blocking).cast_mut(), Ordering::Relaxed);
        let argument = core::ptr::from_ref(self).cast_mut().cast::<c_void>();
        // SAFETY: all signals are blocked, and `may_make` has said yes; `run` expects a CPU worker,
        // which is never freed.
        let made = unsafe { maker.make(work::run, argument) };
        if !made {
            internal_fds::close(epoll);
            internal_fds::close(event);
        } else {
            blocking.workers.fetch_add(1, Ordering::Relaxed); // Relaxed: a number for reports
        }
        made
    }

    /// Removes the worker, in the child of a fork. [`internal_fds::forked`] closes its descriptors.
    ///
    /// # Safety
    ///
    /// The calling thread is the only one of the process, and executes nothing here.
    pub unsafe fn forked(&self) {
        // SAFETY: the caller is the only thread (contract of this function), so that the worker is
        // not in this process.
        unsafe { self.waits.forked() };
        self.calls.take();
        self.cancelled.take();
        self.bell.rise();
        self.state.store(NEW, Ordering::Relaxed); // Relaxed: there is no other thread
    }
}
