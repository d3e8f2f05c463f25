//! Files that fail when they are told to.

use std::io;
use std::sync::Arc;

use parking_lot::Mutex;

use super::{Device, Storage};

/// What fails, once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The flush fails. Reads return the unflushed data as if it were on the disk, but it is not.
    Flush,
    /// Half of the write's bytes are written, and it fails.
    ShortWrite,
    /// The write fails with an error of the disk.
    WriteError,
    /// The disk is full: this write and all later ones that let a file grow fail, until
    /// [`Faulty::heal`].
    Full,
}

/// A [`Storage`] in front of another one, with faults.
pub struct Faulty<S> {
    below: S,
    plan: Arc<Mutex<Plan>>,
}

#[derive(Default)]
struct Plan {
    /// The number of successful calls of its kind before the next fault, and the fault.
    next: Option<(u32, Fault)>,
    is_full: bool,
    met: u32,
}

impl<S> Faulty<S> {
    /// Wraps this storage, with no fault so far.
    pub fn new(below: S) -> Self {
        Self { below, plan: Arc::default() }
    }

    /// Plans this fault, after `after` successful calls of its kind.
    pub fn plan(&self, after: u32, fault: Fault) {
        self.plan.lock().next = Some((after, fault));
    }

    /// There is room again, and no fault is planned.
    pub fn heal(&self) {
        let mut plan = self.plan.lock();
        (plan.next, plan.is_full) = (None, false);
    }

    /// How many faults have happened.
    pub fn met(&self) -> u32 {
        self.plan.lock().met
    }

    /// The storage behind.
    pub fn below(&self) -> &S {
        &self.below
    }
}

impl Plan {
    /// The fault of this call, if one is due.
    fn take(&mut self, is_due: impl Fn(Fault) -> bool) -> Option<Fault> {
        let (after, fault) = self.next?;
        if !is_due(fault) {
            return None;
        }
        if after > 0 {
            self.next = Some((after - 1, fault));
            return None;
        }
        self.next = None;
        self.met += 1;
        Some(fault)
    }
}

impl<S: Storage> Storage for Faulty<S> {
    fn open(&self, name: &'static str) -> io::Result<Arc<dyn Device>> {
        let (below, plan) = (self.below.open(name)?, self.plan.clone());
        Ok(Arc::new(FaultyDevice { below, plan }))
    }

    fn flush_names(&self) -> io::Result<()> {
        self.below.flush_names()
    }
}

struct FaultyDevice {
    below: Arc<dyn Device>,
    plan: Arc<Mutex<Plan>>,
}

impl Device for FaultyDevice {
    fn size(&self) -> io::Result<u64> {
        self.below.size()
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.below.read_at(offset, into)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let grows = offset + bytes.len() as u64 > self.below.size()?;
        let mut plan = self.plan.lock();
        let fault = plan.take(|fault| fault != Fault::Flush && (grows || fault != Fault::Full));
        plan.is_full |= fault == Some(Fault::Full);
        if plan.is_full && grows {
            return Err(io::ErrorKind::StorageFull.into());
        }
        drop(plan);
        match fault {
            Some(Fault::ShortWrite) => {
                self.below.write_at(offset, &bytes[..bytes.len() / 2])?;
                Err(io::ErrorKind::WriteZero.into())
            }
            Some(Fault::WriteError) => Err(io::Error::other("an error of the disk")),
            _ => self.below.write_at(offset, bytes),
        }
    }

    fn flush(&self) -> io::Result<()> {
        match self.plan.lock().take(|fault| fault == Fault::Flush) {
            Some(_) => {
                self.below.lose_unflushed();
                Err(io::Error::other("an error of the disk"))
            }
            None => self.below.flush(),
        }
    }

    fn cut(&self, size: u64) -> io::Result<()> {
        self.below.cut(size)
    }

    fn lose_unflushed(&self) {
        self.below.lose_unflushed();
    }
}
