//! Barriers where no thread can make others pass one: both sides of an asymmetric pair are fences
//! then.

/// Whether [`heavy`] works here, so that others may do without a fence: no.
pub fn is_asymmetric() -> bool {
    false
}

/// The side that does without a fence: not to be called, because [`is_asymmetric`] says no.
///
/// # Panics
///
/// Always.
pub fn light() {
    refuse()
}

/// The side that makes all others pass a fence: not to be called, because [`is_asymmetric`] says
/// no.
///
/// # Panics
///
/// Always.
pub fn heavy() {
    refuse()
}

fn refuse() {
    panic!("there are no asymmetric barriers here: ask `is_asymmetric` first")
}
