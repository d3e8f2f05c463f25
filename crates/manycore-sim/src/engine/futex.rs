//! Sleeping until a word changes.

use super::{Engine, Handle, Spent, State, ThreadId, Why};
use crate::arena::global::host;
use crate::coherence::Kind;
use crate::machine::Cycles;

/// Sleeps if `unchanged` says so, until a wake-up of the address or the moment `until`; says whether the time had come.
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
    super::access(address, Kind::Load);
    if !unchanged() {
        return false;
    }
    host(|| handle.get().sleep_on(address, until));
    handle.suspend();
    let engine = handle.get();
    std::mem::take(&mut engine.threads[engine.current as usize].timed_out)
}

/// Wakes at most `count` threads that sleep on the address, those first that have slept for longest.
pub(crate) fn futex_wake(handle: Handle, address: usize, count: u32) {
    let engine = handle.get();
    engine.pass_system(engine.machine.os.futex_wake);
    handle.turn();
    host(|| handle.get().wake_sleepers(address, count));
}

impl Engine {
    /// Time in the kernel, which an explored schedule does not count.
    pub(super) fn pass_system(&mut self, cycles: Cycles) {
        self.pass(if self.policy.explores() { 1 } else { cycles }, Spent::System);
    }

    fn sleep_on(&mut self, address: usize, until: Option<Cycles>) {
        self.sleepers.entry(address).or_default().push_back(self.current);
        match until {
            Some(time) => self.sleep_until(time.max(self.clock()), Why::Futex(address)),
            None => self.leave(State::Asleep(Why::Futex(address))),
        }
    }

    fn wake_sleepers(&mut self, address: usize, count: u32) {
        for _ in 0..count {
            let Some(queue) = self.sleepers.get_mut(&address) else { return };
            let thread = queue.pop_front();
            if queue.is_empty() {
                self.sleepers.remove(&address);
            }
            let Some(thread) = thread else { return };
            self.wake(thread);
        }
    }

    /// The running thread wakes one that sleeps.
    fn wake(&mut self, thread: ThreadId) {
        let (here, there) = (self.machine.os.wake_path, self.machine.os.wake_thread);
        if self.cpu_for(thread) == self.cpu {
            // No other CPU has to be told; the caller does here what that would do there.
            self.pass_system(here);
            self.make_ready(thread, self.clock());
        } else {
            // The other CPU sets out when it is told, and does not wait until the caller has returned.
            self.make_ready(thread, self.clock());
            self.pass_system(there);
        }
    }

    /// The time of a sleeping thread has come.
    pub(super) fn time_out(&mut self, thread: u32, at: Cycles) {
        if let State::Asleep(Why::Futex(address)) = self.threads[thread as usize].state {
            let queue = self.sleepers.get_mut(&address).expect("it sleeps there");
            queue.retain(|sleeper| *sleeper != thread);
            if queue.is_empty() {
                self.sleepers.remove(&address);
            }
            self.threads[thread as usize].timed_out = true;
        }
        self.make_ready(thread, at);
    }
}
