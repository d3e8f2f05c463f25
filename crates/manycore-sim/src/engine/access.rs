//! Accesses to memory.

use super::{Engine, Handle, Phase, Spent};
use crate::arena;
use crate::coherence::{Kind, Service};
use crate::machine::Cycles;

/// The state of a thread's access.
///
/// A thread makes its request once, and is resumed when its access takes effect. The engine does
/// the steps in between without switching to the thread's stack.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Pending {
    /// There is no access.
    Nothing,
    /// The thread waits until its CPU is the earliest.
    Asked(u32, Kind),
    /// The home of the line has reserved a time for it.
    Reserved(u32, Kind, Service),
}

/// Charges one access to the caller, and returns when it takes effect: the caller executes the real
/// operation at once, with nothing in between.
///
/// Without effect on the host, and for memory that is not simulated.
#[inline]
pub(crate) fn access(address: usize, kind: Kind) {
    let (Some(handle), Some(line)) = (Handle::current(), arena::line_of(address)) else { return };
    let engine = handle.get();
    if let Some(footprint) = &mut engine.thread().footprint {
        arena::global::host(|| footprint.note(line, kind));
    }
    if kind.is_atomic() {
        engine.drain_stores();
    }
    if !engine.ask(line, kind) {
        handle.suspend();
    }
}

/// Requests a line ahead of its use, without waiting for it.
pub(crate) fn prefetch(address: usize) {
    let is_modelled = |handle: Handle| {
        let engine = handle.get();
        engine.machine.core.prefetches > 0 && !engine.policy.explores()
    };
    if Handle::current().is_some_and(is_modelled) {
        access(address, Kind::Prefetch);
    }
}

/// Charges a plain access to each line of a range.
pub(crate) fn touch(address: usize, bytes: usize, kind: Kind) {
    if bytes == 0 {
        return;
    }
    let first = address / arena::LINE;
    let last = (address + bytes - 1) / arena::LINE;
    (first..=last).for_each(|line| access(line * arena::LINE, kind));
}

/// Charges a fence that waits for the stores on their way.
pub(crate) fn fence() {
    let Some(handle) = Handle::current() else { return };
    let engine = handle.get();
    engine.drain_stores();
    engine.pass(engine.machine.core.fence, Spent::Computing);
}

/// Writes a line back to persistent memory, without waiting until it is safe there.
pub(crate) fn write_back(address: usize) {
    // The order of the threads, and the least time for the instruction, are as for a load.
    access(address, Kind::Load);
    let (Some(handle), Some(line)) = (Handle::current(), arena::line_of(address)) else { return };
    let engine = handle.get();
    if engine.policy.explores() {
        return;
    }
    let persist = engine.machine.persist;
    assert!(persist.is_there(), "{NO_PERSISTENT_MEMORY}");
    engine.pass(persist.flush, Spent::Computing);
    let cpu = &engine.cpus[engine.cpu as usize];
    // After the pending stores to the line.
    let now = cpu.stores.back().copied().unwrap_or(0).max(cpu.clock);
    let safe = engine.coherence.persisted(line, cpu.core, now);
    let thread = engine.thread();
    thread.safe_at = thread.safe_at.max(safe);
}

const NO_PERSISTENT_MEMORY: &str =
    "the simulated machine has no persistent memory: give its model a section [persist]";

/// Waits until all lines that the caller has written back are safe.
pub(crate) fn wait_until_safe() {
    let Some(handle) = Handle::current() else { return };
    let engine = handle.get();
    engine.drain_stores();
    let until = engine.thread().safe_at;
    engine.pass_until(until, Spent::Stalled);
}

/// Charges a read-modify-write of a line that the caller's core owns.
pub(crate) fn local_rmw(handle: Handle) {
    let engine = handle.get();
    engine.drain_stores();
    engine.pass(engine.machine.latency.rmw_hit, Spent::Computing);
}

impl Engine {
    /// Advances the running thread's access; returns whether it takes effect now. If not, other
    /// threads have to go first.
    #[inline]
    pub(super) fn advance(&mut self) -> bool {
        match self.thread().pending {
            Pending::Nothing => true,
            Pending::Asked(line, kind) => self.ask(line, kind),
            Pending::Reserved(line, kind, service) => self.wait_for_service(line, kind, &service),
        }
    }

    /// The running thread accesses a line; returns whether the access takes effect now.
    fn ask(&mut self, line: u32, kind: Kind) -> bool {
        if !self.may_go_on() {
            self.thread().pending = Pending::Asked(line, kind);
            self.defer();
            return false;
        }
        self.went_on();
        if self.is_stalled() {
            self.thread().pending = Pending::Asked(line, kind);
            return false;
        }
        if self.hits(line, kind) {
            self.thread().pending = Pending::Nothing;
            return true;
        }
        let service = self.reserve(line, kind);
        self.wait_for_service(line, kind, &service)
    }

    /// Returns whether the service has started. If the time slice ends first, the request remains
    /// on its way.
    fn wait_for_service(&mut self, line: u32, kind: Kind, service: &Service) -> bool {
        if !self.is_earliest() {
            self.thread().pending = Pending::Reserved(line, kind, *service);
            self.defer_to_clock();
            return false;
        }
        self.serve(line, kind, service);
        self.thread().pending = Pending::Nothing;
        true
    }

    /// Counts the access; returns whether the thread has been taken off its CPU before it.
    #[inline]
    fn is_stalled(&mut self) -> bool {
        let thread = self.thread();
        match thread.stall {
            Some((access, cycles))
                if access <= thread.accesses + 1 && thread.phase != Phase::System =>
            {
                self.stall(cycles);
                true
            }
            _ => {
                thread.accesses += 1;
                false
            }
        }
    }

    /// Executes an access that needs no other core; returns whether it was one.
    #[inline]
    fn hits(&mut self, line: u32, kind: Kind) -> bool {
        if self.policy.explores() {
            self.policy.saw(self.current, line, kind);
            self.explored_access(line, kind);
            return true;
        }
        let cpu = &self.cpus[self.cpu as usize];
        let now = cpu.clock;
        let Some(cost) = self.coherence.hit(line, kind, cpu.core) else { return false };
        let cost = self.cost_after_the_last(line, kind, cost);
        self.pass(cost, Spent::Computing);
        self.wait_for_prefetch(line, kind);
        self.note_effect(line, kind, now);
        true
    }

    /// A hit, relative to the load before it: the address of another load from its line is known as
    /// early.
    #[inline]
    fn cost_after_the_last(&mut self, line: u32, kind: Kind, cost: Cycles) -> Cycles {
        match kind {
            Kind::Prefetch => self.machine.caches.same_line,
            Kind::Load if self.thread().last_load == Some(line) => {
                // Never 0: a loop that polls must come to an end.
                cost.min(self.machine.caches.same_line.max(1))
            }
            _ => cost,
        }
    }

    /// A line that was prefetched, by this thread or by a sibling, may still be on its way.
    #[inline]
    fn wait_for_prefetch(&mut self, line: u32, kind: Kind) {
        if kind != Kind::Prefetch {
            let cpu = &self.cpus[self.cpu as usize];
            let until = self.ahead[cpu.core as usize].arrival(line, cpu.clock);
            self.pass_until(until, Spent::Stalled);
        }
    }

    #[inline]
    fn reserve(&mut self, line: u32, kind: Kind) -> Service {
        let cpu = &self.cpus[self.cpu as usize];
        let service = self.coherence.reserve(line, kind, cpu.core, cpu.clock);
        self.pass_until(service.start, Spent::Stalled);
        service
    }

    #[inline]
    fn serve(&mut self, line: u32, kind: Kind, service: &Service) {
        let core = self.cpus[self.cpu as usize].core;
        if kind.reads() {
            self.coherence.loaded(line, core, service);
            if service.takes_over && self.coherence.lines.get(line).watchers != 0 {
                // A polling thread has lost its copy, so its next iteration is no hit.
                self.wake_watchers(line, service.start);
            }
        } else {
            self.coherence.written(line, core, service);
        }
        match kind {
            Kind::Store => self.buffer_store(service.done),
            Kind::Prefetch => self.buffer_prefetch(line, service.done),
            _ => self.pass_until(service.done, Spent::Stalled),
        }
        self.note_effect(line, kind, service.start);
    }

    /// When schedules are explored there are no caches: time is a count of actions.
    fn explored_access(&mut self, line: u32, kind: Kind) {
        self.pass(1, Spent::Computing);
        if !kind.reads() {
            let record = self.coherence.lines.get(line);
            record.writes = record.writes.wrapping_add(1);
        }
        let now = self.clock();
        self.note_effect(line, kind, now);
    }

    /// Records an access that has taken effect, for the detection of spinning.
    #[inline]
    fn note_effect(&mut self, line: u32, kind: Kind, now: u64) {
        if kind == Kind::Prefetch {
            return;
        }
        let record = self.coherence.lines.get(line);
        let thread = &mut self.threads[self.current as usize];
        thread.last_load = (kind == Kind::Load).then_some(line);
        let reads = &mut thread.reads;
        if kind == Kind::Load {
            reads.add(line, record.writes);
            return;
        }
        reads.unforeseen = true;
        if record.watchers != 0 {
            self.wake_watchers(line, now);
        }
    }

    /// Adds a store that will be done at `done`. The thread waits for it only if there are too
    /// many.
    fn buffer_store(&mut self, done: u64) {
        self.pass(self.machine.latency.store_hit, Spent::Computing);
        let places = self.machine.core.store_buffer;
        let until = self.cpus[self.cpu as usize].buffer_store(done, places);
        self.pass_until(until, Spent::Stalled);
    }

    /// Adds a prefetched line that will arrive at `done`. The thread waits only if too many lines
    /// are on their way.
    fn buffer_prefetch(&mut self, line: u32, done: u64) {
        self.pass(self.machine.caches.same_line, Spent::Computing);
        let places = self.machine.core.prefetches;
        let cpu = &self.cpus[self.cpu as usize];
        let until = self.ahead[cpu.core as usize].ask(line, cpu.clock, done, places);
        self.pass_until(until, Spent::Stalled);
    }

    /// Waits until all stores on their way are done.
    #[inline]
    pub(super) fn drain_stores(&mut self) {
        let cpu = &mut self.cpus[self.cpu as usize];
        if !cpu.stores.is_empty() {
            let until = cpu.drained();
            self.pass_until(until, Spent::Stalled);
        }
    }
}
