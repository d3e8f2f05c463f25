//! All routes and workers of a process: how they are started, opened and closed, and forgotten in
//! the child of a fork. How a call is sent is in [`perform`](super::perform).

use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicU32, Ordering};

use manycore::sync::thread;

use super::affinity;
use super::blocking::Blocking;
use super::cpu_worker::CpuWorker;
use super::internal_fds;
use super::pending::PendingCall;
use super::raw;
use super::routes::RouteTable;
use super::settings::{CPUS_MAX, Mechanism, Settings};
use super::shared_across_fork::SharedAcrossFork;
use super::slab::Slab;
use super::uring::Feed;
use manycore_channel::call::{Answer, Kind};
use manycore_channel::stack::Stack;

/// The CPU and the worker for the calls on one open descriptor. They are chosen when it is opened.
/// All zero: none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Route {
    /// Its number plus one, among the routes of the process.
    pub(crate) number: u32,
}

impl Route {
    /// Nowhere: calls are executed in place.
    pub const NONE: Self = Self { number: 0 };
}

/// The start of a call in place, in ticks; 0 if it is not measured.
#[derive(Clone, Copy, Debug, Default)]
pub struct Timer(u64);

impl Timer {
    /// Whether the call is measured.
    pub fn runs(self) -> bool {
        self.0 != 0
    }
}

const OFF: u32 = 0;
const ON: u32 = 1;

/// All routes and workers of a process, which has one of these in a `static`.
#[derive(Debug)]
pub struct Offload {
    state: AtomicU32,
    settings: UnsafeCell<Option<Settings>>,
    pub(crate) routes: RouteTable,
    pub(crate) cpu_workers: Slab<CpuWorker, CPUS_MAX>,
    pub(crate) feeds: Slab<Feed, CPUS_MAX>,
    pub(crate) blocking: Blocking,
    /// For the mechanism `thread`: workers of closed routes, for new routes of the same CPU.
    pub(crate) resting: [Stack; CPUS_MAX],
    pub(crate) rest: AtomicU32,
    pub(crate) family: SharedAcrossFork,
}

// SAFETY: `start` writes the settings once, before the state announces them; all else is atomic.
unsafe impl Sync for Offload {}

/// The most workers of closed routes that are kept for new ones.
const RESTING_MAX: u32 = 64;

impl Offload {
    /// Nothing is started: all calls are executed in place.
    pub const fn new() -> Self {
        Self {
            state: AtomicU32::new(OFF),
            settings: UnsafeCell::new(None),
            routes: RouteTable::new(),
            cpu_workers: Slab::new(),
            feeds: Slab::new(),
            blocking: Blocking::new(),
            resting: [const { Stack::new() }; CPUS_MAX],
            rest: AtomicU32::new(0),
            family: SharedAcrossFork::new(),
        }
    }

    /// Stores the settings, and installs the handler of [`INTERRUPT`](super::INTERRUPT). Threads
    /// are made at the first calls. One thread calls this once in a process, before anything else.
    /// Does nothing if there is no CPU, or the mechanism is `in-place`.
    pub fn start(&'static self, settings: &Settings) {
        let is_empty = (0..settings.groups.groups()).any(|g| settings.groups.range(g).is_empty());
        if settings.groups.is_empty() || is_empty || settings.mechanism == Mechanism::InPlace {
            return;
        }
        raw::install_interrupt();
        self.family.start();
        // SAFETY: the state does not announce settings yet, and `start` is called once, by one
        // thread.
        unsafe { *self.settings.get() = Some(*settings) };
        // Release: partner of the Acquire in `settings`.
        self.state.store(ON, Ordering::Release);
    }

    /// The settings and the workers; `None` if nothing was started.
    #[inline]
    pub(crate) fn chosen(&'static self) -> Option<(&'static Settings, &'static [CpuWorker])> {
        // Acquire: partner of the Release in `start`.
        if self.state.load(Ordering::Acquire) != ON {
            return None;
        }
        // SAFETY: the state says that `start` has written the settings, which does not happen
        // again.
        Some((unsafe { (*self.settings.get()).as_ref()? }, self.cpu_workers.get()?))
    }

    /// Chooses the CPU that executes calls on a new descriptor; [`Route::NONE`] if there is no
    /// room. Makes no thread.
    pub fn open(&'static self) -> Route {
        let Some((settings, cpu_workers)) = self.chosen() else { return Route::NONE };
        affinity::look();
        let family = self.family.page();
        let number = self.routes.open(&settings.groups, settings.rule, cpu_workers, family);
        number.map_or(Route::NONE, |number| Route { number })
    }

    /// The CPU that executes calls of a kind on a route; `None` if the calls stay in place, or if
    /// any free CPU executes them.
    pub fn cpu(&'static self, route: &Route, kind: Kind) -> Option<u16> {
        let (settings, _) = self.chosen()?;
        if kind == Kind::File && settings.mechanism != Mechanism::Thread {
            return None;
        }
        self.routes.get(route.number).map(|route| settings.groups.cpus()[RouteTable::at(route)])
    }

    /// Closes a route. No call is in flight on it, and none will come.
    pub fn close(&'static self, route: Route) {
        let (Some(state), Some(cpu_workers)) =
            (self.routes.get(route.number), self.cpu_workers.get())
        else {
            return;
        };
        while let Some(worker) = self.blocking.pool.take(&state.idle) {
            self.rest(worker, RouteTable::at(state));
        }
        self.routes.close(route.number, cpu_workers);
    }

    /// Keeps a worker for another route, or ends it.
    fn rest(&self, worker: u32, at: usize) {
        let more = |rest| (rest < RESTING_MAX).then_some(rest + 1);
        // Relaxed, both: only the number matters.
        if self.rest.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok() {
            self.blocking.pool.put(worker, &self.resting[at]);
        } else {
            // SAFETY: the worker was taken off its stack just now, and was sent nothing.
            unsafe { self.blocking.pool.end(worker) };
        }
    }

    /// Interrupts the call in flight, waits until it is over, and returns its answer; `None` if
    /// there is no call in flight. For a thread that was cancelled in [`perform`](Self::perform),
    /// or has jumped out of a handler that interrupted it.
    pub fn abandon(&'static self, flight: &PendingCall) -> Option<Answer> {
        flight.abandon()
    }

    /// Ends, in the child of a fork that a handler has made, the call that the handler interrupted:
    /// it returns `EINTR` here, whatever happens to it in the parent. The child's only thread calls
    /// this before [`forked`](Self::forked), with the thread's flight.
    pub fn forked_in_flight(&'static self, flight: &PendingCall) {
        flight.forked();
    }

    /// Counts a call on a route. If measurements say to execute it in place, returns a timer, which
    /// has to be [stopped](Self::stop) at the end of the call if it is running. Otherwise the call
    /// is for [`perform`](Self::perform).
    #[inline]
    pub fn bypass(&'static self, route: &Route) -> Option<Timer> {
        self.chosen().filter(|(settings, _)| settings.bypass)?;
        self.routes.get(route.number)?.habit.stay().map(Timer)
    }

    /// The call in place is over.
    pub fn stop(&'static self, route: &Route, timer: Timer) {
        if let (true, Some(state)) = (timer.runs(), self.routes.get(route.number)) {
            state.habit.stayed(timer.0, &self.family.page().habit);
        }
    }

    /// Notes that the process has changed its user or groups. (Our threads have the new ones:
    /// `setuid` and similar functions reach all threads.)
    pub fn change_rights(&'static self) {
        self.feeds.mapped().unwrap_or(&[]).iter().for_each(Feed::change_rights);
    }

    /// Waits before a fork, briefly, until none of our threads has a descriptor that the child
    /// would not know. The parent then calls [`after_fork`](Self::after_fork), and the child
    /// [`forked`](Self::forked).
    pub fn before_fork(&'static self) {
        internal_fds::before_fork();
    }

    /// Ends the wait in the parent, whether or not the fork was made.
    pub fn after_fork(&'static self) {
        internal_fds::after_fork();
    }

    /// Call it before a process is made that shares its descriptors with this one. From then on,
    /// children close no descriptors of our threads.
    pub fn share_descriptors(&'static self) {
        internal_fds::share();
    }

    /// Call it in the child of a fork, from its only thread, before any other call here: the
    /// parent's threads do not exist in the child. Routes stay valid in both. The child's routes
    /// get threads of their own at their first calls. Waits for no thread.
    pub fn forked(&'static self) {
        thread::forked();
        internal_fds::forked();
        affinity::forked();
        self.family.forked();
        let Some((settings, cpu_workers)) = self.chosen() else { return };
        let count = settings.groups.len();
        // SAFETY: this is the child of a fork, and the caller is its only thread: there is no
        // worker that would use any of it.
        unsafe {
            cpu_workers[..count].iter().for_each(|cpu_worker| cpu_worker.forked());
            self.feeds.mapped().unwrap_or(&[]).iter().take(count).for_each(|feed| feed.forked());
            self.blocking.forked();
        }
        if settings.mechanism == Mechanism::Thread {
            self.routes.used().iter().for_each(|route| route.idle.clear());
            self.resting[..count].iter().for_each(Stack::clear);
            self.rest.store(0, Ordering::Relaxed); // Relaxed: there is no other thread
        }
    }

    /// Ends all our threads; from now on calls are executed in place. No call may be in flight.
    /// Does not wait.
    pub fn retire(&'static self) {
        let Some((settings, cpu_workers)) = self.chosen() else { return };
        // Relaxed: no call is in flight.
        self.state.store(OFF, Ordering::Relaxed);
        cpu_workers[..settings.groups.len()].iter().for_each(CpuWorker::end);
        let stacks = self.routes.used().iter().map(|route| &route.idle);
        for stack in stacks.chain(&self.resting).chain([&self.blocking.idle]) {
            while let Some(worker) = self.blocking.pool.take(stack) {
                // SAFETY: the worker was taken off its stack just now, and was sent nothing.
                unsafe { self.blocking.pool.end(worker) };
            }
        }
    }

    /// Closes the rings of `uring`, so that the kernel's threads end.
    ///
    /// # Safety
    ///
    /// [`retire`](Self::retire) was called, and none of our threads exists any more.
    pub unsafe fn close_rings(&'static self) {
        // SAFETY: no thread made here lives any more (contract of this function), so no thread uses
        // a ring.
        self.feeds.mapped().unwrap_or(&[]).iter().for_each(|feed| unsafe { feed.end() });
    }

    /// Whether a descriptor is private to the workers: the program must not close it, nor replace
    /// it by another file.
    pub fn owns(&'static self, descriptor: i32) -> bool {
        internal_fds::owns(descriptor)
    }

    /// Runs `f` while the workers' descriptors do not change: answers of [`owns`](Self::owns) stay
    /// true.
    pub fn with_descriptors_at_rest<R>(&'static self, f: impl FnOnce() -> R) -> R {
        internal_fds::at_rest(f)
    }

    /// Whether a descriptor of this number may become a worker's.
    pub fn may_own(&'static self, descriptor: i32) -> bool {
        internal_fds::may_own(descriptor)
    }

    /// How many threads made here live now.
    pub fn threads(&'static self) -> u32 {
        // Relaxed: a number for reports.
        self.blocking.pool.alive() + self.blocking.workers.load(Ordering::Relaxed)
    }
}

impl Default for Offload {
    fn default() -> Self {
        Self::new()
    }
}

const _: () = assert!(size_of::<usize>() == 8, "the layout of calls is that of 64 bits");
