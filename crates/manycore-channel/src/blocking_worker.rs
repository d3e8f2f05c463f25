//! How one thread that executes calls, a *worker*, gets them from other threads, and how it waits
//! meanwhile.
//!
//! An idle worker is on a stack, and waits at its gate. The thread that takes it off the stack may
//! send it one call, or make it end. The worker goes back onto the stack *before* it answers, so
//! that its caller's next call finds it there. It shuts its gate even before that, because the next
//! call may come as soon as the worker is on the stack.

use manycore::lock::Gate;
use manycore::mutation;
use manycore::sync::atomic::AtomicU32;
use manycore::sync::cell::UnsafeCell;

use crate::slot::{Reply, Slot};
use crate::stack::Stack;

const CALL: u32 = Gate::MESSAGE;
const END: u32 = Gate::MESSAGE + 1;

/// The data that a worker shares with the threads that send it calls. If all bytes are zero, the
/// worker waits for its first call.
#[derive(Debug)]
#[repr(C, align(128))]
pub struct BlockingWorker {
    gate: Gate,
    /// The worker below it, in a stack.
    pub below: AtomicU32,
    /// What is sent, until the gate is shut again.
    sent: UnsafeCell<Sent>,
}

#[derive(Clone, Copy, Debug)]
struct Sent {
    slot: *const Slot,
    /// Where the worker waits for the next call.
    home: *const Stack,
}

// SAFETY: the thread that has taken the worker off its stack writes the sent data before it opens
// the gate, and the worker reads them after it has received: the gate orders the two.
unsafe impl Sync for BlockingWorker {}
// SAFETY: its pointers lead to a slot and a stack that another thread may use: they are handed on
// with the call.
unsafe impl Send for BlockingWorker {}

impl Default for BlockingWorker {
    fn default() -> Self {
        let nothing = Sent { slot: core::ptr::null(), home: core::ptr::null() };
        Self { gate: Gate::new(), below: AtomicU32::new(0), sent: UnsafeCell::new(nothing) }
    }
}

impl BlockingWorker {
    /// Makes the worker execute the call, and wait on `home` afterwards.
    ///
    /// # Safety
    ///
    /// The caller has taken the worker off a stack, or created it, and has sent it nothing. The
    /// slot is initialised, no other thread has it, and it stays until it is answered. Worker and
    /// `home` are never freed.
    pub unsafe fn send(&self, slot: *const Slot, home: *const Stack) {
        // SAFETY: the worker is the caller's until the gate opens, and is never freed; no other
        // message is on its way (contract of this function).
        unsafe {
            self.sent.with_mut(|sent| *sent = Sent { slot, home });
            Gate::open(&raw const self.gate, CALL);
        }
    }

    /// Has the worker's thread end.
    ///
    /// # Safety
    ///
    /// As in [`send`](Self::send).
    pub unsafe fn end(&self) {
        // SAFETY: the worker is the caller's, which has sent it nothing, and is never freed
        // (contract of this function).
        unsafe { Gate::open(&raw const self.gate, END) };
    }

    /// The loop of the worker's thread: it executes the calls that it is sent until it has to end.
    /// `put` puts the worker onto a stack. The worker spins `spin` ticks for a call before it
    /// sleeps.
    pub fn work(&self, spin: u64, put: impl Fn(&Stack), mut execute: impl FnMut(&Slot) -> Reply) {
        while self.gate.wait_after(spin) == CALL {
            // SAFETY: the gate has brought the message, so that `sent` is written, and this
            // worker's until the gate is shut.
            let Sent { slot, home } = self.sent.with(|sent| unsafe { *sent });
            if !mutation!("worker-shut") {
                self.gate.shut();
            }
            // SAFETY: the slot was sent to this worker, and stays until it is answered, below.
            let reply = execute(unsafe { &*slot });
            let home = || {
                // SAFETY: the stack stays for good (contract of `send`).
                put(unsafe { &*home });
            };
            if !mutation!("worker-put") {
                home();
            }
            if mutation!("worker-shut") {
                self.gate.shut();
            }
            // SAFETY: this worker executes the call, and answers it once.
            unsafe { Slot::answer(slot, reply) };
            if mutation!("worker-put") {
                home();
            }
        }
        self.gate.shut();
    }
}
