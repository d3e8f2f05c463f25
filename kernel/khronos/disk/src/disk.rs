//! A file system on a disk: batches, checkpoints, recovery.

use alloc::collections::BTreeSet;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

use crate::bytes::{Reader, checksum};
use crate::device::{BLOCK_BYTES, Block, Device, DeviceError, read_bytes, write_bytes, zeros};
use crate::image::{Image, runs};
use crate::layout::{BLOCKS_MIN, Layout, Super};
use crate::record::Record;

/// The header of a batch's records: the batch's number, the number of bytes of the records, and a
/// checksum of both and of the records.
const HEADER: usize = 8 + 8 + 4;

/// Why a disk cannot be used, or a batch is not durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The disk has failed. From then on nothing is written to it.
    Device,
    /// There is no file system of ours on the disk, or both super blocks or their checkpoint are
    /// damaged.
    NotFormatted,
    /// The disk has too few blocks.
    TooSmall,
    /// No blocks are left for pages, or the checkpoint has become too large. Nothing of the batch
    /// was written.
    Full,
}

impl From<DeviceError> for Error {
    fn from(_: DeviceError) -> Self {
        Self::Device
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Device => "the disk has failed to read or write",
            Self::NotFormatted => "no file system of KhronOS is on the disk: make one with mkfs",
            Self::TooSmall => "the disk is too small: it needs 32 blocks of 4 KiB",
            Self::Full => "no room is left on the disk",
        })
    }
}

impl core::error::Error for Error {}

/// A page of a file, to be written.
#[derive(Clone, Copy, Debug)]
pub struct Page<'a> {
    /// The file.
    pub number: u64,
    /// Which page.
    pub page: u64,
    /// Its bytes.
    pub data: &'a Block,
}

/// A written page that no batch has yet.
#[derive(Debug)]
#[must_use = "it has a block, which is to be given up or to get into a batch"]
pub struct Staged {
    number: u64,
    page: u64,
    block: u64,
}

/// A disk with a file system, and its durable contents.
#[derive(Debug)]
pub struct Disk<D> {
    device: D,
    layout: Layout,
    image: Image,
    epoch: u64,
    /// The number of the next batch, and where in the journal it goes.
    batch: u64,
    position: u64,
    /// Free blocks for pages.
    free: BTreeSet<u64>,
    has_failed: bool,
}

impl<D: Device> Disk<D> {
    /// Makes an empty file system, whatever is on the disk.
    ///
    /// # Errors
    ///
    /// If the disk fails, or is too small.
    pub fn format(mut device: D) -> Result<Self, Error> {
        if device.blocks() < BLOCKS_MIN {
            return Err(Error::TooSmall);
        }
        // An older super block must not win.
        (0..2).try_for_each(|block| device.write(block, &zeros()))?;
        device.flush()?;
        let layout = Layout::new(device.blocks());
        let image = Image::default();
        let mut disk = Self::with(device, layout, image, 0, 0);
        disk.checkpoint()?;
        Ok(disk)
    }

    /// Opens the disk and finds the durable contents. A second call finds the same, because nothing
    /// is written.
    ///
    /// # Errors
    ///
    /// If the disk fails, or there is no file system.
    pub fn open(device: D) -> Result<Self, Error> {
        let supers = Self::supers(&device)?;
        for found in supers {
            let Some(image) = Self::read_checkpoint(&device, &found)? else { continue };
            let Super { layout, epoch, batch, .. } = found;
            let mut disk = Self::with(device, layout, image, epoch, batch);
            disk.replay()?;
            return Ok(disk);
        }
        Err(Error::NotFormatted)
    }

    fn with(device: D, layout: Layout, image: Image, epoch: u64, batch: u64) -> Self {
        let mut free: BTreeSet<u64> = layout.pages().collect();
        for (_, file) in image.files() {
            file.pages.values().for_each(|block| _ = free.remove(block));
        }
        Self { device, layout, image, epoch, batch, position: 0, free, has_failed: false }
    }

    /// The undamaged super blocks, the later one first.
    fn supers(device: &D) -> Result<Vec<Super>, Error> {
        let (mut found, mut block) = (Vec::new(), zeros());
        for number in 0..2.min(device.blocks()) {
            device.read(number, &mut block)?;
            found.extend(Super::read(&block, device.blocks()));
        }
        found.sort_by_key(|found| core::cmp::Reverse(found.epoch));
        Ok(found)
    }

    fn read_checkpoint(device: &D, found: &Super) -> Result<Option<Image>, Error> {
        let blocks = found.layout.checkpoint_of(found.epoch);
        let Ok(length) = usize::try_from(found.bytes) else { return Ok(None) };
        let bytes = read_bytes(device, blocks.start, length)?;
        if checksum(&[&bytes]) != found.checksum {
            return Ok(None);
        }
        let Ok(records) = Record::read_all(&bytes) else { return Ok(None) };
        let mut image = Image::default();
        image.apply(&records);
        Ok(Some(image))
    }

    /// Applies the batches of the journal, up to the first incomplete one.
    fn replay(&mut self) -> Result<(), Error> {
        while let Some((records, blocks)) = self.read_batch()? {
            self.apply(&records);
            self.batch += 1;
            self.position += blocks;
        }
        Ok(())
    }

    fn read_batch(&self) -> Result<Option<(Vec<Record>, u64)>, Error> {
        let journal = self.layout.journal_of(self.epoch);
        let begin = journal.start + self.position;
        if begin >= journal.end {
            return Ok(None);
        }
        let mut first = zeros();
        self.device.read(begin, &mut first)?;
        let mut header = Reader(&first[..HEADER]);
        let (Ok(number), Ok(length), Ok(sum)) = (header.u64(), header.u64(), header.u32()) else {
            return Ok(None);
        };
        let room = (journal.end - begin) * BLOCK_BYTES as u64 - HEADER as u64;
        if number != self.batch || length > room {
            return Ok(None);
        }
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        let bytes = read_bytes(&self.device, begin, HEADER + length)?;
        if checksum(&[&bytes[..16], &bytes[HEADER..]]) != sum {
            return Ok(None);
        }
        // Its checksum is right, so its contents are as they were written.
        let records = Record::read_all(&bytes[HEADER..]).map_err(|_| Error::NotFormatted)?;
        Ok(Some((records, bytes.len().div_ceil(BLOCK_BYTES) as u64)))
    }

    /// What is durable.
    pub fn image(&self) -> &Image {
        &self.image
    }

    /// How many batches there were, ever.
    pub fn batches(&self) -> u64 {
        self.batch
    }

    /// The disk itself.
    pub fn into_device(self) -> D {
        self.device
    }

    /// Makes a batch durable, and pages that go with it: all of it, or none.
    ///
    /// # Errors
    ///
    /// [`Error::Full`], with no effect; or if the disk fails, now or before. Then it is unknown
    /// whether the batch is durable, and no further one is written.
    pub fn commit(&mut self, records: Vec<Record>, pages: &[Page<'_>]) -> Result<(), Error> {
        self.has_not_failed()?;
        if self.free_blocks() < pages.len() as u64 {
            return Err(Error::Full);
        }
        let staged = pages.iter().map(|page| self.stage(page)).collect::<Result<_, _>>()?;
        self.commit_staged(records, staged)
    }

    /// Writes a page to an unused block. The page belongs to the file once a batch [refers to
    /// it](Self::commit_staged); after a crash before that, the block is unused.
    ///
    /// # Errors
    ///
    /// [`Error::Full`] if there is no such block; or if the disk fails, now or before.
    pub fn stage(&mut self, page: &Page<'_>) -> Result<Staged, Error> {
        self.has_not_failed()?;
        let block = self.free.pop_first().ok_or(Error::Full)?;
        let written = self.device.write(block, page.data);
        self.has_failed |= written.is_err();
        written?;
        Ok(Staged { number: page.number, page: page.page, block })
    }

    /// Pages that were written are free again.
    pub fn give_up(&mut self, staged: impl IntoIterator<Item = Staged>) {
        self.free.extend(staged.into_iter().map(|staged| staged.block));
    }

    /// As [`commit`](Self::commit), with pages that are already written, each of them once.
    ///
    /// # Errors
    ///
    /// As of [`commit`](Self::commit). The pages are given up.
    pub fn commit_staged(
        &mut self,
        mut records: Vec<Record>,
        mut staged: Vec<Staged>,
    ) -> Result<(), Error> {
        self.has_not_failed()?;
        staged.sort_unstable_by_key(|staged| (staged.number, staged.page));
        for of_file in staged.chunk_by(|one, next| one.number == next.number) {
            let pages = of_file.iter().map(|staged| (staged.page, staged.block));
            records.extend(runs(of_file[0].number, pages));
        }
        let result = self.write(&records, !staged.is_empty());
        self.has_failed |= result == Err(Error::Device);
        if result.is_err() {
            self.give_up(staged);
        }
        result
    }

    /// Whether batches can still be written.
    ///
    /// # Errors
    ///
    /// If the disk has failed.
    pub fn has_not_failed(&self) -> Result<(), Error> {
        if self.has_failed { Err(Error::Device) } else { Ok(()) }
    }

    fn write(&mut self, records: &[Record], has_pages: bool) -> Result<(), Error> {
        let mut bytes = vec![0; HEADER];
        records.iter().for_each(|record| record.write(&mut bytes));
        let room = self.layout.journal - self.position;
        let fits = bytes.len().div_ceil(BLOCK_BYTES) as u64 <= room;
        let mut image = self.image.clone_if(!fits);
        if let Some(image) = &mut image {
            image.apply(records);
            self.fits(image)?;
        }
        if has_pages {
            self.device.flush()?;
        }
        if !fits {
            // A checkpoint has all that the batch would say.
            self.apply(records);
            self.batch += 1;
            return self.checkpoint();
        }
        self.append(bytes)?;
        self.apply(records);
        if self.position * 2 > self.layout.journal && self.fits(&self.image).is_ok() {
            self.checkpoint()?;
        }
        Ok(())
    }

    /// Writes a batch into the journal.
    fn append(&mut self, mut bytes: Vec<u8>) -> Result<(), Error> {
        bytes[..8].copy_from_slice(&self.batch.to_le_bytes());
        let length = (bytes.len() - HEADER) as u64;
        bytes[8..16].copy_from_slice(&length.to_le_bytes());
        let sum = checksum(&[&bytes[..16], &bytes[HEADER..]]);
        bytes[16..HEADER].copy_from_slice(&sum.to_le_bytes());
        let begin = self.layout.journal_of(self.epoch).start + self.position;
        write_bytes(&mut self.device, begin, &bytes)?;
        self.device.flush()?;
        self.batch += 1;
        self.position += bytes.len().div_ceil(BLOCK_BYTES) as u64;
        Ok(())
    }

    /// Changes the durable contents. Only from now on, blocks that were given up are free.
    fn apply(&mut self, records: &[Record]) {
        let freed = self.image.apply(records);
        for record in records {
            if let Record::Pages { block, count, .. } = record {
                (*block..block + count).for_each(|block| _ = self.free.remove(&block));
            }
        }
        let pages = self.layout.pages();
        self.free.extend(freed.into_iter().filter(|block| pages.contains(block)));
    }

    /// Whether a checkpoint of an image has room.
    fn fits(&self, image: &Image) -> Result<(), Error> {
        let bytes = checkpoint_bytes(image).len();
        let blocks = bytes.div_ceil(BLOCK_BYTES) as u64;
        if blocks <= self.layout.checkpoint { Ok(()) } else { Err(Error::Full) }
    }

    /// Writes all that is known, and begins another epoch with it.
    fn checkpoint(&mut self) -> Result<(), Error> {
        let bytes = checkpoint_bytes(&self.image);
        let found = Super {
            layout: self.layout,
            epoch: self.epoch + 1,
            batch: self.batch,
            bytes: bytes.len() as u64,
            checksum: checksum(&[&bytes]),
        };
        write_bytes(&mut self.device, self.layout.checkpoint_of(found.epoch).start, &bytes)?;
        self.device.flush()?;
        let mut block = zeros();
        found.write(&mut block);
        self.device.write(found.block(), &block)?;
        self.device.flush()?;
        (self.epoch, self.position) = (found.epoch, 0);
        Ok(())
    }

    /// Reads a page of a file: zeros if it was never written.
    ///
    /// # Errors
    ///
    /// If the disk fails.
    pub fn read_page(&self, number: u64, page: u64, into: &mut Block) -> Result<(), Error> {
        match self.image.file(number).and_then(|file| file.pages.get(&page)) {
            Some(block) => self.device.read(*block, into)?,
            None => into.fill(0),
        }
        Ok(())
    }

    /// Free blocks for pages.
    pub fn free_blocks(&self) -> u64 {
        self.free.len() as u64
    }

    pub(crate) fn layout(&self) -> Layout {
        self.layout
    }
}

impl Image {
    fn clone_if(&self, wanted: bool) -> Option<Self> {
        wanted.then(|| self.clone())
    }
}

fn checkpoint_bytes(image: &Image) -> Vec<u8> {
    let mut bytes = Vec::new();
    image.records().iter().for_each(|record| record.write(&mut bytes));
    bytes
}
