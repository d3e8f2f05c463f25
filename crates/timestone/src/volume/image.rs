//! Writing an image.

use std::sync::Arc;

use manycore::sync::mutation;

use crate::device::Device;
use crate::error::{Error, Result};
use crate::journal::frame::{Builder, Life, Link};
use crate::journal::record::Entry;
use crate::superblock::Image;

/// The size from which on a frame of an image is written.
const FRAME_BYTES: usize = 256 << 10;
/// The image is flushed after each of these many bytes. The disk executes a commit's flush after
/// the data that it was given before, so the commit does not have to wait for the whole image.
const FLUSH_BYTES: u64 = 4 << 20;

/// An image that is being written.
pub struct ImageWriter {
    device: Arc<dyn Device>,
    name: &'static str,
    /// Its number.
    file: usize,
    life: Life,
    builder: Builder,
    /// The horizon of the objects in the builder.
    horizon: u64,
    next: Link,
    bytes: u64,
    flushed: u64,
}

impl ImageWriter {
    /// Creates a writer for a file with a name and a number.
    pub(super) fn new(
        device: Arc<dyn Device>,
        (name, file): (&'static str, usize),
        generation: u64,
    ) -> Self {
        Self {
            device,
            name,
            file,
            life: Life::new(generation),
            builder: Builder::default(),
            horizon: 0,
            next: Link::FIRST,
            bytes: 0,
            flushed: 0,
        }
    }

    /// Adds objects, as they were at this time. Writes nothing.
    pub fn push<'e>(&mut self, horizon: u64, objects: impl Iterator<Item = Entry<'e>>) {
        self.horizon = self.horizon.max(horizon);
        self.builder.push(horizon, objects);
    }

    /// Writes what was taken, if it is enough for a frame.
    ///
    /// # Errors
    ///
    /// [`Error::Full`] or another of the device.
    pub fn write(&mut self) -> Result<()> {
        if self.builder.size() < FRAME_BYTES { Ok(()) } else { self.write_frame() }
    }

    fn write_frame(&mut self) -> Result<()> {
        let doing = self.doing();
        let (bytes, next) = self.builder.seal(self.life, self.next, self.horizon, 0);
        self.device.write_at(self.bytes, bytes).map_err(Error::io(doing))?;
        self.bytes += bytes.len() as u64;
        self.next = next;
        self.builder.clear();
        if self.bytes - self.flushed >= FLUSH_BYTES { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<()> {
        self.flushed = self.bytes;
        self.device.flush().map_err(Error::io(self.doing()))
    }

    /// Writes these objects, as of this time, and returns when the image is on the disk.
    pub(super) fn write_all<'e>(
        mut self,
        horizon: u64,
        objects: &mut dyn Iterator<Item = Entry<'e>>,
    ) -> Result<Image> {
        for object in objects {
            self.push(horizon, core::iter::once(object));
            self.write()?;
        }
        self.finish()
    }

    /// Writes the rest, and returns when the image is on the disk.
    ///
    /// # Errors
    ///
    /// As of [`write`](Self::write).
    pub fn finish(mut self) -> Result<Image> {
        // An image without objects has a frame, too.
        if !self.builder.is_empty() || self.bytes == 0 {
            self.write_frame()?;
        }
        // What an earlier image has left behind it.
        self.device.cut(self.bytes).map_err(Error::io(self.doing()))?;
        // The mistake: the superblock gets to the disk before the image.
        if !mutation!("image-unflushed") {
            self.flush()?;
        }
        let Self { file, life, next: end, bytes, .. } = self;
        Ok(Image { file, life, end, bytes })
    }

    fn doing(&self) -> String {
        format!("write {}", self.name)
    }
}
