//! A file system in memory, whose names are synchronised by a mechanism that is chosen when it is
//! made: one lock a directory, one a chain of names, RCU, RLU or MV-RLU.
//!
//! ```
//! use khronos_fs::{At, Fs, Open, Options, Rename, Sync};
//!
//! let fs = Fs::new(Options::new(Sync::MvRlu));
//! let mut cx = fs.context(); // one for each CPU of a kernel, or for each thread
//! let at = |path| At { directory: fs.root(), path };
//!
//! cx.mkdir(at(b"mail"), 0o755)?;
//! let file = cx.open(at(b"mail/draft"), Open::CREATE, 0o644)?;
//! cx.write(&file, 0, b"to whom it may concern")?;
//! cx.rename(at(b"mail/draft"), at(b"mail/letter"), Rename::Replace)?;
//! assert_eq!(cx.stat(at(b"mail/letter"), true)?.size, 22);
//! cx.close(file);
//! # Ok::<(), khronos_fs::Errno>(())
//! ```
//!
//! # For a kernel
//!
//! - A [`Cx`] belongs to one CPU at a time, and a call must not be preempted by another one on the
//!   same CPU: that is the borrow `&mut Cx`. A call does not sleep, does no I/O and touches no
//!   memory but the slices that it is given, which have to be the kernel's own: bytes of a program
//!   are copied before and after.
//! - An open file and a working directory are a [`InodeHandle`], which is given back by
//!   [`Cx::close`], from any CPU. Paths are followed from any [`Inode`], as `openat` has it; one
//!   that begins with a slash begins at [`Fs::root`].
//! - [`Errno::number`] is what Linux' programs expect. Devices and pipes are names only:
//!   [`Cx::mknod`], and the kernel looks at [`Stat::device`].
//! - [`Cx::set_time`] sets the time that calls write into inodes. It may be a tick: a line of times
//!   is written once in a tick.
//!
//! # Reading twice
//!
//! Under MV-RLU, a thread that asks a second time in the same section gets the same answer: code
//! that waits in this way for a change waits for ever. So there are two views, and they are types:
//! [`Current`], which answers each question anew, and [`Moment`], in which nothing ever changes.
//! Results cannot be taken out of their view, and restarting ends the view.
//!
//! # How it is made
//!
//! The book's page *The file system of KhronOS*; and the pages of the modules.
#![no_std]
#![deny(unsafe_code)]

extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod calls;
mod check;
mod errno;
mod file;
mod fs;
mod inode;
mod name;
mod options;
mod record;
#[allow(unsafe_code, reason = "the one place in which the compiler is told rather than asked")]
mod sync;
mod view;
mod walk;

pub use self::calls::attributes::Stat;
pub use self::calls::list::Entry;
pub use self::calls::make::Open;
pub use self::calls::rename::Rename;
pub use self::check::Totals;
pub use self::errno::Errno;
pub use self::file::{PageBytes, Taken};
pub use self::fs::{At, Cx, Fs, Retries};
pub use self::inode::{Inode, Kind, MODE_KIND};
pub use self::name::NAME_MAX;
pub use self::options::{Options, Sync, UnknownSync, Walk};
pub use self::record::{Changed, ChangedData, ChangedName, Changes, Restored, Which};
pub use self::sync::held::InodeHandle;
pub use self::view::{Again, Current, Item, Moment};
pub use self::walk::PATH_MAX;
