//! Plain data as words that are read while another thread writes them.

use core::mem::MaybeUninit;

use bytemuck::NoUninit;

use crate::sync::atomic::{AtomicU64, Ordering};

const BYTES: usize = size_of::<u64>();

/// The number of words that hold a `T`.
pub(super) const fn words<T>() -> usize {
    size_of::<T>().div_ceil(BYTES)
}

/// Writes a value, each word with this ordering.
#[inline]
pub(super) fn store<T: NoUninit>(to: &[AtomicU64], value: &T, order: Ordering) {
    for (word, bytes) in to.iter().zip(bytemuck::bytes_of(value).chunks(BYTES)) {
        let mut padded = [0; BYTES];
        padded[..bytes.len()].copy_from_slice(bytes);
        word.store(u64::from_ne_bytes(padded), order);
    }
}

/// The bytes in these words. They are a `T` if one was [stored](store) and no thread has written
/// meanwhile; otherwise they may mix bytes of two values.
#[inline]
pub(super) fn load<T: NoUninit>(from: &[AtomicU64]) -> MaybeUninit<T> {
    let mut value = MaybeUninit::<T>::uninit();
    for (number, word) in from[..words::<T>()].iter().enumerate() {
        // Relaxed: the caller has a fence behind the read, or has locked the bucket.
        let bytes = word.load(Ordering::Relaxed).to_ne_bytes();
        let at = number * BYTES;
        // SAFETY: the bytes from `at` to the end of the value, eight at most, are in it.
        unsafe {
            let to = value.as_mut_ptr().cast::<u8>().add(at);
            to.copy_from_nonoverlapping(bytes.as_ptr(), (size_of::<T>() - at).min(BYTES));
        }
    }
    value
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn as_it_was<T: NoUninit + PartialEq + core::fmt::Debug>(value: T) {
        let room: [AtomicU64; 4] = core::array::from_fn(|_| AtomicU64::new(u64::MAX));
        store(&room, &value, Ordering::Relaxed); // Relaxed: no other thread has it
        // SAFETY: the loop has stored all words of the value just now, and no other thread writes.
        assert_eq!(unsafe { load::<T>(&room).assume_init() }, value);
    }

    #[test]
    fn values_come_back() {
        as_it_was(());
        as_it_was(7_u8);
        as_it_was(-3_i32);
        as_it_was(u64::MAX - 1);
        as_it_was([1_u16, 2, 3, 4, 5, 6, 7]);
        as_it_was(1_u128 << 77);
        as_it_was('x');
        assert_eq!((words::<()>(), words::<u8>(), words::<[u32; 3]>()), (0, 1, 2));
    }
}
