//! The engine: it chooses the simulated thread that runs next, and charges the cost of its actions.
//!
//! Each simulated CPU has a clock of its own, and the CPU with the earliest clock runs. Its thread
//! is a coroutine on the host's thread. It runs until its clock has passed the next CPU's and it is
//! about to do something that others could see. So effects come in the order of virtual time. That
//! order is unique: of two CPUs with the same time, the one with the lower number goes first.

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

/// The time-stamp counter at the start. A real counter is not 0 either, and that of a core may be
/// behind.
pub(crate) const TSC_START: u64 = 1 << 32;

/// The number of words that a simulated program has for its globals.
pub const WORDS: usize = 16;

/// One simulation.
pub(crate) struct Engine {
    pub(crate) machine: Machine,
    pub(crate) random: fastrand::Rng,
    pub(crate) policy: Policy,
    /// Whether spinning threads are parked, instead of simulating each iteration.
    pub(crate) parking: bool,
    pub(crate) coherence: Coherence,
    pub(crate) cpus: Vec<Cpu>,
    pub(crate) threads: Vec<Thread>,
    /// The CPUs on which threads are put, in this order.
    pub(crate) placement: Vec<u32>,
    /// The lines that are on their way to each core.
    ahead: Vec<Ahead>,
    /// Whether threads stay on the CPU on which they are put.
    pinned: bool,
    /// The CPU and the thread that run now.
    pub(crate) cpu: u32,
    pub(crate) current: ThreadId,
    /// The running CPU may continue until then.
    horizon: Key,
    events: Events,
    watchers: Watchers,
    /// Futex buckets, by the address of the word.
    buckets: BTreeMap<usize, Bucket>,
    /// The number of threads in queues.
    queued: usize,
    pub(crate) unfinished: usize,
    pub(crate) stalls: Vec<Stall>,
    /// The time of the last action that was not waiting.
    progress: Cycles,
    /// How long threads may do nothing but wait.
    pub(crate) patience: Cycles,
    /// The number of choices that are left when schedules are explored.
    pub(crate) steps_left: u64,
    /// When schedules are explored: the latest of all clocks.
    latest: Cycles,
    pub(crate) failure: Option<Cause>,
    /// What each thread was doing when the simulation failed.
    doing: Vec<Option<String>>,
    /// Whether the remaining threads are being removed.
    killing: bool,
    /// Globals of the simulated program, 0 at its start: they replace statics. Free of charge.
    pub(crate) words: [u64; WORDS],
    pub(crate) lease: Lease,
}

thread_local! {
    /// The simulation whose code runs on this thread of the host.
    static ENGINE: Cell<*mut Engine> = const { Cell::new(null_mut()) };
}

/// The simulation to which the caller belongs; none on the host.
#[derive(Clone, Copy)]
pub(crate) struct Handle(NonNull<Engine>);

impl Handle {
    /// The caller's simulation.
    #[inline]
    pub(crate) fn current() -> Option<Self> {
        NonNull::new(ENGINE.get()).map(Self)
    }

    /// The engine, for a short time: while the reference is used, no simulated code runs and no
    /// other reference is taken.
    #[inline]
    pub(crate) fn get<'a>(self) -> &'a mut Engine {
        // SAFETY: the engine outlives its simulated code, all of which runs on one thread of the
        // host. References are taken for one call into the engine, which runs no simulated code.
        unsafe { &mut *self.0.as_ptr() }
    }

    /// The heap from which simulated code allocates.
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

    /// Lets other threads run until the engine resumes this one.
    pub(crate) fn suspend(self) {
        let engine = self.get();
        if std::thread::panicking() {
            // The simulation ends with this panic. What destructors do meanwhile is not part of it.
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

    /// Sets the CPUs on which threads are put, and whether threads stay there.
    ///
    /// # Panics
    ///
    /// If there are no CPUs, or if the machine does not have one of them.
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

    /// The CPU on which a thread is put, and whether the thread stays there.
    pub(crate) fn place(&self, number: u32) -> (u32, bool) {
        (self.placement[number as usize % self.placement.len()], self.pinned)
    }

    #[inline]
    fn may_go_on(&self) -> bool {
        let cpu = &self.cpus[self.cpu as usize];
        Key::new(cpu.clock, self.cpu) <= self.horizon
            && (cpu.clock < cpu.slice_end || self.in_kernel(self.current))
    }

    /// Whether a thread is in a part of the kernel in which it is not preempted.
    fn in_kernel(&self, thread: ThreadId) -> bool {
        self.threads[thread as usize].phase == Phase::System
    }

    /// When schedules are explored, each step is a new choice.
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

    /// Sets the next event of a CPU or timer. It is not the running CPU's.
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

    /// Records that a thread has made progress.
    #[inline]
    pub(crate) fn note_progress(&mut self) {
        self.progress = self.progress.max(self.clock());
    }

    /// From now on, allocations belong to this CPU's core.
    fn allocate_for(&mut self, cpu: u32) {
        self.lease.heap.core = self.cpus[cpu as usize].core as usize;
    }
}
