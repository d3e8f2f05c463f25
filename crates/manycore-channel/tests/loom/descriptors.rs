//! The table of descriptors.
//!
//! A route is used only while it is open, and closed exactly once, whatever other threads do with
//! descriptors meanwhile.
use std::sync::Arc;

use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicU32, Ordering};
use loom::thread;
use manycore_channel::descriptors::{Entry, Lookup, Slot, Table};

const ROUTES: usize = 6;

/// Whether each route is open: threads that open or close it write it, threads that use it read it.
/// The checker reports a use that is not ordered before the close.
struct RouteTable([UnsafeCell<u32>; ROUTES]);

// SAFETY: shared on purpose: the checker reports accesses that are not ordered.
unsafe impl Sync for RouteTable {}
// SAFETY: it consists of numbers, which any thread may use.
unsafe impl Send for RouteTable {}

const OPEN: u32 = 1;
const CLOSED: u32 = 2;

impl RouteTable {
    fn new() -> Arc<Self> {
        Arc::new(Self(std::array::from_fn(|_| UnsafeCell::new(0))))
    }

    fn open(&self, route: usize) -> usize {
        // SAFETY: shared on purpose: the checker reports accesses that are not ordered.
        self.0[route].with_mut(|state| unsafe { *state = OPEN });
        route
    }

    fn close(&self, route: usize) {
        // SAFETY: the checker reports it if another thread writes meanwhile.
        self.0[route].with_mut(|state| unsafe {
            assert_eq!(*state, OPEN, "route {route} is closed twice, or was never opened");
            *state = CLOSED;
        });
    }

    fn used(&self, route: usize) {
        // SAFETY: the checker reports it if another thread writes meanwhile.
        self.0[route].with(|state| unsafe {
            assert_eq!(*state, OPEN, "route {route} is used after its end");
        });
    }

    fn all_closed(&self, routes: std::ops::Range<usize>) {
        for route in routes {
            // SAFETY: the checker reports it if another thread writes meanwhile.
            self.0[route]
                .with(|state| unsafe { assert_eq!(*state, CLOSED, "route {route} leaks") });
        }
    }
}

type Model = Table<'static, usize, Box<dyn Fn(usize) + Send + Sync>>;

/// A table of three descriptors and this many slots.
fn table(routes: &Arc<RouteTable>, slots: usize) -> Arc<Model> {
    let entries: &'static [Entry] = Box::leak((0..3).map(|_| Entry::new()).collect());
    let slots: &'static [Slot<usize>] = Box::leak((0..slots).map(|_| Slot::new()).collect());
    let routes = routes.clone();
    Arc::new(Table::new(entries, slots, Box::new(move |route| routes.close(route))))
}

fn call(table: &Model, routes: &RouteTable, descriptor: i32, mine: &[usize]) {
    if let Lookup::Steered(held) = table.find(descriptor) {
        let route = *table.route(&held);
        assert!(mine.contains(&route), "route {route} is not one of descriptor {descriptor}");
        routes.used(route);
        table.leave(held);
    }
}

fn check(model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(model);
}

/// A call on a descriptor that another thread closes. Its number and its slot go to another socket.
#[test]
fn closing_while_a_call_is_in_flight() {
    check(|| {
        let routes = RouteTable::new();
        let table = table(&routes, 2);
        assert!(table.steer(0, routes.open(0), 0));
        let caller = {
            let (table, routes) = (table.clone(), routes.clone());
            thread::spawn(move || call(&table, &routes, 0, &[0, 1]))
        };
        table.forget(0);
        assert!(table.steer(0, routes.open(1), 0));
        caller.join().unwrap();
        table.forget(0);
        routes.all_closed(0..2);
    });
}

/// A slot passes from one descriptor to another, while a call searches for the first one.
#[test]
fn a_slot_changes_descriptors() {
    check(|| {
        let routes = RouteTable::new();
        let table = table(&routes, 1);
        assert!(table.steer(0, routes.open(0), 0));
        let caller = {
            let (table, routes) = (table.clone(), routes.clone());
            thread::spawn(move || call(&table, &routes, 0, &[0]))
        };
        table.forget(0);
        let route = routes.open(1);
        let _ = table.steer(1, route, 0); // no slot is free while the call has it
        caller.join().unwrap();
        table.forget(1);
        routes.all_closed(0..2);
    });
}

/// Two threads open and close: slots come from the free list, and go back.
#[test]
fn slots_are_given_once() {
    check(|| {
        let routes = RouteTable::new();
        let table = table(&routes, 2);
        assert!(table.steer(0, routes.open(0), 0));
        assert!(table.steer(1, routes.open(1), 0));
        table.forget(0);
        table.forget(1);
        let other = {
            let (table, routes) = (table.clone(), routes.clone());
            thread::spawn(move || {
                assert!(table.steer(0, routes.open(2), 0));
                call(&table, &routes, 0, &[2]);
                table.forget(0);
            })
        };
        assert!(table.steer(1, routes.open(3), 0));
        call(&table, &routes, 1, &[3]);
        table.forget(1);
        other.join().unwrap();
        routes.all_closed(0..4);
    });
}

/// The first free slot is taken and put back while another thread takes it: the slot behind it is
/// not free then.
#[test]
fn a_slot_comes_back_to_the_list() {
    check(|| {
        let routes = RouteTable::new();
        let table = table(&routes, 2);
        for descriptor in 0..2 {
            assert!(table.steer(descriptor, routes.open(descriptor as usize), 0));
        }
        table.forget(0);
        table.forget(1);
        let other = {
            let (table, routes) = (table.clone(), routes.clone());
            thread::spawn(move || {
                let _ = table.steer(2, routes.open(2), 0);
            })
        };
        let _ = table.steer(0, routes.open(3), 0);
        let is_steered = table.steer(1, routes.open(4), 0);
        table.forget(0);
        other.join().unwrap();
        let _ = table.steer(0, routes.open(5), 0);
        if is_steered {
            call(&table, &routes, 1, &[4]);
        }
        (0..3).for_each(|descriptor| table.forget(descriptor));
        routes.all_closed(0..ROUTES);
    });
}

/// One thread closes a duplicate, another one the descriptor: the last one closes the route.
#[test]
fn duplicates_share_a_route() {
    check(|| {
        let routes = RouteTable::new();
        let table = table(&routes, 1);
        assert!(table.steer(0, routes.open(0), 0));
        let Lookup::Steered(held) = table.find(0) else { panic!("just steered") };
        table.share(1, &held);
        table.leave(held);
        let other = {
            let (table, routes) = (table.clone(), routes.clone());
            thread::spawn(move || {
                call(&table, &routes, 1, &[0]);
                table.forget(1);
            })
        };
        table.forget(0);
        other.join().unwrap();
        routes.all_closed(0..1);
    });
}

/// The kernel's file under a number: a socket, and after its close a pipe that no thread has noted.
const SOCKET: u32 = 1;
const PIPE: u32 = 2;

/// Asks the kernel, as the library does; `looks` is the number of times.
fn ask(table: &Model, routes: &RouteTable, kernel: &AtomicU32, looks: u32) {
    if kernel.load(Ordering::Relaxed) != SOCKET {
        return table.adopt_plain(0);
    }
    let is_noted = table.adopt(0, routes.open(0), 0);
    if is_noted && looks > 1 && kernel.load(Ordering::Relaxed) != SOCKET {
        table.forget(0);
    }
}

/// A thread asks for the kind of a descriptor that another thread closes. After that the number
/// belongs to another file.
fn asked_while_it_is_closed(looks: u32) {
    check(move || {
        let routes = RouteTable::new();
        let table = table(&routes, 1);
        let kernel = Arc::new(AtomicU32::new(SOCKET));
        let asking = {
            let (table, routes, kernel) = (table.clone(), routes.clone(), kernel.clone());
            thread::spawn(move || {
                if matches!(table.find(0), Lookup::Unknown) {
                    ask(&table, &routes, &kernel, looks);
                }
            })
        };
        table.closes(0);
        kernel.store(PIPE, Ordering::Relaxed);
        table.closed(0);
        asking.join().unwrap();
        assert!(!matches!(table.find(0), Lookup::Steered(_)), "a pipe is steered");
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

/// A file that is opened under the number of a closing descriptor is not forgotten.
#[test]
fn what_comes_next_keeps_its_entry() {
    check(|| {
        let routes = RouteTable::new();
        let table = table(&routes, 2);
        let is_closed = Arc::new(AtomicU32::new(0));
        table.closes(0);
        let next = {
            let (table, routes, is_closed) = (table.clone(), routes.clone(), is_closed.clone());
            thread::spawn(move || {
                let is_made = is_closed.load(Ordering::Acquire) == 1;
                if is_made {
                    assert!(table.steer(0, routes.open(0), 0));
                }
                is_made
            })
        };
        is_closed.store(1, Ordering::Release);
        table.closed(0);
        let is_made = next.join().unwrap();
        assert_eq!(matches!(table.find(0), Lookup::Steered(_)), is_made);
    });
}
