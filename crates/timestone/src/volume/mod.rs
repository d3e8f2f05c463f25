//! The files of a store: what is written to them in which order, and how they are read again.
//!
//! | file | what is in it |
//! |---|---|
//! | `store` | the superblock, twice |
//! | `journal` | which store it belongs to; from byte 4096 on, the frames of the present life |
//! | `image.0`, `image.1` | all objects at one moment, as frames; the superblock says which one counts |
//!
//! # Order of writes
//!
//! *A commit* is a frame, written behind the last one and flushed. The next frame is written after
//! that flush has returned: so at most one frame can be torn, and it is the last one, which nobody
//! was told of.
//!
//! *A new image* goes to the file that does not count, and is flushed; then a superblock says that
//! it counts, and begins a new life of the journal; only then is the journal written from its begin
//! again. Between any two calls either the old superblock counts, whose image and frames are all
//! there, or the new one.
//!
//! *Opening* never goes on behind the last frame: what was read may come from the page cache, and
//! may never have got to the disk. It writes a new image first, unless the store was closed and the
//! journal is empty.
//!
//! *A write that fails* has written a part of a frame, which the next attempt overwrites: its
//! records wait. *A flush that fails* leaves it unknown what the disk has, and so does a superblock
//! that could not be written. The volume then writes nothing any more (`Error::Poisoned`).

mod files;
mod recovery;
mod writer;

pub use recovery::{Recovered, Target};
pub use writer::Volume;
