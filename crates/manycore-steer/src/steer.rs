//! What the library that interposes system calls calls.

use core::cell::UnsafeCell;
use core::ffi::c_void;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU32, Ordering};

use manycore::lock::Gate;
use manycore::sync::{clock, cpu, node, thread, tuning};

use crate::attempt;
use crate::call::{Answer, Call, Kind, Reason};
use crate::hand::HANDS_MAX;
use crate::lanes::{LaneState, Lanes};
use crate::raw;
use crate::settings::{CPUS_MAX, Mechanism, Settings};
use crate::slab::Slab;
use crate::slot::{IN_PLACE, Reply, Slot};
use crate::stack::Stack;
use crate::station::{Blocking, Station};
use crate::uring::{self, Feed, Meaning};

/// Where the calls on one open descriptor are executed: chosen when it is opened. All zero is nowhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Lane {
    /// Its number plus one, among the lanes of the process.
    pub(crate) number: u32,
}

impl Lane {
    /// Nowhere: calls are executed in place.
    pub const NONE: Self = Self { number: 0 };
}

/// A moved call of one thread, while that waits. Zeroed before [`Steer::perform`], which leaves it so unless it is unwound
/// or jumped out of; then [`Steer::abandon`] ends the call.
#[derive(Debug)]
#[repr(C)]
pub struct Flight {
    /// Call and answer; null if there is none.
    slot: *mut Slot,
    /// Of the pool: whose queue it went into; null if a hand or a ring has it.
    station: *const Station,
    /// Of `uring`: which ring it went into, and the worker that listens to it; null otherwise.
    feed: *const Feed,
    epoll: i32,
    /// Whether that worker was asked to listen.
    is_enlisted: bool,
}

impl Default for Flight {
    fn default() -> Self {
        Self {
            slot: core::ptr::null_mut(),
            station: core::ptr::null(),
            feed: core::ptr::null(),
            epoll: -1,
            is_enlisted: false,
        }
    }
}

/// When a call in place began, in ticks; 0 if it is not measured.
#[derive(Clone, Copy, Debug, Default)]
pub struct Timer(u64);

const OFF: u32 = 0;
const ON: u32 = 1;

/// All lanes and workers of a process. One, in a `static`.
#[derive(Debug)]
pub struct Steer {
    state: AtomicU32,
    settings: UnsafeCell<Option<Settings>>,
    lanes: Lanes,
    stations: Slab<Station, CPUS_MAX>,
    feeds: Slab<Feed, CPUS_MAX>,
    blocking: Blocking,
    /// Of the mechanism `thread`: hands of lanes that are closed, for new lanes of the same CPU.
    resting: [Stack; CPUS_MAX],
    rest: AtomicU32,
}

// SAFETY: the settings are written once, before the state says that they are there.
unsafe impl Sync for Steer {}

/// Hands of closed lanes that are kept for new ones.
const RESTING_MAX: u32 = 64;

impl Steer {
    /// Nothing is started: all calls are executed in place.
    pub const fn new() -> Self {
        Self {
            state: AtomicU32::new(OFF),
            settings: UnsafeCell::new(None),
            lanes: Lanes::new(),
            stations: Slab::new(),
            feeds: Slab::new(),
            blocking: Blocking::new(),
            resting: [const { Stack::new() }; CPUS_MAX],
            rest: AtomicU32::new(0),
        }
    }

    /// Takes the settings, and installs the handler of [`INTERRUPT`](crate::INTERRUPT). Threads are made at the first calls.
    /// Once in a process, before anything else, by one thread. Does nothing if there is no CPU, or the mechanism is `in-place`.
    pub fn start(&'static self, settings: &Settings) {
        let is_empty = (0..settings.groups.groups()).any(|g| settings.groups.range(g).is_empty());
        if settings.groups.is_empty() || is_empty || settings.mechanism == Mechanism::InPlace {
            return;
        }
        raw::install_interrupt();
        // SAFETY: nobody reads the settings before the state says so.
        unsafe { *self.settings.get() = Some(*settings) };
        // Release: partner of the Acquire in `Blocking::create`.
        self.blocking.create.store(settings.create_thread as *mut (), Ordering::Release);
        // Release: partner of the Acquire in `settings`.
        self.state.store(ON, Ordering::Release);
    }

    /// What was chosen, and the workers; none if nothing was started.
    #[inline]
    fn chosen(&self) -> Option<(&Settings, &[Station])> {
        // Acquire: partner of the Release in `start`.
        if self.state.load(Ordering::Acquire) != ON {
            return None;
        }
        // SAFETY: written before the state, and never again.
        Some((unsafe { (*self.settings.get()).as_ref()? }, self.stations.get()?))
    }

    /// Chooses where calls on a new descriptor are executed; [`Lane::NONE`] if there is no room. No thread is made.
    pub fn open(&'static self) -> Lane {
        let Some((settings, stations)) = self.chosen() else { return Lane::NONE };
        let number = self.lanes.open(&settings.groups, settings.rule, stations);
        number.map_or(Lane::NONE, |number| Lane { number })
    }

    /// No call will come on this lane any more, and none is in flight on it.
    pub fn close(&'static self, lane: Lane) {
        let (Some(state), Some(stations)) = (self.lanes.get(lane.number), self.stations.get())
        else {
            return;
        };
        while let Some(hand) = self.blocking.hands.take(&state.idle) {
            self.rest(hand, Lanes::at(state));
        }
        self.lanes.close(lane.number, stations);
    }

    /// Keeps a hand for another lane, or has it end.
    fn rest(&self, hand: u32, at: usize) {
        let more = |rest| (rest < RESTING_MAX).then_some(rest + 1);
        // Relaxed, both: only the number matters.
        if self.rest.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok() {
            self.blocking.hands.put(hand, &self.resting[at]);
        } else {
            // SAFETY: taken off its stack, and sent nothing.
            unsafe { self.blocking.hands.end(hand) };
        }
    }

    /// Has the call executed where the lane says, and waits for the answer; or says why it is to be executed in place.
    ///
    /// SIGPIPE or SIGXFSZ that the call brought about has been raised in the caller when this returns.
    ///
    /// # Safety
    ///
    /// The call may be executed by any thread of the process: what its arguments point to is valid until this returns, or
    /// until [`abandon`](Self::abandon) has returned if this is left without returning. The flight is zeroed.
    pub unsafe fn perform(
        &'static self,
        lane: &Lane,
        call: &Call,
        kind: Kind,
        flight: &mut Flight,
    ) -> Result<Answer, Reason> {
        let (settings, stations) = self.chosen().ok_or(Reason::Off)?;
        let state = self.lanes.get(lane.number).ok_or(Reason::Off)?;
        if settings.bypass && !state.habit.next() {
            return Err(Reason::Bypassed);
        }
        let began = if settings.bypass { clock::now() } else { 0 };
        // SAFETY: by the caller's word.
        let reply = unsafe {
            let may_ring = settings.mechanism == Mechanism::Uring;
            let mut by = |call: &Call, way| {
                self.execute(settings, stations, state, (call, kind), flight, way)
            };
            match by(call, if may_ring { Way::Ring } else { Way::Threads }) {
                Some(Meaning::Other) => by(call, Way::Threads),
                Some(Meaning::Part(sent)) if !attempt::is_non_blocking(call.args[0]) => {
                    let rest = by(&after(call, sent), Way::Rest);
                    Some(Meaning::Answer(both(sent, rest)))
                }
                first => first,
            }
        };
        if settings.bypass {
            state.habit.moved(began);
        }
        match reply {
            Some(Meaning::Answer(reply)) => deliver(reply),
            Some(Meaning::Part(sent)) => Ok(sent as Answer),
            Some(Meaning::Other) | None => Err(Reason::NoThread),
        }
    }

    /// Sends the call and waits for the answer; none if there is nobody to send it to.
    unsafe fn execute(
        &'static self,
        settings: &Settings,
        stations: &'static [Station],
        lane: &'static LaneState,
        (call, kind): (&Call, Kind),
        flight: &mut Flight,
        way: Way,
    ) -> Option<Meaning> {
        // A handler that jumps out of its call finds it sent, or not begun, and no lock taken.
        let before = raw::block(!0);
        let slot = node::take::<Slot>().as_ptr();
        // SAFETY: ours until it is handed on.
        unsafe { (*slot).write(call, kind) };
        flight.slot = slot;
        let at = Lanes::at(lane);
        let cpu = settings.groups.cpus()[at];
        let station = &stations[at];
        if way == Way::Rest {
            // SAFETY: as above.
            unsafe { (*slot).note_part() };
        }
        let fed = way == Way::Ring && self.feed(call, kind, station, at, cpu, flight);
        // SAFETY: written, and nobody else has it; it stays until it is answered.
        let sent = fed
            || unsafe {
                if settings.mechanism == Mechanism::Thread {
                    self.give(settings, lane, at, slot)
                } else {
                    flight.station = station;
                    station.send(slot, cpu, &self.blocking)
                }
            };
        raw::block(before);
        let mut reply = sent.then(|| self.wait(settings, kind, flight, cpu));
        // SAFETY: answered, or not sent: this thread's until `land`.
        let done = unsafe { (*slot).order() }.done;
        if let Some(reply) = reply.as_mut().filter(|reply| done > 0 && reply.answer == IN_PLACE) {
            // There was no thread for what is left of a send.
            // SAFETY: the caller's own call, for which it waits.
            reply.answer = unsafe { attempt::finish(call, done, || true) };
        }
        self.land(flight);
        reply.map(|reply| if fed { uring::meaning(call, reply) } else { Meaning::Answer(reply) })
    }

    /// The mechanism `uring`: puts the call into the ring of its CPU; false if it is one for the pool.
    fn feed(
        &'static self,
        call: &Call,
        kind: Kind,
        station: &'static Station,
        at: usize,
        cpu: u16,
        flight: &mut Flight,
    ) -> bool {
        let Some(feed) = self.feeds.get().map(|feeds| &feeds[at]) else { return false };
        let listen = |ring| station.feed(feed, ring, cpu, &self.blocking);
        let Some(ring) = feed.started(cpu, listen) else { return false };
        (flight.feed, flight.epoll) = (feed, station.epoll());
        let is_sent = feed.send(ring, call, kind, flight.slot);
        if !is_sent {
            flight.feed = core::ptr::null();
        }
        is_sent
    }

    /// The mechanism `thread`: sends the call to a hand of the lane; a resting or a new one if all are in calls.
    unsafe fn give(
        &'static self,
        settings: &Settings,
        lane: &'static LaneState,
        at: usize,
        slot: *const Slot,
    ) -> bool {
        let hands = &self.blocking.hands;
        let resting = || {
            let hand = hands.take(&self.resting[at])?;
            self.rest.fetch_sub(1, Ordering::Relaxed); // Relaxed: as in `rest`
            Some(hand)
        };
        let new = || {
            let cpu = settings.groups.cpus()[at];
            hands.make(settings.create_thread, Some(cpu), HANDS_MAX as u32)
        };
        let hand = hands.take(&lane.idle).or_else(resting).or_else(new);
        // SAFETY: the hand was taken or made here; the rest by the caller's word. Lanes are there for good.
        hand.map(|hand| unsafe { hands.send(hand, slot, &raw const lane.idle) }).is_some()
    }

    /// Waits for the answer: spins for a while, if that does not keep the CPU from who is to answer, and sleeps then.
    fn wait(&self, settings: &Settings, kind: Kind, flight: &mut Flight, there: u16) -> Reply {
        // SAFETY: the flight's slot is this thread's until `land`.
        let slot = unsafe { &*flight.slot };
        let gate = slot.gate();
        let may_spin = cpu::count() > 1 && here() != there;
        let limit = if may_spin { tuning::spin_limit() } else { 0 };
        // SAFETY: null, or there for good.
        let feed = unsafe { flight.feed.as_ref() };
        let is_there = match feed {
            Some(feed) => feed.spin(slot, limit),
            None => gate.spin(limit).is_some(),
        };
        if is_there || gate.doze().is_some() {
            return slot.reply();
        }
        if let Some(feed) = feed {
            feed.enlist(flight.epoll);
            flight.is_enlisted = true;
        }
        if self.sleep(settings, kind, slot) { self.interrupt(flight) } else { slot.reply() }
    }

    /// Sleeps until the answer is there, or a handler ends it: then says so. A send of which some is gone is never begun anew.
    fn sleep(&self, settings: &Settings, kind: Kind, slot: &Slot) -> bool {
        let gate = slot.gate();
        while gate.doze().is_none() && gate.look().is_none() {
            let never_restarts = kind == Kind::Timed || slot.is_partly_done();
            let word = gate.word().as_ptr().cast_const();
            // SAFETY: the word is there.
            let error = unsafe { (settings.sleep)(word, Gate::ASLEEP, never_restarts) };
            if error == libc::EINTR && gate.look().is_none() {
                return true;
            }
        }
        false
    }

    /// Has whoever executes the call end it, and waits for the answer: `EINTR`, or what had been done by then.
    fn interrupt(&self, flight: &Flight) -> Reply {
        // SAFETY: as in `wait`.
        let slot = unsafe { &*flight.slot };
        let is_first = slot.cancel();
        // SAFETY: null, or a station, which is there for good.
        let station = unsafe { flight.station.as_ref() };
        if let (true, Some(station)) = (is_first, station) {
            // SAFETY: the slot stays until it is answered and noted, below.
            unsafe { station.cancel(flight.slot) };
        }
        // SAFETY: as above.
        let feed = unsafe { flight.feed.as_ref() };
        let gate = slot.gate();
        loop {
            let _ = gate.doze();
            if let Some(feed) = feed {
                feed.cancel(flight.slot);
            }
            let is_over = gate.look().is_some();
            if is_over && (station.is_none() || slot.is_noted()) {
                let reply = slot.reply();
                let call = slot.order().call;
                return if feed.is_some() { uring::interrupted(&call, reply) } else { reply };
            }
            if !is_over {
                slot.signal(|executor| raw::signal(executor, crate::INTERRUPT));
            }
            // A signal may come just before the call goes to sleep: it is repeated until the answer is there.
            raw::sleep(gate.word().as_ptr(), Gate::ASLEEP, if is_over { 1 } else { REPEAT_NS });
        }
    }

    /// Gives the slot back.
    fn land(&self, flight: &mut Flight) {
        let Flight { slot, feed, is_enlisted, .. } = core::mem::take(flight);
        // SAFETY: null, or there for good.
        if let (true, Some(feed)) = (is_enlisted, unsafe { feed.as_ref() }) {
            feed.leave();
        }
        if let Some(slot) = NonNull::new(slot) {
            // SAFETY: taken in `perform`; answered, or never sent.
            unsafe { node::give_back(slot) };
        }
    }

    /// Interrupts the call in flight, waits until it is over, and returns its answer; none if there is no call in flight.
    /// For a thread that was cancelled in [`perform`](Self::perform), or jumped out of a handler that interrupted it.
    pub fn abandon(&'static self, flight: &mut Flight) -> Option<Answer> {
        if flight.slot.is_null() {
            return None;
        }
        let reply = self.interrupt(flight);
        self.land(flight);
        Some(reply.answer)
    }

    /// In the child of a fork that was made in a handler: the call that the handler interrupted ends with `EINTR` here, whatever
    /// becomes of it in the parent. By the child's one thread, before [`forked`](Self::forked), with the thread's flight.
    pub fn forked_in_flight(&'static self, flight: &mut Flight) {
        // SAFETY: null, or this thread's until `land`.
        let Some(slot) = (unsafe { flight.slot.as_ref() }) else { return };
        flight.station = core::ptr::null();
        flight.feed = core::ptr::null();
        flight.is_enlisted = false;
        if slot.gate().look().is_none() {
            let reply = Reply { answer: raw::error(libc::EINTR), signal: 0 };
            // SAFETY: whoever would answer is not there.
            unsafe { Slot::answer(flight.slot, reply) };
        }
        slot.note_cancelled();
    }

    /// Begins to measure a call that is about to be executed in place because [`perform`](Self::perform) said
    /// [`Reason::Bypassed`], if it is one of the few that are measured.
    pub fn timer(&'static self, lane: &Lane) -> Timer {
        Timer(self.lanes.get(lane.number).map_or(0, |state| state.habit.timer()))
    }

    /// The call in place is over.
    pub fn stop(&'static self, lane: &Lane, timer: Timer) {
        if let (1.., Some(state)) = (timer.0, self.lanes.get(lane.number)) {
            state.habit.stayed(timer.0);
        }
    }

    /// In the child of a fork, by its one thread, before any other call here: the parent's threads are not there. Lanes stay
    /// valid in both; the child's get threads of their own at their first calls. Waits for nobody.
    pub fn forked(&'static self) {
        thread::forked();
        raw::forked();
        let Some((settings, stations)) = self.chosen() else { return };
        let count = settings.groups.len();
        // SAFETY: the caller is the only thread.
        unsafe {
            stations[..count].iter().for_each(|station| station.forked());
            self.feeds.mapped().unwrap_or(&[]).iter().take(count).for_each(|feed| feed.forked());
            self.blocking.forked();
        }
        if settings.mechanism == Mechanism::Thread {
            self.lanes.used().iter().for_each(|lane| lane.idle.clear());
            self.resting[..count].iter().for_each(Stack::clear);
            self.rest.store(0, Ordering::Relaxed); // Relaxed: nobody else is there
        }
    }

    /// All threads made here end; calls are executed in place from now on. Only when no call is in flight. Does not wait.
    pub fn retire(&'static self) {
        let Some((settings, stations)) = self.chosen() else { return };
        // Relaxed: no call is in flight.
        self.state.store(OFF, Ordering::Relaxed);
        stations[..settings.groups.len()].iter().for_each(Station::end);
        let stacks = self.lanes.used().iter().map(|lane| &lane.idle);
        for stack in stacks.chain(&self.resting).chain([&self.blocking.idle]) {
            while let Some(hand) = self.blocking.hands.take(stack) {
                // SAFETY: taken off its stack, and sent nothing.
                unsafe { self.blocking.hands.end(hand) };
            }
        }
    }

    /// Whether a descriptor is one of those that the workers have for themselves: the program must not close it, nor put another
    /// file in its place.
    pub fn owns(&'static self, descriptor: i32) -> bool {
        raw::owns(descriptor)
    }

    /// How many threads made here live now.
    pub fn threads(&'static self) -> u32 {
        // Relaxed: a number for reports.
        self.blocking.hands.alive() + self.blocking.workers.load(Ordering::Relaxed)
    }
}

impl Default for Steer {
    fn default() -> Self {
        Self::new()
    }
}

/// How a call is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// Through the ring of the lane's CPU, if it is one for that.
    Ring,
    /// To threads of ours.
    Threads,
    /// Likewise: what is left of a send of which some is gone.
    Rest,
}

/// After so long a thread that has not ended its call gets another signal.
const REPEAT_NS: i64 = 1_000_000;

/// A send of what comes after the bytes that are gone.
fn after(call: &Call, sent: usize) -> Call {
    let mut rest = *call;
    rest.args[1] += sent;
    rest.args[2] -= sent;
    rest
}

/// The answer to a send in two parts: what became of the second counts only as far as it was sent.
fn both(sent: usize, rest: Option<Meaning>) -> Reply {
    let more = match rest {
        Some(Meaning::Answer(Reply { answer, .. })) if answer > 0 => answer,
        _ => 0,
    };
    Reply { answer: sent as Answer + more, signal: 0 }
}

/// The answer as the caller gets it, and the signal that belongs to it.
fn deliver(reply: Reply) -> Result<Answer, Reason> {
    if reply.answer == IN_PLACE {
        return Err(Reason::NoThread);
    }
    if reply.signal != 0 {
        raw::signal(raw::thread_id(), reply.signal);
    }
    Ok(reply.answer)
}

/// On which CPU the caller runs now.
fn here() -> u16 {
    #[cfg(target_arch = "x86_64")]
    {
        let mut number = 0;
        // SAFETY: every x86-64 CPU of the last fifteen years has the instruction; Linux keeps the CPU's number where it reads.
        unsafe { core::arch::x86_64::__rdtscp(&raw mut number) };
        number as u16 & 0xFFF
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        cpu::current() as u16
    }
}

const _: () = assert!(size_of::<*mut c_void>() == 8, "the layout of calls is that of 64 bits");
