//! Sleeping until a word changes.
//!
//! # Buckets
//!
//! A kernel keeps the sleepers on a word in a bucket of a hash table, with a spin lock and a count
//! of waiters in one line. So a thread that goes to sleep and a thread that wakes others wait for
//! each other there, and the line moves between their CPUs. Linux has 256 buckets for each CPU, so
//! two words hardly ever share one; here none do. Where schedules are explored, a call is one step.

use std::collections::VecDeque;

use super::{Engine, Handle, Phase, Spent, State, ThreadId, Why};
use crate::arena::LINE;
use crate::arena::global::{host, lasting};
use crate::coherence::Kind;
use crate::machine::Cycles;

/// The sleepers on a word, and the thread that holds their list's lock.
#[derive(Debug, Default)]
pub(super) struct Bucket {
    /// The address of its line; 0 where schedules are explored.
    address: usize,
    /// The sleeping threads, the one that has slept longest first.
    sleepers: VecDeque<ThreadId>,
    /// The number of threads that sleep or are about to.
    waiters: u32,
    /// The thread that has the spin lock.
    holder: Option<ThreadId>,
    /// The threads that spin for the lock, in the order in which they get it.
    spinning: VecDeque<ThreadId>,
}

/// Sleeps if `unchanged` returns true, until a wake-up of the address or the moment `until`;
/// returns whether the time had come.
///
/// The comparison is one step with going to sleep.
pub(crate) fn futex_wait(
    handle: Handle,
    address: usize,
    unchanged: impl FnOnce() -> bool,
    until: Option<Cycles>,
) -> bool {
    let engine = handle.get();
    engine.pass_system(engine.machine.os.futex_wait);
    // Counted before the thread has the lock, so that no waking thread misses it.
    handle.bucket(address).waiters += 1;
    let before = handle.lock_bucket(address);
    super::access(address, Kind::Load);
    if !unchanged() {
        handle.bucket(address).waiters -= 1;
        handle.unlock_bucket(address, before);
        return false;
    }
    host(|| {
        let current = handle.get().current;
        handle.bucket(address).sleepers.push_back(current);
    });
    handle.unlock_bucket(address, before);
    host(|| handle.get().sleep_on(address, until));
    handle.suspend();
    let engine = handle.get();
    std::mem::take(&mut engine.threads[engine.current as usize].timed_out)
}

/// Wakes at most `count` threads that sleep on the address, those that have slept longest first.
pub(crate) fn futex_wake(handle: Handle, address: usize, count: u32) {
    let engine = handle.get();
    engine.pass_system(engine.machine.os.futex_wake);
    if engine.policy.explores() {
        handle.turn();
    } else {
        // Reading the count of waiters takes no lock.
        super::access(handle.bucket(address).address, Kind::Load);
    }
    if handle.bucket(address).waiters == 0 {
        return;
    }
    let before = handle.lock_bucket(address);
    let woken = host(|| {
        let bucket = handle.bucket(address);
        let count = bucket.sleepers.len().min(count as usize);
        bucket.waiters -= count as u32;
        let woken: Vec<_> = bucket.sleepers.drain(..count).collect();
        let engine = handle.get();
        // They cannot time out any more.
        woken.iter().for_each(|thread| engine.events.remove(engine.timer(*thread)));
        woken
    });
    handle.unlock_bucket(address, before);
    host(|| {
        woken.iter().for_each(|thread| handle.get().wake(*thread));
        drop(woken);
    });
}

impl Handle {
    /// The bucket of a word.
    fn bucket<'a>(self, address: usize) -> &'a mut Bucket {
        let engine = self.get();
        if !engine.buckets.contains_key(&address) {
            let line = (!engine.policy.explores()).then(|| lasting(LINE)).flatten();
            let line = line.map_or(0, |line| line.as_ptr().addr());
            host(|| engine.buckets.insert(address, Bucket { address: line, ..Bucket::default() }));
        }
        engine.buckets.get_mut(&address).expect("it is there now")
    }

    /// Acquires the bucket's spin lock. The caller is not preempted until it releases the lock and
    /// restores its earlier activity, which this returns.
    fn lock_bucket(self, address: usize) -> Phase {
        let engine = self.get();
        if engine.policy.explores() {
            return engine.thread().phase;
        }
        let before = std::mem::replace(&mut engine.thread().phase, Phase::System);
        let line = self.bucket(address).address;
        super::access(line, Kind::Rmw);
        let current = engine.current;
        let bucket = self.bucket(address);
        if bucket.holder.is_none() {
            bucket.holder = Some(current);
            return before;
        }
        host(|| bucket.spinning.push_back(current));
        engine.spin_in_kernel();
        self.suspend();
        // The thread sees that it is the next one, and writes that it has the lock.
        super::access(line, Kind::Load);
        super::access(line, Kind::Store);
        before
    }

    fn unlock_bucket(self, address: usize, before: Phase) {
        let engine = self.get();
        if engine.policy.explores() {
            return;
        }
        super::access(self.bucket(address).address, Kind::Store);
        let bucket = self.bucket(address);
        bucket.holder = bucket.spinning.pop_front();
        if let Some(next) = bucket.holder {
            engine.unpark(next, engine.clock());
        }
        engine.thread().phase = before;
    }
}

impl Engine {
    /// Time in the kernel, which an explored schedule does not count.
    pub(super) fn pass_system(&mut self, cycles: Cycles) {
        self.pass(if self.policy.explores() { 1 } else { cycles }, Spent::System);
    }

    fn sleep_on(&mut self, address: usize, until: Option<Cycles>) {
        match until {
            Some(time) => self.sleep_until(time.max(self.clock()), Why::Futex(address)),
            None => self.leave(State::Asleep(Why::Futex(address))),
        }
    }

    /// The running thread wakes a sleeping one.
    fn wake(&mut self, thread: ThreadId) {
        let (here, there) = (self.machine.os.wake_path, self.machine.os.wake_thread);
        if self.cpu_for(thread) == self.cpu {
            // No other CPU has to be notified; the caller does here what that CPU would do.
            self.pass_system(here);
            self.make_ready(thread, self.clock());
        } else {
            // The other CPU starts when it is notified, and does not wait until the caller has
            // returned.
            self.make_ready(thread, self.clock());
            self.pass_system(there);
        }
    }

    /// The time-out of a sleeping thread has come.
    pub(super) fn time_out(&mut self, thread: u32, at: Cycles) {
        if let State::Asleep(Why::Futex(address)) = self.threads[thread as usize].state {
            let bucket = self.buckets.get_mut(&address).expect("it sleeps there");
            bucket.sleepers.retain(|sleeper| *sleeper != thread);
            bucket.waiters -= 1;
            self.threads[thread as usize].timed_out = true;
        }
        self.make_ready(thread, at);
    }
}
