//! The threads that may block, which all workers of the pool share.

use core::sync::atomic::{AtomicU32, Ordering};

use super::settings::Maker;
use super::worker_pool::{WorkerPool, refuse};
use manycore_channel::slot::Slot;
use manycore_channel::stack::Stack;

/// The most workers of the pool for calls that may block.
const SPARE_MAX: u32 = 4;

/// The workers of the pool.
#[derive(Debug)]
pub struct Blocking {
    pub pool: WorkerPool,
    pub idle: Stack,
    /// How many workers there are.
    pub workers: AtomicU32,
}

impl Blocking {
    pub const fn new() -> Self {
        Self { pool: WorkerPool::new(), idle: Stack::new(), workers: AtomicU32::new(0) }
    }

    /// Empties the pool, in the child of a fork.
    ///
    /// # Safety
    ///
    /// The calling thread is the only one of the process, and executes nothing here.
    pub unsafe fn forked(&self) {
        // SAFETY: the caller is the only thread (contract of this function).
        unsafe { self.pool.forked() };
        self.idle.clear();
        self.workers.store(0, Ordering::Relaxed); // Relaxed: there is no other thread
    }

    /// Passes a call to a worker that may block. If there is no such worker, the answer tells the
    /// caller to make the call itself. The caller then also closes the duplicate of the descriptor
    /// that the call may have by now: it would keep open a file that the program may have closed
    /// meanwhile.
    ///
    /// # Safety
    ///
    /// The caller executes the call.
    pub unsafe fn leave(&'static self, slot: *const Slot) {
        // SAFETY: the worker was taken off the stack and was sent nothing; the caller executes the
        // call (contract of this function), and so may pass it on or answer it.
        unsafe {
            match self.pool.take(&self.idle) {
                Some(worker) => self.pool.send(worker, slot, &raw const self.idle),
                None => refuse(slot),
            }
        }
    }

    /// Sends a call to a worker. Makes a worker if there are not this many yet; returns false if
    /// there is none.
    ///
    /// # Safety
    ///
    /// The slot is initialised, no other thread has it, and it stays until it is answered; all
    /// signals are blocked.
    pub unsafe fn send(&'static self, slot: *const Slot, maker: Maker) -> bool {
        let worker = self.pool.take(&self.idle);
        // SAFETY: all signals are blocked (contract of this function).
        let worker = worker.or_else(|| unsafe { self.pool.make(maker, None, SPARE_MAX) });
        // SAFETY: the worker was taken off the stack or made here, and was sent nothing; the slot
        // is written, and stays until it is answered (contract of this function).
        worker.map(|worker| unsafe { self.pool.send(worker, slot, &raw const self.idle) }).is_some()
    }
}
