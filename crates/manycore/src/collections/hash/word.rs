//! The word of a bucket: a byte of the hash of each entry, and the bucket's state.

use crate::sync::atomic::{AtomicU64, Ordering, fence};
use crate::sync::{clock, hint, order, tuning};

/// A writer has locked the bucket.
pub(super) const LOCKED: u64 = 1 << 56;
/// The bucket's entries are in the next table. This flag is never removed.
pub(super) const MOVED: u64 = 1 << 57;

/// The tag of a hash: the byte that is stored beside an entry. It is not 0, which marks a free
/// slot. It does not use the lower bits of the hash, which select the bucket.
#[inline]
pub(super) fn tag(hash: u64) -> u8 {
    ((hash >> 56) as u8).max(1)
}

/// The bits of a word that are tags of this many slots: seven at most.
pub(super) const fn tag_bits(slots: usize) -> u64 {
    assert!(slots <= 7);
    (1 << (8 * slots)) - 1
}

/// Marks, by bit 7, the bytes of the word among `tags` that equal this one.
#[inline]
pub(super) fn matching(word: u64, tags: u64, tag: u8) -> u64 {
    const LOW: u64 = 0x7f7f_7f7f_7f7f_7f7f;
    let differs = (word & tags) ^ (u64::from(tag) * 0x0101_0101_0101_0101);
    !(((differs & LOW) + LOW) | differs | LOW) & tags
}

/// Marks, by bit 7, the bytes of the word among `tags` that are not 0.
#[inline]
pub(super) fn occupied(word: u64, tags: u64) -> u64 {
    !matching(word, tags, 0) & tags & 0x8080_8080_8080_8080
}

/// The slots that a result of [`matching`] or [`occupied`] marks.
#[inline]
pub(super) fn slots(mut matches: u64) -> impl Iterator<Item = usize> {
    core::iter::from_fn(move || {
        (matches != 0).then(|| {
            let slot = matches.trailing_zeros() as usize / 8;
            matches &= matches - 1;
            slot
        })
    })
}

/// A slot whose byte is 0.
#[inline]
pub(super) fn free(word: u64, tags: u64) -> Option<usize> {
    slots(matching(word, tags, 0)).next()
}

/// The word with another byte for a slot.
#[inline]
pub(super) fn with(word: u64, slot: usize, tag: u8) -> u64 {
    word & !(0xff << (8 * slot)) | u64::from(tag) << (8 * slot)
}

/// The byte of a slot.
#[inline]
pub(super) fn tag_of(word: u64, slot: usize) -> u8 {
    (word >> (8 * slot)) as u8
}

/// Locks the bucket of this word against other writers, and returns the word's old value; `None` if
/// the bucket's entries are in the next table.
#[inline]
pub(super) fn lock(word: &AtomicU64) -> Option<u64> {
    // Relaxed: a hint.
    let before = word.load(Ordering::Relaxed);
    if before & (LOCKED | MOVED) == 0 {
        // Acquire: partner of the Release with which the writer before unlocks. Relaxed on failure:
        // tries again.
        let done = order!(Acquire, "bucket-lock");
        if word.compare_exchange(before, before | LOCKED, done, Ordering::Relaxed).is_ok() {
            return Some(before);
        }
    }
    lock_contended(word)
}

#[cold]
fn lock_contended(word: &AtomicU64) -> Option<u64> {
    let (start, limit) = (clock::now(), tuning::spin_limit());
    loop {
        let before = word.load(Ordering::Relaxed); // Relaxed: a hint, as in `lock`
        if before & MOVED != 0 {
            // Acquire: partner of the Release with which the bucket was moved, for the contents of
            // the next table. The locks of that table's buckets order these as well, so no model
            // fails with this ordering weakened.
            fence(Ordering::Acquire);
            return None;
        }
        // Acquire: partner of the Release with which the writer before unlocks.
        let (locked, done) = (before | LOCKED, order!(Acquire, "bucket-lock-again"));
        if before & LOCKED == 0
            && word.compare_exchange(before, locked, done, Ordering::Relaxed).is_ok()
        {
            return Some(before);
        }
        // The time in which a writer reads some lines. If it takes longer, the writer has lost its
        // CPU.
        if clock::has_passed(start, limit) {
            hint::yield_now();
        }
        hint::spin_loop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_told_apart() {
        let (word, six) = (0x0000_0102_0380_ff01 | LOCKED, tag_bits(6));
        assert_eq!(matching(word, six, 1), 0x0000_8000_0000_0080);
        assert_eq!(matching(word, six, 0x80), 0x0000_0000_0080_0000);
        assert_eq!(matching(word, six, 7), 0);
        assert_eq!((free(word, six), free(word, tag_bits(7))), (None, Some(6)));
        assert_eq!(free(with(word, 3, 0), six), Some(3));
        assert_eq!(free(LOCKED, tag_bits(7)), Some(0));
        assert_eq!(occupied(word, tag_bits(7)), 0x0000_8080_8080_8080);
        assert_eq!(slots(matching(word, six, 1)).collect::<alloc::vec::Vec<_>>(), [0, 5]);
    }
}
