//! Names in directories.

use alloc::boxed::Box;

use crate::Errno;

/// The longest name, in bytes.
pub const NAME_MAX: usize = 255;

/// Names of up to this many bytes are in their entry, which then fills a cache line.
const SHORT: usize = 46;

/// The bytes of a name.
pub(crate) enum Name {
    Short(u8, [u8; SHORT]),
    Long(Box<[u8]>),
}

impl Name {
    pub fn new(bytes: &[u8]) -> Self {
        if bytes.len() > SHORT {
            return Self::Long(bytes.into());
        }
        let mut short = [0; SHORT];
        short[..bytes.len()].copy_from_slice(bytes);
        #[expect(clippy::cast_possible_truncation, reason = "at most SHORT")]
        Self::Short(bytes.len() as u8, short)
    }

    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Short(length, bytes) => &bytes[..usize::from(*length)],
            Self::Long(bytes) => bytes,
        }
    }
}

/// A searched name, with its position in the order of a directory.
#[derive(Clone, Copy)]
pub(crate) struct Key<'a> {
    pub bytes: &'a [u8],
    pub hash: u64,
}

/// Hashes are below this: a hash is a position in a directory, which has 63 bits.
const HASH_BITS: u32 = 62;

impl<'a> Key<'a> {
    /// # Errors
    ///
    /// If the name is too long.
    pub fn new(bytes: &'a [u8], seed: u64) -> Result<Self, Errno> {
        if bytes.len() > NAME_MAX {
            return Err(Errno::NameTooLong);
        }
        Ok(Self { bytes, hash: hash(bytes, seed) })
    }
}

/// FNV-1a, with a last step that makes all bytes affect the highest bits, which choose the chain.
fn hash(bytes: &[u8], seed: u64) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    let hash = bytes.iter().fold(0xcbf2_9ce4_8422_2325 ^ seed, step);
    let hash = (hash ^ (hash >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93);
    (hash ^ (hash >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93) >> (64 - HASH_BITS)
}

/// The chain of a hash. The number of chains is a power of two. A chain has the hashes between two
/// bounds, so that all chains together are in the order of hashes.
pub(crate) fn chain_of(hash: u64, chains: usize) -> usize {
    #[expect(clippy::cast_possible_truncation, reason = "less than the number of chains")]
    let chain = (hash >> (HASH_BITS - chains.trailing_zeros())) as usize;
    chain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_all_lengths_are_kept() {
        let bytes: alloc::vec::Vec<u8> = (0..=255).collect();
        for length in 0..=NAME_MAX {
            assert_eq!(Name::new(&bytes[..length]).bytes(), &bytes[..length]);
        }
    }

    #[test]
    fn chains_are_filled_evenly_and_in_the_order_of_hashes() {
        let mut counts = [0; 64];
        for number in 0..6400_u32 {
            let name = alloc::format!("file-{number}");
            counts[chain_of(hash(name.as_bytes(), 0), 64)] += 1;
        }
        assert!(counts.iter().all(|count| (60..150).contains(count)), "{counts:?}");
        assert_eq!((chain_of(0, 1), chain_of((1 << 62) - 1, 1)), (0, 0));
        assert_eq!((chain_of(0, 64), chain_of((1 << 62) - 1, 64)), (0, 63));
    }
}
