//! The largest difference of the CPUs' counters. To measure it, two threads on two CPUs send each
//! other their counters' values.
#![expect(clippy::disallowed_methods, reason = "part of what `sync::hint` is built on")]

extern crate std;

use core::mem::size_of_val;
use core::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::vec::Vec;

use syscalls::{Sysno, raw_syscall};

use crate::sync::CachePadded;

/// Up to this number of CPUs all pairs are measured; with more, each against the first one.
const PAIRS_MAX: usize = 8;

/// The least number of messages in each direction; up to `ROUNDS` while there is time.
const ROUNDS_MIN: u32 = 10;
const ROUNDS: u32 = 2000;
const TICKS_MAX: u64 = 10_000_000;

/// A message that took longer than this probably waited for a CPU, on a busy machine. As a boundary
/// its duration would make all sessions wait as long. So it is measured again, up to `TRIES` times.
const PLAUSIBLE: u64 = 200_000;
const TRIES: u32 = 50;

/// The boundary, measured once; none if threads cannot be bound to CPUs, or there is only one CPU.
pub fn boundary() -> Option<u64> {
    static BOUNDARY: std::sync::OnceLock<Option<u64>> = std::sync::OnceLock::new();
    *BOUNDARY.get_or_init(|| {
        // This thread is new, because it is bound to CPUs.
        thread::spawn(measure).join().ok().flatten()
    })
}

fn measure() -> Option<u64> {
    let cpus = allowed();
    let between = |a: usize, b: usize| difference(cpus[a], cpus[b]);
    if cpus.len() <= PAIRS_MAX {
        let pairs = (0..cpus.len()).flat_map(|a| (0..a).map(move |b| (a, b)));
        return pairs.map(|(a, b)| between(a, b)).collect::<Option<Vec<_>>>()?.into_iter().max();
    }
    // If CPUs were only measured against the first one, any two of them differ by at most the sum
    // of the two largest differences from the first.
    let mut of_first = (1..cpus.len()).map(|a| between(a, 0)).collect::<Option<Vec<_>>>()?;
    of_first.sort_unstable();
    Some(of_first.iter().rev().take(2).sum())
}

/// The CPUs on which the process may run.
fn allowed() -> Vec<usize> {
    let mut mask = [0u64; 128];
    // SAFETY: the kernel writes at most the given number of bytes into the mask.
    let written =
        unsafe { raw_syscall!(Sysno::sched_getaffinity, 0, size_of_val(&mask), mask.as_mut_ptr()) };
    if written > size_of_val(&mask) {
        return Vec::new(); // an error number
    }
    (0..64 * mask.len()).filter(|cpu| mask[cpu / 64] >> (cpu % 64) & 1 != 0).collect()
}

fn run_on(cpu: usize) -> bool {
    let mut mask = [0u64; 128];
    mask[cpu / 64] = 1 << (cpu % 64);
    // SAFETY: the kernel reads as many bytes as the mask has, and writes nothing to memory of ours.
    unsafe { raw_syscall!(Sysno::sched_setaffinity, 0, size_of_val(&mask), mask.as_ptr()) == 0 }
}

/// The message of one thread to the other: its counter, or 0 when the other has read it. The
/// messages use several lines in turn, because the duration of a message depends on the line's
/// home.
type Message = CachePadded<AtomicU64>;
const LINES: usize = 8;

/// No more messages.
const END: u64 = u64::MAX;

/// The larger of the differences in both directions; none if a thread cannot be bound to its CPU.
fn difference(a: usize, b: usize) -> Option<u64> {
    Some(one_way(a, b)?.max(one_way(b, a)?))
}

/// The age of a message from one CPU when it arrives at the other, by the counters of the two: the
/// smallest age measured.
fn one_way(from: usize, to: usize) -> Option<u64> {
    let mut least = least_of_many(from, to)?;
    for _ in 1..TRIES {
        if least <= PLAUSIBLE {
            break;
        }
        least = least.min(least_of_many(from, to)?);
    }
    Some(least)
}

/// The same of this many messages as there is time for; 0 if one is from the future.
fn least_of_many(from: usize, to: usize) -> Option<u64> {
    let messages = &<[Message; LINES]>::default();
    thread::scope(|s| {
        let sender = s.spawn(move || run_on(from) && send(messages) || end(&messages[0]));
        let receives = run_on(to);
        let least = receive(messages);
        (sender.join().ok()? && receives && least != i64::MAX).then(|| least.max(0).cast_unsigned())
    })
}

fn send(messages: &[Message; LINES]) -> bool {
    let start = super::now();
    let mut turns = messages.iter().cycle();
    for (round, message) in (0..ROUNDS).zip(turns.by_ref()) {
        if round >= ROUNDS_MIN && super::has_passed(start, TICKS_MAX) {
            return !end(message);
        }
        // Not `ordered`: if the counter is read earlier than it is written here, the difference is
        // larger.
        message.store(super::now(), Ordering::Release); // Release: partner of the Acquire in `receive`
        // Acquire: partner of the Release in `receive`.
        while message.load(Ordering::Acquire) != 0 {
            core::hint::spin_loop();
        }
    }
    turns.next().is_some_and(|message| !end(message))
}

/// Says that there are no more messages; false.
fn end(message: &Message) -> bool {
    message.store(END, Ordering::Release); // Release: partner of the Acquire in `receive`
    false
}

fn receive(messages: &[Message; LINES]) -> i64 {
    let mut least = i64::MAX;
    for message in messages.iter().cycle() {
        let sent = loop {
            // Acquire: partner of the Release in `send`.
            let sent = message.load(Ordering::Acquire);
            if sent != 0 {
                break sent;
            }
        };
        if sent == END {
            break;
        }
        least = least.min(super::ordered().wrapping_sub(sent).cast_signed());
        message.store(0, Ordering::Release); // Release: partner of the Acquire in `send`
    }
    least
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_boundary_is_measured_where_there_are_two_cpus() {
        assert_eq!(boundary().is_some(), allowed().len() > 1);
        assert_eq!(boundary(), boundary());
    }
}
