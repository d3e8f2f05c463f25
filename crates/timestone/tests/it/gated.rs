//! A disk whose flushes wait while a gate is shut.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::{Mutex, MutexGuard};
use timestone::device::{Device, Simulated, Storage};

/// The disk: files with chosen names are flushed only while the gate is open.
#[derive(Clone)]
pub struct Gated {
    pub disk: Simulated,
    is_chosen: fn(&str) -> bool,
    gate: Arc<Mutex<()>>,
    /// A flush has come to the gate.
    has_come: Arc<AtomicBool>,
}

struct GatedDevice {
    below: Arc<dyn Device>,
    storage: Gated,
}

impl Gated {
    pub fn new(is_chosen: fn(&str) -> bool) -> Self {
        let (disk, gate, has_come) = Default::default();
        Self { disk, is_chosen, gate, has_come }
    }

    /// Shuts the gate, until what it returns is dropped.
    pub fn shut(&self) -> MutexGuard<'_, ()> {
        self.has_come.store(false, Ordering::Relaxed);
        self.gate.lock()
    }

    /// Waits until a flush has come to the gate since it was shut.
    pub fn wait_for_flush(&self) {
        while !self.has_come.load(Ordering::Relaxed) {
            std::thread::yield_now();
        }
    }
}

impl Storage for Gated {
    fn open(&self, name: &'static str) -> io::Result<Arc<dyn Device>> {
        let below = self.disk.open(name)?;
        let storage = self.clone();
        let is_chosen = (self.is_chosen)(name);
        Ok(if is_chosen { Arc::new(GatedDevice { below, storage }) } else { below })
    }

    fn flush_names(&self) -> io::Result<()> {
        self.disk.flush_names()
    }
}

impl Device for GatedDevice {
    fn size(&self) -> io::Result<u64> {
        self.below.size()
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.below.read_at(offset, into)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.below.write_at(offset, bytes)
    }

    fn flush(&self) -> io::Result<()> {
        self.storage.has_come.store(true, Ordering::Relaxed);
        let _open = self.storage.gate.lock();
        self.below.flush()
    }
}
