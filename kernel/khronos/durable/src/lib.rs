//! Keeps a tree of [`khronos_fs`] on a disk of [`khronos_disk`].
//!
//! ```
//! use core::cell::RefCell;
//! use khronos_disk::{Disk, MemoryDisk};
//! use khronos_fs::{At, Fs, Options, Sync, Which};
//!
//! let mut disk = Disk::format(MemoryDisk::new(256)).unwrap();
//! let fs = Fs::new(Options { records: true, ..Options::new(Sync::MvRlu) });
//! let tree = RefCell::new(fs.context());
//! tree.borrow_mut().mkdir(At { directory: fs.root(), path: b"mail" }, 0o755).unwrap();
//! khronos_durable::sync(&tree, &mut disk, Which::All).unwrap();
//!
//! // Another day.
//! let disk = Disk::open(disk.into_device()).unwrap();
//! let fs = Fs::new(Options { records: true, ..Options::new(Sync::Rcu) });
//! let tree = RefCell::new(fs.context());
//! khronos_durable::recover(&tree, &disk).unwrap();
//! assert!(tree.borrow_mut().stat(At { directory: fs.root(), path: b"mail" }, true).is_ok());
//! ```
//!
//! # The promise
//!
//! A [`sync()`] that returns has made the changes of all calls durable that had returned when it
//! began: names and attributes of all inodes, and the bytes of the requested files. A batch is the
//! tree as of one moment. So after a crash the tree is as of some moment, which is not before the
//! last `sync` that returned.
//!
//! Files whose bytes were not requested have their bytes from the last request, or none.
//!
//! # How
//!
//! Most bytes are written while other threads continue to change them. Pages that have changed by
//! then are taken together with the names, at the moment of the batch. If the batch cannot be
//! written, all of its changes are noted again: they are in the next batch, if there is one.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod recover;
mod sync;

use core::cell::RefCell;

use khronos_fs::Cx;

pub use recover::{RecoverError, recover};
pub use sync::sync;

/// Access to the tree, by a context of a thread, or of the CPU on which the thread runs.
pub trait Tree<'fs> {
    /// Calls `f` with a context. In a kernel, `f` is not preempted, so it must not wait for a disk.
    fn with<R>(&self, f: impl FnOnce(&mut Cx<'fs>) -> R) -> R;
}

impl<'fs> Tree<'fs> for RefCell<Cx<'fs>> {
    fn with<R>(&self, f: impl FnOnce(&mut Cx<'fs>) -> R) -> R {
        f(&mut self.borrow_mut())
    }
}
