//! Pictures of a program, made by hand.

use manycore_profile::analyze::live::{LiveLock, LockId, Picture, Waiter};
use manycore_profile::profile::{
    Blocking, Cpu, Frame, Lock, Profile, Stack, Thread, Times, Waited,
};

use crate::follow::{Facts, Pictures};
use crate::kernel::KernelLocks;

/// The locks of the example of a profile: `cache_lock`, sixteen of `CacheDB`, and a recursive one
/// for which no thread waits. In the last half second only the first was used.
pub fn pictures() -> Pictures {
    let profile: Profile =
        serde_json::from_str(include_str!("../../manycore-profile/src/profile/example.json"))
            .unwrap();
    let busy = in_interval(&profile.locks[0]);
    let locks = profile.locks.into_iter().enumerate().map(|(number, lock)| live(number, lock));
    let total = Picture {
        seconds: profile.wall,
        cpu: profile.cpu,
        locks: locks.collect(),
        ..places(1_120_000_000)
    };
    let cpu = Cpu { kernel: 0.1, program: 0.3, lock_spin: 0.1, lock_wait: 0.5, ready: None };
    let interval = Picture { seconds: 0.5, cpu, locks: vec![live(0, busy)], ..places(400_000_000) };
    let facts = Facts {
        command: "./server --threads 4".to_owned(),
        pid: 1234,
        lock: "futex".to_owned(),
        processes: 1,
        threads: 5,
        cpus: 2,
        left_out: 0,
        is_over: false,
    };
    Pictures { facts, total, interval: Some(interval), misses_cpu: false }
}

fn live(number: usize, lock: Lock) -> LiveLock {
    let waiter = Waiter { pid: 1234, tid: 1240, ns: 12_300 };
    let waiting = if number == 0 { vec![waiter] } else { Vec::new() };
    LiveLock { id: LockId::numbered(number as u64), lock, waiting }
}

fn in_interval(lock: &Lock) -> Lock {
    let wait = Times {
        count: 50_000,
        total_ns: 400_000_000,
        mean_ns: Some(8000),
        p99_ns: Some(31_000),
        max_ns: Some(900_000),
    };
    let hold = Times { count: 1000, total_ns: 2_000_000, mean_ns: Some(2000), ..Times::default() };
    Lock { acquired: 100_000, contended: 50_000, contended_share: 0.5, wait, hold, ..lock.clone() }
}

/// Where threads wait for the first lock, and which.
fn places(wait_ns: u64) -> Picture {
    let frame = |function: &str, line| Frame {
        module: "server".to_owned(),
        address: 0,
        function: Some(function.to_owned()),
        offset: None,
        file: Some("src/server.c".to_owned()),
        line: Some(line),
    };
    let stack = |waits, wait_ns, frames| Stack { lock: 0, waits, wait_ns, frames };
    let waited = Waited { lock: 0, contended: 4000, wait_ns };
    Picture {
        stacks: vec![
            stack(10, wait_ns / 10, vec![frame("evict", 90), frame("worker", 12)]),
            stack(90, wait_ns / 10 * 9, vec![frame("handle_request", 45), frame("worker", 10)]),
        ],
        blocking: vec![Blocking {
            lock: 0,
            waits: 9,
            wait_ns,
            waiter: vec![frame("handle_request", 45)],
            holder: vec![frame("evict", 90)],
        }],
        threads: vec![Thread {
            pid: 1234,
            tid: 1240,
            name: "worker\u{1b}[2J".to_owned(),
            cpu: Cpu::default(),
            acquired: 1,
            waits: vec![waited],
        }],
        ..Picture::default()
    }
}

/// A lock of the kernel with waits in total, and none in the interval.
pub fn kernel() -> KernelLocks {
    let total = serde_json::json!([{
        "name": "mmap_lock", "is_named": true, "kind": "rwsem", "spins": false, "spin_ns": 0, "objects": 1,
        "contended": 120, "contended_shared": 0,
        "wait": { "count": 120, "total_ns": 2_000_000, "mean_ns": 16_666, "p99_ns": null, "max_ns": 90_000 },
        "stacks": [{
            "task": "server", "cgroup": "/web.slice", "waits": 120, "wait_ns": 2_000_000,
            "frames": [{
                "module": "kernel", "address": 0, "function": "down_write", "offset": 16, "file": null, "line": null
            }],
            "owner_frames": [{
                "module": "kernel", "address": 0, "function": "unmap_vmas", "offset": 16, "file": null, "line": null
            }]
        }]
    }]);
    KernelLocks { total: serde_json::from_value(total).unwrap(), ..KernelLocks::default() }
}
