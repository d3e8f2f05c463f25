//! Calls.
/// s
pub fn dispatch(_f: &mut crate::arch::frame::Frame) {}
