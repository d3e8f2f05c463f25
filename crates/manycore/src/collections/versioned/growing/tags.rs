//! A byte of the hash of each entry of a bucket. A thread that searches for a key reads only the
//! entries with an equal byte, of which very probably one is the key's.

/// For this many entries.
pub(super) const MOST: usize = 14;

/// Invariant: a byte is 0, or its highest bit is set.
#[derive(Clone, Copy, Default)]
pub(super) struct Tags([u8; MOST]);

const EACH: u128 = u128::MAX / 0xFF;

/// The highest bit of each byte.
const HIGH: u128 = EACH << 7;

/// The tag of keys with this hash. It consists of bits that do not choose the bucket, if there are
/// less than 2^32 buckets.
#[inline]
fn tag(hash: usize) -> u8 {
    (hash >> (usize::BITS / 2)) as u8 | 1 << 7
}

/// For each byte of this value, its highest bit is set if the byte is the tag; all other bits are
/// 0.
#[inline]
fn same(bytes: u128, tag: u8) -> u128 {
    // A byte that is 0 differs from the tag in its highest bit. Another tag differs in lower bits,
    // and the addition carries that into the highest bit (H. S. Warren, "Hacker's Delight", section
    // 6-1).
    let differ = bytes ^ (EACH * u128::from(tag));
    !(((differ & !HIGH) + !HIGH) | differ) & HIGH
}

impl Tags {
    /// The entries whose keys may have this hash, in ascending order.
    #[inline]
    pub fn like(&self, hash: usize) -> impl Iterator<Item = usize> {
        let mut bytes = [0; size_of::<u128>()];
        bytes[..MOST].copy_from_slice(&self.0);
        let mut found = same(u128::from_le_bytes(bytes), tag(hash));
        core::iter::from_fn(move || {
            let index = (found != 0).then(|| found.trailing_zeros() as usize / 8);
            found &= found.wrapping_sub(1);
            index
        })
    }

    /// The entry there has a key with this hash.
    pub fn put(&mut self, index: usize, hash: usize) {
        self.0[index] = tag(hash);
    }

    /// The last entry is there now.
    pub fn take(&mut self, index: usize, last: usize) {
        self.0[index] = self.0[last];
        self.0[last] = 0;
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use alloc::vec;
    use alloc::vec::Vec;

    use super::*;

    /// A hash with this tag's lower bits.
    fn hash(bits: usize) -> usize {
        bits << (usize::BITS / 2)
    }

    fn found(tags: &Tags, bits: usize) -> Vec<usize> {
        tags.like(hash(bits)).collect()
    }

    #[test]
    fn each_tag_is_found_in_each_place_and_no_other() {
        for (index, bits) in (0..MOST).flat_map(|index| (0..128).map(move |bits| (index, bits))) {
            let mut tags = Tags::default();
            (0..MOST).for_each(|other| tags.put(other, hash(bits ^ 1 << (other % 7))));
            tags.put(index, hash(bits));
            assert_eq!(found(&tags, bits), [index]);
        }
    }

    #[test]
    fn what_was_taken_is_not_found() {
        let mut tags = Tags::default();
        assert_eq!(found(&tags, 0), []);
        (0..4).for_each(|index| tags.put(index, hash(index % 2)));
        assert_eq!((found(&tags, 0), found(&tags, 1)), (vec![0, 2], vec![1, 3]));
        tags.take(0, 3);
        assert_eq!((found(&tags, 0), found(&tags, 1)), (vec![2], vec![0, 1]));
        tags.take(2, 2);
        assert_eq!((found(&tags, 0), found(&tags, 1)), (vec![], vec![0, 1]));
    }
}
