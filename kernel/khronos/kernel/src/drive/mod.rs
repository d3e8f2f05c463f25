//! Devices.

pub mod uart;
pub mod virtio_blk;
