//! The channel between a worker and its syscall thread: the code of `manycore-channel`, by which
//! its mechanism `thread` carries a call to that thread and the answer back.
//!
//! A call is a [`Slot`], which the worker writes and passes to the thread's [`BlockingWorker`];
//! each side polls for a while, and then sleeps. Features that only a kernel has are left out:
//! signals, cancelling, the creation of threads. One thread serves a worker, for all of its
//! sockets.

use manycore_channel_simulated::blocking_worker::BlockingWorker;
use manycore_channel_simulated::call::{Call as Moved, Kind};
use manycore_channel_simulated::slot::{Reply, Slot};
use manycore_channel_simulated::stack::Stack;
use manycore_simulated::sync::{CachePadded, cpu, node};

use super::kernel::Call;

/// The only hand of a route.
const HAND: u32 = 0;

/// A worker's channel: what `manycore-channel` calls a route with one worker.
#[derive(Default)]
pub(super) struct Channel {
    /// The CPU of its thread.
    at: u32,
    idle: CachePadded<Stack>,
    hand: BlockingWorker,
}

impl Channel {
    /// Creates one with its hand on the stack; its thread is on a CPU.
    pub fn new(at: u32) -> Self {
        let channel = Self { at, ..Self::default() };
        channel.put(&channel.idle);
        channel
    }

    fn put(&self, home: &Stack) {
        home.push(HAND, |_| &self.hand.below);
    }

    fn take(&self) {
        let taken = self.idle.pop(|_| &self.hand.below);
        assert_eq!(taken, Some(HAND), "it is back before it answers");
    }

    /// Hands over a call and waits for its result; polls for this many cycles before it sleeps.
    pub fn perform(&self, call: Call, client: u32, spin: u64) -> u32 {
        let order = Moved { number: call as usize, args: [client as usize, 0, 0, 0, 0, 0] };
        let slot = node::take::<Slot>();
        // SAFETY: `take` has just made the slot: it belongs to this worker until it is sent, and
        // again once it is answered.
        let waiting = unsafe { slot.as_ref() };
        waiting.write(&order, Kind::Waits);
        self.take();
        // SAFETY: the syscall thread's worker was taken off its stack; the slot is valid until it
        // is answered, and the channel until all threads have ended.
        unsafe { self.hand.send(slot.as_ptr(), &raw const *self.idle) };
        // As in `Flight::wait`: a thread that polls on the answering thread's CPU would keep that
        // thread from running.
        let looks = if cpu::current() == self.at { 0 } else { spin };
        waiting.gate().wait_after(looks);
        let answer = waiting.reply().answer;
        // SAFETY: the slot is answered, so no other thread has it, and it comes from `node::take`.
        unsafe { node::give_back(slot) };
        answer as u32
    }

    /// Says that there are no more calls.
    pub fn end(&self) {
        self.take();
        // SAFETY: `take` has taken the worker off its stack, and sent it nothing; the channel is
        // valid until all threads have ended.
        unsafe { self.hand.end() };
    }

    /// Executes calls until the worker has ended.
    pub fn serve(&self, spin: u64, mut execute: impl FnMut(Call, u32) -> u32) {
        self.hand.work(
            spin,
            |home| self.put(home),
            |slot| {
                let order = slot.order();
                let result = execute(Call::ALL[order.call.number], order.call.args[0] as u32);
                Reply { answer: result as isize, signal: 0 }
            },
        );
    }
}
