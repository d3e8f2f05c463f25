//! A mask that a program sets while its calls are moved. This test has its own process, because the
//! mask is shared there.

use std::process::Command;
use std::time::Duration;

use crate::offload::{Mechanism, Route};
use crate::rig::{MECHANISMS, Rig, cpus};

/// Sets the mask of the process' first thread, as `taskset -p` does.
fn give_first(cpus: &[u32]) {
    // SAFETY: `getpid` takes no arguments, and changes nothing in memory.
    give(unsafe { libc::getpid() }, cpus);
}

/// Sets the mask of the calling thread as well, as `taskset -ap` does, and waits until that is
/// known.
fn give_all(cpus: &[u32]) {
    give_first(cpus);
    give(0, cpus);
    std::thread::sleep(Duration::from_millis(1000));
}

fn give(thread: libc::pid_t, cpus: &[u32]) {
    // SAFETY: zero is a value of the structure, and the kernel reads it.
    let failed = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        cpus.iter().for_each(|cpu| libc::CPU_SET(*cpu as usize, &mut set));
        libc::sched_setaffinity(thread, size_of_val(&set), &set)
    };
    assert_eq!(failed, 0);
}

/// One on each CPU, in the order of these.
fn a_route_on_each(rig: &'static Rig, all: &[u32]) -> Vec<Route> {
    let routes: Vec<_> = all.iter().map(|_| rig.steer.open()).collect();
    let on = |cpu| *routes.iter().find(|route| rig.executed_within(**route) == [cpu]).unwrap();
    all.iter().map(|cpu| on(*cpu)).collect()
}

#[test]
fn calls_follow_the_mask_of_the_process() {
    let this = std::env::current_exe().expect("this program");
    let alone = ["--exact", "affinity::by_itself", "--ignored", "--nocapture"];
    let ended = Command::new(this).args(alone).status().expect("this program starts");
    assert!(ended.success(), "{ended}");
}

#[test]
#[ignore = "the test above runs it in a process of its own"]
fn by_itself() {
    let all = cpus();
    let [first, second, ref others @ ..] = all[..] else {
        return eprintln!("one CPU: there is no other to go to");
    };
    for mechanism in MECHANISMS {
        let rig = Rig::new(*mechanism);
        give_all(&all);
        let routes = a_route_on_each(rig, &all);
        assert_eq!(rig.in_place(), 0, "{mechanism:?}");
        // There is no other CPU than the caller's.
        for (round, narrow) in [first, second].into_iter().enumerate() {
            give_all(&[narrow]);
            for route in &routes {
                assert_eq!(rig.executed_within(*route), [narrow], "{mechanism:?}");
            }
            assert_eq!(rig.in_place(), ((round + 1) * all.len()) as u64, "{mechanism:?}");
        }
        let in_place = rig.in_place();
        if !others.is_empty() {
            give_all(&[first, second]);
            for route in &routes[2..] {
                assert_eq!(rig.executed_within(*route), [first, second], "{mechanism:?}");
            }
        }
        give_all(&all);
        for (route, cpu) in routes.iter().zip(&all) {
            assert_eq!(rig.executed_within(*route), [*cpu], "{mechanism:?}");
        }
        assert_eq!(rig.in_place(), in_place, "{mechanism:?}");
    }
    // A program that binds its first thread has the calls of others executed where they may run.
    let rig = Rig::new(Mechanism::Pool);
    give_first(&[first]);
    std::thread::sleep(Duration::from_millis(1000));
    let routes = a_route_on_each(rig, &all);
    assert_eq!(rig.executed_within(routes[1]), [second]);
    // New routes are on CPUs that may be used.
    give_all(&[second]);
    let routes: Vec<_> = all.iter().map(|_| rig.steer.open()).collect();
    give_all(&all);
    for route in routes {
        assert_eq!(rig.executed_within(route), [second]);
    }
}
