//! Whether a map is one of a handle's space.

use core::ptr::NonNull;

/// Panics unless both are one domain.
#[inline]
pub(super) fn check<M>(mine: NonNull<M>, domain: &M) {
    #[cold]
    fn wrong() -> ! {
        panic!("a map of another space: make both with `new_in` and a clone of one space")
    }
    if !core::ptr::eq(mine.as_ptr(), domain) {
        wrong();
    }
}
