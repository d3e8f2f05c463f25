//! The word of a bucket: a byte of the hash of each entry, and the bucket's state.

/// A writer has the bucket.
pub(super) const LOCKED: u64 = 1 << 56;
/// The bucket's entries are in the next table, and it stays so.
pub(super) const MOVED: u64 = 1 << 57;

/// The byte of a hash that is kept beside an entry: not 0, which is a free slot's. The lower bits
/// say which bucket.
#[inline]
pub(super) fn tag(hash: u64) -> u8 {
    ((hash >> 56) as u8).max(1)
}

/// The bits of a word that are tags, of this number of slots: seven at most.
pub(super) const fn tags(slots: usize) -> u64 {
    assert!(slots <= 7);
    (1 << (8 * slots)) - 1
}

/// Which bytes of the word, of those that are `tags`, are this one: bit 7 of each.
#[inline]
pub(super) fn matching(word: u64, tags: u64, tag: u8) -> u64 {
    const LOW: u64 = 0x7f7f_7f7f_7f7f_7f7f;
    let differs = (word & tags) ^ (u64::from(tag) * 0x0101_0101_0101_0101);
    !(((differs & LOW) + LOW) | differs | LOW) & tags
}

/// The slots of what [`matching`] has returned.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_told_apart() {
        let (word, six) = (0x0000_0102_0380_ff01 | LOCKED, tags(6));
        assert_eq!(matching(word, six, 1), 0x0000_8000_0000_0080);
        assert_eq!(matching(word, six, 0x80), 0x0000_0000_0080_0000);
        assert_eq!(matching(word, six, 7), 0);
        assert_eq!((free(word, six), free(word, tags(7))), (None, Some(6)));
        assert_eq!(free(with(word, 3, 0), six), Some(3));
        assert_eq!(free(LOCKED, tags(7)), Some(0));
        assert_eq!(slots(matching(word, six, 1)).collect::<alloc::vec::Vec<_>>(), [0, 5]);
    }
}
