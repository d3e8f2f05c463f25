//! A program that writes transactions, and knows what has to be there after a crash.

use std::collections::BTreeMap;

use fastrand::Rng;
use timestone::device::{Simulated, Storage};
use timestone::journal::frame::Builder;
use timestone::journal::record::{ALLOCATED, Entry, FREED};
use timestone::volume::{Recovered, Target, Volume};
use timestone::{Error, Result};

/// The journal's length: some frames, and then an image has to be written.
pub const JOURNAL: u64 = 5 * 4096;

/// Objects by their places.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Objects(pub BTreeMap<u64, Vec<u8>>);

impl Target for Objects {
    fn apply(&mut self, entry: Entry<'_>) -> Result<(), String> {
        let (place, length) = (entry.place, usize::from(entry.size) * 8);
        if entry.is_new() && self.0.insert(place, vec![0; length]).is_some() {
            return Err(format!("object {place} is made twice"));
        }
        let object = self.0.get_mut(&place).ok_or(format!("no object {place}"))?;
        if object.len() != length {
            return Err(format!("object {place} has {} bytes, not {length}", object.len()));
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
    /// What was acknowledged: the number of calls of the disk by then, and the horizon.
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
            self.objects.apply(entry).expect("the program's transactions are right");
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
        let horizon = self.horizon;
        match self.volume.append(&mut self.frame, horizon) {
            Err(Error::Full(_)) => {
                // What is in the journal already: the state before this frame.
                self.image(false)?;
                self.volume.append(&mut self.frame, horizon)?;
            }
            result => result?,
        }
        self.frame.clear();
        Ok(())
    }

    /// Writes an image of the state that was acknowledged last.
    pub fn image(&mut self, is_last: bool) -> Result<()> {
        let acknowledged = self.acknowledged.last().map(|(_, horizon)| *horizon);
        let first = *self.states.keys().next().expect("a state");
        let horizon = acknowledged.unwrap_or(first);
        let objects = &self.states[&horizon];
        self.volume.write_image(horizon, &mut objects.entries(), is_last)
    }

    pub fn acknowledge(&mut self, disk: &Simulated) {
        self.acknowledged.push((disk.calls(), self.horizon));
    }

    /// What has to be there if the power is cut after `calls` calls.
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

    /// Transactions in frames, images, and a reopening now and then.
    pub fn run(&mut self, disk: &Simulated, rng: &mut Rng, frames: usize) {
        for _ in 0..frames {
            (0..rng.usize(1..4)).for_each(|_| self.transact(rng));
            self.flush().expect("the disk is sound");
            self.acknowledge(disk);
            match rng.u8(..12) {
                0 => self.image(false).expect("the disk is sound"),
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
