//! A value alone on its cache lines.

use core::ops::Deref;

/// Aligns a value to 128 bytes: two lines of 64, because adjacent-line prefetchers fetch lines in pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct CachePadded<T>(pub T);

impl<T> Deref for CachePadded<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}
