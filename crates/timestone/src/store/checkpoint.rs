//! Writing images, while transactions go on.
//!
//! An image begins at one position of the journal and ends at a later one. Between the two, a
//! thread copies the heap run by run. It copies each run in a session of its own, which sees the
//! state that is on the disk by then. So the image is not of a single moment. But from the begin
//! on, the journal has the new words of each transaction. Applied in order, they bring every object
//! to its state at the end, whichever state the image had.
//!
//! No session lasts longer than the copy of one run, so old versions are freed as soon as usual,
//! however large the store is. The thread writes nothing to the disk in a session, or with the
//! leader's lock held. Commits wait for an image only if the journal becomes full first.

use std::time::Duration;

use manycore::session::RawSession;
use manycore::sync::mutation;

use super::domain::Handle;
use super::flusher::{Flusher, Leader};
use super::monitor::Held;
use crate::device::Storage;
use crate::error::Result;
use crate::heap;
use crate::heap::words::with_words;
use crate::volume::{Backup, Begin, ImageWriter, Images};

/// After an image that could not be written, the next one is tried when this additional part of the
/// journal has been filled.
const RETRY_PART: u64 = 8;

impl Flusher {
    /// Writes all commits so far, and an image. `is_last`: no other thread uses the store, and
    /// nothing will be written afterwards.
    pub fn checkpoint(&self, is_last: bool) -> Result<()> {
        self.check_process()?;
        self.sync()?;
        match &mut *self.images.lock() {
            Some(images) => self.write_image(images, is_last),
            None => Ok(()),
        }
    }

    /// Writes an image if the journal is too full for the leader's records.
    pub(super) fn make_room(&self) -> Result<()> {
        let mut images = self.images.lock();
        match &mut *images {
            // Another thread may have made room while this one waited for the lock.
            Some(images) if !self.leader.lock().has_room() => self.write_image(images, false),
            _ => Ok(()),
        }
    }

    /// Writes images when they are due, until the store is closed.
    pub fn image_in_background(&self) {
        self.images_due.answer(Duration::ZERO, || {
            let mut images = self.images.lock();
            let mut leader = self.leader.lock();
            if let Some(images) = &mut *images
                && leader.journal.used() >= leader.image_at
            {
                leader.image_at = leader.journal.used() + leader.journal.capacity() / RETRY_PART;
                drop(leader);
                // The error also goes to the thread that finds the journal full and tries again.
                let _ = self.write_image(images, false);
            }
            true
        });
    }

    /// Writes a copy of the store into other files: all earlier commits, and perhaps some
    /// concurrent ones. The journal keeps all frames until then.
    pub fn back_up(&self, storage: &dyn Storage) -> Result<()> {
        self.check_process()?;
        self.sync()?;
        let images = self.images.lock();
        let images = images.as_ref().expect("a store in memory is copied by `write_memory`");
        let backup = images.back_up_to(storage)?;
        let begin = self.begin_image()?;
        let image = self.capture(backup.image()).and_then(ImageWriter::finish);
        let (image, region, end, sharp) = {
            let mut leader = self.end_image();
            let image = image?;
            self.flush(&mut leader)?;
            let journal = &leader.journal;
            let region = journal.region().expect("a store with images has a journal");
            (image, region.clone(), journal.end(), journal.horizon())
        };
        backup.finish(storage, (image, begin), (&region, end), sharp)
    }

    /// Writes a copy of a store in memory. There is no journal from which recovery could restore a
    /// single moment, so the objects are read as of one moment. Meanwhile no thread leads.
    pub fn write_memory(&self, backup: Backup, storage: &dyn Storage) -> Result<()> {
        self.sync()?;
        let _leader = self.leader.lock();
        let image = self.capture(backup.image())?.finish()?;
        backup.finish_closed(storage, image, self.domain.floor())
    }

    /// Begins an image. From now on until its [end](Self::end_image) frames have the new words of
    /// objects rather than calls of operations, because the image has each object as of some moment
    /// in between.
    fn begin_image(&self) -> Result<Begin> {
        let mut leader = self.leader.lock();
        self.flush(&mut leader)?;
        // The planted mistake: calls run again over objects that already have their effects.
        leader.is_values_only = !mutation!("image-beside-calls");
        Ok(Begin::at(&leader.journal, self.durable()))
    }

    /// Ends an image that was read completely: no object in it is newer than the journal's contents
    /// now.
    fn end_image(&self) -> Held<'_, Leader> {
        let mut leader = self.leader.lock();
        leader.is_values_only = false;
        leader
    }

    /// Writes an image, and frees the part of the journal that the image covers.
    fn write_image(&self, images: &mut Images, is_last: bool) -> Result<()> {
        let begin = self.begin_image()?;
        // The mistake: frames are written over that the present superblock needs.
        if mutation!("journal-early-release") {
            self.leader.lock().journal.release(begin.mark);
        }
        let image = self.capture(images.begin()).and_then(ImageWriter::finish);
        // What a session has read, was in a frame by then.
        let (image, sharp) = {
            let leader = self.end_image();
            leader.journal.check()?;
            (image?, leader.journal.horizon())
        };
        let published = images.publish(image, begin, sharp, is_last);
        let mut leader = self.leader.lock();
        match &published {
            Ok(()) => {
                leader.journal.release(begin.mark);
                leader.image_at = leader.journal.capacity() / 2;
                leader.stats.images += 1;
            }
            Err(cause) => {
                leader.journal.poison(cause);
                self.note_poison(&leader);
            }
        }
        published
    }

    /// Copies all existing runs. Frames after the image's begin create the objects of later runs.
    fn capture(&self, mut image: ImageWriter) -> Result<ImageWriter> {
        let mut handle = self.domain.register();
        for run in 0..self.heap.runs() {
            self.capture_run(&mut handle, run, &mut image);
            image.write()?;
        }
        Ok(image)
    }

    fn capture_run(&self, handle: &mut Handle<'_>, run: usize, image: &mut ImageWriter) {
        // SAFETY: this is one session, from begin to end. Afterwards the heap is asked for the live
        // objects: it knows all that were made or have ended up to the floor. So a live object had
        // not ended at the time of the session, and has the number of words of its run.
        unsafe {
            let horizon = handle.begin_at_floor(0);
            let (words, places) = self.heap.live_in(run);
            with_words!(words, |W| {
                let objects = places.iter().map(|place| {
                    let object = &*handle.deref(self.heap.link::<W>(*place));
                    heap::whole(*place, zerocopy::IntoBytes::as_bytes(object))
                });
                if !places.is_empty() {
                    image.push(horizon, objects);
                }
            });
            handle.abort();
        }
    }
}
