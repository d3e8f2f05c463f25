//! Devices.
#![allow(unsafe_code)]

pub mod uart;
