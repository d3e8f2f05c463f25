//! Drops structures, even if one value's destructor panics: the others run all the same.

#[cfg(all(feature = "std", not(any(loom, feature = "sim"))))]
use crate::sync::panic;

/// Runs `step` until it says that nothing is left. If it panics, so does this, after it has run for
/// all the rest. A step has to remove the value that it drops before the drop can panic.
#[cfg(all(feature = "std", not(any(loom, feature = "sim"))))]
pub(crate) fn exhaust(mut step: impl FnMut() -> bool) {
    let mut first = None;
    loop {
        match panic::catch(&mut step) {
            Ok(true) => {}
            Ok(false) => break,
            Err(payload) if first.is_none() => first = Some(payload),
            Err(payload) => core::mem::forget(payload), // its own end may panic
        }
    }
    if let Some(payload) = first
        && !panic::is_panicking()
    {
        panic::resume(payload);
    }
}

/// The same without the standard library, where panics cannot be caught: a second one ends the
/// program, as with the elements of a `Vec`.
#[cfg(not(all(feature = "std", not(any(loom, feature = "sim")))))]
pub(crate) fn exhaust(mut step: impl FnMut() -> bool) {
    struct Rest<'a, F: FnMut() -> bool>(&'a mut F);
    impl<F: FnMut() -> bool> Drop for Rest<'_, F> {
        fn drop(&mut self) {
            while (self.0)() {}
        }
    }
    let rest = Rest(&mut step);
    while (rest.0)() {}
}
