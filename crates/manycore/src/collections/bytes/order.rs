//! The records' order: by their hashes read from the lowest bit on, then by their keys.
//!
//! A bucket has the hashes with the same lowest bits; their number is the bucket's level. These
//! hashes are neighbours in that order. When the bucket is split, each half again has neighbours.
//! So the key after a given one is in the same bucket, or in the next bucket in that order.

use foldhash::fast::SeedableRandomState;

use super::table::{Table, hash_of};
use crate::collections::versioned::Bucket;
use crate::mvrlu::Pair;
use crate::session::RawSession;

/// Where to begin in a map's order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum From<'k> {
    /// With the first record.
    First,
    /// At this key's record or, if there is none, at the next one.
    At(&'k [u8]),
    /// At the record that follows this key, whether or not the key has a record.
    After(&'k [u8]),
}

/// The hash of the first key of the bucket that follows, if one does.
fn following(hash: usize, level: u8) -> Option<usize> {
    let step = (usize::BITS - u32::from(level)) % usize::BITS;
    // The last hash of this bucket: all bits above its own are set.
    let last = hash.reverse_bits() | ((1 << step) - 1);
    let next = if level == 0 { None } else { last.checked_add(1) };
    next.map(usize::reverse_bits)
}

/// The first pair of a bucket for which `is_after` returns true.
///
/// # Safety
///
/// In a session that has found the bucket.
unsafe fn first_of<'s, S: RawSession>(
    session: &'s S,
    table: &Table,
    bucket: &'s Bucket<Pair, ()>,
    is_after: impl Fn(usize, &[u8]) -> bool,
) -> Option<Pair> {
    let mut first: Option<(usize, &[u8], Pair)> = None;
    let mut look = |pair: &'s Pair, (): &'s ()| {
        let place = table.hash_of(pair).reverse_bits();
        // SAFETY: the session has found the pair, which stays until its end.
        let (key, _) = unsafe { pair.get() };
        let is_first = first.is_none_or(|(hash, other, _)| (place, key) < (hash, other));
        if is_first && is_after(place, key) {
            first = Some((place, key, *pair));
        }
        true
    };
    // SAFETY: the session has found the bucket (contract of this function), and bucket and pairs
    // stay until its end.
    unsafe { bucket.all(session, &mut look) };
    first.map(|(_, _, pair)| pair)
}

/// The first pair from somewhere on.
///
/// # Safety
///
/// In a snapshot of the table's domain, or in a session during which no other thread changes
/// anything.
pub(super) unsafe fn next<S: RawSession>(
    session: &S,
    table: &Table,
    hasher: &SeedableRandomState,
    from: From<'_>,
) -> Option<Pair> {
    let (mut hash, mut begin) = match from {
        From::First => (0, None),
        From::At(key) | From::After(key) => (hash_of(hasher, key), Some(key)),
    };
    loop {
        // SAFETY: a snapshot of the table's domain, or no other thread changes anything (contract
        // of this function).
        let (_, _, bucket) = unsafe { table.find(session, hash) };
        let place = hash.reverse_bits();
        let is_after = |other: usize, key: &[u8]| {
            begin.is_none_or(|begin| match from {
                From::After(_) => (other, key) > (place, begin),
                _ => (other, key) >= (place, begin),
            })
        };
        // SAFETY: the session has found the bucket.
        let first = unsafe { first_of(session, table, bucket, is_after) };
        if first.is_some() {
            return first;
        }
        hash = following(hash, bucket.level())?;
        begin = None;
    }
}

/// Calls `f` with one of this many equal parts of the hashes, until it returns false.
///
/// # Safety
///
/// As for [`next`].
pub(super) unsafe fn visit_part<S: RawSession>(
    session: &S,
    table: &Table,
    part: usize,
    parts: usize,
    f: &mut impl FnMut(&[u8], &[u8]) -> bool,
) {
    let begin_of = |part: usize| ((part as u128) << usize::BITS) / parts as u128;
    let (begin, end) = (begin_of(part), begin_of(part + 1));
    let mut hash = (begin as usize).reverse_bits();
    loop {
        let mut look = |pair: &Pair, (): &()| {
            let place = table.hash_of(pair).reverse_bits() as u128;
            // SAFETY: the session has found the pair, which stays until its end.
            let (key, value) = unsafe { pair.get() };
            !(begin..end).contains(&place) || f(key, value)
        };
        // SAFETY: the session is a snapshot, or no other thread changes anything (contract of this
        // function), and it has found the bucket.
        let level = unsafe {
            let (_, _, bucket) = table.find(session, hash);
            if !bucket.all(session, &mut look) {
                return;
            }
            bucket.level()
        };
        match following(hash, level) {
            Some(next) if (next.reverse_bits() as u128) < end => hash = next,
            _ => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::following;

    #[test]
    fn buckets_follow_each_other_to_the_end() {
        for level in 1..5 {
            let (mut hash, mut numbers) = (Some(0), alloc::vec::Vec::new());
            while let Some(now) = hash {
                numbers.push(now);
                hash = following(now, level);
            }
            assert_eq!(numbers.len(), 1 << level);
            assert!(numbers.iter().all(|number| *number < 1 << level));
            assert!(numbers.is_sorted_by_key(|number| number.reverse_bits()));
        }
        assert_eq!(following(7, 0), None);
        assert_eq!(following(usize::MAX, 64), None);
        assert_eq!(following(0, 64), Some(1 << 63));
    }
}
