//! Which bucket a key is in.

use core::hash::{BuildHasher, Hash, Hasher};

/// The bucket of a key, of this many buckets. The hash has no secret, so an attacker can choose
/// keys that collide.
#[inline]
pub(crate) fn bucket_of<K: Hash>(key: &K, buckets: usize) -> usize {
    // The upper bits are mixed best: the product maps them to the buckets evenly, without a
    // division.
    ((u128::from(mixed(key)) * buckets as u128) >> 64) as usize
}

/// A hash of a key whose lowest bits are the best mixed ones.
#[inline]
pub(crate) fn hash_of<K: Hash + ?Sized>(key: &K) -> usize {
    mixed(key).swap_bytes() as usize
}

/// The default hasher of tables: [`hash_of`], without a secret.
#[derive(Clone, Copy, Debug, Default)]
pub struct Mixing;

impl BuildHasher for Mixing {
    type Hasher = Mixer;

    fn build_hasher(&self) -> Mixer {
        Mixer(0)
    }

    #[inline]
    fn hash_one<K: Hash>(&self, key: K) -> u64 {
        hash_of(&key) as u64
    }
}

#[inline]
fn mixed<K: Hash + ?Sized>(key: &K) -> u64 {
    let mut mixer = Mixer(0);
    key.hash(&mut mixer);
    mixer.finish()
}

/// Multiplies by an odd number near 2^64 divided by the golden ratio, as Knuth does.
#[derive(Debug)]
pub struct Mixer(u64);

impl Mixer {
    fn add(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
}

impl Hasher for Mixer {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.add(u64::from_le_bytes(word));
        }
    }

    fn write_u8(&mut self, number: u8) {
        self.add(u64::from(number));
    }

    fn write_u32(&mut self, number: u32) {
        self.add(u64::from(number));
    }

    fn write_u64(&mut self, number: u64) {
        self.add(number);
    }

    fn write_usize(&mut self, number: usize) {
        self.add(number as u64);
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_in_a_row_are_spread() {
        let mut counts = [0; 100];
        (0..10_000_u64).for_each(|key| counts[bucket_of(&key, 100)] += 1);
        assert!(counts.iter().all(|count| (50..200).contains(count)), "{counts:?}");
        assert_eq!(bucket_of(&"a long string of text", 1), 0);
    }
}
