//! A channel between a worker and its syscall thread: one call at a time, a line there and back; each side looks for a
//! while, then sleeps.
//!
//! It is the publication's, as far as that tells: not the code of the library under programs, whose channel serves
//! several callers.

use manycore_simulated::sync::CachePadded;
use manycore_simulated::sync::atomic::{AtomicU32, Ordering};
use manycore_simulated::sync::{futex, hint};

use super::kernel::Call;

/// What the word says when there is nothing to do, and when there is an answer. Other numbers are calls.
const IDLE: u32 = 0;
const ANSWER: u32 = 1;
/// From here on, calls by their number.
const CALLS: u32 = 2;
/// The worker has ended.
const END: u32 = u32::MAX;

/// One worker's.
#[derive(Default)]
pub(super) struct Channel {
    message: CachePadded<Message>,
    /// Whether a side sleeps, each on its own line.
    worker: CachePadded<AtomicU32>,
    server: CachePadded<AtomicU32>,
}

/// The line that goes there and back.
#[derive(Default)]
struct Message {
    word: AtomicU32,
    result: AtomicU32,
}

impl Channel {
    /// Hands over a call and waits for its result.
    pub fn perform(&self, call: Call, looks: u32) -> u32 {
        self.post(CALLS + call as u32, &self.server);
        self.wait(|word| word == ANSWER, &self.worker, looks);
        // Relaxed: written before the answer, which was acquired.
        let result = self.message.result.load(Ordering::Relaxed);
        // Relaxed: only this side writes now, and the next call is released.
        self.message.word.store(IDLE, Ordering::Relaxed);
        result
    }

    /// Says that there are no more calls.
    pub fn end(&self) {
        self.post(END, &self.server);
    }

    /// Executes calls until the worker has ended.
    pub fn serve(&self, looks: u32, mut execute: impl FnMut(Call) -> u32) {
        loop {
            let word = self.wait(|word| word > ANSWER, &self.server, looks);
            if word == END {
                return;
            }
            let result = execute(Call::ALL[(word - CALLS) as usize]);
            // Relaxed: released by the answer below.
            self.message.result.store(result, Ordering::Relaxed);
            self.post(ANSWER, &self.worker);
        }
    }

    fn post(&self, word: u32, other: &AtomicU32) {
        // SeqCst: with the load below against the store and the load in `wait`: one of the two sides sees the other.
        self.message.word.store(word, Ordering::SeqCst);
        // SeqCst: as above.
        if other.load(Ordering::SeqCst) == 1 {
            // Relaxed: the sleeper looks at the message, not at this.
            other.store(0, Ordering::Relaxed);
            futex::wake(other, 1);
        }
    }

    fn wait(&self, wanted: impl Fn(u32) -> bool, asleep: &AtomicU32, looks: u32) -> u32 {
        for _ in 0..looks {
            // Acquire: the message that was released.
            let word = self.message.word.load(Ordering::Acquire);
            if wanted(word) {
                return word;
            }
            hint::pause();
        }
        loop {
            // SeqCst: with the load below against `post`.
            asleep.store(1, Ordering::SeqCst);
            // SeqCst: as above.
            let word = self.message.word.load(Ordering::SeqCst);
            if wanted(word) {
                // Relaxed: whoever sees a 1 that is out of date wakes nobody.
                asleep.store(0, Ordering::Relaxed);
                return word;
            }
            futex::wait(asleep, 1, None);
        }
    }
}
