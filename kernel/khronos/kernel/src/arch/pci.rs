//! The configuration of PCI's devices, by the two ports that PCs have for it.

use virtio_drivers::transport::pci::bus::{ConfigurationAccess, DeviceFunction};

use crate::arch::msr::{inl, outl};
use crate::sync::order::Rank;
use crate::sync::spin::Spin;

const ADDRESS: u16 = 0xcf8;
const DATA: u16 = 0xcfc;

/// One access takes both ports.
static PORTS: Spin<()> = Spin::new(Rank::Small, ());

/// The way to it.
pub struct Ports;

fn address(of: DeviceFunction, register: u8) -> u32 {
    let DeviceFunction { bus, device, function } = of;
    let [bus, device, function] = [bus, device, function].map(u32::from);
    1 << 31 | bus << 16 | device << 11 | function << 8 | u32::from(register & 0xfc)
}

impl ConfigurationAccess for Ports {
    fn read_word(&self, of: DeviceFunction, register: u8) -> u32 {
        let _both = PORTS.lock();
        outl(ADDRESS, address(of, register));
        inl(DATA)
    }

    fn write_word(&mut self, of: DeviceFunction, register: u8, data: u32) {
        let _both = PORTS.lock();
        outl(ADDRESS, address(of, register));
        outl(DATA, data);
    }

    // SAFETY: each access of a copy holds `PORTS` for both of its ports, so that copies do not
    // disturb each other.
    unsafe fn unsafe_clone(&self) -> Self {
        Self
    }
}
