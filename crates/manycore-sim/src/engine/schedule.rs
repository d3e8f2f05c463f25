//! The operating system's part: it gives CPUs to threads.
//!
//! A CPU is not a thread. Threads wait in the queue of a CPU, have the CPU for a slice of time
//! while others wait, and may move to another CPU that is idle. A thread that spins keeps its CPU.
//! So a thread that holds a lock can lose its CPU in the middle of a critical section. The
//! consequences follow from the simulation; no rule models them separately.

use super::events::Key;
use super::{Engine, Spent, State, ThreadId, Why};
use crate::arena::global::host;
use crate::machine::Cycles;

/// The part of a slice for which a CPU's running thread continues when another thread is woken on
/// that CPU. Then it goes to the end of the queue. (Linux: the granularity of wake-ups, one to four
/// milliseconds.)
const UNDISTURBED: Cycles = 4;

impl Engine {
    /// Whether the running CPU is the earliest.
    pub(super) fn is_earliest(&self) -> bool {
        Key::new(self.clock(), self.cpu) <= self.horizon
    }

    /// Suspends the running thread until its CPU is the earliest, or until it gets a CPU back.
    pub(super) fn defer(&mut self) {
        let slice_is_over = self.clock() >= self.cpus[self.cpu as usize].slice_end;
        if slice_is_over && !self.in_kernel(self.current) {
            self.preempt();
        } else {
            self.defer_to_clock();
        }
    }

    /// Suspends the running CPU until it is the earliest.
    pub(super) fn defer_to_clock(&mut self) {
        let clock = self.clock();
        self.events.set(self.cpu, clock);
    }

    /// The running thread goes to the end of its CPU's queue, and the first of the queue gets the
    /// CPU.
    pub(super) fn preempt(&mut self) {
        let cpu = &mut self.cpus[self.cpu as usize];
        if cpu.queue.is_empty() {
            // Another CPU has taken the waiting thread.
            cpu.slice_end = Cycles::MAX;
            self.defer_to_clock();
        } else {
            self.leave(State::Ready);
        }
    }

    /// The running thread is taken off its CPU for some time.
    pub(super) fn stall(&mut self, cycles: Cycles) {
        self.threads[self.current as usize].stall = None;
        self.sleep_until(self.clock() + cycles, Why::Stalled);
    }

    /// The running thread sleeps until a moment.
    pub(super) fn sleep_until(&mut self, time: Cycles, why: Why) {
        let timer = self.timer(self.current);
        self.schedule(timer, time);
        self.leave(State::Asleep(why));
    }

    /// Takes the running thread off its CPU. The caller suspends it.
    pub(crate) fn leave(&mut self, state: State) {
        let (cpu, thread) = (self.cpu, self.current);
        host(|| {
            self.take_off(cpu, thread, state);
            self.run_next(cpu);
        });
    }

    fn take_off(&mut self, cpu: u32, thread: ThreadId, state: State) {
        let c = &mut self.cpus[cpu as usize];
        debug_assert_eq!(c.current, Some(thread));
        c.current = None;
        let t = &mut self.threads[thread as usize];
        t.state = state;
        t.since = c.clock;
        t.reads.clear();
        if state == State::Ready {
            c.queue.push_back(thread);
            self.queued += 1;
        }
    }

    /// Ends the slice of a thread that is parked.
    pub(super) fn preempt_parked(&mut self, cpu: u32, at: Cycles) {
        let c = &mut self.cpus[cpu as usize];
        if c.queue.is_empty() {
            // Another CPU has taken the waiting thread.
            c.slice_end = Cycles::MAX;
            return self.schedule_parked(cpu);
        }
        let thread = c.current.expect("a parked thread is on its CPU");
        self.end_parking(thread, at);
        self.take_off(cpu, thread, State::Ready);
        self.run_next(cpu);
    }

    /// Gives a CPU without a thread the next one of its queue, if there is one.
    fn run_next(&mut self, cpu: u32) {
        let next = self.cpus[cpu as usize].queue.pop_front().or_else(|| self.steal(cpu));
        match next {
            Some(thread) => {
                self.queued -= 1;
                self.switch_to(cpu, thread);
            }
            None => self.events.remove(cpu),
        }
    }

    /// Gives a CPU to a thread.
    fn switch_to(&mut self, cpu: u32, thread: ThreadId) {
        let os = &self.machine.os;
        let t = &mut self.threads[thread as usize];
        let now = self.cpus[cpu as usize].clock.max(t.since);
        t.times.add(t.phase, Spent::Ready, now - t.since);
        let moved = if t.cpu == cpu { 0 } else { os.migration };
        let cost = if self.policy.explores() { 0 } else { os.context_switch + moved };
        t.times.add(t.phase, Spent::System, cost);
        t.state = State::Running;
        t.cpu = cpu;
        let c = &mut self.cpus[cpu as usize];
        c.clock = now + cost;
        c.current = Some(thread);
        c.slice_start = c.clock;
        c.slice_end = if c.queue.is_empty() { Cycles::MAX } else { c.clock + os.time_slice };
        let clock = c.clock;
        // The running CPU may continue with another thread, but only once it is the earliest again.
        self.events.set(cpu, clock);
        if cpu != self.cpu {
            self.horizon = self.horizon.min(Key::new(clock, cpu));
        }
    }

    /// Takes a thread that waits for another CPU, for a CPU that has none.
    fn steal(&mut self, cpu: u32) -> Option<ThreadId> {
        if self.queued == 0 || !self.cpus[cpu as usize].allowed {
            return None;
        }
        let topology = &self.machine.topology;
        let socket = |cpu: u32| topology.socket_of(topology.core_of(cpu));
        let may_move = |thread: &ThreadId| !self.threads[*thread as usize].pinned;
        let rank = |from: &u32| {
            let waiting = self.cpus[*from as usize].queue.len();
            (std::cmp::Reverse(waiting), socket(*from) != socket(cpu), *from)
        };
        let from = (0..self.cpus.len() as u32)
            .filter(|from| self.cpus[*from as usize].queue.iter().any(may_move))
            .min_by_key(rank)?;
        let queue = &self.cpus[from as usize].queue;
        let place = queue.iter().position(may_move)?;
        self.cpus[from as usize].queue.remove(place)
    }

    /// Makes a thread ready. `at` is the time at which another thread woke or created it.
    pub(super) fn make_ready(&mut self, thread: ThreadId, at: Cycles) {
        let timer = self.timer(thread);
        self.events.remove(timer);
        let t = &mut self.threads[thread as usize];
        let asleep_for = at.saturating_sub(t.since);
        let spent = match t.state {
            State::Asleep(Why::Futex(_)) => Spent::Asleep,
            State::Asleep(Why::Stalled) => Spent::Ready,
            _ => Spent::Idle,
        };
        t.times.add(t.phase, spent, asleep_for);
        t.state = State::Ready;
        t.since = at;
        let cpu = self.cpu_for(thread);
        self.enqueue(cpu, thread, at);
    }

    /// The CPU for a woken thread: its last one or, if that is in use, an idle one, in the same
    /// socket if possible.
    pub(super) fn cpu_for(&self, thread: ThreadId) -> u32 {
        let t = &self.threads[thread as usize];
        if t.pinned || self.cpus[t.cpu as usize].is_idle() {
            return t.cpu;
        }
        let topology = &self.machine.topology;
        let socket = |cpu: u32| topology.socket_of(topology.core_of(cpu));
        let is_idle = |cpu: &u32| {
            let c = &self.cpus[*cpu as usize];
            c.allowed && c.is_idle()
        };
        let idle = (0..self.cpus.len() as u32).filter(is_idle);
        idle.min_by_key(|cpu| (socket(*cpu) != socket(t.cpu), *cpu)).unwrap_or(t.cpu)
    }

    fn enqueue(&mut self, cpu: u32, thread: ThreadId, at: Cycles) {
        let (explores, os) = (self.policy.explores(), self.machine.os.clone());
        let c = &mut self.cpus[cpu as usize];
        c.queue.push_back(thread);
        self.queued += 1;
        match c.current {
            None => {
                if !explores {
                    let idle_for = at.saturating_sub(c.clock);
                    // The CPU has to complete a switch to its idle task first.
                    let way = (at + os.wake_path).max(c.clock + os.context_switch);
                    c.clock = way + os.idle_exit(idle_for);
                }
                c.clock = c.clock.max(at);
                self.run_next(cpu);
            }
            Some(current) => {
                let undisturbed = c.slice_start + os.time_slice / UNDISTURBED;
                let end = (c.slice_start + os.time_slice).min(undisturbed.max(at));
                c.slice_end = c.slice_end.min(end);
                if self.threads[current as usize].state == State::Parked {
                    self.schedule_parked(cpu);
                }
            }
        }
    }
}
