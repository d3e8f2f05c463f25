//! A moved call from its caller's side, from when it was sent until the answer is there: the caller spins, sleeps, is interrupted.

use core::ptr::NonNull;

use manycore::lock::Gate;
use manycore::sync::{clock, cpu, node, tuning};

use crate::call::{Answer, Kind};
use crate::own;
use crate::raw;
use crate::settings::Settings;
use crate::slot::{IN_PLACE, Reply, Slot};
use crate::station::Station;
use crate::uring::{self, Feed};

/// A moved call of one thread, while that waits. Zeroed before [`Steer::perform`](crate::Steer::perform), which leaves it so unless it is unwound
/// or jumped out of; then [`Steer::abandon`](crate::Steer::abandon) ends the call.
#[derive(Debug)]
#[repr(C)]
pub struct Flight {
    /// Call and answer; null if there is none.
    pub(crate) slot: *mut Slot,
    /// Of the pool: whose queue it went into; null if a hand or a ring has it.
    pub(crate) station: *const Station,
    /// Of `uring`: which ring it went into, and the worker that listens to it; null otherwise.
    pub(crate) feed: *const Feed,
    pub(crate) epoll: i32,
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

/// After so long a thread that has not ended its call gets another signal.
const REPEAT_NS: i64 = 1_000_000;

impl Flight {
    /// Waits for the answer: spins for a while, if that does not keep the CPU from who is to answer, and sleeps then.
    pub(crate) fn wait(&mut self, settings: &Settings, kind: Kind, there: u16) -> Reply {
        // SAFETY: the flight's slot is this thread's until `land`.
        let slot = unsafe { &*self.slot };
        let gate = slot.gate();
        let may_spin = cpu::count() > 1 && cpu::here() != u32::from(there);
        let limit = if may_spin { tuning::spin_limit() } else { 0 };
        // SAFETY: null, or there for good.
        let feed = unsafe { self.feed.as_ref() };
        let is_there = match feed {
            Some(feed) => feed.spin(slot, limit),
            None => gate.spin(limit).is_some(),
        };
        if is_there || gate.doze().is_some() {
            if let Some(feed) = feed {
                feed.lateness.note_soon();
            }
            return slot.reply();
        }
        let began = clock::now();
        if let Some(feed) = feed {
            feed.enlist(self.epoll);
            self.is_enlisted = true;
        }
        if sleep(settings, kind, slot) {
            return self.interrupt();
        }
        if let Some(feed) = feed {
            feed.lateness.note(began, clock::now());
        }
        slot.reply()
    }

    /// Has whoever executes the call end it, and waits for the answer: `EINTR`, or what had been done by then.
    fn interrupt(&self) -> Reply {
        // SAFETY: as in `wait`.
        let slot = unsafe { &*self.slot };
        let is_first = slot.cancel();
        // SAFETY: null, or a station, which is there for good.
        let station = unsafe { self.station.as_ref() };
        if let (true, Some(station)) = (is_first, station) {
            // SAFETY: the slot stays until it is answered and noted, below.
            unsafe { station.cancel(self.slot) };
        }
        // SAFETY: as above.
        let feed = unsafe { self.feed.as_ref() };
        let gate = slot.gate();
        loop {
            let _ = gate.doze();
            if let Some(feed) = feed {
                feed.cancel(self.slot);
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
    pub(crate) fn land(&mut self) {
        let Self { slot, feed, is_enlisted, .. } = core::mem::take(self);
        // SAFETY: null, or there for good.
        if let (true, Some(feed)) = (is_enlisted, unsafe { feed.as_ref() }) {
            feed.leave();
        }
        if let Some(slot) = NonNull::new(slot) {
            // SAFETY: taken in `perform.rs`; answered, or never sent.
            unsafe { node::give_back(slot) };
        }
    }

    /// Interrupts the call, waits until it is over, and returns its answer; none if there is none.
    pub(crate) fn abandon(&mut self) -> Option<Answer> {
        if self.slot.is_null() {
            return None;
        }
        let reply = self.interrupt();
        // SAFETY: the call is over, and the slot this thread's until `land`.
        let descriptor = unsafe { (*self.slot).order() }.descriptor;
        if reply.answer == IN_PLACE && descriptor >= 0 {
            // A handler that forked would wait for the change that it interrupted.
            let before = raw::block(!0);
            own::close(descriptor);
            raw::block(before);
        }
        self.land();
        Some(reply.answer)
    }

    /// In the child of a fork: whoever has the call is not there.
    pub(crate) fn forked(&mut self) {
        // SAFETY: null, or this thread's until `land`.
        let Some(slot) = (unsafe { self.slot.as_ref() }) else { return };
        self.station = core::ptr::null();
        self.feed = core::ptr::null();
        self.is_enlisted = false;
        if slot.gate().look().is_none() {
            let reply = Reply { answer: raw::error(libc::EINTR), signal: 0 };
            // SAFETY: whoever would answer is not there.
            unsafe { Slot::answer(self.slot, reply) };
        } else {
            // A worker's duplicate that came with the answer is closed here with all others.
            slot.forget_descriptor();
        }
        slot.note_cancelled();
    }
}

/// Sleeps until the answer is there, or a handler ends it: then says so. A send of which some is gone is never begun anew.
fn sleep(settings: &Settings, kind: Kind, slot: &Slot) -> bool {
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
