//! The files of a store: what is written to them in which order, and how they are read again.
//!
//! | file | what is in it |
//! |---|---|
//! | `store` | the [superblock](crate::superblock), twice |
//! | `journal` | which store it belongs to; from byte 4096 on, the frames of the present life |
//! | `image.0`, `image.1` | all objects, as frames; the superblock says which one counts |
//!
//! # Order of writes
//!
//! *A commit* is in a frame, which is written behind the last one. Nobody is told that it is
//! durable before a flush has returned. One thread at a time writes or flushes; a frame says which
//! frames before it had been flushed when it was written. So what a power cut has torn is told from
//! damage: behind a frame that is missing there is none that was written after its flush.
//!
//! *A new image* goes to the file that does not count, while frames are written: each object is as
//! it was at some moment between two times, the image's begin and its end. It is flushed; then a
//! superblock says that it counts, and the journal from its begin on; only then are other frames
//! written over those before. Between any two calls either the old superblock counts, whose image
//! and frames are all there, or the new one.
//!
//! *Frames* say which words an object has after a transaction, and not what happened to them. So
//! those between an image's begin and its end may be applied to objects that have them already, and
//! all objects are right when the last of these is.
//!
//! *Opening* never goes on behind the last frame: what was read may come from the page cache, and
//! may never have got to the disk. It writes a new image first, and begins a new life of the
//! journal, unless the store was closed and the journal is empty.
//!
//! *A write that fails* has written a part of a frame, which the next attempt overwrites: its
//! records wait. *A flush that fails* leaves it unknown what the disk has, and so does a superblock
//! that could not be written. Nothing is written then any more
//! ([`Error::Poisoned`](crate::Error::Poisoned)). An image that could not be written does not
//! count, and nothing else has changed.

mod backup;
mod files;
mod image;
mod images;
mod journal;
mod recovery;

pub use backup::Backup;
pub use image::ImageWriter;
pub use images::{Begin, Images};
pub use journal::Journal;
pub use recovery::{Recovered, Source, Target, Volume};
