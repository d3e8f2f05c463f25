//! Threads that execute one call at a time and may block with it: *hands*.
//!
//! Under the mechanism `thread` each lane has hands of its own; the pool has a few, for calls that cannot be tried without
//! blocking. A hand that has nothing to do is on a stack, with a gate at which it waits for the next call. Whoever takes it off
//! the stack may send it one. It goes back onto the stack *before* it answers, so that its caller's next call finds it there.

use core::cell::UnsafeCell;
use core::ffi::c_void;

use core::sync::atomic::{AtomicU32, Ordering};
use manycore::lock::Gate;
use manycore::sync::{cpu, futex, tuning};

use crate::attempt::{Attempt, attempt, finish, is_non_blocking, is_plain_send};
use crate::call::{Answer, Kind};
use crate::raw;
use crate::settings::CreateThread;
use crate::slab::{Slab, Zeroed};
use crate::slot::{IN_PLACE, Order, Reply, Slot};
use crate::stack::Stack;

/// As many hands as a process has at most, whatever the mechanism: beyond that, calls that may block stay in place.
pub const HANDS_MAX: usize = 4096;

const CALL: u32 = Gate::MESSAGE;
const END: u32 = Gate::MESSAGE + 1;

/// A thread of ours that may block.
#[derive(Debug)]
#[repr(C, align(128))]
pub struct Hand {
    gate: Gate,
    /// Of stacks.
    below: AtomicU32,
    /// The CPU that it is bound to, plus one; 0: none.
    cpu: AtomicU32,
    /// The kernel's id; 0 before it runs.
    thread: AtomicU32,
    /// The call, from when it is sent until the gate is shut again.
    slot: UnsafeCell<*const Slot>,
    /// Where it waits.
    home: UnsafeCell<*const Stack>,
    hands: UnsafeCell<*const Hands>,
}

// SAFETY: the cells are written by whoever has taken the hand off its stack, before it sends, and read by the hand after it
// has received: the gate orders them.
unsafe impl Sync for Hand {}
// SAFETY: a shut gate, numbers, and null pointers.
unsafe impl Zeroed for Hand {}

/// All hands of a process.
#[derive(Debug)]
pub struct Hands {
    all: Slab<Hand, HANDS_MAX>,
    /// Records without a thread that were used before.
    free: Stack,
    /// Records that were ever used.
    used: AtomicU32,
    /// Threads that there are.
    alive: AtomicU32,
}

impl Hands {
    /// None yet.
    pub const fn new() -> Self {
        Self {
            all: Slab::new(),
            free: Stack::new(),
            used: AtomicU32::new(0),
            alive: AtomicU32::new(0),
        }
    }

    /// How many threads there are.
    pub fn alive(&self) -> u32 {
        self.alive.load(Ordering::Relaxed) // Relaxed: a number for reports
    }

    /// How a stack finds its links.
    fn link<'a>(all: &'a [Hand]) -> impl Fn(u32) -> &'a AtomicU32 {
        |number| &all[number as usize].below
    }

    /// A hand off the stack.
    pub fn take(&self, home: &Stack) -> Option<u32> {
        home.pop(Self::link(self.all.get()?))
    }

    /// Puts a hand that was taken, and not sent anything, onto another stack.
    pub fn put(&self, hand: u32, home: &Stack) {
        if let Some(all) = self.all.get() {
            home.push(hand, Self::link(all));
        }
    }

    /// A new thread, bound to the CPU if one is given. `limit`: as many as there may be. None if there are so many, or if the
    /// kernel refuses.
    pub fn make(&'static self, create: CreateThread, cpu: Option<u16>, limit: u32) -> Option<u32> {
        let all = self.all.get()?;
        let more = |alive| (alive < limit).then_some(alive + 1);
        // Relaxed, both: only the number matters.
        self.alive.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok()?;
        let made = self.record(all).and_then(|number| {
            let hand = &all[number as usize];
            // Relaxed: the thread's creation orders it.
            hand.cpu.store(cpu.map_or(0, |cpu| u32::from(cpu) + 1), Ordering::Relaxed);
            // SAFETY: the record has no thread, and was taken.
            unsafe { *hand.hands.get() = self };
            let argument = core::ptr::from_ref(hand).cast_mut().cast::<c_void>();
            let before = raw::block(!0);
            // SAFETY: all signals are blocked; the record is there for good.
            let failed = unsafe { create(run, argument) } != 0;
            raw::block(before);
            if failed {
                self.free.push(number, Self::link(all));
            }
            (!failed).then_some(number)
        });
        if made.is_none() {
            self.alive.fetch_sub(1, Ordering::Relaxed); // Relaxed: as above
        }
        made
    }

    /// A record without a thread.
    fn record(&self, all: &[Hand]) -> Option<u32> {
        let old = self.free.pop(Self::link(all));
        old.or_else(|| {
            let more = |used| (used < HANDS_MAX as u32).then_some(used + 1);
            // Relaxed, both: the number alone.
            self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok()
        })
    }

    /// Has the hand execute the call, and wait on `home` after it.
    ///
    /// # Safety
    ///
    /// The caller has the hand off a stack, or made it, and has sent it nothing; the slot is written, in nobody else's hands,
    /// and stays until it is answered; `home` stays for good.
    pub unsafe fn send(&self, hand: u32, slot: *const Slot, home: *const Stack) {
        let Some(all) = self.all.get() else { return };
        let hand = &all[hand as usize];
        // SAFETY: the hand is the caller's until the gate opens; it is there for good.
        unsafe {
            *hand.slot.get() = slot;
            *hand.home.get() = home;
            Gate::open(&raw const hand.gate, CALL);
        }
    }

    /// Has the hand's thread end.
    ///
    /// # Safety
    ///
    /// As in [`send`](Self::send).
    pub unsafe fn end(&self, hand: u32) {
        if let Some(all) = self.all.get() {
            // SAFETY: as in `send`.
            unsafe { Gate::open(&raw const all[hand as usize].gate, END) };
        }
    }

    /// In the child of a fork: there are none.
    ///
    /// # Safety
    ///
    /// The caller is the only thread, and executes nothing here.
    pub unsafe fn forked(&self) {
        // SAFETY: the threads that used them are not there.
        unsafe { self.all.clear() };
        self.free.clear();
        self.used.store(0, Ordering::Relaxed); // Relaxed, both: nobody else is there
        self.alive.store(0, Ordering::Relaxed);
    }
}

/// Signals that our threads do not block: glibc's two, by which it reaches all threads, and the one that interrupts.
pub const OPEN_SIGNALS: u64 = raw::signals(&[32, 33, crate::INTERRUPT]);

/// A hand's life.
extern "C" fn run(argument: *mut c_void) -> *mut c_void {
    // SAFETY: a record, which is there for good.
    let hand = unsafe { &*argument.cast::<Hand>() };
    // Relaxed: written before this thread was made.
    if let Some(cpu) = hand.cpu.load(Ordering::Relaxed).checked_sub(1) {
        raw::bind(cpu as u16);
    }
    raw::block(!OPEN_SIGNALS);
    let thread = raw::thread_id();
    hand.thread.store(thread, Ordering::Relaxed); // Relaxed: for who looks at a dump
    // SAFETY: written before this thread was made; all hands are there for good.
    let hands = unsafe { &**hand.hands.get() };
    while receive(hand) == CALL {
        // SAFETY: received with the call.
        let (slot, home) = unsafe { (*hand.slot.get(), &**hand.home.get()) };
        hand.gate.shut();
        // SAFETY: the slot was sent here, and is answered below.
        let reply = unsafe { execute(&*slot, thread) };
        hands.put(hands.number(hand), home);
        // SAFETY: as above.
        unsafe { Slot::answer(slot, reply) };
    }
    hand.gate.shut();
    if let Some(all) = hands.all.get() {
        hands.free.push(hands.number(hand), Hands::link(all));
    }
    hands.alive.fetch_sub(1, Ordering::Relaxed); // Relaxed: as in `make`
    core::ptr::null_mut()
}

impl Hands {
    fn number(&self, hand: &Hand) -> u32 {
        let first = self.all.get().map_or(core::ptr::null(), <[Hand]>::as_ptr);
        ((core::ptr::from_ref(hand).addr() - first.addr()) / size_of::<Hand>()) as u32
    }
}

/// Waits for what is sent.
fn receive(hand: &Hand) -> u32 {
    let limit = if cpu::count() > 1 { tuning::spin_limit() } else { 0 };
    if let Some(message) = hand.gate.spin(limit).or_else(|| hand.gate.doze()) {
        return message;
    }
    loop {
        if let Some(message) = hand.gate.look() {
            return message;
        }
        futex::wait(hand.gate.word(), Gate::ASLEEP, None);
    }
}

/// Executes a call that may block.
///
/// # Safety
///
/// The slot is the caller's to execute.
unsafe fn execute(slot: &Slot, thread: u32) -> Reply {
    let order = slot.order();
    // SeqCst: before `is_cancelled` is read, as `Slot::cancel` says.
    slot.executor.store(thread, Ordering::SeqCst);
    let ends_at_once =
        || order.kind != Kind::Quick && (order.done > 0 || !is_non_blocking(order.call.args[0]));
    let answer = if !(slot.is_cancelled() && ends_at_once()) {
        // SAFETY: what the call does is what the program wants, which waits for it.
        unsafe { until_done(slot, &order) }
    } else if order.done > 0 {
        order.done as Answer
    } else {
        raw::error(libc::EINTR)
    };
    if slot.released() {
        // The signal that may have been sent comes here, and not in the next call.
        raw::thread_id();
    }
    if order.descriptor >= 0 {
        raw::close(order.descriptor);
    }
    Reply { answer, signal: signal_of(answer) }
}

/// Makes the call; again if a signal that was meant for an earlier one interrupted it: nothing was transferred then.
///
/// A send is tried first, so that its caller knows when some of it is gone.
unsafe fn until_done(slot: &Slot, order: &Order) -> Answer {
    let mut done = order.done;
    let is_cancelled = || slot.is_cancelled();
    // SAFETY: by the caller's word, for all that follows.
    unsafe {
        if done == 0 && order.kind == Kind::Waits && is_plain_send(&order.call) {
            match attempt(&order.call, order.kind, &mut done) {
                Attempt::Done(answer) => return answer,
                Attempt::Later { .. } | Attempt::Blocks => {}
            }
        }
        if done > 0 {
            slot.note_part();
            return finish(&order.call, done, is_cancelled);
        }
        loop {
            let answer = raw::execute(&order.call);
            if answer != raw::error(libc::EINTR) || is_cancelled() || order.kind == Kind::Quick {
                return answer;
            }
        }
    }
}

/// The signal that the call sent to the calling thread, which has it no more; 0 if there is none.
pub fn signal_of(answer: Answer) -> i32 {
    let of = |errno, signal| answer == raw::error(errno) && raw::take_pending(signal);
    if of(libc::EPIPE, libc::SIGPIPE) {
        libc::SIGPIPE
    } else if of(libc::EFBIG, libc::SIGXFSZ) {
        libc::SIGXFSZ
    } else {
        0
    }
}

/// Answers a call without having done anything.
///
/// # Safety
///
/// As in [`Slot::answer`].
pub unsafe fn refuse(slot: *const Slot) {
    // SAFETY: by the caller's word.
    unsafe { Slot::answer(slot, Reply { answer: IN_PLACE, signal: 0 }) };
}
