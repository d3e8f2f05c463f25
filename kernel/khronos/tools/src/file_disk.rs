//! A disk in a file.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use khronos_disk::{BLOCK_BYTES, Block, Device, DeviceError};

/// A disk in a file.
pub struct FileDisk {
    file: File,
    blocks: u64,
}

impl FileDisk {
    /// A disk of zeros.
    pub fn create(path: &Path, bytes: u64) -> io::Result<Self> {
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(true).open(path);
        let file = file.map_err(|error| named(path, &error))?;
        file.set_len(bytes)?;
        Ok(Self { file, blocks: bytes / BLOCK_BYTES as u64 })
    }

    /// A disk that is there, to be read.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path).map_err(|error| named(path, &error))?;
        let blocks = file.metadata()?.len() / BLOCK_BYTES as u64;
        Ok(Self { file, blocks })
    }
}

fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

/// Says why, which the trait has no room for.
fn failed(error: &io::Error) -> DeviceError {
    eprintln!("khronos-disk: {error}");
    DeviceError
}

impl Device for FileDisk {
    fn blocks(&self) -> u64 {
        self.blocks
    }

    fn read(&self, block: u64, into: &mut Block) -> Result<(), DeviceError> {
        let offset = block * BLOCK_BYTES as u64;
        self.file.read_exact_at(into, offset).map_err(|error| failed(&error))
    }

    fn write(&mut self, block: u64, data: &Block) -> Result<(), DeviceError> {
        let offset = block * BLOCK_BYTES as u64;
        self.file.write_all_at(data, offset).map_err(|error| failed(&error))
    }

    fn flush(&mut self) -> Result<(), DeviceError> {
        self.file.sync_data().map_err(|error| failed(&error))
    }
}
