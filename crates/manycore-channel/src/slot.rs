//! A call in flight: written by the caller, executed and answered by a thread of ours.
//!
//! A slot is a node of 128 bytes from the calling thread's own store ([`manycore::sync::node`]),
//! for one call at a time. So there is no allocation, and no two callers share a line. It has one
//! owner at any time: the caller writes it and hands it on (a
//! [`BlockingWorker`](crate::blocking_worker) or a [`Queue`](crate::queue) releases it); the thread
//! that executes the call writes the reply and opens the gate; then the caller has it back. Only
//! the words for cancelling are shared meanwhile.

use core::ptr::null_mut;

use manycore::lock::Gate;
use manycore::sync::atomic::{AtomicPtr, AtomicU32, Ordering, fence};
use manycore::sync::cell::UnsafeCell;
use manycore::sync::{futex, hint};
use manycore::{mutation, order};

use crate::call::{Answer, Call, Kind};

/// What is to be executed.
#[derive(Clone, Copy, Debug)]
pub struct Order {
    /// The call.
    pub call: Call,
    /// How long it can take.
    pub kind: Kind,
    /// A descriptor of ours that the call uses, and that is closed at its end; -1 if there is none.
    pub descriptor: i32,
    /// How many bytes of a send are gone already.
    pub done: usize,
}

/// What came of it.
#[derive(Clone, Copy, Debug)]
pub struct Reply {
    /// What the kernel returned.
    pub answer: Answer,
    /// The signal, SIGPIPE or SIGXFSZ, that the kernel sent to the thread that executed the call; 0
    /// if it sent none.
    pub signal: i32,
}

/// In place of an answer: nothing was done, and the caller has to execute the call itself.
pub const IN_PLACE: Answer = Answer::MIN;

const ANSWERED: u32 = Gate::MESSAGE;

/// How far cancelling has got.
const REQUESTED: u32 = 1;
const NOTED: u32 = 2;

const PART: u32 = 1;
const SIGNALLING: u32 = 2;

/// A call in flight.
#[derive(Debug)]
#[repr(C)]
pub struct Slot {
    done: Gate,
    /// 0, or how far cancelling has got.
    cancelled: AtomicU32,
    /// The kernel's id of the thread that executes the call and may block with it; 0 if there is
    /// none.
    pub executor: AtomicU32,
    /// The index plus one in its worker's table of waiting calls. Only the worker uses it.
    pub waiting: AtomicU32,
    /// Flags: a part of a send is done; the caller is sending a signal.
    notes: AtomicU32,
    /// In a queue: the call before it.
    pub next: AtomicPtr<Slot>,
    /// In a queue of cancelled calls: the call before it.
    pub next_cancelled: AtomicPtr<Slot>,
    order: UnsafeCell<Order>,
    reply: UnsafeCell<Reply>,
}

// SAFETY: order and reply have one owner at a time, see the page: the queue, gate or ring that
// hands the slot on orders the accesses.
unsafe impl Sync for Slot {}

impl Default for Slot {
    fn default() -> Self {
        let call = Call { number: 0, args: [0; 6] };
        Self {
            done: Gate::new(),
            cancelled: AtomicU32::new(0),
            executor: AtomicU32::new(0),
            waiting: AtomicU32::new(0),
            notes: AtomicU32::new(0),
            next: AtomicPtr::new(null_mut()),
            next_cancelled: AtomicPtr::new(null_mut()),
            order: UnsafeCell::new(Order { call, kind: Kind::Quick, descriptor: -1, done: 0 }),
            reply: UnsafeCell::new(Reply { answer: IN_PLACE, signal: 0 }),
        }
    }
}

impl Slot {
    /// Writes the call: by the caller, before it hands the slot on.
    pub fn write(&self, call: &Call, kind: Kind) {
        // SAFETY: the caller of this function has taken the slot and not handed it on, so no other
        // thread has it.
        self.order.with_mut(|order| unsafe {
            *order = Order { call: *call, kind, descriptor: -1, done: 0 }
        });
    }

    /// The call: by the thread that has the slot.
    pub fn order(&self) -> Order {
        // SAFETY: the caller of this has the slot: it executes the call, or has been answered.
        self.order.with(|order| unsafe { *order })
    }

    /// Makes the call use another descriptor, one of ours. The thread that executes the call closes
    /// it afterwards.
    pub fn redirect(&self, descriptor: i32) {
        // SAFETY: the caller of this executes the call, and so has the slot.
        self.order.with_mut(|order| unsafe {
            (*order).call.args[0] = descriptor as usize;
            (*order).descriptor = descriptor;
        });
    }

    /// Removes the descriptor of ours, in the child of a fork. The caller of an answered call does
    /// this.
    pub fn forget_descriptor(&self) {
        // SAFETY: the gate is open, so that the slot is the caller's again, which the caller of
        // this is.
        self.order.with_mut(|order| unsafe { (*order).descriptor = -1 });
    }

    /// Makes the next executing thread continue after this many bytes. The present one calls this.
    pub fn go_on_behind(&self, done: usize) {
        // SAFETY: the caller of this executes the call, and so has the slot.
        self.order.with_mut(|order| unsafe { (*order).done = done });
    }

    /// Notes that a part of a send is done. From now on no signal handler may make the kernel
    /// restart the send, whatever the handler's flags. So a caller that sleeps already is woken,
    /// and then sleeps in another way. The thread that executes the call calls this before it
    /// answers.
    pub fn note_part(&self) {
        self.notes.fetch_or(PART, Ordering::Relaxed); // Relaxed: ordered by the fence
        if !mutation!("part-note") {
            // SeqCst: partner of the fence in `is_partly_done`: either that sees the flag, or the
            // caller is seen to sleep.
            fence(Ordering::SeqCst);
        }
        let word = self.done.word();
        // Relaxed, both: the caller only learns that it has to read the slot again.
        let (success, failure) = (Ordering::Relaxed, Ordering::Relaxed);
        if word.compare_exchange(Gate::ASLEEP, 0, success, failure).is_ok() {
            futex::wake(word, 1);
        }
    }

    /// Whether a part of a send is done. The caller asks this after it has announced at the gate
    /// that it sleeps.
    pub fn is_partly_done(&self) -> bool {
        if !mutation!("part-look") {
            // SeqCst: partner of the fence in `note_part`.
            fence(Ordering::SeqCst);
        }
        self.notes.load(Ordering::Relaxed) & PART != 0 // Relaxed: ordered by the fence
    }

    /// Writes the reply. From then on the slot may be gone.
    ///
    /// # Safety
    ///
    /// The caller executes the call, and has not answered it.
    pub unsafe fn answer(slot: *const Self, reply: Reply) {
        // SAFETY: the caller executes the call and has not answered it (contract of this function),
        // so the slot is valid and its own until the gate opens.
        unsafe {
            (*slot).reply.with_mut(|place| *place = reply);
            Gate::open(&raw const (*slot).done, ANSWERED);
        }
    }

    /// At which the caller waits for the reply.
    pub fn gate(&self) -> &Gate {
        &self.done
    }

    /// The reply, for the caller, after the gate is open.
    pub fn reply(&self) -> Reply {
        // SAFETY: the gate is open, so that the slot is the caller's again, which the caller of
        // this is.
        self.reply.with(|reply| unsafe { *reply })
    }

    /// Asks the thread that executes the call to end it with `EINTR`; false if that was already
    /// requested.
    pub fn cancel(&self) -> bool {
        // SeqCst: partner of the load in `is_cancelled`, before which the executing thread writes
        // `executor`, as this thread reads it after this. The caller repeats its signals, so this
        // ordering only affects how soon the cancellation is seen.
        self.cancelled.compare_exchange(0, REQUESTED, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }

    /// Whether the caller has asked for the end of the call.
    pub fn is_cancelled(&self) -> bool {
        // SeqCst: partner of the exchange in `cancel`.
        self.cancelled.load(Ordering::SeqCst) != 0
    }

    /// Sends a signal to the thread that executes the call and may block with it, if there is one.
    /// The caller of the call uses this.
    pub fn signal(&self, send: impl FnOnce(u32)) {
        // SeqCst: before `executor` is read; partner of the load in `released`.
        self.notes.fetch_or(SIGNALLING, Ordering::SeqCst);
        // SeqCst: partner of the fence in `released`; one of the two sees the other's write.
        fence(Ordering::SeqCst);
        // SeqCst: partner of the stores of `executor`; after the note, and after `cancel`.
        let executor = self.executor.load(Ordering::SeqCst);
        if executor != 0 {
            send(executor);
        }
        // Release: partner of the load in `released`: the signal has been sent.
        self.notes.fetch_and(!SIGNALLING, Ordering::Release);
    }

    /// Notes that the executing thread will not block with this call any more. Once this returns,
    /// the thread gets no signal for this call, so no signal ends its next call. Returns whether
    /// there may have been a signal.
    pub fn released(&self) -> bool {
        // SeqCst: partner of the load in `signal`, which comes after the note; this comes before
        // the note is read.
        self.executor.store(0, Ordering::SeqCst);
        // SeqCst: partner of the fence in `signal`.
        fence(Ordering::SeqCst);
        if !self.is_cancelled() {
            return false;
        }
        // SeqCst: partner of `signal`'s notes.
        while !mutation!("slot-released") && self.notes.load(Ordering::SeqCst) & SIGNALLING != 0 {
            hint::yield_now();
        }
        true
    }

    /// Notes that the slot is in no queue of cancelled calls any more. If it is answered already,
    /// it may be freed after this.
    pub fn note_cancelled(&self) {
        // Release: partner of the Acquire in `is_noted`.
        self.cancelled.store(NOTED, order!(Release, "slot-noted"));
    }

    /// Whether the slot is out of the queue of cancelled calls.
    pub fn is_noted(&self) -> bool {
        // Acquire: partner of the Release in `note_cancelled`.
        self.cancelled.load(order!(Acquire, "slot-is-noted")) == NOTED
    }
}

const _: () = assert!(cfg!(loom) || size_of::<Slot>() <= 128, "a slot is a node");
