//! A fork in the middle, and the end of all threads.

use std::thread;
use std::time::{Duration, Instant};

use crate::offload::{Mechanism, Rule};

use crate::rig::{MECHANISMS, Rig, a_while, cpus, socketpair};

/// The child makes calls on the same routes while a call blocks in the parent.
#[test]
fn a_child_has_workers_of_its_own() {
    for mechanism in MECHANISMS {
        let rig = Rig::new(*mechanism);
        let [near, far] = socketpair(libc::SOCK_STREAM);
        let [child_end, parent_end] = socketpair(libc::SOCK_STREAM);
        let route = rig.steer.open();
        thread::scope(|scope| {
            let reader = scope.spawn(move || rig.read(route, near, &mut [0; 8]));
            a_while();
            // SAFETY: the child makes system calls only, and ends by `_exit`.
            let child = unsafe { libc::fork() };
            if child == 0 {
                rig.steer.forked();
                let before = rig.steer.threads();
                let mut bytes = [0; 5];
                let fine = before == 0
                    && rig.write(route, child_end, b"hello") == 5
                    && rig.read(route, child_end, &mut bytes) == 5
                    && bytes == *b"world"
                    && rig.steer.threads() > 0
                    && rig.in_place() == 0;
                // SAFETY: touches no memory but its own result.
                unsafe { libc::_exit(if fine { 0 } else { 1 }) };
            }
            let mut bytes = [0; 5];
            assert_eq!(rig.read(route, parent_end, &mut bytes), 5);
            assert_eq!(rig.write(route, parent_end, b"world"), 5);
            let mut status = 0;
            // SAFETY: touches no memory but its own result.
            assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
            assert_eq!(status, 0, "{mechanism:?}");
            assert_eq!(rig.write(route, far, b"on"), 2);
            assert_eq!(reader.join().unwrap(), 2);
        });
    }
}

/// Whether the first route that a child opens is on the first of the CPUs.
fn first_route_of_a_child(rig: &'static Rig) -> bool {
    // SAFETY: the child makes system calls only, and ends by `_exit`.
    let child = unsafe { libc::fork() };
    if child == 0 {
        rig.steer.forked();
        let executed = rig.executed_within(rig.steer.open());
        let is_first = executed == [cpus()[0]];
        // SAFETY: touches no memory but its own result.
        unsafe { libc::_exit(i32::from(is_first)) };
    }
    let mut status = 0;
    // SAFETY: touches no memory but its own result.
    assert_eq!(unsafe { libc::waitpid(child, &mut status, 0) }, child);
    assert!(libc::WIFEXITED(status), "{status}");
    libc::WEXITSTATUS(status) == 1
}

/// A server with a child for each connection uses all CPUs, not one.
#[test]
fn children_do_not_all_choose_the_same() {
    if cpus().len() < 2 {
        return eprintln!("one CPU: there is no other to choose");
    }
    for rule in [Rule::First, Rule::Spill(8)] {
        let rig = Rig::with_rule(Mechanism::Pool, rule);
        let first = (0..16).filter(|_| first_route_of_a_child(rig)).count();
        let even = 16 / cpus().len();
        assert!((1..16).contains(&first) && first <= even + 1, "{rule:?}: {first} of 16");
    }
}

#[test]
fn all_threads_end() {
    for mechanism in MECHANISMS {
        let rig = Rig::new(*mechanism);
        let pairs: Vec<_> = (0..5).map(|_| socketpair(libc::SOCK_STREAM)).collect();
        for [near, far] in &pairs {
            let route = rig.steer.open();
            assert_eq!(rig.write(route, *near, b"x"), 1);
            assert_eq!(rig.read(route, *far, &mut [0]), 1);
        }
        assert!(rig.steer.threads() > 0);
        rig.steer.retire();
        let start = Instant::now();
        while rig.steer.threads() > 0 {
            assert!(start.elapsed() < Duration::from_secs(20), "{mechanism:?}");
            thread::yield_now();
        }
    }
}
