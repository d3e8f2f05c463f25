//! The files of a store, the order of their writes, and how they are read again.
//!
//! | file | what is in it |
//! |---|---|
//! | `store` | the [superblock](crate::superblock), twice |
//! | `journal` | which store it belongs to; from byte 4096 on, the frames of the present life |
//! | `image.0`, `image.1` | all objects, as frames; the superblock says which one counts |
//!
//! # Order of writes
//!
//! *A commit* is in a frame, which is written behind the last one. No thread is told that the
//! commit is durable before a flush has returned. One thread at a time writes or flushes. Each
//! frame names the frames that had been flushed when it was written. That distinguishes a torn
//! frame from damage: behind a frame that a power cut has torn, there is no frame that was written
//! after the torn frame's flush.
//!
//! *A new image* goes to the file that is not in use, while frames are written: each object is as
//! of some moment between the image's begin and its end. The image is flushed. Then a superblock
//! makes it count, with the journal from its begin on. Only then do other frames overwrite the
//! earlier ones. So between any two calls, either the old superblock counts, and its image and
//! frames are complete, or the new one does.
//!
//! *Frames* have the values of words after a transaction, and not the changes. So the frames
//! between an image's begin and its end may be applied to objects that have those values already,
//! and all objects are right after the last of these frames.
//!
//! *Opening* never appends to the last frame: the data that was read may come from the page cache,
//! and may never have got to the disk. Opening writes a new image first, and begins a new life of
//! the journal, unless the store was closed and the journal is empty.
//!
//! *A write that fails* has written a part of a frame, which the next attempt overwrites; its
//! records wait. *A flush that fails* leaves the disk's contents unknown, and so does a superblock
//! that could not be written. After that nothing is written any more
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
