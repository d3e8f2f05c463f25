//! The work of a pool worker: it executes the calls of all routes of its CPU.
//!
//! A worker never sleeps for a single call. It takes all calls from its queue, tries each
//! ([`attempt`](super::super::attempt)), keeps the waiting ones in a table of its own
//! ([`waits`](super::super::waits)) and leaves those that may block to a few workers
//! ([`blocking_worker`](manycore_channel::blocking_worker)). It sleeps in `epoll_wait`, for the
//! descriptors of its waiting calls and for the bell by which a caller wakes it.

use core::ffi::c_void;
use core::sync::atomic::Ordering;

use manycore::sync::{clock, cpu, hint, tuning};

use super::super::affinity;
use super::super::attempt::{Attempt, attempt};
use super::super::blocking::Blocking;
use super::super::internal_fds;
use super::super::number;
use super::super::raw;
use super::super::uring::RING;
use super::super::waits::{BELL, Waits};
use super::super::worker_pool::{OPEN_SIGNALS, signal_of};
use super::CpuWorker;
use manycore_channel::call::{Call, Kind};
use manycore_channel::queue::{Calls, Cancelled, Queue};
use manycore_channel::slot::{Reply, Slot};

/// How often epoll may wrongly report a descriptor as ready before its call is left to a blocking
/// worker.
const TRIES_MAX: u32 = 8;

/// After this many calls in a row the worker polls the descriptors as well.
const BATCH: u32 = 32;

const EVENTS: usize = 64;

/// A worker's life.
pub extern "C" fn run(argument: *mut c_void) -> *mut c_void {
    // SAFETY: `CpuWorker::make` passes itself, which is there for good.
    let cpu_worker: &'static CpuWorker = unsafe { &*argument.cast::<CpuWorker>() };
    // Relaxed, all: written before this thread was made.
    let cpu = cpu_worker.cpu.load(Ordering::Relaxed) as u16;
    let bound = affinity::bind_new(Some(cpu));
    raw::block(!OPEN_SIGNALS);
    // SAFETY: `CpuWorker::make` has stored it before this thread was made; it is never freed.
    let blocking = unsafe { &*cpu_worker.blocking.load(Ordering::Relaxed) };
    let epoll = cpu_worker.epoll();
    // The table was there before the thread was.
    if let Some(waits) = Waits::new(&cpu_worker.waits, epoll) {
        Worker { cpu_worker, blocking, waits, epoll, cpu, bound }.work();
    }
    blocking.workers.fetch_sub(1, Ordering::Relaxed); // Relaxed: as in `make`
    core::ptr::null_mut()
}

struct Worker {
    cpu_worker: &'static CpuWorker,
    blocking: &'static Blocking,
    waits: Waits,
    epoll: i32,
    cpu: u16,
    bound: affinity::Version,
}

impl Worker {
    fn work(&mut self) {
        let spin = if cpu::count() > 1 { tuning::spin_limit() } else { 0 };
        let mut since_look = 0;
        while !self.cpu_worker.is_ending() {
            affinity::bind_again(Some(self.cpu), &mut self.bound);
            let served = self.serve();
            since_look += served;
            if since_look >= BATCH || (served == 0 && self.waits.count() > 0) {
                since_look = 0;
                self.look(0);
            }
            if served == 0 && !self.is_called_within(spin) {
                self.sleep();
            }
        }
        internal_fds::close(self.epoll);
        internal_fds::close(self.cpu_worker.event.load(Ordering::Relaxed)); // Relaxed: never changes while this runs
    }

    /// Spins for a call.
    fn is_called_within(&self, limit: u64) -> bool {
        let start = clock::now();
        while self.cpu_worker.calls.is_empty() {
            if clock::has_passed(start, limit) {
                return false;
            }
            hint::spin_loop();
        }
        true
    }

    /// Executes the calls in the queues; returns their number.
    fn serve(&mut self) -> u32 {
        // A call was queued before its cancellation, so this worker knows it after it has also
        // taken the queued calls.
        let mut cancelled = self.cpu_worker.cancelled.take();
        let mut slot = self.cpu_worker.calls.take();
        let mut served = 0;
        // SAFETY: the slot was taken out of a queue, and is not answered before `after` has read
        // its link.
        while let Some(call) = unsafe { slot.as_ref() } {
            slot = Queue::<Calls>::after(call);
            self.execute(call);
            served += 1;
        }
        // SAFETY: the slot was taken out of the queue. Its caller waits until that is noted, which
        // happens after its link was read.
        while let Some(call) = unsafe { cancelled.as_ref() } {
            cancelled = Queue::<Cancelled>::after(call);
            // Relaxed: this worker's own.
            let waiting = call.waiting.load(Ordering::Relaxed).checked_sub(1);
            call.note_cancelled();
            if let Some(place) = waiting {
                self.give_up(place, raw::error(libc::EINTR));
            }
        }
        served
    }

    fn execute(&mut self, slot: &Slot) {
        let order = slot.order();
        let mut done = 0;
        // SAFETY: this worker executes the call, for which the program waits: the targets of its
        // arguments are valid.
        let outcome = unsafe { attempt(&order.call, order.kind, &mut done) };
        match outcome {
            Attempt::Done(answer) => reply(slot, answer),
            Attempt::Later { .. } if slot.is_cancelled() => {
                reply(slot, if done > 0 { done as isize } else { raw::error(libc::EINTR) });
            }
            Attempt::Later { descriptor, events, timeout } => {
                if self.waits.add(slot, descriptor, events, timeout, done) {
                    if done > 0 {
                        slot.note_part();
                    }
                    return;
                }
                self.leave(slot, done);
            }
            Attempt::Blocks => self.leave(slot, done),
        }
    }

    /// Leaves a call, or the rest of it, to a blocking worker.
    fn leave(&self, slot: &Slot, done: usize) {
        slot.go_on_behind(done);
        // SAFETY: the call was taken out of the queue or the table and not answered, so that this
        // worker executes it.
        unsafe { self.blocking.leave(slot) };
    }

    /// Retries a call whose descriptor was reported as ready.
    fn retry(&mut self, place: u32, events: u32) {
        let wait = self.waits.at(place);
        // SAFETY: the call is in the table, and so was not answered: its slot is there.
        let slot = unsafe { &*wait.slot };
        let (mut done, descriptor) = (wait.done, wait.descriptor);
        let failed = (libc::EPOLLERR | libc::EPOLLHUP) as u32;
        if done > 0 && events & failed != 0 {
            return self.give_up(place, done as isize);
        }
        let mut order = slot.order();
        // A `poll` has its descriptor in an array of the program's, which stays as it is.
        if order.call.number != number::POLL as usize {
            order.call.args[0] = descriptor as usize;
        }
        wait.tries += 1;
        // A wait for events checks the descriptors itself, with the rest of its time-out, and so
        // may be tried any number of times.
        let is_stuck = wait.tries > TRIES_MAX && order.kind != Kind::Timed;
        // SAFETY: this worker executes the call, for which the program waits: the targets of its
        // arguments are valid.
        match unsafe { attempt(&order.call, order.kind, &mut done) } {
            Attempt::Done(answer) => self.give_up(place, answer),
            Attempt::Later { events, .. } => {
                let wait = self.waits.at(place);
                if done > wait.done {
                    wait.tries = 0;
                    slot.note_part();
                }
                wait.done = done;
                if is_stuck || !self.waits.again(place, events) {
                    self.hand_over(place);
                }
            }
            Attempt::Blocks => self.hand_over(place),
        }
    }

    /// Leaves a waiting call, with its descriptor, to a blocking worker.
    fn hand_over(&mut self, place: u32) {
        let wait = self.waits.at(place);
        let done = wait.done;
        // SAFETY: the call is in the table, and so was not answered: its slot is there.
        let slot = unsafe { &*wait.slot };
        let descriptor = self.waits.remove(place);
        if slot.order().call.number == number::POLL as usize {
            internal_fds::close(descriptor);
        } else {
            slot.redirect(descriptor);
        }
        self.leave(slot, done);
    }

    /// The call at a place is over.
    fn give_up(&mut self, place: u32, answer: isize) {
        let wait = self.waits.at(place);
        let slot = wait.slot;
        let answer = if wait.done > 0 && answer < 0 { wait.done as isize } else { answer };
        internal_fds::close(self.waits.remove(place));
        // SAFETY: the call is in the table, and so was not answered: its slot is there.
        reply(unsafe { &*slot }, answer);
    }

    /// Sleeps until a call comes, or a descriptor is ready.
    fn sleep(&mut self) {
        let cpu_worker = self.cpu_worker;
        if cpu_worker.bell.doze(|| cpu_worker.calls.is_empty() && cpu_worker.cancelled.is_empty()) {
            self.look(self.waits.patience());
            cpu_worker.bell.rise();
        }
    }

    /// Sees to the ring.
    fn attend(&self) {
        // Acquire: partner of the Release in `feed`.
        let feed = self.cpu_worker.feed.load(Ordering::Acquire);
        // SAFETY: null, or one of a `Slab`, which is never freed.
        if let Some(feed) = unsafe { feed.as_ref() } {
            feed.attend(self.epoll);
        }
    }

    /// Waits at most this many milliseconds for descriptors that are ready, and retries their
    /// calls.
    fn look(&mut self, milliseconds: i32) {
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; EVENTS];
        let into = events.as_mut_ptr().expose_provenance();
        let args = [self.epoll as usize, into, EVENTS, milliseconds as usize, 0, 0];
        // SAFETY: the kernel writes no more events than the array has.
        let count = unsafe { raw::execute(&Call { number: number::EPOLL_WAIT as usize, args }) };
        for event in &events[..count.clamp(0, EVENTS as isize) as usize] {
            match event.u64 {
                BELL => {}
                RING => self.attend(),
                place => self.retry(place as u32, event.events),
            }
        }
        while let Some(place) = self.waits.late() {
            self.give_up(place, 0);
        }
    }
}

fn reply(slot: &Slot, answer: isize) {
    let reply = Reply { answer, signal: signal_of(answer) };
    // SAFETY: the worker executes the call, and answers it once: the callers take it out of the
    // queue or the table.
    unsafe { Slot::answer(slot, reply) };
}
