//! The kernel's costs: system calls, wake-ups, switches between threads, time slices.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use manycore::sync::{clock, futex, hint};

use super::pair;
use super::sample::{Reading, Sample, batches, ns_per_tick};
use crate::failure::Failure;

const BATCHES: u32 = 100;
const OPERATIONS: u32 = 200;

/// The costs of calls on one CPU, and between it and another one if there is one.
pub(super) fn measure(cpu: usize, other: Option<usize>) -> Result<Vec<Reading>, Failure> {
    let mut readings = pair::run([cpu, cpu], alone, || ())?;
    readings.push(messages([cpu, cpu])?.reading(
        "futex_message_local",
        "half a round trip of futex messages between two threads of one CPU: a wake, a wait and a switch",
    ));
    readings.push(switches(cpu)?.reading(
        "yield_switch",
        "two threads of one CPU that yield in turn: a yield and a switch",
    ));
    readings.push(time_slice(cpu)?);
    if let Some(other) = other {
        readings.push(messages([cpu, other])?.middle(
            "futex_message",
            "half a round trip of futex messages between threads of two CPUs, from the wake to the return of the wait",
        ));
        readings.push(wake_call([cpu, other])?.middle(
            "futex_wake_call",
            "the call that wakes a thread of another CPU, for the caller",
        ));
    }
    Ok(readings)
}

/// What costs nothing but the call.
fn alone() -> Vec<Reading> {
    let word = AtomicU32::new(0);
    let repeat = |operations: u32, call: &dyn Fn()| {
        batches(BATCHES as usize, operations, || (0..operations).for_each(|_| call()))
    };
    let yields = repeat(OPERATIONS, &hint::yield_now);
    let wake = repeat(OPERATIONS, &|| futex::wake(&word, 1));
    let wait = repeat(OPERATIONS, &|| _ = futex::wait(&word, 1, None));
    let sleep = repeat(4, &hint::sleep_zero);
    vec![
        yields.reading("yield", "`sched_yield` while no other thread wants the CPU"),
        wake.reading("futex_wake_nobody", "a futex wake without a waiter"),
        wait.reading("futex_wait_refused", "a futex wait whose word has changed already"),
        sleep.reading("sleep_zero", "a sleep of no time"),
    ]
}

/// Two threads wake each other in turn: nanoseconds for one message.
fn messages(cpus: [usize; 2]) -> Result<Sample, Failure> {
    let word = AtomicU32::new(0);
    let trips = BATCHES * OPERATIONS;
    let first = || {
        let batch = |batch: u32| {
            let start = Instant::now();
            for trip in batch * OPERATIONS..(batch + 1) * OPERATIONS {
                await_value(&word, 2 * trip);
                send(&word, 2 * trip + 1);
            }
            start.elapsed().as_nanos() as f64 / f64::from(2 * OPERATIONS)
        };
        (0..BATCHES).map(batch).collect()
    };
    let second = || {
        for trip in 0..trips {
            await_value(&word, 2 * trip + 1);
            send(&word, 2 * trip + 2);
        }
    };
    pair::run(cpus, first, second).map(Sample::of)
}

/// Two threads of a CPU yield to each other: nanoseconds for each switch.
fn switches(cpu: usize) -> Result<Sample, Failure> {
    // Relaxed throughout this function: the threads share a CPU and nothing but these numbers.
    let (last, switches, stop) = (AtomicU32::new(0), AtomicU32::new(0), AtomicU32::new(0));
    let give_way = |me: u32| {
        if last.swap(me, Ordering::Relaxed) != me {
            switches.fetch_add(1, Ordering::Relaxed);
        }
        hint::yield_now();
    };
    let first = || {
        let batch = |_| {
            let (start, before) = (Instant::now(), switches.load(Ordering::Relaxed));
            (0..OPERATIONS).for_each(|_| give_way(1));
            let count = switches.load(Ordering::Relaxed) - before;
            start.elapsed().as_nanos() as f64 / f64::from(count.max(1))
        };
        // Until both run, there is no switch.
        while switches.load(Ordering::Relaxed) < 10 {
            give_way(1);
        }
        let values = (0..BATCHES).map(batch).collect();
        stop.store(1, Ordering::Relaxed);
        values
    };
    let second = || {
        while stop.load(Ordering::Relaxed) == 0 {
            give_way(2);
        }
    };
    pair::run([cpu, cpu], first, second).map(Sample::of)
}

/// The time of the call that wakes a thread which sleeps on another CPU.
fn wake_call(cpus: [usize; 2]) -> Result<Sample, Failure> {
    let (word, answer) = (AtomicU32::new(0), AtomicU32::new(0));
    let trips = 500;
    let first = || {
        let call = |trip: u32| {
            await_value(&answer, trip);
            // Long enough for the other to be asleep.
            std::thread::sleep(Duration::from_micros(100));
            let start = Instant::now();
            send(&word, trip + 1);
            start.elapsed().as_nanos() as f64
        };
        (0..trips).map(call).collect()
    };
    let second = || {
        for trip in 0..trips {
            await_value(&word, trip + 1);
            send(&answer, trip + 1);
        }
    };
    pair::run(cpus, first, second).map(Sample::of)
}

fn await_value(word: &AtomicU32, value: u32) {
    loop {
        // Relaxed: the word is all that the threads share.
        let found = word.load(Ordering::Relaxed);
        if found == value {
            return;
        }
        futex::wait(word, found, None);
    }
}

fn send(word: &AtomicU32, value: u32) {
    word.store(value, Ordering::Relaxed); // Relaxed: as in `await_value`
    futex::wake(word, 1);
}

/// The time for which a thread runs before another one that wants the same CPU runs.
fn time_slice(cpu: usize) -> Result<Reading, Failure> {
    const LENGTH: Duration = Duration::from_millis(600);
    /// An interruption of more than this means that another thread ran.
    const AWAY_NS: f64 = 400_000.0;
    let per_tick = ns_per_tick();
    let stop = AtomicU32::new(0);
    let first = || {
        let (start, mut slices) = (Instant::now(), Vec::new());
        let mut last = clock::now();
        let mut began = last;
        while start.elapsed() < LENGTH {
            let now = clock::now();
            if now.wrapping_sub(last) as f64 * per_tick > AWAY_NS {
                slices.push(last.wrapping_sub(began) as f64 * per_tick);
                began = now;
            }
            last = now;
        }
        stop.store(1, Ordering::Relaxed); // Relaxed: the other may run on for a while
        slices
    };
    let second = || {
        while stop.load(Ordering::Relaxed) == 0 {
            std::hint::spin_loop();
        }
    };
    let slices = pair::run([cpu, cpu], first, second)?;
    // The first one began before the other thread did.
    let slices: Vec<f64> = slices.into_iter().skip(1).collect();
    if slices.is_empty() {
        let fault =
            "two threads of one CPU did not take turns within half a second: is the CPU reserved?";
        return Err(Failure::Failed(fault.into()));
    }
    Ok(Sample::of(slices).middle("slice", "how long a thread runs while another wants its CPU"))
}
