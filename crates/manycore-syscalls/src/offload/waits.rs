//! A worker's calls that wait for a descriptor.
//!
//! A call that blocks keeps its original file, whatever the program does to the descriptor's
//! number. So a call that waits here gets a duplicate of the descriptor, under a number of ours,
//! and goes on with that. Two calls that wait for the same descriptor have two duplicates, and
//! never meet.

use core::sync::atomic::Ordering;

use syscalls::{Sysno, raw_syscall};

use super::attempt::Timeout;
use super::internal_fds;
use super::raw;
use super::slab::{Slab, Zeroed};
use manycore_channel::slot::Slot;

/// As many calls as may wait at one worker.
const WAITS_MAX: usize = 1 << 20;

/// A waiting call. All zero: an unused entry.
#[derive(Debug)]
pub struct Wait {
    pub slot: *const Slot,
    /// Ours.
    pub descriptor: i32,
    /// How often in a row epoll wrongly reported its descriptor as ready.
    pub tries: u32,
    /// Bytes transferred before it had to wait.
    pub done: usize,
    /// The time at which it gives up, in nanoseconds of the monotonic clock; 0 for never.
    until: u64,
    /// In an unused entry: the next unused one's number plus one.
    next: u32,
}

// SAFETY: it consists of a null pointer and numbers, for which zero is a value.
unsafe impl Zeroed for Wait {}

/// All that wait at one worker: its own.
#[derive(Debug)]
pub struct Waits {
    places: *mut Wait,
    used: u32,
    free: u32,
    count: u32,
    /// No call gives up before this.
    earliest: u64,
    epoll: i32,
}

/// Marks the event of the worker's own bell.
pub const BELL: u64 = u64::MAX;

impl Waits {
    /// Creates an empty set, in a table that belongs to the calling worker.
    pub fn new(table: &Table, epoll: i32) -> Option<Self> {
        let places = table.0.first();
        (!places.is_null()).then_some(Self {
            places,
            used: 0,
            free: 0,
            count: 0,
            earliest: u64::MAX,
            epoll,
        })
    }

    /// How many.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// The call at a place.
    pub fn at(&mut self, place: u32) -> &mut Wait {
        debug_assert!(place < self.used);
        // SAFETY: the place is below the number of used places, and so below the number of all; the
        // table belongs to one worker, whose `Waits` is borrowed mutably.
        unsafe { &mut *self.places.add(place as usize) }
    }

    /// Makes a call wait until a descriptor is ready. Returns false if it cannot: there is no room,
    /// no descriptor, or epoll cannot wait for the descriptor.
    pub fn add(
        &mut self,
        slot: &Slot,
        from: i32,
        events: u32,
        timeout: Timeout,
        done: usize,
    ) -> bool {
        let (place, next) = match self.free.checked_sub(1) {
            Some(place) => (place, self.at(place).next),
            None => (self.used, 0),
        };
        if place as usize == WAITS_MAX {
            return false;
        }
        let Some(descriptor) = internal_fds::duplicate(from) else { return false };
        if !control(self.epoll, libc::EPOLL_CTL_ADD, descriptor, events, u64::from(place)) {
            internal_fds::close(descriptor);
            return false;
        }
        self.free = next;
        self.used = self.used.max(place + 1);
        let until = match timeout {
            Timeout::Never => 0,
            Timeout::Milliseconds(ms) => raw::nanoseconds() + u64::from(ms) * 1_000_000,
        };
        if until != 0 {
            self.earliest = self.earliest.min(until);
        }
        *self.at(place) = Wait { slot, descriptor, tries: 0, done, until, next: 0 };
        slot.waiting.store(place + 1, Ordering::Relaxed); // Relaxed: the worker's own
        self.count += 1;
        true
    }

    /// Has the call at a place wait on.
    pub fn again(&mut self, place: u32, events: u32) -> bool {
        let (epoll, descriptor) = (self.epoll, self.at(place).descriptor);
        control(epoll, libc::EPOLL_CTL_MOD, descriptor, events, u64::from(place))
    }

    /// Removes a waiting call. Returns our descriptor, which the caller owns now.
    pub fn remove(&mut self, place: u32) -> i32 {
        let free = self.free;
        let epoll = self.epoll;
        let wait = self.at(place);
        let descriptor = wait.descriptor;
        // SAFETY: the call has been in the table since `add`, and was not answered: its slot is
        // there.
        unsafe { (*wait.slot).waiting.store(0, Ordering::Relaxed) }; // Relaxed: the worker's own
        *wait = Wait {
            slot: core::ptr::null(),
            descriptor: -1,
            tries: 0,
            done: 0,
            until: 0,
            next: free,
        };
        control(epoll, libc::EPOLL_CTL_DEL, descriptor, 0, 0);
        self.free = place + 1;
        self.count -= 1;
        descriptor
    }

    /// How long `epoll_wait` may sleep, in milliseconds; -1 for ever.
    pub fn patience(&self) -> i32 {
        if self.earliest == u64::MAX {
            return -1;
        }
        let left = self.earliest.saturating_sub(raw::nanoseconds());
        i32::try_from(left.div_ceil(1_000_000)).unwrap_or(i32::MAX)
    }

    /// A call whose time is over, if there is one. Call it until there is none.
    pub fn late(&mut self) -> Option<u32> {
        if self.earliest == u64::MAX {
            return None;
        }
        let now = raw::nanoseconds();
        if now < self.earliest {
            return None;
        }
        let mut earliest = u64::MAX;
        for place in 0..self.used {
            let wait = self.at(place);
            if wait.slot.is_null() || wait.until == 0 {
                continue;
            }
            if wait.until <= now {
                wait.until = 0;
                return Some(place);
            }
            earliest = earliest.min(wait.until);
        }
        self.earliest = earliest;
        None
    }
}

/// The memory of a worker's waits.
#[derive(Debug)]
pub struct Table(Slab<Wait, WAITS_MAX>);

// SAFETY: a table that is not mapped yet consists of a null pointer.
unsafe impl Zeroed for Table {}

impl Table {
    /// Maps the memory if necessary; returns false if the kernel refuses it.
    pub fn is_there(&self) -> bool {
        !self.0.first().is_null()
    }

    /// Removes all waiting calls in the child of a fork. [`internal_fds::forked`] closes their
    /// descriptors.
    ///
    /// # Safety
    ///
    /// The worker is not there.
    pub unsafe fn forked(&self) {
        // SAFETY: the worker is not in this process (contract of this function), and only workers
        // use the elements.
        unsafe { self.0.clear() };
    }
}

/// Changes the events for which an epoll descriptor waits. They are reported once for each such
/// call.
fn control(epoll: i32, operation: i32, descriptor: i32, events: u32, data: u64) -> bool {
    let event = libc::epoll_event { events: events | libc::EPOLLONESHOT as u32, u64: data };
    // SAFETY: the kernel reads the event, which is in this frame.
    unsafe { raw_syscall!(Sysno::epoll_ctl, epoll, operation, descriptor, &raw const event) == 0 }
}
