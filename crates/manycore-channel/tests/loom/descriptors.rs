//! The table of descriptors.
//!
//! A lane is used only while it is open, and closed exactly once, whatever finds, closes and opens
//! descriptors meanwhile.
use std::sync::Arc;

use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicU32, Ordering};
use loom::thread;
use manycore_channel::descriptors::{Entry, Found, Slot, Table};

const LANES: usize = 6;

/// Whether each lane is open: threads that open or close it write it, threads that use it read it.
/// The checker reports a use that is not ordered before the close.
struct Lanes([UnsafeCell<u32>; LANES]);

// SAFETY: the checker reports races.
unsafe impl Sync for Lanes {}
// SAFETY: numbers.
unsafe impl Send for Lanes {}

const OPEN: u32 = 1;
const CLOSED: u32 = 2;

impl Lanes {
    fn new() -> Arc<Self> {
        Arc::new(Self(std::array::from_fn(|_| UnsafeCell::new(0))))
    }

    fn open(&self, lane: usize) -> usize {
        // SAFETY: the checker reports races.
        self.0[lane].with_mut(|state| unsafe { *state = OPEN });
        lane
    }

    fn close(&self, lane: usize) {
        // SAFETY: the checker reports it if another thread writes meanwhile.
        self.0[lane].with_mut(|state| unsafe {
            assert_eq!(*state, OPEN, "lane {lane} is closed twice, or was never opened");
            *state = CLOSED;
        });
    }

    fn used(&self, lane: usize) {
        // SAFETY: the checker reports it if another thread writes meanwhile.
        self.0[lane].with(|state| unsafe {
            assert_eq!(*state, OPEN, "lane {lane} is used after its end");
        });
    }

    fn all_closed(&self, lanes: std::ops::Range<usize>) {
        for lane in lanes {
            // SAFETY: the checker reports it if another thread writes meanwhile.
            self.0[lane].with(|state| unsafe { assert_eq!(*state, CLOSED, "lane {lane} leaks") });
        }
    }
}

type Model = Table<'static, usize, Box<dyn Fn(usize) + Send + Sync>>;

/// A table of three descriptors and as many slots as said.
fn table(lanes: &Arc<Lanes>, slots: usize) -> Arc<Model> {
    let entries: &'static [Entry] = Box::leak((0..3).map(|_| Entry::new()).collect());
    let slots: &'static [Slot<usize>] = Box::leak((0..slots).map(|_| Slot::new()).collect());
    let lanes = lanes.clone();
    Arc::new(Table::new(entries, slots, Box::new(move |lane| lanes.close(lane))))
}

fn call(table: &Model, lanes: &Lanes, descriptor: i32, mine: &[usize]) {
    if let Found::Steered(held) = table.find(descriptor) {
        let lane = *table.lane(&held);
        assert!(mine.contains(&lane), "lane {lane} is not one of descriptor {descriptor}");
        lanes.used(lane);
        table.leave(held);
    }
}

fn check(model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(model);
}

/// A call on a descriptor that another thread closes, and whose number and slot another socket
/// gets.
#[test]
fn closing_while_a_call_is_in_flight() {
    check(|| {
        let lanes = Lanes::new();
        let table = table(&lanes, 2);
        assert!(table.steer(0, lanes.open(0), 0));
        let caller = {
            let (table, lanes) = (table.clone(), lanes.clone());
            thread::spawn(move || call(&table, &lanes, 0, &[0, 1]))
        };
        table.forget(0);
        assert!(table.steer(0, lanes.open(1), 0));
        caller.join().unwrap();
        table.forget(0);
        lanes.all_closed(0..2);
    });
}

/// A slot goes from one descriptor to another, while a call looks for the first.
#[test]
fn a_slot_changes_descriptors() {
    check(|| {
        let lanes = Lanes::new();
        let table = table(&lanes, 1);
        assert!(table.steer(0, lanes.open(0), 0));
        let caller = {
            let (table, lanes) = (table.clone(), lanes.clone());
            thread::spawn(move || call(&table, &lanes, 0, &[0]))
        };
        table.forget(0);
        let lane = lanes.open(1);
        let _ = table.steer(1, lane, 0); // no slot is free while the call has it
        caller.join().unwrap();
        table.forget(1);
        lanes.all_closed(0..2);
    });
}

/// Two threads open and close: slots come from the free list, and go back.
#[test]
fn slots_are_given_once() {
    check(|| {
        let lanes = Lanes::new();
        let table = table(&lanes, 2);
        assert!(table.steer(0, lanes.open(0), 0));
        assert!(table.steer(1, lanes.open(1), 0));
        table.forget(0);
        table.forget(1);
        let other = {
            let (table, lanes) = (table.clone(), lanes.clone());
            thread::spawn(move || {
                assert!(table.steer(0, lanes.open(2), 0));
                call(&table, &lanes, 0, &[2]);
                table.forget(0);
            })
        };
        assert!(table.steer(1, lanes.open(3), 0));
        call(&table, &lanes, 1, &[3]);
        table.forget(1);
        other.join().unwrap();
        lanes.all_closed(0..4);
    });
}

/// The first free slot is taken and put back, while another thread is about to take it: the one
/// behind it is not free then.
#[test]
fn a_slot_comes_back_to_the_list() {
    check(|| {
        let lanes = Lanes::new();
        let table = table(&lanes, 2);
        for descriptor in 0..2 {
            assert!(table.steer(descriptor, lanes.open(descriptor as usize), 0));
        }
        table.forget(0);
        table.forget(1);
        let other = {
            let (table, lanes) = (table.clone(), lanes.clone());
            thread::spawn(move || {
                let _ = table.steer(2, lanes.open(2), 0);
            })
        };
        let _ = table.steer(0, lanes.open(3), 0);
        let is_steered = table.steer(1, lanes.open(4), 0);
        table.forget(0);
        other.join().unwrap();
        let _ = table.steer(0, lanes.open(5), 0);
        if is_steered {
            call(&table, &lanes, 1, &[4]);
        }
        (0..3).for_each(|descriptor| table.forget(descriptor));
        lanes.all_closed(0..LANES);
    });
}

/// A duplicate is closed by one thread, the descriptor by another: the last one closes the lane.
#[test]
fn duplicates_share_a_lane() {
    check(|| {
        let lanes = Lanes::new();
        let table = table(&lanes, 1);
        assert!(table.steer(0, lanes.open(0), 0));
        let Found::Steered(held) = table.find(0) else { panic!("just steered") };
        table.share(1, &held);
        table.leave(held);
        let other = {
            let (table, lanes) = (table.clone(), lanes.clone());
            thread::spawn(move || {
                call(&table, &lanes, 1, &[0]);
                table.forget(1);
            })
        };
        table.forget(0);
        other.join().unwrap();
        lanes.all_closed(0..1);
    });
}

/// What the kernel has under a number: a socket, and once that is closed a pipe that nobody notes.
const SOCKET: u32 = 1;
const PIPE: u32 = 2;

/// Asks the kernel, as the library does; `looks`: how often.
fn ask(table: &Model, lanes: &Lanes, kernel: &AtomicU32, looks: u32) {
    if kernel.load(Ordering::Relaxed) != SOCKET {
        return table.adopt_plain(0);
    }
    let is_noted = table.adopt(0, lanes.open(0), 0);
    if is_noted && looks > 1 && kernel.load(Ordering::Relaxed) != SOCKET {
        table.forget(0);
    }
}

/// A thread asks what a descriptor is which another closes, and which is something else then.
fn asked_while_it_is_closed(looks: u32) {
    check(move || {
        let lanes = Lanes::new();
        let table = table(&lanes, 1);
        let kernel = Arc::new(AtomicU32::new(SOCKET));
        let asking = {
            let (table, lanes, kernel) = (table.clone(), lanes.clone(), kernel.clone());
            thread::spawn(move || {
                if matches!(table.find(0), Found::Unknown) {
                    ask(&table, &lanes, &kernel, looks);
                }
            })
        };
        table.closes(0);
        kernel.store(PIPE, Ordering::Relaxed);
        table.closed(0);
        asking.join().unwrap();
        assert!(!matches!(table.find(0), Found::Steered(_)), "a pipe is steered");
    });
}

#[test]
fn what_is_closed_leaves_no_entry() {
    asked_while_it_is_closed(2);
}

/// The second look is needed.
#[test]
#[should_panic(expected = "a pipe is steered")]
fn one_look_is_not_enough() {
    asked_while_it_is_closed(1);
}

/// A file that is opened under the number of a descriptor that is being closed is not forgotten.
#[test]
fn what_comes_next_keeps_its_entry() {
    check(|| {
        let lanes = Lanes::new();
        let table = table(&lanes, 2);
        let is_closed = Arc::new(AtomicU32::new(0));
        table.closes(0);
        let next = {
            let (table, lanes, is_closed) = (table.clone(), lanes.clone(), is_closed.clone());
            thread::spawn(move || {
                let is_made = is_closed.load(Ordering::Acquire) == 1;
                if is_made {
                    assert!(table.steer(0, lanes.open(0), 0));
                }
                is_made
            })
        };
        is_closed.store(1, Ordering::Release);
        table.closed(0);
        let is_made = next.join().unwrap();
        assert_eq!(matches!(table.find(0), Found::Steered(_)), is_made);
    });
}
