//! Ends of structures, of which one value's destructor may panic: the others run all the same.

/// Runs `step` until it says that nothing is left. If it panics, so does this, when it has run for all that is left: as `Vec` drops its
/// elements. A second panic then ends the process. A step has to have taken out what it drops before that can panic.
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
