//! Files in memory, and what a crash may leave of them.
//!
//! A program runs on [`Simulated`], which records its calls. A [`Recording`] is then cut after any
//! call. The disk at a [`Cut`] can have many states: each sector that was written and not flushed
//! has its earlier contents or one of the later ones; a file has its earlier length or a later one;
//! a file whose name was not flushed may be missing. With `garbage`, such a sector may also hold
//! bytes that no program has written.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use fastrand::Rng;
use parking_lot::Mutex;

use super::{Device, Storage};

/// The size of a sector. After a crash, a sector is either old or new.
pub const SECTOR: usize = 512;

type Name = &'static str;
type Files = BTreeMap<Name, Arc<Vec<u8>>>;

/// Files in memory.
#[derive(Clone, Default)]
pub struct Simulated {
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    files: Files,
    recording: Recording,
}

/// What a program has done to its files.
#[derive(Clone, Default)]
pub struct Recording {
    /// At the begin.
    files: Files,
    calls: Vec<Call>,
}

#[derive(Clone)]
enum Call {
    Create(Name),
    Write(Name, usize, Arc<[u8]>),
    Flush(Name),
    Lose(Name),
    Shorten(Name, usize),
    FlushNames,
}

/// The disk after some calls.
#[derive(Default)]
pub struct Cut {
    files: BTreeMap<Name, CutFile>,
}

#[derive(Default)]
struct CutFile {
    durable: Arc<Vec<u8>>,
    /// The data that was written to each sector since the flush, in order.
    sectors: BTreeMap<usize, Vec<[u8; SECTOR]>>,
    lengths: Vec<usize>,
    is_named: bool,
    /// What is read.
    present: Vec<u8>,
}

impl Simulated {
    /// No files.
    pub fn new() -> Self {
        Self::default()
    }

    /// These files, which are on the disk.
    fn of(files: Files) -> Self {
        let recording = Recording { files: files.clone(), calls: Vec::new() };
        Self { state: Arc::new(Mutex::new(State { files, recording })) }
    }

    /// All that was done since the begin.
    pub fn recording(&self) -> Recording {
        self.state.lock().recording.clone()
    }

    /// How many calls there were.
    pub fn calls(&self) -> usize {
        self.state.lock().recording.calls.len()
    }

    /// The disk after a power cut now, if it happens to have kept everything.
    pub fn survivor(&self) -> Self {
        Self::of(self.state.lock().files.clone())
    }

    /// Changes a file without the program's knowledge, for tests of damage; `None` if there is no
    /// such file.
    pub fn tamper<R>(
        &self,
        name: &'static str,
        change: impl FnOnce(&mut Vec<u8>) -> R,
    ) -> Option<R> {
        let mut state = self.state.lock();
        let file = state.files.get_mut(name)?;
        let result = change(Arc::make_mut(file));
        let files = state.files.clone();
        state.recording = Recording { files, calls: Vec::new() };
        Some(result)
    }
}

impl Storage for Simulated {
    fn open(&self, name: &'static str) -> io::Result<Arc<dyn Device>> {
        let mut state = self.state.lock();
        if !state.files.contains_key(name) {
            state.files.insert(name, Arc::default());
            state.recording.calls.push(Call::Create(name));
        }
        Ok(Arc::new(SimulatedDevice { name, state: self.state.clone() }))
    }

    fn flush_names(&self) -> io::Result<()> {
        self.state.lock().recording.calls.push(Call::FlushNames);
        Ok(())
    }
}

struct SimulatedDevice {
    name: Name,
    state: Arc<Mutex<State>>,
}

impl Device for SimulatedDevice {
    fn size(&self) -> io::Result<u64> {
        Ok(self.state.lock().files[self.name].len() as u64)
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        let state = self.state.lock();
        let from = usize::try_from(offset).map_err(io::Error::other)?;
        let bytes = state.files[self.name].get(from..).and_then(|rest| rest.get(..into.len()));
        into.copy_from_slice(bytes.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let mut state = self.state.lock();
        let from = usize::try_from(offset).map_err(io::Error::other)?;
        let file = state.files.get_mut(self.name).ok_or(io::ErrorKind::NotFound)?;
        overwrite(Arc::make_mut(file), from, bytes);
        state.recording.calls.push(Call::Write(self.name, from, bytes.into()));
        Ok(())
    }

    fn flush(&self) -> io::Result<()> {
        self.state.lock().recording.calls.push(Call::Flush(self.name));
        Ok(())
    }

    fn cut(&self, size: u64) -> io::Result<()> {
        let mut state = self.state.lock();
        let size = usize::try_from(size).map_err(io::Error::other)?;
        let file = state.files.get_mut(self.name).ok_or(io::ErrorKind::NotFound)?;
        if file.len() > size {
            Arc::make_mut(file).truncate(size);
            state.recording.calls.push(Call::Shorten(self.name, size));
        }
        Ok(())
    }

    fn lose_unflushed(&self) {
        self.state.lock().recording.calls.push(Call::Lose(self.name));
    }
}

fn overwrite(file: &mut Vec<u8>, from: usize, bytes: &[u8]) {
    if file.len() < from + bytes.len() {
        file.resize(from + bytes.len(), 0);
    }
    file[from..from + bytes.len()].copy_from_slice(bytes);
}

impl Recording {
    /// Visits the disk as it is after each call, from call `from` on.
    pub fn cuts(&self, from: usize, mut visit: impl FnMut(usize, &Cut)) {
        let mut cut = Cut::default();
        for (name, content) in &self.files {
            let present = content.to_vec();
            let file =
                CutFile { durable: content.clone(), is_named: true, present, ..CutFile::default() };
            cut.files.insert(name, file);
        }
        for (index, call) in self.calls.iter().enumerate() {
            if index >= from {
                visit(index, &cut);
            }
            cut.take(call);
        }
        visit(self.calls.len(), &cut);
    }
}

impl Cut {
    fn take(&mut self, call: &Call) {
        match *call {
            Call::Create(name) => _ = self.files.entry(name).or_default(),
            Call::Write(name, from, ref bytes) => self.file(name).write(from, bytes),
            Call::Flush(name) => self.file(name).flush(),
            Call::Lose(name) => self.file(name).lose(),
            Call::Shorten(name, size) => self.file(name).shorten(size),
            Call::FlushNames => self.files.values_mut().for_each(|file| file.is_named = true),
        }
    }

    fn file(&mut self, name: Name) -> &mut CutFile {
        self.files.get_mut(name).expect("a file is created before it is used")
    }

    /// The number of outcomes of each choice in a crash.
    fn choices(&self, garbage: bool) -> Vec<usize> {
        let of_file = |file: &CutFile| {
            let sectors =
                file.sectors.values().map(|contents| contents.len() + 1 + usize::from(garbage));
            let file_choices = [usize::from(!file.is_named) + 1, file.lengths.len() + 1];
            sectors.chain(file_choices).collect::<Vec<_>>()
        };
        self.files.values().flat_map(of_file).collect()
    }

    /// The states that a crash may leave: all of them if there are at most `most`, otherwise `most`
    /// random ones.
    pub fn images(
        &self,
        rng: &mut Rng,
        most: usize,
        garbage: bool,
        mut visit: impl FnMut(Simulated),
    ) {
        let choices = self.choices(garbage);
        let all = choices.iter().try_fold(1_usize, |all, n| all.checked_mul(*n));
        match all {
            Some(all) if all <= most => (0..all).for_each(|mut index| {
                let digits = choices.iter().map(|n| {
                    let digit = index % n;
                    index /= n;
                    digit
                });
                visit(self.image(&digits.collect::<Vec<_>>(), rng));
            }),
            _ => (0..most).for_each(|_| {
                let digits: Vec<_> = choices.iter().map(|n| rng.usize(..*n)).collect();
                visit(self.image(&digits, rng));
            }),
        }
    }

    fn image(&self, digits: &[usize], rng: &mut Rng) -> Simulated {
        let mut digits = digits.iter().copied();
        let mut next = || digits.next().expect("a digit for each choice");
        let mut files = Files::new();
        for (name, file) in &self.files {
            let sectors: Vec<_> = file.sectors.iter().map(|(at, all)| (*at, all, next())).collect();
            let (is_missing, length) = (next() != 0, next());
            if !is_missing {
                files.insert(name, file.image(&sectors, length, rng));
            }
        }
        Simulated::of(files)
    }
}

impl CutFile {
    fn write(&mut self, from: usize, bytes: &[u8]) {
        let length = self.present.len();
        overwrite(&mut self.present, from, bytes);
        if self.present.len() > length {
            self.lengths.push(self.present.len());
        }
        for sector in from / SECTOR..(from + bytes.len()).div_ceil(SECTOR) {
            let (start, mut content) = (sector * SECTOR, [0; SECTOR]);
            let end = self.present.len().min(start + SECTOR);
            content[..end - start].copy_from_slice(&self.present[start..end]);
            self.sectors.entry(sector).or_default().push(content);
        }
    }

    /// Data written beyond the end and not flushed cannot be read.
    fn shorten(&mut self, size: usize) {
        self.present.truncate(size);
        self.lengths.push(size);
        self.sectors.retain(|sector, _| sector * SECTOR < size);
    }

    fn flush(&mut self) {
        let durable = Arc::make_mut(&mut self.durable);
        if let Some(length) = self.lengths.last() {
            durable.resize(*length, 0);
        }
        for (sector, contents) in &self.sectors {
            let newest = contents.last().expect("a sector that was written has a content");
            put(durable, *sector, newest);
        }
        self.sectors.clear();
        self.lengths.clear();
    }

    /// Keeps half of the written data, as if it had been flushed; the rest is lost.
    fn lose(&mut self) {
        let mut is_kept = false;
        self.sectors.retain(|_, _| {
            is_kept = !is_kept;
            is_kept
        });
        self.flush();
    }

    fn image(
        &self,
        sectors: &[(usize, &Vec<[u8; SECTOR]>, usize)],
        length: usize,
        rng: &mut Rng,
    ) -> Arc<Vec<u8>> {
        let length = length.checked_sub(1).map(|index| self.lengths[index]);
        if length.is_none() && sectors.iter().all(|(.., choice)| *choice == 0) {
            return self.durable.clone();
        }
        let mut content = self.durable.to_vec();
        if let Some(length) = length {
            content.resize(length, 0);
        }
        for (sector, contents, choice) in sectors {
            match choice.checked_sub(1).map(|index| contents.get(index)) {
                None => {}
                Some(Some(written)) => put(&mut content, *sector, written),
                Some(None) => put(&mut content, *sector, &core::array::from_fn(|_| rng.u8(..))),
            }
        }
        Arc::new(content)
    }
}

/// Writes a sector as far as the file goes.
fn put(file: &mut [u8], sector: usize, content: &[u8; SECTOR]) {
    let start = sector * SECTOR;
    if let Some(place) = file.get_mut(start..) {
        let bytes = place.len().min(SECTOR);
        place[..bytes].copy_from_slice(&content[..bytes]);
    }
}
