//! A disk outside of the simulation, which stays when that has ended. Other threads run while one
//! waits for it.

use std::io;
use std::sync::Arc;

use manycore_history::run::{Explored, Threads};
use manycore_sim::backend;
use timestone_simulated::device::{Device, Simulated, Storage};

pub struct Host(pub Simulated);

struct HostDevice(Arc<dyn Device>);

impl Storage for Host {
    fn open(&self, name: &'static str) -> io::Result<Arc<dyn Device>> {
        Explored.aside(|| Ok(Arc::new(HostDevice(self.0.open(name)?)) as Arc<dyn Device>))
    }

    fn flush_names(&self) -> io::Result<()> {
        Explored.aside(|| self.0.flush_names())
    }
}

impl Device for HostDevice {
    fn size(&self) -> io::Result<u64> {
        self.0.size()
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.0.read_at(offset, into)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        backend::yield_now();
        Explored.aside(|| self.0.write_at(offset, bytes))
    }

    fn flush(&self) -> io::Result<()> {
        backend::yield_now();
        Explored.aside(|| self.0.flush())
    }

    fn cut(&self, size: u64) -> io::Result<()> {
        Explored.aside(|| self.0.cut(size))
    }
}
