//! Devices.

pub mod uart;
