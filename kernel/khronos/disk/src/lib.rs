//! The contents of a file system that are kept on a disk, as a pure state machine over blocks of 4
//! KiB.
//!
//! ```
//! use khronos_disk::{Disk, MemoryDisk, Record, ROOT};
//!
//! let mut disk = Disk::format(MemoryDisk::new(256)).unwrap();
//! let (user, group) = (0, 0);
//! let file = Record::Inode { number: 2, mode: 0o100644, user, group, device: 0, times: [0; 3] };
//! let name = Record::Name { directory: ROOT, name: b"letter".to_vec(), inode: 2 };
//! disk.commit(vec![file, name], &[]).unwrap(); // durable when it returns
//!
//! let again = Disk::open(disk.into_device()).unwrap();
//! assert_eq!(again.image().find(ROOT, b"letter"), Some(2));
//! ```
//!
//! # On the disk
//!
//! ```text
//!  0      1      2          2+J        2+2J            2+2J+C          2+2J+2C
//! +------+------+----------+----------+---------------+---------------+------------------+
//! | super block | journal  | journal  | checkpoint    | checkpoint    | pages of files   |
//! | even | odd  | of even  | of odd   | of even       | of odd        |                  |
//! +------+------+----------+----------+---------------+---------------+------------------+
//! ```
//!
//! A *checkpoint* is all that is known but the pages: inodes, names, which block is which page. The
//! journal after it has *batches* of records, each with its number and a checksum. All together
//! make an [`Image`]; there is no bitmap, and no table of inodes: both follow from it.
//!
//! Checkpoints are numbered, and epochs between them. An even one writes where no odd one does. So
//! if a super block is torn, or missing, the earlier one is left, with its checkpoint and all of
//! its journal.
//!
//! # The promise
//!
//! After a crash, which may lose or tear any write since the last flush, the image is that after
//! some prefix of the batches, and not shorter than the last [`Disk::commit`] that returned. Pages
//! are written to free blocks, and flushed before the batch that says so; a block that is given up
//! is used again only after the batch that gives it up is durable.
//!
//! # Limits
//!
//! The image is in memory, about 100 bytes a file, and a checkpoint writes all of it: fine up to
//! about a million files.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod bytes;
mod check;
mod device;
mod disk;
mod image;
mod layout;
mod record;

pub use check::Fault;
pub use device::{BLOCK_BYTES, Block, Device, DeviceError, MemoryDisk, zeros};
pub use disk::{Disk, Error, Page, Staged};
pub use image::{File, Image, ROOT};
pub use record::Record;
