//! A hash function of one multiplication, like that of manycore's own hash tables.

use std::hash::{BuildHasherDefault, Hasher};

/// Makes a foreign hash table use [`Multiply`].
pub(super) type Multiplying = BuildHasherDefault<Multiply>;

/// Combines both halves of a product, so that all bits of the result depend on the key: some tables
/// use the upper bits, others the lower ones.
#[derive(Default)]
pub(super) struct Multiply(u64);

impl Hasher for Multiply {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    #[inline]
    fn write_u64(&mut self, number: u64) {
        let product = u128::from(self.0 ^ number) * 0x9E37_79B9_7F4A_7C15_F39C_C060_5CED_C835;
        self.0 = (product >> 64) as u64 ^ product as u64;
    }

    #[inline]
    fn finish(&self) -> u64 {
        self.0
    }
}
