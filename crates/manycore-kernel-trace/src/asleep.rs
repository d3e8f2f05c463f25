//! Futex calls that sleep: the words for which they wait, and the threads that are in such a call
//! when a watch begins.

use std::fs;

pub const WAIT: u64 = libc::FUTEX_WAIT as u64;
pub const LOCK_PI: u64 = libc::FUTEX_LOCK_PI as u64;
pub const WAIT_BITSET: u64 = libc::FUTEX_WAIT_BITSET as u64;
pub const WAIT_REQUEUE_PI: u64 = libc::FUTEX_WAIT_REQUEUE_PI as u64;
pub const LOCK_PI2: u64 = 13;
pub const PRIVATE: u64 = libc::FUTEX_PRIVATE_FLAG as u64;
pub const CLOCK_REALTIME: u64 = libc::FUTEX_CLOCK_REALTIME as u64;
/// Operations that may sleep.
pub const SLEEPING: [u64; 5] = [WAIT, LOCK_PI, WAIT_BITSET, WAIT_REQUEUE_PI, LOCK_PI2];

/// A thread that sleeps in the futex call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asleep {
    pub thread: u32,
    pub word: u64,
    /// Whether the word is one that waits for an event.
    pub is_event: bool,
    /// Where the call is made.
    pub ip: u64,
}

/// The sleeping threads of a process; empty if this process may not inspect it.
pub fn asleep(process: u32) -> Vec<Asleep> {
    let tasks = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
    let numbers = tasks.filter_map(|task| task.file_name().to_str()?.parse().ok());
    numbers.filter_map(|thread| asleep_in(process, thread)).collect()
}

/// What a thread sleeps for, if it does.
pub fn asleep_in(process: u32, thread: u32) -> Option<Asleep> {
    of_call(thread, &fs::read_to_string(format!("/proc/{process}/task/{thread}/syscall")).ok()?)
}

/// Parses `number`, six arguments, the stack pointer and the instruction pointer; or `running`; or
/// `-1` and the pointers.
fn of_call(thread: u32, text: &str) -> Option<Asleep> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let [number, arguments @ .., _, ip] = &words[..] else { return None };
    let hexadecimal = |word: &&str| u64::from_str_radix(word.strip_prefix("0x")?, 16).ok();
    let [word, operation, value] = [0, 1, 2].map(|at| arguments.get(at).and_then(hexadecimal));
    if number.parse() != Ok(libc::SYS_futex) {
        return None;
    }
    // Both are 32 bits wide, whatever their registers have above.
    let is_event = waits_for_event(u64::from(operation? as u32), value? as u32)?;
    Some(Asleep { thread, word: word?, is_event, ip: hexadecimal(ip)? })
}

/// Whether the word belongs to an event and not to a lock, as `bpf/futex.h` explains; `None` if the
/// call does not sleep.
pub fn waits_for_event(operation: u64, value: u32) -> Option<bool> {
    let command = operation & !(PRIVATE | CLOCK_REALTIME);
    if !SLEEPING.contains(&command) {
        return None;
    }
    if command == LOCK_PI || command == LOCK_PI2 {
        return Some(false);
    }
    let is_private = operation & PRIVATE != 0;
    Some(value == 0 || value == u32::MAX || !(is_private || value == 2))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn futex(rest: &str) -> String {
        format!("{} {rest}\n", libc::SYS_futex)
    }

    #[test]
    fn whatever_is_in_the_file() {
        let valid = futex("0x7f00 0x80 0x2 0x0 0x0 0xffffffff 0x7ffd 0x7f12");
        assert!(of_call(1, &valid).is_some());
        manycore_fuzz::texts("/proc/PID/syscall", &[&valid, "running\n"], |text| {
            _ = of_call(1, text);
        });
    }

    #[test]
    fn who_sleeps_is_told_by_the_kernel() {
        let call = futex("0x7f10 0x80 0xabc00000002 0x0 0x0 0x0 0x7ffd00 0x55d0c0a01010");
        let found = Asleep { thread: 9, word: 0x7f10, is_event: false, ip: 0x55d0_c0a0_1010 };
        assert_eq!(of_call(9, &call), Some(found));
        for other in ["running\n", "", "-1 0x7ffd00 0x55d0", "0 0x3 0x80 0x2 0x0 0x0 0x0 0x7 0x5"] {
            assert_eq!(of_call(9, other), None, "{other}");
        }
        let wakes = futex("0x7f10 0x81 0x1 0x0 0x0 0x0 0x7 0x5");
        assert_eq!(of_call(9, &wakes), None, "it wakes others");
        assert!(asleep(u32::MAX).is_empty());
    }

    #[test]
    fn the_word_tells_events_from_locks() {
        let is_event = |operation, value| waits_for_event(operation, value).unwrap();
        assert!(!is_event(PRIVATE, 2) && !is_event(PRIVATE | WAIT_BITSET | CLOCK_REALTIME, 1));
        assert!(is_event(PRIVATE, 0) && is_event(PRIVATE, u32::MAX));
        assert!(is_event(0, 4711) && !is_event(0, 2), "a thread that is joined; a shared lock");
        assert!(!is_event(LOCK_PI, 0));
        assert_eq!(waits_for_event(PRIVATE | 1, 1), None);
    }
}
