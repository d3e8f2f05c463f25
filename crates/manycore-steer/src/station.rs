//! The pool's workers: one for each CPU, which executes the calls of all lanes there.
//!
//! A worker never sleeps for a single call. It takes all calls that were put into its queue, tries each
//! ([`attempt`](crate::attempt)), keeps those that have to wait in a table of its own ([`waits`](crate::waits)) and leaves what
//! may block to a few hands ([`hand`](crate::hand)). It sleeps in `epoll_wait`, for the descriptors that its calls wait for and
//! for the bell by which a caller wakes it.

use core::ffi::c_void;
use core::sync::atomic::{AtomicI32, AtomicPtr, AtomicU32, Ordering};

use manycore::sync::{clock, cpu, hint, tuning};
use syscalls::{Sysno, raw_syscall};

use crate::attempt::{Attempt, attempt};
use crate::call::Kind;
use crate::hand::{Hands, OPEN_SIGNALS, refuse, signal_of};
use crate::queue::{Bell, Calls, Cancelled, Queue};
use crate::raw;
use crate::settings::CreateThread;
use crate::slab::Zeroed;
use crate::slot::{Reply, Slot};
use crate::stack::Stack;
use crate::uring::{self, Feed, RING};
use crate::waits::{BELL, Table, Waits};

/// Hands of the pool at most, for calls that may block.
pub const SPARE_MAX: u32 = 4;

/// So often may a descriptor look ready without being so before its call is left to a hand.
const TRIES_MAX: u32 = 8;

/// After so many calls in a row the worker looks at the descriptors as well.
const BATCH: u32 = 32;

const EVENTS: usize = 64;

const NEW: u32 = 0;
const STARTING: u32 = 1;
const RUNNING: u32 = 2;
const ENDING: u32 = 3;

/// A worker, and the calls on their way to it. All zero has not started.
#[derive(Debug)]
#[repr(C, align(128))]
pub struct Station {
    calls: Queue<Calls>,
    cancelled: Queue<Cancelled>,
    bell: Bell,
    state: AtomicU32,
    cpu: AtomicU32,
    epoll: AtomicI32,
    event: AtomicI32,
    /// Of the mechanism `uring`: whose completions the worker listens to, when asked.
    feed: AtomicPtr<Feed>,
    /// Lanes that have their calls executed here.
    pub lanes: AtomicU32,
    waits: Table,
    blocking: AtomicPtr<Blocking>,
}

// SAFETY: empty queues, a silent bell, numbers and null.
unsafe impl Zeroed for Station {}

/// What all workers share: the hands that may block.
#[derive(Debug)]
pub struct Blocking {
    pub hands: Hands,
    pub idle: Stack,
    /// How many workers there are.
    pub workers: AtomicU32,
    pub create: AtomicPtr<()>,
}

impl Blocking {
    pub const fn new() -> Self {
        Self {
            hands: Hands::new(),
            idle: Stack::new(),
            workers: AtomicU32::new(0),
            create: AtomicPtr::new(core::ptr::null_mut()),
        }
    }

    /// In the child of a fork: there are none.
    ///
    /// # Safety
    ///
    /// The caller is the only thread, and executes nothing here.
    pub unsafe fn forked(&self) {
        // SAFETY: by the caller's word.
        unsafe { self.hands.forked() };
        self.idle.clear();
        self.workers.store(0, Ordering::Relaxed); // Relaxed: nobody else is there
    }

    /// How threads are made; none before the start.
    pub fn create(&self) -> Option<CreateThread> {
        // Acquire: partner of the Release in `Steer::start`.
        let create = self.create.load(Ordering::Acquire);
        // SAFETY: null, or such a function.
        unsafe { core::mem::transmute::<*mut (), Option<CreateThread>>(create) }
    }

    /// Leaves a call to a hand, or answers that it is to be executed in place.
    ///
    /// # Safety
    ///
    /// The caller executes the call.
    unsafe fn leave(&'static self, slot: *const Slot) {
        let hand = self.hands.take(&self.idle);
        let hand = hand.or_else(|| self.hands.make(self.create()?, None, SPARE_MAX));
        // SAFETY: the hand was taken or made, and the call is the caller's to pass on or to answer.
        unsafe {
            match hand {
                Some(hand) => self.hands.send(hand, slot, &raw const self.idle),
                None => {
                    let descriptor = (*slot).order().descriptor;
                    if descriptor >= 0 {
                        raw::close(descriptor);
                    }
                    refuse(slot);
                }
            }
        }
    }
}

impl Station {
    /// Puts a call in; false if there is no worker, and none can be made now.
    ///
    /// # Safety
    ///
    /// The slot is written, in nobody else's hands, and stays until it is answered.
    pub unsafe fn send(
        &'static self,
        slot: *mut Slot,
        cpu: u16,
        blocking: &'static Blocking,
    ) -> bool {
        // Acquire: partner of the Release in `start`.
        if self.state.load(Ordering::Acquire) != RUNNING && !self.start(cpu, blocking) {
            return false;
        }
        // SAFETY: by the caller's word.
        unsafe { self.calls.push(slot) };
        if self.bell.ring() {
            self.wake();
        }
        true
    }

    /// Has the worker listen to a ring when it is asked to; false if there is no worker, and none can be made now.
    pub fn feed(
        &'static self,
        feed: &'static Feed,
        ring: i32,
        cpu: u16,
        blocking: &'static Blocking,
    ) -> bool {
        // Acquire: as in `send`.
        if self.state.load(Ordering::Acquire) != RUNNING && !self.start(cpu, blocking) {
            return false;
        }
        // Release: partner of the Acquire in `look`.
        self.feed.store(core::ptr::from_ref(feed).cast_mut(), Ordering::Release);
        uring::listen(self.epoll(), libc::EPOLL_CTL_ADD, ring)
    }

    /// What the worker sleeps in.
    pub fn epoll(&self) -> i32 {
        self.epoll.load(Ordering::Relaxed) // Relaxed: acquired with the state
    }

    /// Has a call that was put in end with `EINTR`: to be asked once.
    ///
    /// # Safety
    ///
    /// The slot stays until it is answered, and out of the queue ([`Slot::is_noted`]).
    pub unsafe fn cancel(&self, slot: *mut Slot) {
        // SAFETY: by the caller's word.
        unsafe { self.cancelled.push(slot) };
        if self.bell.ring() {
            self.wake();
        }
    }

    /// Has the worker end. Only when no call is in flight.
    pub fn end(&self) {
        // AcqRel: whatever came before is over.
        if self.state.swap(ENDING, Ordering::AcqRel) == RUNNING {
            self.wake();
        }
    }

    fn wake(&self) {
        let one = 1u64;
        let event = self.event.load(Ordering::Relaxed); // Relaxed: acquired with the state
        // SAFETY: the kernel reads eight bytes.
        unsafe { raw_syscall!(Sysno::write, event, &raw const one, 8) };
    }

    #[cold]
    fn start(&'static self, cpu: u16, blocking: &'static Blocking) -> bool {
        // Acquire: the worker is there, as in `send`. Relaxed: only one goes on.
        match self.state.compare_exchange(NEW, STARTING, Ordering::Relaxed, Ordering::Acquire) {
            Ok(_) => {}
            Err(STARTING) => return self.is_started(),
            Err(state) => return state == RUNNING,
        }
        let started = self.make(cpu, blocking);
        // Release: partner of the Acquire in `send`.
        // What was refused may be granted another time.
        self.state.store(if started { RUNNING } else { NEW }, Ordering::Release);
        started
    }

    /// Waits until another has made the worker: some system calls long.
    fn is_started(&self) -> bool {
        loop {
            // Acquire: as in `send`.
            match self.state.load(Ordering::Acquire) {
                STARTING => hint::sleep_zero(),
                state => return state == RUNNING,
            }
        }
    }

    fn make(&'static self, cpu: u16, blocking: &'static Blocking) -> bool {
        let Some(create) = blocking.create().filter(|_| raw::has_numbers()) else { return false };
        if !self.waits.is_there() {
            return false;
        }
        // SAFETY: these touch no memory; the kernel reads the event.
        let (epoll, event) = unsafe {
            let epoll = raw::lift(raw_syscall!(Sysno::epoll_create1, libc::EPOLL_CLOEXEC) as i32);
            let flags = libc::EFD_CLOEXEC | libc::EFD_NONBLOCK;
            let event = raw::lift(raw_syscall!(Sysno::eventfd2, 0, flags) as i32);
            let on =
                libc::epoll_event { events: (libc::EPOLLIN | libc::EPOLLET) as u32, u64: BELL };
            raw_syscall!(Sysno::epoll_ctl, epoll, libc::EPOLL_CTL_ADD, event, &raw const on);
            (epoll, event)
        };
        if epoll < 0 || event < 0 {
            [epoll, event].into_iter().filter(|fd| *fd >= 0).for_each(raw::close);
            return false;
        }
        // Relaxed, all: the thread's creation, and the state, order them.
        self.epoll.store(epoll, Ordering::Relaxed);
        self.event.store(event, Ordering::Relaxed);
        self.cpu.store(u32::from(cpu), Ordering::Relaxed);
        self.blocking.store(core::ptr::from_ref(blocking).cast_mut(), Ordering::Relaxed);
        let argument = core::ptr::from_ref(self).cast_mut().cast::<c_void>();
        let before = raw::block(!0);
        // SAFETY: all signals are blocked; the station is there for good.
        let made = unsafe { create(run, argument) } == 0;
        raw::block(before);
        if !made {
            raw::close(epoll);
            raw::close(event);
        } else {
            blocking.workers.fetch_add(1, Ordering::Relaxed); // Relaxed: a number for reports
        }
        made
    }

    /// In the child of a fork: there is no worker. Its descriptors are closed by [`raw::forked`].
    ///
    /// # Safety
    ///
    /// The caller is the only thread, and executes nothing here.
    pub unsafe fn forked(&self) {
        // SAFETY: by the caller's word.
        unsafe { self.waits.forked() };
        self.calls.take();
        self.cancelled.take();
        self.bell.rise();
        self.state.store(NEW, Ordering::Relaxed); // Relaxed: nobody else is there
    }
}

/// A worker's life.
extern "C" fn run(argument: *mut c_void) -> *mut c_void {
    // SAFETY: a station, which is there for good.
    let station: &'static Station = unsafe { &*argument.cast::<Station>() };
    // Relaxed, all: written before this thread was made.
    raw::bind(station.cpu.load(Ordering::Relaxed) as u16);
    raw::block(!OPEN_SIGNALS);
    // SAFETY: as above.
    let blocking = unsafe { &*station.blocking.load(Ordering::Relaxed) };
    let epoll = station.epoll.load(Ordering::Relaxed);
    // The table was there before the thread was.
    if let Some(waits) = Waits::new(&station.waits, epoll) {
        Worker { station, blocking, waits, epoll }.work();
    }
    blocking.workers.fetch_sub(1, Ordering::Relaxed); // Relaxed: as in `make`
    core::ptr::null_mut()
}

struct Worker {
    station: &'static Station,
    blocking: &'static Blocking,
    waits: Waits,
    epoll: i32,
}

impl Worker {
    fn work(&mut self) {
        let spin = if cpu::count() > 1 { tuning::spin_limit() } else { 0 };
        let mut since_look = 0;
        // Relaxed: the state changes when no call is in flight.
        while self.station.state.load(Ordering::Relaxed) != ENDING {
            let served = self.serve();
            since_look += served;
            if since_look >= BATCH || (served == 0 && self.waits.count() > 0) {
                since_look = 0;
                self.look(0);
            }
            if served == 0 && !self.is_called_within(spin) {
                self.sleep();
            }
        }
        raw::close(self.epoll);
        raw::close(self.station.event.load(Ordering::Relaxed)); // Relaxed: never changes while this runs
    }

    /// Spins for a call.
    fn is_called_within(&self, limit: u64) -> bool {
        let start = clock::now();
        while self.station.calls.is_empty() {
            if clock::has_passed(start, limit) {
                return false;
            }
            hint::spin_loop();
        }
        true
    }

    /// Executes what is in the queues; says how many calls.
    fn serve(&mut self) -> u32 {
        // What is to be cancelled was put in before: it is known to this worker once the calls have been taken, too.
        let mut cancelled = self.station.cancelled.take();
        let mut slot = self.station.calls.take();
        let mut served = 0;
        // SAFETY: taken out of a queue, and not answered.
        while let Some(call) = unsafe { slot.as_ref() } {
            slot = Queue::<Calls>::after(call);
            self.execute(call);
            served += 1;
        }
        // SAFETY: taken out of the queue; its caller waits until that is noted.
        while let Some(call) = unsafe { cancelled.as_ref() } {
            cancelled = Queue::<Cancelled>::after(call);
            // Relaxed: this worker's own.
            let waiting = call.waiting.load(Ordering::Relaxed).checked_sub(1);
            call.note_cancelled();
            if let Some(place) = waiting {
                self.give_up(place, raw::error(libc::EINTR));
            }
        }
        served
    }

    fn execute(&mut self, slot: &Slot) {
        let order = slot.order();
        let mut done = 0;
        // SAFETY: the program waits for what the call does.
        let outcome = unsafe { attempt(&order.call, order.kind, &mut done) };
        match outcome {
            Attempt::Done(answer) => reply(slot, answer),
            Attempt::Later { .. } if slot.is_cancelled() => {
                reply(slot, if done > 0 { done as isize } else { raw::error(libc::EINTR) });
            }
            Attempt::Later { descriptor, events, timeout } => {
                if self.waits.add(slot, descriptor, events, timeout, done) {
                    // A poll of one descriptor has it in its array, and stays with that.
                    if done > 0 {
                        slot.note_part();
                    }
                    return;
                }
                self.leave(slot, done);
            }
            Attempt::Blocks => self.leave(slot, done),
        }
    }

    /// Leaves a call to a hand, or what is left of it.
    fn leave(&self, slot: &Slot, done: usize) {
        slot.go_on_behind(done);
        // SAFETY: this worker executes the call.
        unsafe { self.blocking.leave(slot) };
    }

    /// Tries a call again whose descriptor seems to be ready.
    fn retry(&mut self, place: u32, events: u32) {
        let wait = self.waits.at(place);
        // SAFETY: in the table, and not answered.
        let slot = unsafe { &*wait.slot };
        let (mut done, descriptor) = (wait.done, wait.descriptor);
        let failed = (libc::EPOLLERR | libc::EPOLLHUP) as u32;
        if done > 0 && events & failed != 0 {
            return self.give_up(place, done as isize);
        }
        let mut order = slot.order();
        if order.call.number != libc::SYS_poll as usize {
            order.call.args[0] = descriptor as usize;
        }
        wait.tries += 1;
        // A wait for events looks itself, and its time-out goes on.
        let is_stuck = wait.tries > TRIES_MAX && order.kind != Kind::Timed;
        // SAFETY: the program waits for what the call does.
        match unsafe { attempt(&order.call, order.kind, &mut done) } {
            Attempt::Done(answer) => self.give_up(place, answer),
            Attempt::Later { events, .. } => {
                let wait = self.waits.at(place);
                if done > wait.done {
                    wait.tries = 0;
                    slot.note_part();
                }
                wait.done = done;
                if is_stuck || !self.waits.again(place, events) {
                    self.hand_over(place);
                }
            }
            Attempt::Blocks => self.hand_over(place),
        }
    }

    /// A waiting call is left to a hand, with the descriptor that it has.
    fn hand_over(&mut self, place: u32) {
        let wait = self.waits.at(place);
        let done = wait.done;
        // SAFETY: as in `retry`.
        let slot = unsafe { &*wait.slot };
        let descriptor = self.waits.remove(place);
        if slot.order().call.number == libc::SYS_poll as usize {
            raw::close(descriptor);
        } else {
            slot.redirect(descriptor);
        }
        self.leave(slot, done);
    }

    /// The call at a place is over.
    fn give_up(&mut self, place: u32, answer: isize) {
        let wait = self.waits.at(place);
        let slot = wait.slot;
        let answer = if wait.done > 0 && answer < 0 { wait.done as isize } else { answer };
        raw::close(self.waits.remove(place));
        // SAFETY: as in `retry`.
        reply(unsafe { &*slot }, answer);
    }

    /// Sleeps until a call comes, or a descriptor is ready.
    fn sleep(&mut self) {
        let station = self.station;
        if station.bell.doze(|| station.calls.is_empty() && station.cancelled.is_empty()) {
            self.look(self.waits.patience());
            station.bell.rise();
        }
    }

    /// Sees to the ring.
    fn attend(&self) {
        // Acquire: partner of the Release in `feed`.
        let feed = self.station.feed.load(Ordering::Acquire);
        // SAFETY: null, or there for good.
        if let Some(feed) = unsafe { feed.as_ref() } {
            feed.attend(self.epoll);
        }
    }

    /// Sees to the descriptors that are ready, after so many milliseconds at most.
    fn look(&mut self, milliseconds: i32) {
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; EVENTS];
        let epoll = self.epoll;
        // SAFETY: the kernel writes as many events at most.
        let count = unsafe {
            raw_syscall!(Sysno::epoll_wait, epoll, events.as_mut_ptr(), EVENTS, milliseconds)
        } as isize;
        for event in &events[..count.clamp(0, EVENTS as isize) as usize] {
            match event.u64 {
                BELL => {}
                RING => self.attend(),
                place => self.retry(place as u32, event.events),
            }
        }
        while let Some(place) = self.waits.late() {
            self.give_up(place, 0);
        }
    }
}

fn reply(slot: &Slot, answer: isize) {
    let reply = Reply { answer, signal: signal_of(answer) };
    // SAFETY: the worker executes the call, and answers it once.
    unsafe { Slot::answer(slot, reply) };
}
