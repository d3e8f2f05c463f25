//! A moved call from its caller's side, from when it was sent until the answer is there: the caller
//! spins, sleeps, is interrupted.

use core::marker::PhantomData;
use core::ptr::{NonNull, null_mut};
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, Ordering};

use manycore::lock::Gate;
use manycore::sync::{clock, cpu, node, tuning};

use super::cpu_worker::CpuWorker;
use super::internal_fds;
use super::raw;
use super::settings::Settings;
use super::uring::{self, Feed};
use manycore_channel::call::{Answer, Kind};
use manycore_channel::slot::{IN_PLACE, Reply, Slot};

/// A thread's moved call while it waits. Empty before
/// [`Offload::perform`](super::Offload::perform), and empty again after it, unless `perform` is
/// unwound or jumped out of; then [`Offload::abandon`](super::Offload::abandon) ends the call.
///
/// All fields are atomic. A signal handler may read them while the call that it interrupted is in
/// flight; the child that it forks may change them.
// Relaxed throughout: one thread reads and writes it, and its handlers.
#[derive(Debug, Default)]
pub struct PendingCall {
    /// Call and answer; null if there is none.
    slot: AtomicPtr<Slot>,
    /// For the pool: the worker in whose queue the call is; null if a worker or a ring has taken
    /// it.
    cpu_worker: AtomicPtr<CpuWorker>,
    /// For `uring`: the ring in which the call is, and the worker that waits for the ring;
    /// otherwise null.
    feed: AtomicPtr<Feed>,
    epoll: AtomicI32,
    /// Whether that worker was asked to listen.
    is_enlisted: AtomicBool,
    _of_one_thread: PhantomData<*mut ()>,
}

/// A thread that has not ended its call after this time gets another signal.
const REPEAT_NS: i64 = 1_000_000;

impl PendingCall {
    /// The call that is being sent or was sent; null if there is none.
    pub(crate) fn slot(&self) -> *mut Slot {
        self.slot.load(Ordering::Relaxed)
    }

    /// A call is going to be sent.
    pub(crate) fn begin(&self, slot: *mut Slot) {
        self.slot.store(slot, Ordering::Relaxed);
    }

    /// Notes that the call will be in the queue of a worker.
    pub(crate) fn goes_to(&self, cpu_worker: &'static CpuWorker) {
        self.cpu_worker.store(core::ptr::from_ref(cpu_worker).cast_mut(), Ordering::Relaxed);
    }

    /// Notes that the call will be in a ring for which a worker waits by this descriptor. `None`:
    /// it is in no ring.
    pub(crate) fn goes_into(&self, feed: Option<&'static Feed>, epoll: i32) {
        let feed = feed.map_or(null_mut(), |feed| core::ptr::from_ref(feed).cast_mut());
        self.feed.store(feed, Ordering::Relaxed);
        self.epoll.store(epoll, Ordering::Relaxed);
    }

    fn cpu_worker(&self) -> Option<&'static CpuWorker> {
        // SAFETY: `goes_to` has put a reference there that does not end.
        unsafe { self.cpu_worker.load(Ordering::Relaxed).as_ref() }
    }

    fn feed(&self) -> Option<&'static Feed> {
        // SAFETY: `goes_into` has put a reference there that does not end.
        unsafe { self.feed.load(Ordering::Relaxed).as_ref() }
    }

    /// Waits for the answer. It spins for a while, unless that keeps the answering thread from its
    /// CPU, and then sleeps.
    pub(crate) fn wait(&self, settings: &Settings, kind: Kind, there: u16) -> Reply {
        // SAFETY: the flight's slot was sent, or is about to be answered: it is valid, and this
        // thread may wait at it, until `land`.
        let slot = unsafe { &*self.slot() };
        let gate = slot.gate();
        let may_spin = cpu::count() > 1 && cpu::here() != u32::from(there);
        let limit = if may_spin { tuning::spin_limit() } else { 0 };
        let feed = self.feed();
        let is_there = match feed {
            Some(feed) => feed.spin(slot, limit),
            None => gate.spin(limit).is_some(),
        };
        if is_there || gate.doze().is_some() {
            if let Some(feed) = feed {
                feed.lateness.note_soon();
            }
            return slot.reply();
        }
        let began = clock::now();
        if let Some(feed) = feed {
            feed.enlist(self.epoll.load(Ordering::Relaxed));
            self.is_enlisted.store(true, Ordering::Relaxed);
        }
        if sleep(settings, kind, slot) {
            return self.interrupt();
        }
        if let Some(feed) = feed {
            feed.lateness.note(began, clock::now());
        }
        slot.reply()
    }

    /// Makes the executing thread end the call, and waits for the answer: `EINTR`, or the result so
    /// far.
    fn interrupt(&self) -> Reply {
        // SAFETY: the flight's slot was sent, or is about to be answered: it is valid, and this
        // thread may wait at it, until `land`.
        let slot = unsafe { &*self.slot() };
        let is_first = slot.cancel();
        let cpu_worker = self.cpu_worker();
        if let (true, Some(cpu_worker)) = (is_first, cpu_worker) {
            // SAFETY: the slot stays until `land`, which the callers call after this: it is
            // answered and noted by then.
            unsafe { cpu_worker.cancel(self.slot()) };
        }
        let feed = self.feed();
        let gate = slot.gate();
        loop {
            let _ = gate.doze();
            if let Some(feed) = feed {
                feed.cancel(self.slot());
            }
            let is_over = gate.poll().is_some();
            if is_over && (cpu_worker.is_none() || slot.is_noted()) {
                let reply = slot.reply();
                let call = slot.order().call;
                return if feed.is_some() { uring::interrupted(&call, reply) } else { reply };
            }
            if !is_over {
                slot.signal(|executor| raw::signal(executor, super::INTERRUPT));
            }
            // A signal may come just before the call goes to sleep: it is repeated until the answer
            // is there.
            raw::sleep(gate.word().as_ptr(), Gate::ASLEEP, if is_over { 1 } else { REPEAT_NS });
        }
    }

    /// Gives the slot back.
    pub(crate) fn land(&self) {
        let feed = self.feed();
        let is_enlisted = self.is_enlisted.swap(false, Ordering::Relaxed);
        if let (true, Some(feed)) = (is_enlisted, feed) {
            feed.leave();
        }
        self.cpu_worker.store(null_mut(), Ordering::Relaxed);
        self.goes_into(None, -1);
        let slot = self.slot.swap(null_mut(), Ordering::Relaxed);
        if let Some(slot) = NonNull::new(slot) {
            // SAFETY: `perform.rs` has taken it as a node; it is answered, or was never sent, so no
            // other thread has it.
            unsafe { node::give_back(slot) };
        }
    }

    /// Interrupts the call, waits until it is over, and returns its answer; `None` if there is no
    /// call.
    pub(crate) fn abandon(&self) -> Option<Answer> {
        if self.slot().is_null() {
            return None;
        }
        let reply = self.interrupt();
        // SAFETY: `interrupt` has returned, so that the call is over, and the slot is this thread's
        // until `land`.
        let descriptor = unsafe { (*self.slot()).order() }.descriptor;
        if reply.answer == IN_PLACE && descriptor >= 0 {
            // A handler that forked would wait for the change that it interrupted.
            let before = raw::block(!0);
            internal_fds::close(descriptor);
            raw::block(before);
        }
        self.land();
        Some(reply.answer)
    }

    /// Empties this in the child of a fork, where the thread that has the call does not exist.
    pub(crate) fn forked(&self) {
        // SAFETY: null, or this thread's until `land`; the thread that executed the call is not in
        // this process.
        let Some(slot) = (unsafe { self.slot().as_ref() }) else { return };
        self.cpu_worker.store(null_mut(), Ordering::Relaxed);
        self.goes_into(None, -1);
        self.is_enlisted.store(false, Ordering::Relaxed);
        if slot.gate().poll().is_none() {
            let reply = Reply { answer: raw::error(libc::EINTR), signal: 0 };
            // SAFETY: the call was not answered, and the thread that would answer it is not in this
            // process.
            unsafe { Slot::answer(slot, reply) };
        } else {
            // A worker's duplicate that came with the answer is closed here with all others.
            slot.forget_descriptor();
        }
        slot.note_cancelled();
    }
}

/// Sleeps until there is an answer, or until a handler ends the sleep, which is then reported. A
/// send of which a part is done is never restarted.
fn sleep(settings: &Settings, kind: Kind, slot: &Slot) -> bool {
    let gate = slot.gate();
    while gate.doze().is_none() && gate.poll().is_none() {
        let never_restarts = kind == Kind::Timed || slot.is_partly_done();
        let word = gate.word().as_ptr().cast_const();
        // SAFETY: the word is in the slot, which stays until `land`; the thread has nothing to drop
        // where it may be cancelled.
        let error = unsafe { (settings.sleep)(word, Gate::ASLEEP, never_restarts) };
        if error == libc::EINTR && gate.poll().is_none() {
            return true;
        }
    }
    false
}
