//! The disk after each prefix of its log, and the store that is on it then.

use std::fs::{self, File};
use std::io::Read as _;
use std::path::Path;
use std::process::Command;

use crate::Outcome;
use crate::log::{self, BLOCK, Entry};
use crate::numbers::{self, Acknowledged, COMMITS, THREADS};

/// A planted fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    None,
    /// The program that wrote the log.
    Store,
    /// The disk: it leaves out each `LIE`th flush.
    Disk,
}

const LIE: usize = 3;
/// The number of wrong images after which the search ends.
const ENOUGH: usize = 10;

/// The contents of a disk at a position of the log.
struct Disk<'a> {
    /// The bytes that no power cut takes away.
    safe: Vec<u8>,
    /// What was written since, in this order.
    later: Vec<(usize, &'a [u8])>,
    acknowledged: Acknowledged,
    is_judged: bool,
}

impl<'a> Disk<'a> {
    fn write(&mut self, offset: usize, bytes: &'a [u8]) -> Outcome {
        if offset + bytes.len() > self.safe.len() {
            return Err(format!("a write at {offset}, which is behind the disk's end").into());
        }
        self.later.push((offset, bytes));
        self.is_judged = false;
        Ok(())
    }

    fn flush(&mut self) {
        for (offset, bytes) in self.later.drain(..) {
            self.safe[offset..][..bytes.len()].copy_from_slice(bytes);
        }
    }

    /// The disk after a cut, with some of the blocks that were not flushed.
    fn cut(&self, mut is_there: impl FnMut() -> bool) -> Vec<u8> {
        let mut disk = self.safe.clone();
        for (offset, bytes) in &self.later {
            for (place, block) in bytes.chunks(BLOCK).enumerate() {
                if is_there() {
                    disk[offset + place * BLOCK..][..BLOCK].copy_from_slice(block);
                }
            }
        }
        disk
    }
}

/// What was judged.
#[derive(Default)]
struct Tally {
    prefixes: usize,
    images: usize,
    wrong: usize,
    /// Commits that were acknowledged before the last prefix's end.
    commits: u64,
}

impl Tally {
    fn judge(&mut self, disk: &mut Disk<'_>, place: usize) -> Outcome {
        if std::mem::replace(&mut disk.is_judged, true) {
            return Ok(());
        }
        self.prefixes += 1;
        self.commits = disk.acknowledged.values().sum();
        for (part, image) in [("nothing", disk.cut(|| false)), ("some", disk.cut(fastrand::bool))] {
            self.images += 1;
            if let Err(what) = look(&image, &disk.acknowledged)? {
                self.wrong += 1;
                println!("before entry {place}, {part} since the last flush: {what}");
            }
        }
        Ok(())
    }
}

pub fn replay(log: &str, disk: &str, acknowledged: u64, fault: Fault) -> Outcome {
    fastrand::seed(1);
    let entries = log::read(log, acknowledged)?;
    let mut safe = Vec::new();
    File::open(disk)?.take(acknowledged).read_to_end(&mut safe)?;
    let (later, commits) = (Vec::new(), Acknowledged::new());
    let mut disk = Disk { safe, later, acknowledged: commits, is_judged: false };
    let (mut tally, mut flushes) = (Tally::default(), 0);
    for (place, entry) in entries.iter().enumerate() {
        match entry {
            Entry::Write { offset, bytes } => disk.write(*offset, bytes)?,
            Entry::Acknowledged { thread, number } => {
                disk.acknowledged.insert(*thread, *number);
                disk.is_judged = false;
            }
            Entry::Flush => {
                tally.judge(&mut disk, place)?;
                flushes += 1;
                if fault != Fault::Disk || flushes % LIE != 0 {
                    disk.flush();
                }
            }
        }
        if fault != Fault::None && tally.wrong >= ENOUGH {
            break;
        }
    }
    tally.judge(&mut disk, entries.len())?;
    let Tally { prefixes, images, wrong, commits } = tally;
    println!(
        "{prefixes} prefixes of {} entries with {flushes} flushes: {images} images opened, {commits} commits acknowledged, {wrong} images wrong",
        entries.len()
    );
    verdict(fault, &tally)
}

fn verdict(fault: Fault, tally: &Tally) -> Outcome {
    match fault {
        Fault::None if tally.wrong > 0 => Err("a commit that was acknowledged was lost".into()),
        // Each commit of a thread waits for a flush that begins after the one before has ended.
        Fault::None if tally.commits != THREADS * COMMITS || tally.prefixes < COMMITS as usize => {
            Err("the log is not of all commits: this is no test".into())
        }
        Fault::Store | Fault::Disk if tally.wrong == 0 => {
            Err("the planted fault was not found: the test finds nothing".into())
        }
        _ => Ok(()),
    }
}

/// Opens the store that is on a disk.
fn look(disk: &[u8], acknowledged: &Acknowledged) -> Outcome<Result<(), String>> {
    let directory = tempfile::tempdir()?;
    let image = directory.path().join("disk");
    fs::write(&image, disk)?;
    copy_store(&image, directory.path())?;
    numbers::judge(&directory.path().join("store"), acknowledged)
}

/// Copies the directory `store` of a file system, if it has one.
fn copy_store(image: &Path, into: &Path) -> Outcome {
    // The journal first, then whatever else a crash may leave; 1: something was to be done.
    let check = Command::new("e2fsck").args(["-f", "-p"]).arg(image).output()?;
    if !matches!(check.status.code(), Some(0 | 1)) {
        let said = String::from_utf8_lossy(&check.stdout).into_owned();
        return Err(format!("e2fsck: {}: the file system is damaged: {said}", check.status).into());
    }
    let request = format!("rdump /store {}", into.display());
    let mut copy = Command::new("debugfs");
    let copy = copy.env("LC_ALL", "C").args(["-R", &request]).arg(image).output()?;
    let said = String::from_utf8_lossy(&copy.stderr).into_owned();
    // Its name and version, first.
    let is_known = |line: &str| {
        line.contains("File not found by ext2_lookup") || line.contains("changing ownership")
    };
    match said.lines().skip(1).find(|line| !is_known(line)) {
        Some(line) => Err(format!("debugfs: {line}").into()),
        None if !copy.status.success() => Err(format!("debugfs: {}", copy.status).into()),
        None => Ok(()),
    }
}
