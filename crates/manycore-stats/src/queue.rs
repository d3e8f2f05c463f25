//! The queue for a lock in a word: waiters now, the most since it formed, and when that was.
//!
//! ```text
//! 63 ........ 26   25 .. 13   12 ... 0
//! since            most       now
//! ```
//!
//! The time is in units of [`QUEUE_UNIT`] ticks and wraps around, after hours.

/// Ticks in a unit of time.
pub const QUEUE_UNIT: u64 = 256;
const BITS: u32 = 13;
/// More threads than this are not counted.
pub const WAITERS_MAX: u64 = (1 << BITS) - 1;

/// Threads that wait now.
pub fn now(word: u64) -> u64 {
    word & WAITERS_MAX
}

/// The most that waited at a time.
pub fn most(word: u64) -> u64 {
    (word >> BITS) & WAITERS_MAX
}

/// The queue with one more waiter; `None` if no more can be counted.
pub fn joined(word: u64, ticks: u64) -> Option<u64> {
    match now(word) {
        0 => Some((ticks / QUEUE_UNIT) << (2 * BITS) | 1 << BITS | 1),
        WAITERS_MAX => None,
        waiting if waiting == most(word) => Some(word + (1 << BITS) + 1),
        _ => Some(word + 1),
    }
}

/// How long the queue has been there, in ticks.
pub fn lasted(word: u64, ticks: u64) -> u64 {
    let most = u64::MAX >> (2 * BITS);
    let units = (ticks / QUEUE_UNIT).wrapping_sub(word >> (2 * BITS)) & most;
    // In the upper half: it formed after that moment, by another CPU's clock or while the process
    // ended.
    if units > most / 2 { 0 } else { units * QUEUE_UNIT }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_knows_its_length_and_how_long_it_lasted() {
        let start = 1_000 * QUEUE_UNIT;
        let one = joined(0, start).unwrap();
        let three = joined(joined(one, start + 5).unwrap(), start + 9).unwrap();
        assert_eq!((now(three), most(three)), (3, 3));
        let again = joined(three - 2, start + 99).unwrap();
        assert_eq!((now(again), most(again)), (2, 3));
        assert_eq!(lasted(again, start + 7 * QUEUE_UNIT), 7 * QUEUE_UNIT);
        assert_eq!(lasted(one, start - 10 * QUEUE_UNIT), 0, "it formed later");
        // A queue that all threads have left is a new one for the next thread.
        let next = joined(again - 2, start + 50 * QUEUE_UNIT).unwrap();
        assert_eq!(
            (now(next), most(next), lasted(next, start + 51 * QUEUE_UNIT)),
            (1, 1, QUEUE_UNIT)
        );
    }

    #[test]
    fn time_wraps_around() {
        let late = u64::MAX - 3 * QUEUE_UNIT;
        let word = joined(0, late).unwrap();
        assert_eq!(lasted(word, late.wrapping_add(10 * QUEUE_UNIT)), 10 * QUEUE_UNIT);
    }

    #[test]
    fn more_threads_than_can_be_counted_are_not() {
        let full = (1..=WAITERS_MAX).fold(0, |word, _| joined(word, 1).unwrap());
        assert_eq!((now(full), joined(full, 1)), (WAITERS_MAX, None));
    }
}
