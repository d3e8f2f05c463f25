//! Spinning without a simulation of each iteration.
//!
//! An iteration of a polling loop that changes nothing costs CPU time, and affects no other CPU:
//! its reads are hits. So a thread that calls `spin_loop` is *parked* on its CPU until another
//! thread writes a line that it has read since the last call. It continues when the service of that
//! write starts, plus a random part of an iteration: it would have been somewhere within an
//! iteration.
//!
//! An iteration is not skipped in three cases: it wrote something (a test-and-set loop never
//! parks), it read the clock in a way that the simulator cannot foresee, or it read more lines than
//! are recorded. A loop that gives up after a time announces that (`clock::has_passed`), and is
//! parked until then at most.

use super::reads::{LINES_MAX, Reads};
use super::thread::{State, ThreadId};
use super::{Engine, Spent};
use crate::arena;
use crate::coherence::Lines;
use crate::machine::Cycles;

/// For each line, a list of the threads that are parked at it. The lists run through the lines:
/// each thread has [`LINES_MAX`] links, which are numbered from 1.
#[derive(Debug, Default)]
pub(crate) struct Watchers {
    links: Vec<Link>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Link {
    next: u32,
    previous: u32,
}

impl Watchers {
    pub(crate) fn grow(&mut self, threads: usize) {
        self.links.resize(threads * LINES_MAX + 1, Link::default());
    }

    fn number(thread: ThreadId, slot: usize) -> u32 {
        (thread as usize * LINES_MAX + slot + 1) as u32
    }

    pub(crate) fn thread(link: u32) -> ThreadId {
        (link - 1) / LINES_MAX as u32
    }

    fn link(&mut self, thread: ThreadId, reads: &Reads, lines: &mut Lines) {
        for (slot, line) in reads.lines().enumerate() {
            let (number, record) = (Self::number(thread, slot), lines.get(line));
            let next = std::mem::replace(&mut record.watchers, number);
            self.links[number as usize] = Link { next, previous: 0 };
            self.links[next as usize].previous = number;
        }
    }

    fn unlink(&mut self, thread: ThreadId, reads: &Reads, lines: &mut Lines) {
        for (slot, line) in reads.lines().enumerate() {
            let number = Self::number(thread, slot);
            let Link { next, previous } = self.links[number as usize];
            if previous == 0 {
                lines.get(line).watchers = next;
            } else {
                self.links[previous as usize].next = next;
            }
            self.links[next as usize].previous = previous;
        }
    }
}

impl Engine {
    /// The end of an iteration of a polling loop: parks the current thread if the next iteration
    /// would be the same. Returns whether it has to be suspended.
    pub(crate) fn end_of_turn(&mut self) -> bool {
        self.pass(self.machine.core.pause, Spent::Waiting);
        self.policy.yielded(self.current);
        let clock = self.clock();
        let thread = &mut self.threads[self.current as usize];
        let reads = &mut thread.reads;
        let gives_up = reads.limit.is_some_and(|limit| limit <= clock);
        if !self.parking || !reads.are_current(&mut self.coherence.lines) || gives_up {
            reads.clear();
            return false;
        }
        thread.state = State::Parked;
        thread.since = clock;
        self.watchers.link(self.current, &thread.reads, &mut self.coherence.lines);
        self.schedule_parked(self.cpu);
        true
    }

    /// Makes the running thread spin in the kernel until it is unparked. The caller suspends it.
    pub(super) fn spin_in_kernel(&mut self) {
        let clock = self.clock();
        let thread = self.thread();
        thread.reads.clear();
        thread.state = State::Parked;
        thread.since = clock;
        self.schedule_parked(self.cpu);
    }

    /// Sets the next event of a CPU whose thread is parked: the end of the loop's time or of the
    /// slice.
    pub(crate) fn schedule_parked(&mut self, cpu: u32) {
        let c = &self.cpus[cpu as usize];
        let parked = c.current.expect("a parked thread is on its CPU");
        let limit = self.threads[parked as usize].reads.limit.unwrap_or(Cycles::MAX);
        let slice_end = if self.in_kernel(parked) { Cycles::MAX } else { c.slice_end };
        match limit.min(slice_end) {
            Cycles::MAX => self.events.remove(cpu),
            time => {
                let time = time.max(c.clock);
                self.schedule(cpu, time);
            }
        }
    }

    /// Unparks the threads that spin on a line, when a write to it takes effect.
    #[cold]
    pub(crate) fn wake_watchers(&mut self, line: u32, now: Cycles) {
        let turn = self.machine.core.pause + self.machine.caches.l1_hit;
        loop {
            let first = self.coherence.lines.get(line).watchers;
            if first == 0 {
                return;
            }
            let jitter = self.random.u64(0..turn.max(1));
            self.unpark(Watchers::thread(first), now + jitter);
        }
    }

    /// Unparks a thread, which continues on its CPU.
    pub(crate) fn unpark(&mut self, thread: ThreadId, at: Cycles) {
        let cpu = self.end_parking(thread, at);
        self.threads[thread as usize].state = State::Running;
        let clock = self.cpus[cpu as usize].clock;
        self.schedule(cpu, clock);
    }

    /// Ends the parking of a thread; returns its CPU, whose clock is now at `at`.
    pub(crate) fn end_parking(&mut self, thread: ThreadId, at: Cycles) -> u32 {
        let t = &mut self.threads[thread as usize];
        debug_assert_eq!(t.state, State::Parked);
        let cpu = &mut self.cpus[t.cpu as usize];
        cpu.clock = cpu.clock.max(at);
        t.times.add(t.phase, Spent::Waiting, cpu.clock - t.since);
        self.watchers.unlink(thread, &t.reads, &mut self.coherence.lines);
        t.reads.clear();
        t.cpu
    }

    /// The lines that a parked thread has read, for a report.
    pub(crate) fn spins_on(&self, thread: ThreadId) -> Vec<usize> {
        self.threads[thread as usize].reads.lines().map(arena::address_of).collect()
    }
}
