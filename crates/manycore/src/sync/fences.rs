//! Barriers where no thread can make others execute a fence: both sides of an asymmetric pair are
//! fences here.

/// Whether [`heavy`] works here, so that others may do without a fence: no.
pub fn is_asymmetric() -> bool {
    false
}

/// The side that executes no fence. It must not be called here, because [`is_asymmetric`] returns
/// false.
///
/// # Panics
///
/// Always.
pub fn light() {
    refuse()
}

/// The side that makes all other threads execute a fence. It must not be called here, because
/// [`is_asymmetric`] returns false.
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
