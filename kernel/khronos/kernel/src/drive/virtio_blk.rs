//! A virtual disk, by virtio over PCI. A thread that reads or writes polls the device until it is
//! done.

use khronos_disk::{BLOCK_BYTES, Block, Device, DeviceError};
use virtio_drivers::device::blk::{SECTOR_SIZE, VirtIOBlk};
use virtio_drivers::transport::DeviceType;
use virtio_drivers::transport::pci::bus::{Command, PciRoot};
use virtio_drivers::transport::pci::{PciTransport, virtio_device_type};

use crate::arch::pci::Ports;
use crate::mm::dma::Dma;
use crate::println;
use crate::sync::order::Rank;
use crate::sync::sleep::Sleep;
use crate::watch::counters::{Event, count};

/// A disk.
pub struct Drive {
    device: Sleep<VirtIOBlk<Dma, PciTransport>>,
    blocks: u64,
}

const SECTORS: usize = BLOCK_BYTES / SECTOR_SIZE;

/// The first one on the first bus.
///
/// # Errors
///
/// Why there is none.
pub fn find() -> Result<Drive, &'static str> {
    let mut root = PciRoot::new(Ports);
    let is_disk = |info: &_| virtio_device_type(info) == Some(DeviceType::Block);
    let found = root.enumerate_bus(0).find(|(_, info)| is_disk(info));
    let (place, _) = found.ok_or("there is none: give QEMU a drive with if=virtio")?;
    let (_, command) = root.get_status_command(place);
    root.set_command(place, command | Command::MEMORY_SPACE | Command::BUS_MASTER);
    let transport = PciTransport::new::<Dma, _>(&mut root, place);
    let transport = transport.map_err(|_| "its registers are not those of virtio 1.0")?;
    let device = VirtIOBlk::new(transport).map_err(|_| "it does not begin")?;
    if device.readonly() {
        return Err("it cannot be written");
    }
    let blocks = device.capacity() / SECTORS as u64;
    Ok(Drive { device: Sleep::new(Rank::Drive, device), blocks })
}

fn failed(what: &str, block: u64, error: virtio_drivers::Error) -> DeviceError {
    println!("khronos: the disk does not {what} block {block}: {error}");
    DeviceError
}

impl Device for Drive {
    fn blocks(&self) -> u64 {
        self.blocks
    }

    fn read(&self, block: u64, into: &mut Block) -> Result<(), DeviceError> {
        count(Event::BlocksRead);
        let result = self.device.lock().read_blocks(block as usize * SECTORS, into);
        result.map_err(|error| failed("read", block, error))
    }

    fn write(&mut self, block: u64, data: &Block) -> Result<(), DeviceError> {
        count(Event::BlocksWritten);
        let result = self.device.lock().write_blocks(block as usize * SECTORS, data);
        result.map_err(|error| failed("write", block, error))
    }

    fn flush(&mut self) -> Result<(), DeviceError> {
        count(Event::Flushes);
        let result = self.device.lock().flush();
        result.map_err(|error| failed("flush", 0, error))
    }
}
