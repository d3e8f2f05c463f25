//! Passing time, and reading clocks.

use super::{Engine, Handle, Spent, State, TSC_START, Why};
use crate::machine::Cycles;

/// A computation of this length is interrupted to check whether the slice has ended.
const LONG: Cycles = 10_000;
/// How far the clock jumps at each read in an explored schedule, so that spinning for a time ends
/// soon.
const EXPLORED_JUMP: Cycles = 1000;

/// Computes for this many cycles.
pub(crate) fn compute(handle: Handle, cycles: Cycles) {
    let engine = handle.get();
    engine.note_progress();
    let cycles = engine.slowed(cycles);
    spend(handle, cycles, Spent::Computing);
    handle.get().note_progress();
}

/// A branch that is guessed wrong every other time.
pub(crate) fn unforeseen_branch() {
    let Some(handle) = Handle::current() else { return };
    let engine = handle.get();
    if !engine.policy.explores() {
        let thread = engine.thread();
        thread.guessed_wrong = !thread.guessed_wrong;
        // Half of the cost; the remainder is added every other time.
        let cost = (engine.machine.core.branch_miss + u64::from(engine.thread().guessed_wrong)) / 2;
        engine.pass(engine.slowed(cost), Spent::Computing);
    }
}

/// Passes this many cycles without giving up the CPU.
pub(crate) fn delay(handle: Handle, cycles: Cycles) {
    let engine = handle.get();
    engine.policy.yielded(engine.current);
    engine.threads[engine.current as usize].reads.unforeseen = true;
    spend(handle, if engine.policy.explores() { 1 } else { cycles }, Spent::Waiting);
    if handle.get().policy.explores() {
        handle.turn();
    }
}

fn spend(handle: Handle, mut cycles: Cycles, spent: Spent) {
    // The slice can end only if other threads wait.
    while cycles > LONG && handle.get().queued > 0 {
        handle.get().pass(LONG, spent);
        cycles -= LONG;
        handle.turn();
    }
    handle.get().pass(cycles, spent);
}

/// One iteration of a polling loop.
pub(crate) fn spin_loop(handle: Handle) {
    if handle.get().end_of_turn() {
        handle.suspend();
    }
}

/// Lets another thread have the CPU.
pub(crate) fn yield_now(handle: Handle) {
    let engine = handle.get();
    engine.policy.yielded(engine.current);
    engine.pass_system(engine.machine.os.yield_call);
    handle.turn();
    let engine = handle.get();
    if !engine.cpus[engine.cpu as usize].queue.is_empty() {
        engine.leave(State::Ready);
        handle.suspend();
    }
}

/// Sleeps for this many cycles, and somewhat longer.
pub(crate) fn sleep(handle: Handle, cycles: Cycles) {
    let engine = handle.get();
    engine.policy.yielded(engine.current);
    engine.pass_system(engine.machine.os.futex_wait);
    let slack = if engine.policy.explores() { 0 } else { engine.machine.os.timer_slack };
    let until = engine.clock() + cycles + slack;
    engine.sleep_until(until, Why::Sleep);
    handle.suspend();
}

/// The time-stamp counter of the caller's core.
pub(crate) fn now(handle: Handle) -> u64 {
    let engine = handle.get();
    engine.threads[engine.current as usize].reads.unforeseen = true;
    engine.read_clock()
}

/// Whether `ticks` ticks have passed since the counter stood at `start`. A polling loop that gives
/// up at that time can be parked until then; a loop that reads [`now`] cannot.
pub(crate) fn has_passed(handle: Handle, start: u64, ticks: u64) -> bool {
    let engine = handle.get();
    let now = engine.read_clock();
    let left = engine.cycles(ticks.saturating_sub(now.wrapping_sub(start)));
    if left == 0 {
        return true;
    }
    let limit = engine.clock() + left;
    let reads = &mut engine.threads[engine.current as usize].reads;
    reads.limit = Some(reads.limit.map_or(limit, |other| other.min(limit)));
    false
}

/// The difference that two cores would measure between their counters.
pub(crate) fn boundary(handle: Handle) -> Option<u64> {
    let engine = handle.get();
    (!engine.policy.explores()).then_some(engine.ticks(engine.machine.core.clock_boundary))
}

/// Nanoseconds since the start.
pub(crate) fn nanoseconds(handle: Handle) -> u64 {
    let engine = handle.get();
    engine.threads[engine.current as usize].reads.unforeseen = true;
    engine.read_clock();
    (engine.clock() as f64 / engine.machine.core.ghz) as u64
}

impl Engine {
    fn read_clock(&mut self) -> u64 {
        let cost =
            if self.policy.explores() { EXPLORED_JUMP } else { self.machine.core.clock_read };
        self.pass(cost, Spent::Computing);
        let core = self.cpus[self.cpu as usize].core;
        let skew = self.machine.core.tsc_skew.get(core as usize).copied().unwrap_or(0);
        self.ticks((TSC_START + self.clock()).wrapping_add_signed(skew))
    }

    /// Converts cycles to ticks of the time-stamp counter.
    fn ticks(&self, cycles: Cycles) -> u64 {
        let core = &self.machine.core;
        core.counter_ghz.map_or(cycles, |ghz| (cycles as f64 * ghz / core.ghz) as u64)
    }

    /// Converts ticks of the time-stamp counter to cycles.
    pub(crate) fn cycles(&self, ticks: u64) -> Cycles {
        let core = &self.machine.core;
        core.counter_ghz.map_or(ticks, |ghz| (ticks as f64 * core.ghz / ghz).ceil() as Cycles)
    }

    /// The time of a computation, longer if other hardware threads of the core compute as well.
    fn slowed(&self, cycles: Cycles) -> Cycles {
        let topology = &self.machine.topology;
        if topology.threads_per_core == 1 {
            return cycles;
        }
        let core = self.cpus[self.cpu as usize].core;
        let siblings =
            (0..topology.threads_per_core).map(|thread| core + thread * topology.cores());
        let computes = |cpu: u32| {
            let current = self.cpus[cpu as usize].current;
            current.is_some_and(|t| self.threads[t as usize].state == State::Running)
        };
        if siblings.into_iter().any(|cpu| cpu != self.cpu && computes(cpu)) {
            (cycles as f64 * self.machine.core.smt_slowdown) as Cycles
        } else {
            cycles
        }
    }
}
