//! A made-up profile in which every part has data, of any size.

#![allow(dead_code, reason = "each test file uses its part")]

use std::collections::BTreeMap;

use manycore_measure::Host;
use manycore_profile::profile::*;
use manycore_profile::profile::{FunctionCalls, Latency, MovedCalls};

/// A function's name that a page must not take for markup, nor a script for its end.
pub const HOSTILE: &str = "</script><img src=x onerror=alert(1)>&lt;\u{2028}${x}{{script}}";

pub fn frame(function: &str) -> Frame {
    Frame {
        module: "server".into(),
        address: 0x1234,
        function: Some(function.into()),
        offset: Some(8),
        file: Some("server.c".into()),
        line: Some(42),
    }
}

fn frames(names: &[&str]) -> Vec<Frame> {
    names.iter().map(|name| frame(name)).collect()
}

fn times(count: u64, total_ns: u64) -> Times {
    let mean_ns = total_ns.checked_div(count);
    Times {
        count,
        total_ns,
        mean_ns,
        p99_ns: mean_ns.map(|m| 4 * m),
        max_ns: mean_ns.map(|m| 9 * m),
    }
}

/// A lock; the lower its number, the longer it is waited for.
pub fn lock(number: usize) -> Lock {
    let contended = 1 + 900_000 / (number as u64 + 1);
    let function = if number == 1 { HOSTILE.to_owned() } else { format!("work_{number}") };
    Lock {
        name: format!("lock_{number} (server)"),
        short: format!("lock_{number}"),
        origin: if number % 3 == 1 { Origin::FirstUse } else { Origin::Variable },
        module: Some("server".into()),
        kind: ["mutex", "rwlock"][number % 2].into(),
        objects: 1 + number as u64 % 4,
        acquired: 1_000_000,
        exclusive: 1_000_000,
        shared: 0,
        contended,
        contended_shared: 0,
        contended_share: contended as f64 / 1e6,
        timeouts: 0,
        handoffs: 500_000,
        wait: times(contended, contended * 5000),
        hold: times(15_625, 15_625 * 700),
        held: None,
        hottest_share: 1.0,
        frames: frames(&["init", "main"]),
        waits_in: vec![Site {
            name: format!("{function}+0x8 (server)"),
            short: function.clone(),
            waits: contended / 8,
            share: 1.0,
            frames: frames(&[&function, "serve", "main"]),
        }],
    }
}

fn kernel_lock() -> KernelLock {
    KernelLock {
        name: "mmap_lock".into(),
        is_named: true,
        kind: "rwsem".into(),
        spins: false,
        spin_ns: 1_000_000,
        objects: 1,
        contended: 5000,
        contended_shared: 4000,
        wait: times(5000, 3_000_000_000),
        stacks: vec![KernelStack {
            task: "server".into(),
            cgroup: Some("/web.slice".into()),
            waits: 5000,
            wait_ns: 3_000_000_000,
            frames: frames(&["down_read", "do_page_fault"]),
            owner_frames: frames(&["unmap_vmas", "do_munmap"]),
        }],
    }
}

fn system_calls() -> MovedCalls {
    let function = |name: &str, moved, in_place, why: &str| FunctionCalls {
        name: name.into(),
        moved,
        bypassed: 7,
        in_place,
        others: 5,
        reasons: BTreeMap::from([(why.into(), in_place), ("not a socket".into(), 5)]),
    };
    MovedCalls {
        schema: 1,
        mechanism: "pool".into(),
        cpus: vec![0, 1, 2, 4],
        cpus_used: vec![0, 1, 4],
        processes: 2,
        moved: 9_000,
        bypassed: 14,
        in_place: 1_000,
        others: 10,
        latency_ns: Some(Latency { p50: 6_100, p99: 21_000, p999: 90_000, max: 10_400_000 }),
        quick_ns: Some(Latency { p50: 4_100, p99: 9_000, p999: 20_000, max: 300_000 }),
        functions: vec![
            function("recvfrom", 8_000, 100, "no thread to block"),
            function(HOSTILE, 1_000, 900, HOSTILE),
        ],
    }
}

/// A profile of this many locks and threads, with a hundred intervals.
pub fn profile(locks: usize, threads: usize) -> Profile {
    let host = Host {
        cpu: "A CPU".into(),
        cpus: 4,
        sockets: 1,
        numa_nodes: 1,
        is_virtual: true,
        kernel: "6.1.0".into(),
        glibc: "2.36".into(),
    };
    let cpu = Cpu { kernel: 1.5, program: 6.0, lock_spin: 0.5, lock_wait: 9.0, ready: None };
    let locks: Vec<Lock> = (0..locks).map(lock).collect();
    Profile {
        schema: SCHEMA,
        command: vec!["./server".into(), "--threads".into(), threads.to_string()],
        host: Some(host),
        exit: Exit::Status(0),
        lock: "futex".into(),
        wall: 10.0,
        sampling: Sampling { hold_period: 64, spin_period: 8, ..Sampling::default() },
        cpu,
        conditions: Vec::new(),
        processes: Vec::new(),
        not_interposed: vec![Outsider {
            pid: 9,
            parent: 8,
            program: "busybox".into(),
            why: "it is static".into(),
        }],
        stacks: stacks(&locks),
        timeline: Some(timeline(locks.len())),
        threads: (0..threads).map(|number| thread(number, locks.len())).collect(),
        blocking: vec![blocking(0, "read_page", "write_page"), blocking(1, HOSTILE, "flush")],
        orders: vec![order(0, 1), order(1, 0)],
        cycles: vec![Cycle { orders: vec![0, 1], deadlocked: true, gives_up: false }],
        convoys: (0..4).map(convoy).collect(),
        notes: vec![Note {
            cause: Cause::LongHold,
            lock: Some(0),
            advice: "Do less under lock_0, or divide it.".into(),
            evidence: "It is held for 93 % of the run.".into(),
        }],
        kernel: Some(KernelRun {
            source: Source::Bpf,
            scope: Scope::Process(7),
            seconds: 10.0,
            events: 5000,
            dropped: 3,
            limits: vec!["Owners are not known.".into()],
        }),
        kernel_locks: vec![kernel_lock()],
        system_calls: Some(system_calls()),
        cache_misses: Some(CacheMisses {
            reads: Some(18_200_000),
            counted: Some(0.5),
            refused: None,
            other_nodes: None,
        }),
        cpu_samples: Some(cpu_samples()),
        finding: "Threads spend 53 % of their time waiting for locks.".into(),
        next: Some("manycore compare -- ./server".into()),
        locks,
    }
}

/// A third of the time in each of three parts.
fn cpu_samples() -> CpuSamples {
    let shares = Shares {
        samples: 300,
        program: 1.0 / 3.0,
        kernel: Some(1.0 / 3.0),
        spin_program: 1.0 / 3.0,
        spin_library: 0.0,
        spin_kernel: Some(0.0),
    };
    let function = |name: &str, part| SampledFunction {
        name: name.into(),
        module: "server".into(),
        part,
        samples: 100,
        share: 1.0 / 3.0,
    };
    let stack = |name: &str, part| SampledStack {
        part,
        samples: 100,
        share: 1.0 / 3.0,
        frames: frames(&[name, "main"]),
    };
    CpuSamples {
        source: Some(SampleSource::CpuClock),
        rate: 199,
        taken: 301,
        lost: 1,
        kernel_permitted: true,
        shares,
        threads: vec![SampledThread { pid: 100, tid: 101, name: HOSTILE.into(), shares }],
        intervals: vec![Shares { samples: 3, ..shares }; 100],
        functions: vec![
            function("ut_delay", Part::SpinProgram),
            function("do_page_fault", Part::Kernel),
            function(HOSTILE, Part::Program),
        ],
        stacks: vec![stack("ut_delay", Part::SpinProgram), stack(HOSTILE, Part::Program)],
        limits: vec!["The processor's counters are not there.".into()],
        refused: None,
    }
}

fn stacks(locks: &[Lock]) -> Vec<Stack> {
    let of = |(place, lock): (usize, &Lock)| {
        let site = &lock.waits_in[0];
        Stack {
            lock: place,
            waits: site.waits,
            wait_ns: lock.wait.total_ns,
            frames: site.frames.clone(),
        }
    };
    locks.iter().enumerate().map(of).collect()
}

fn timeline(locks: usize) -> Timeline {
    let interval = |number: usize| Interval {
        cpu: Cpu { kernel: 0.015, program: 0.06, lock_spin: 0.005, lock_wait: 0.09, ready: None },
        waits: (0..locks.min(12)).map(|lock| waited(lock, number as u64 % 7 + 1)).collect(),
    };
    Timeline { interval: 0.1, intervals: (0..100).map(interval).collect() }
}

fn waited(lock: usize, times: u64) -> Waited {
    Waited { lock, contended: 10 * times, wait_ns: 1_000_000 * times }
}

fn thread(number: usize, locks: usize) -> Thread {
    Thread {
        pid: 100,
        tid: 100 + number as u32,
        name: if number == 1 { HOSTILE.into() } else { format!("worker{number}") },
        cpu: Cpu { kernel: 0.1, program: 0.5, lock_spin: 0.1, lock_wait: 0.8, ready: None },
        acquired: 10_000,
        waits: (0..locks.min(5)).map(|lock| waited(lock, number as u64 + 1)).collect(),
    }
}

fn blocking(lock: usize, waiter: &str, holder: &str) -> Blocking {
    let (waiter, holder) = (frames(&[waiter, "main"]), frames(&[holder, "main"]));
    Blocking { lock, waits: 1000, wait_ns: 800_000_000, waiter, holder }
}

fn order(held: usize, wanted: usize) -> Order {
    let (held_frames, wanted_frames) = (frames(&["first", "main"]), frames(&["second", "main"]));
    Order { held, wanted, seen: 12, held_frames, wanted_frames }
}

fn convoy(number: usize) -> Convoy {
    Convoy { lock: number % 2, start: number as f64, length_ns: 5_000_000, waiters_max: 9 }
}
