//! Copies from and to user memory, which may not be there.

use alloc::vec;
use alloc::vec::Vec;

use crate::call::errno::{Errno, Result};

/// User memory ends here.
pub const END: u64 = 0x7fff_ffff_f000;

unsafe extern "C" {
    fn copy_user(to: *mut u8, from: *const u8, bytes: usize) -> usize;
}

fn check(address: u64, bytes: usize) -> Result<()> {
    let end = address.checked_add(bytes as u64).ok_or(Errno::FAULT)?;
    if end <= END { Ok(()) } else { Err(Errno::FAULT) }
}

/// Reads bytes. Where the caller is pinned, pages that are not there are an error, too.
pub fn read_bytes(address: u64, into: &mut [u8]) -> Result<()> {
    check(address, into.len())?;
    // SAFETY: the kernel's side is a slice; a fault on the user's side ends the copy.
    let left = unsafe { copy_user(into.as_mut_ptr(), address as *const u8, into.len()) };
    if left == 0 { Ok(()) } else { Err(Errno::FAULT) }
}

/// Writes bytes.
pub fn write_bytes(address: u64, from: &[u8]) -> Result<()> {
    check(address, from.len())?;
    // SAFETY: `check` has found the range to be of user addresses, where a fault ends the copy; the
    // slice is the kernel's own.
    let left = unsafe { copy_user(address as *mut u8, from.as_ptr(), from.len()) };
    if left == 0 { Ok(()) } else { Err(Errno::FAULT) }
}

/// Types that are any bytes of their size.
///
/// # Safety
///
/// The type has no padding, and all its bit patterns are valid.
pub unsafe trait Plain: Copy + Default {}

macro_rules! plain {
    ($($type:ty),*) => {$(
        // SAFETY: an integer has no padding, and all its bit patterns are valid.
        unsafe impl Plain for $type {}
    )*};
}
plain!(u8, u16, u32, u64, i32, i64, usize);

// SAFETY: the elements have no padding and take any bits (`Plain`), and there is none between
// elements of an array.
unsafe impl<T: Plain, const N: usize> Plain for [T; N] where [T; N]: Default {}

/// Reads a value.
pub fn read<T: Plain>(address: u64) -> Result<T> {
    let mut value = T::default();
    // SAFETY: the bytes are those of `value`, borrowed mutably and initialised; all bit patterns
    // are valid for a `Plain`.
    let bytes =
        unsafe { core::slice::from_raw_parts_mut((&raw mut value).cast::<u8>(), size_of::<T>()) };
    read_bytes(address, bytes)?;
    Ok(value)
}

/// Writes a value.
pub fn write<T: Plain>(address: u64, value: &T) -> Result<()> {
    // SAFETY: the bytes are those of `value`, all of them initialised: a `Plain` has no padding.
    let bytes = unsafe {
        core::slice::from_raw_parts(core::ptr::from_ref(value).cast::<u8>(), size_of::<T>())
    };
    write_bytes(address, bytes)
}

/// Reads several values.
pub fn read_list<T: Plain>(address: u64, count: usize) -> Result<Vec<T>> {
    let at = |place: usize| address + (place * size_of::<T>()) as u64;
    (0..count).map(|place| read(at(place))).collect()
}

/// Writes several values, one behind the other.
pub fn write_list<T: Plain>(address: u64, values: &[T]) -> Result<()> {
    let mut at = address;
    for value in values {
        write(at, value)?;
        at += size_of::<T>() as u64;
    }
    Ok(())
}

/// Reads bytes up to a zero, which is not returned; at most `most`.
pub fn read_string(address: u64, most: usize) -> Result<Vec<u8>> {
    let mut text = Vec::new();
    while text.len() < most {
        let at = address + text.len() as u64;
        // To the end of the page: the next one may not be there.
        let room = (4096 - at % 4096).min((most - text.len()) as u64) as usize;
        let mut piece = vec![0; room];
        read_bytes(at, &mut piece)?;
        if let Some(end) = piece.iter().position(|&byte| byte == 0) {
            text.extend_from_slice(&piece[..end]);
            return Ok(text);
        }
        text.extend_from_slice(&piece);
    }
    Err(Errno::NAME_TOO_LONG)
}
