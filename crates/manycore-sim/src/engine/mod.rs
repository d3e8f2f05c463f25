//! The engine: it chooses the simulated thread that goes on next, and charges the cost.
//!
//! Each simulated CPU has a clock of its own, and the CPU with the earliest clock goes on. Its
//! thread runs as a coroutine on the host's thread, until its clock has passed the next CPU's and
//! it is about to do something that others could see. So effects come in the order of virtual time.
//! That order is unique: ties go to the lower CPU.

mod access;
mod account;
mod ahead;
mod cpu;
mod events;
mod failure;
mod futex;
mod policy;
mod reads;
mod run;
mod schedule;
mod spin;
mod thread;
mod time;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::ptr::{NonNull, null_mut};

pub(crate) use self::access::{
    Pending, access, fence, local_rmw, prefetch, touch, wait_until_safe, write_back,
};
pub(crate) use self::account::Spent;
pub use self::account::{Breakdown, CpuTime, Phase};
use self::ahead::Ahead;
pub(crate) use self::cpu::Cpu;
use self::events::{Events, Key};
pub use self::failure::{Blocked, Cause, Failure};
use self::futex::Bucket;
pub(crate) use self::futex::{futex_wait, futex_wake};
pub(crate) use self::policy::{Choice, Explored, Policy, Scheduler};
pub(crate) use self::run::{run, spawn};
use self::spin::Watchers;
pub use self::thread::Stall;
pub(crate) use self::thread::{State, Thread, ThreadId, Why};
pub(crate) use self::time::{
    boundary, compute, delay, has_passed, nanoseconds, now, sleep, spin_loop, unforeseen_branch,
    yield_now,
};
use crate::arena::{Heap, Lease};
use crate::coherence::{Coherence, Lines};
use crate::machine::{Cycles, Machine};

/// The time-stamp counter at the start: a real one is not 0 either, and a core's may be behind.
pub(crate) const TSC_START: u64 = 1 << 32;

/// How many numbers a simulated program has for its globals.
pub const WORDS: usize = 16;

/// One simulation.
pub(crate) struct Engine {
    pub(crate) machine: Machine,
    pub(crate) random: fastrand::Rng,
    pub(crate) policy: Policy,
    /// Whether spinning threads are parked, rather than simulated turn by turn.
    pub(crate) parking: bool,
    pub(crate) coherence: Coherence,
    pub(crate) cpus: Vec<Cpu>,
    pub(crate) threads: Vec<Thread>,
    /// The CPUs on which threads are put, in this order.
    pub(crate) placement: Vec<u32>,
    /// What is on its way to each core.
    ahead: Vec<Ahead>,
    /// Whether threads stay where they are put.
    pinned: bool,
    /// The CPU and the thread that run now.
    pub(crate) cpu: u32,
    pub(crate) current: ThreadId,
    /// The running CPU may go on until then.
    horizon: Key,
    events: Events,
    watchers: Watchers,
    /// By the address of the word.
    buckets: BTreeMap<usize, Bucket>,
    /// How many threads are in queues.
    queued: usize,
    pub(crate) unfinished: usize,
    pub(crate) stalls: Vec<Stall>,
    /// When something was last done that is no waiting.
    progress: Cycles,
    /// How long nothing may be done but waiting.
    pub(crate) patience: Cycles,
    /// How many choices may be made when schedules are explored.
    pub(crate) steps_left: u64,
    /// When schedules are explored: the latest of all clocks.
    latest: Cycles,
    pub(crate) failure: Option<Cause>,
    /// What each thread was doing when the simulation failed.
    doing: Vec<Option<String>>,
    /// What is left of the threads is being cleared away.
    killing: bool,
    /// Globals of the simulated program, 0 at its start: they replace statics. Free of charge.
    pub(crate) words: [u64; WORDS],
    pub(crate) lease: Lease,
}

thread_local! {
    /// The simulation whose code runs on this thread of the host.
    static ENGINE: Cell<*mut Engine> = const { Cell::new(null_mut()) };
}

/// The simulation that the caller is part of; none on the host.
#[derive(Clone, Copy)]
pub(crate) struct Handle(NonNull<Engine>);

impl Handle {
    /// The caller's simulation.
    #[inline]
    pub(crate) fn current() -> Option<Self> {
        NonNull::new(ENGINE.get()).map(Self)
    }

    /// The engine, for a moment: no simulated code runs as long as the reference is used, and no
    /// other is taken.
    #[inline]
    pub(crate) fn get<'a>(self) -> &'a mut Engine {
        // SAFETY: the engine outlives its simulated code, all of which runs on one thread of the
        // host. References are taken for one call into the engine, which runs no simulated code.
        unsafe { &mut *self.0.as_ptr() }
    }

    /// The heap that simulated code allocates from.
    fn heap(self) -> *mut Heap {
        // SAFETY: in bounds of the engine, which is alive; no reference is made.
        unsafe { &raw mut (*self.0.as_ptr()).lease.heap }
    }

    /// Waits until the current CPU is the earliest, and runs the current thread.
    #[inline]
    pub(crate) fn turn(self) {
        while !self.get().may_go_on() {
            self.get().defer();
            self.suspend();
        }
        self.get().went_on();
    }

    /// Lets others run until the engine resumes this thread.
    pub(crate) fn suspend(self) {
        let engine = self.get();
        if std::thread::panicking() {
            // The simulation ends with this panic: actions of destructors on the way are not part
            // of it.
            return run::detach();
        }
        let yielder = engine.threads[engine.current as usize].yielder;
        // SAFETY: set by this thread's body when it started, on whose stack this runs.
        unsafe { (*yielder).suspend(()) };
        run::resumed();
    }
}

impl Engine {
    pub(crate) fn new(machine: &Machine, seed: u64, policy: Policy) -> Self {
        let mut lease = Lease::take();
        lease.heap.set_cores(machine.topology.cores() as usize);
        let cpu = |number| Cpu::new(machine.topology.core_of(number), machine.core.store_buffer);
        let cpus: Vec<_> = (0..machine.topology.cpus()).map(cpu).collect();
        let mut events = Events::default();
        events.grow(cpus.len());
        Self {
            random: fastrand::Rng::with_seed(seed),
            policy,
            parking: true,
            coherence: Coherence::new(machine, Lines::new(lease.epoch)),
            cpus,
            threads: Vec::new(),
            placement: Vec::new(),
            ahead: (0..machine.topology.cores()).map(|_| Ahead::default()).collect(),
            pinned: true,
            cpu: 0,
            current: 0,
            horizon: Key::NEVER,
            events,
            watchers: Watchers::default(),
            buckets: BTreeMap::new(),
            queued: 0,
            unfinished: 0,
            stalls: Vec::new(),
            progress: 0,
            patience: Cycles::MAX,
            steps_left: u64::MAX,
            latest: 0,
            failure: None,
            doing: Vec::new(),
            killing: false,
            words: [0; WORDS],
            lease,
            machine: machine.clone(),
        }
    }

    /// Says which CPUs threads are put on, and whether they stay there.
    ///
    /// # Panics
    ///
    /// If there is none, or one that the machine does not have.
    pub(crate) fn allow(&mut self, cpus: Vec<u32>, pinned: bool) {
        assert!(!cpus.is_empty(), "a simulation needs a CPU");
        for cpu in &cpus {
            let known = self.cpus.len();
            let allowed = self.cpus.get_mut(*cpu as usize).map(|cpu| cpu.allowed = true);
            assert!(allowed.is_some(), "the machine has {known} CPUs, and none with number {cpu}");
        }
        self.placement = cpus;
        self.pinned = pinned;
    }

    pub(crate) fn cpus_allowed(&self) -> u32 {
        self.placement.len() as u32
    }

    /// Where a thread is put, and whether it stays there.
    pub(crate) fn place(&self, number: u32) -> (u32, bool) {
        (self.placement[number as usize % self.placement.len()], self.pinned)
    }

    #[inline]
    fn may_go_on(&self) -> bool {
        let cpu = &self.cpus[self.cpu as usize];
        Key::new(cpu.clock, self.cpu) <= self.horizon
            && (cpu.clock < cpu.slice_end || self.in_kernel(self.current))
    }

    /// Whether a thread is where the kernel does not preempt it.
    fn in_kernel(&self, thread: ThreadId) -> bool {
        self.threads[thread as usize].phase == Phase::System
    }

    /// When schedules are explored, each step is a choice anew.
    #[inline]
    fn went_on(&mut self) {
        if self.policy.explores() {
            self.horizon = Key::ALWAYS;
        }
    }

    /// The clock of the running CPU.
    #[inline]
    pub(crate) fn clock(&self) -> Cycles {
        self.cpus[self.cpu as usize].clock
    }

    /// The running thread spends time.
    #[inline]
    pub(crate) fn pass(&mut self, cycles: Cycles, spent: Spent) {
        self.cpus[self.cpu as usize].clock += cycles;
        let thread = self.thread();
        thread.times.add(thread.phase, spent, cycles);
    }

    /// The running thread.
    #[inline]
    pub(crate) fn thread(&mut self) -> &mut Thread {
        &mut self.threads[self.current as usize]
    }

    /// The running thread spends time until a moment that may have passed.
    #[inline]
    pub(crate) fn pass_until(&mut self, time: Cycles, spent: Spent) {
        let cpu = &mut self.cpus[self.cpu as usize];
        if time > cpu.clock {
            let cycles = time - std::mem::replace(&mut cpu.clock, time);
            let thread = self.thread();
            thread.times.add(thread.phase, spent, cycles);
        }
    }

    /// Sets when a CPU or timer other than the running CPU's is to go on.
    fn schedule(&mut self, id: events::Id, time: Cycles) {
        self.events.set(id, time);
        if id != self.cpu {
            self.horizon = self.horizon.min(Key::new(time, id));
        }
    }

    /// The number of a thread's timer among the events.
    fn timer(&self, thread: ThreadId) -> events::Id {
        self.cpus.len() as u32 + thread
    }

    /// Something was done.
    #[inline]
    pub(crate) fn note_progress(&mut self) {
        self.progress = self.progress.max(self.clock());
    }

    /// Allocations by the running thread are its core's.
    fn allocate_for(&mut self, cpu: u32) {
        self.lease.heap.core = self.cpus[cpu as usize].core as usize;
    }
}
