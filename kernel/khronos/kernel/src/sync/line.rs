//! Cache lines of one's own.

use core::ops::Deref;

/// A value that shares its cache line, and the one that is fetched along with it, with no other.
#[derive(Default)]
#[repr(align(128))]
pub struct Line<T>(pub T);

impl<T> Deref for Line<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}
