//! A program that writes transactions, and knows the required state after a crash.

use std::collections::BTreeMap;

use fastrand::Rng;
use timestone::device::{Simulated, Storage};
use timestone::journal::frame::Builder;
use timestone::journal::record::{ALLOCATED, Entry, FREED};
use timestone::volume::{Begin, Recovered, Source, Target, Volume};
use timestone::{Error, Result};

/// The journal's length: some frames, and then an image has to be written.
pub const JOURNAL: u64 = 9 * 4096;

/// Objects by their places.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Objects(pub BTreeMap<u64, Vec<u8>>);

impl Target for Objects {
    fn apply(&mut self, source: Source<'_>, entry: Entry<'_>) -> Result<(), String> {
        let (place, length) = (entry.place, usize::from(entry.size) * 8);
        let is_there = self.0.contains_key(&place);
        if source.is_sharp() && is_there == entry.is_new() {
            return Err(format!("object {place} is made twice, or is not there"));
        }
        if entry.is_new() {
            self.0.insert(place, vec![0; length]);
        }
        // An object that ends before it was written into the image is not in it.
        let Some(object) = self.0.get_mut(&place) else { return Ok(()) };
        if object.len() != length {
            if source.is_sharp() {
                return Err(format!("object {place} has {} bytes, not {length}", object.len()));
            }
            // It is of another object, which is made later.
            return Ok(());
        }
        let first = usize::from(entry.first) * 8;
        object[first..first + entry.words.len()].copy_from_slice(entry.words);
        if entry.is_end() {
            self.0.remove(&place);
        }
        Ok(())
    }
}

impl Objects {
    pub fn entries(&self) -> impl Iterator<Item = Entry<'_>> {
        self.0.iter().map(|(place, words)| Entry::whole(*place, words))
    }
}

/// A program over a store.
pub struct Engine {
    pub volume: Volume,
    pub objects: Objects,
    /// All states that the store was in, by their horizons.
    pub states: BTreeMap<u64, Objects>,
    /// The acknowledged state: the number of the disk's calls by then, and the horizon.
    pub acknowledged: Vec<(usize, u64)>,
    horizon: u64,
    /// Transactions that are in no frame yet.
    pub frame: Builder,
}

pub fn recover(storage: &dyn Storage) -> Result<(Recovered, Objects)> {
    let mut objects = Objects::default();
    let recovered = Recovered::read(storage, JOURNAL, &mut objects)?;
    Ok((recovered, objects))
}

impl Engine {
    pub fn open(storage: &dyn Storage) -> Result<Self> {
        let (recovered, objects) = recover(storage)?;
        let horizon = recovered.horizon;
        let volume = recovered.start(&mut objects.entries())?;
        let states = BTreeMap::from([(horizon, objects.clone())]);
        let frame = Builder::default();
        Ok(Self { volume, objects, states, acknowledged: Vec::new(), horizon, frame })
    }

    /// Opens the store again, and goes on.
    pub fn reopen(&mut self, storage: &dyn Storage) -> Result<()> {
        let again = Self::open(storage)?;
        assert_eq!((again.horizon, &again.objects), (self.horizon, &self.objects));
        self.volume = again.volume;
        Ok(())
    }

    /// One transaction, which is in the next frame.
    pub fn transact(&mut self, rng: &mut Rng) {
        self.horizon += rng.u64(1..5);
        let mut touched = Vec::new();
        for _ in 0..rng.usize(1..4) {
            let place = rng.u64(0..12) * 64;
            if touched.iter().all(|(at, ..): &(u64, u16, u16, Vec<u8>, u16)| *at != place) {
                touched.push(self.change(place, rng));
            }
        }
        let entries = touched.iter().map(|(place, size, first, words, flags)| Entry {
            place: *place,
            size: *size,
            first: *first,
            words,
            flags: *flags,
        });
        for entry in entries.clone() {
            self.objects.apply(Source::Image, entry).expect("the program's transactions are right");
        }
        self.frame.push(self.horizon, entries);
        self.states.insert(self.horizon, self.objects.clone());
    }

    fn change(&self, place: u64, rng: &mut Rng) -> (u64, u16, u16, Vec<u8>, u16) {
        let is_there = self.objects.0.get(&place).map(|words| words.len() / 8);
        let size = is_there.unwrap_or_else(|| rng.usize(1..200));
        let first = rng.usize(0..size);
        let count = rng.usize(1..=size - first);
        let words = (0..count * 8).map(|_| rng.u8(..)).collect();
        let flags = match is_there {
            None => ALLOCATED,
            Some(_) if rng.u8(..4) == 0 => FREED,
            Some(_) => 0,
        };
        (place, size as u16, first as u16, words, flags)
    }

    /// Writes the frame, and an image before that if the journal has no room.
    pub fn flush(&mut self) -> Result<()> {
        match self.append() {
            Err(Error::Full(_)) => {
                // What is in the journal already: the state before this frame.
                self.image(false)?;
                self.append()
            }
            result => result,
        }
    }

    /// Writes the frame, if the journal has room.
    pub fn append(&mut self) -> Result<()> {
        self.write()?;
        self.volume.journal.flush()
    }

    /// Writes the frame, if the journal has room, and does not flush it.
    pub fn write(&mut self) -> Result<()> {
        if !self.frame.is_empty() {
            self.volume.journal.write(&mut self.frame, self.horizon)?;
            self.frame.clear();
        }
        Ok(())
    }

    /// Writes an image of the state that is on the disk.
    pub fn image(&mut self, is_last: bool) -> Result<()> {
        self.image_in_pieces(1, is_last, |_| Ok(()))
    }

    /// Writes an image in this number of pieces, each with the state that is on the disk by then.
    /// Other actions come before each piece.
    pub fn image_in_pieces(
        &mut self,
        pieces: u64,
        is_last: bool,
        mut before: impl FnMut(&mut Self) -> Result<()>,
    ) -> Result<()> {
        self.volume.journal.flush()?;
        let begin = Begin::at(&self.volume.journal, 0);
        let mut image = self.volume.images.begin();
        for piece in 0..pieces {
            before(self)?;
            let horizon = self.volume.journal.horizon();
            let objects = self.states[&horizon].entries();
            image.push(horizon, objects.filter(|entry| entry.place / 64 % pieces == piece));
            image.write()?;
        }
        let image = image.finish()?;
        before(self)?;
        let sharp = self.volume.journal.horizon();
        let published = self.volume.images.publish(image, begin, sharp, is_last);
        published.inspect_err(|cause| self.volume.journal.poison(cause))?;
        self.volume.journal.release(begin.mark);
        Ok(())
    }

    /// Writes an image in pieces, and transactions meanwhile, as long as the journal has room. All
    /// of them are acknowledged.
    pub fn image_beside_frames(&mut self, disk: &Simulated, rng: &mut Rng) -> Result<()> {
        self.image_in_pieces(4, false, |engine| {
            for _ in 0..rng.usize(..2) {
                if engine.frame.is_empty() {
                    (0..rng.usize(1..4)).for_each(|_| engine.transact(rng));
                }
                match engine.append() {
                    Ok(()) => engine.acknowledge(disk),
                    // It is tried again after the image.
                    Err(Error::Full(_)) => break,
                    Err(error) => return Err(error),
                }
            }
            Ok(())
        })?;
        if !self.frame.is_empty() {
            self.flush()?;
            self.acknowledge(disk);
        }
        Ok(())
    }

    pub fn acknowledge(&mut self, disk: &Simulated) {
        self.acknowledged.push((disk.calls(), self.horizon));
    }

    /// The required state if the power is cut after `calls` calls.
    pub fn promised(&self, calls: usize) -> u64 {
        let before = self.acknowledged.iter().take_while(|(at, _)| *at <= calls).last();
        before.map_or(0, |(_, horizon)| *horizon)
    }

    /// Checks that a disk has a state with all that was promised.
    #[track_caller]
    pub fn judge(&self, recovered: &Recovered, objects: &Objects, promised: u64) {
        let horizon = recovered.horizon;
        assert!(horizon >= promised, "lost: {horizon} is there, {promised} was acknowledged");
        let empty = Objects::default();
        let state = self.states.get(&horizon).or((horizon == 0).then_some(&empty));
        let state = state.unwrap_or_else(|| panic!("{horizon} is no commit"));
        assert_eq!(objects, state, "not the state of {horizon}");
    }

    /// Frames for which no thread waits: they are on the disk with the next flushed one.
    fn write_unflushed(&mut self, rng: &mut Rng) {
        for _ in 0..rng.usize(1..4) {
            self.transact(rng);
            if let Err(error) = self.write() {
                assert!(matches!(error, Error::Full(_)), "{error}");
                return;
            }
        }
    }

    /// Transactions in frames, images, and a reopening now and then.
    pub fn run(&mut self, disk: &Simulated, rng: &mut Rng, frames: usize) {
        for _ in 0..frames {
            if rng.u8(..3) == 0 {
                self.write_unflushed(rng);
            }
            (0..rng.usize(1..4)).for_each(|_| self.transact(rng));
            self.flush().expect("the disk is sound");
            self.acknowledge(disk);
            match rng.u8(..12) {
                0 => self.image(false).expect("the disk is sound"),
                3..6 => {
                    self.image_beside_frames(disk, rng).expect("the disk is sound");
                }
                1 => self.reopen(disk).expect("the disk is sound"),
                2 => {
                    self.image(true).expect("the disk is sound");
                    self.reopen(disk).expect("the disk is sound");
                }
                _ => {}
            }
        }
    }
}
