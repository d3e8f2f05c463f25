//! The tree on a disk: `disk` on the boot line, and `fsync`.
//!
//! One batch is written at a time. A thread that requests one while another is being written joins
//! the next, which is made once, for all waiting threads.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use khronos_disk::{Disk, Error};
use khronos_durable::Tree;
use khronos_fs::{Cx, Which};

use super::tree::{self, Held};
use crate::arch::{boot, tsc};
use crate::call::errno::{Errno, Result};
use crate::drive::virtio_blk::{self, Drive};
use crate::println;
use crate::sync::once::Once;
use crate::sync::order::Rank;
use crate::sync::sleep::Sleep;
use crate::sync::spin::Spin;
use crate::sync::wait;
use crate::task::thread;
use crate::watch::counters::{Event, count};

/// A disk, and the threads that wait for it.
struct Store {
    disk: Sleep<Disk<Drive>>,
    next: Spin<Next>,
}

/// The next batch.
struct Next {
    batch: Arc<Batch>,
    /// Files whose bytes are asked for.
    files: Vec<Held>,
    /// Whether those of all are.
    is_all: bool,
}

/// The result of a batch: an error's number, or 0; `UNKNOWN` until it is over.
struct Batch(AtomicI32);

const UNKNOWN: i32 = -1;

impl Next {
    fn new() -> Self {
        Self { batch: Arc::new(Batch(AtomicI32::new(UNKNOWN))), files: Vec::new(), is_all: false }
    }
}

static STORE: Once<Store> = Once::new();
/// The disk, until the tree on it is made.
static FOUND: Spin<Option<core::result::Result<Drive, &'static str>>> =
    Spin::new(Rank::Small, None);
/// Set when a CPU has noted so much that a batch is due.
static IS_DUE: AtomicBool = AtomicBool::new(false);

/// Set when the last batch could not be written: the next one is tried only when a thread requests
/// it.
static IS_REFUSED: AtomicBool = AtomicBool::new(false);

/// The number of names and inodes that a CPU notes before a batch is due. Each takes about 100
/// bytes.
const NOTED_MOST: usize = 4096;
/// Without a request, changes become durable after this time.
const INTERVAL_NS: u64 = 5_000_000_000;

/// The CPU's access to the tree.
struct Here;

impl Tree<'static> for Here {
    fn with<R>(&self, f: impl FnOnce(&mut Cx<'static>) -> R) -> R {
        tree::with(f)
    }
}

/// Searches for the disk, if the boot line names one. Called before other CPUs run: asking a device
/// for the size of its registers moves them for a moment, and QEMU before 8.1 may crash if another
/// CPU uses its interrupt controller then.
pub fn find_disk() {
    if boot::information().option("disk").is_some() {
        *FOUND.lock() = Some(virtio_blk::find());
    }
}

/// Reads the tree from the disk. With `format`, writes an empty tree to the disk before. Returns
/// the number of files.
///
/// # Panics
///
/// If there is no disk, or none with a tree.
pub fn start(how: &str) -> usize {
    let found = FOUND.lock().take().expect("looked for at boot");
    let opened = found.map(|drive| match how {
        "" => Disk::open(drive),
        "format" => Disk::format(drive),
        other => panic!("disk={other}: it is disk, or disk=format, which makes an empty one"),
    });
    let disk = match opened {
        Err(why) => panic!("disk: {why}"),
        Ok(Err(error)) => panic!("disk: {error}"),
        Ok(Ok(disk)) => disk,
    };
    let files = match khronos_durable::recover(&Here, &disk) {
        Ok(files) => files,
        Err(why) => panic!("disk: {why}"),
    };
    println!("disk: {} batches, {} free blocks", disk.batches(), disk.free_blocks());
    let next = Spin::new(Rank::Small, Next::new());
    STORE.set(Store { disk: Sleep::new(Rank::Disk, disk), next });
    files as usize
}

/// Called when the tree is complete for the first program: makes it durable now, and starts to do
/// so from time to time.
pub fn begin() {
    if STORE.find().is_none() {
        return;
    }
    if sync(None).is_err() {
        println!("khronos: what the first program finds is not on the disk");
    }
    thread::spawn(|| {
        loop {
            let _ = wait::sleep_until(tsc::now() + INTERVAL_NS);
            let _ = sync(None); // a caller that asks gets the error; the tree is in memory nevertheless
        }
    });
}

/// Makes the bytes of a file durable, or of all files, and all names and attributes. Without a disk
/// it does nothing.
///
/// # Errors
///
/// If there is no room, or the disk has failed, now or before.
pub fn sync(file: Option<&Held>) -> Result<()> {
    let Some(store) = STORE.find() else { return Ok(()) };
    let held = file.map(Held::again);
    let batch = {
        let mut next = store.next.lock();
        next.is_all |= held.is_none();
        next.files.extend(held);
        next.batch.clone()
    };
    let mut disk = store.disk.lock();
    // Relaxed: under the disk's lock.
    let mut outcome = batch.0.load(Ordering::Relaxed);
    if outcome == UNKNOWN {
        outcome = write(store, &mut disk);
        batch.0.store(outcome, Ordering::Relaxed);
    } else {
        count(Event::SharedBatches);
    }
    if outcome == 0 { Ok(()) } else { Err(Errno(outcome)) }
}

/// Writes the next batch.
fn write(store: &Store, disk: &mut Disk<Drive>) -> i32 {
    // A thread that asks from here on may have changed something that this batch does not have.
    let Next { files, is_all, .. } = core::mem::replace(&mut *store.next.lock(), Next::new());
    let inodes: Vec<_> = files.iter().map(|file| &**file).collect();
    let which = if is_all { Which::All } else { Which::Files(&inodes) };
    // Relaxed: a hint; later changes are noted for the next time.
    IS_DUE.store(false, Ordering::Relaxed);
    let before = disk.batches();
    let result = khronos_durable::sync(&Here, disk, which);
    if disk.batches() != before {
        count(Event::Batches);
    }
    // Relaxed: a hint, and under the disk's lock
    if IS_REFUSED.swap(result.is_err(), Ordering::Relaxed) != result.is_err() {
        match result {
            Ok(()) => println!("khronos: what is made durable is durable again"),
            Err(error) => println!("khronos: nothing more is made durable: {error}"),
        }
    }
    match result {
        Ok(()) => 0,
        Err(Error::Full) => Errno::NO_SPACE.0,
        Err(_) => Errno::IO.0,
    }
}

/// Notes that the calling CPU has recorded this number of changes. Pinned.
pub fn has_noted(changes: usize) {
    // Relaxed, all: hints
    let may = || !IS_DUE.load(Ordering::Relaxed) && !IS_REFUSED.load(Ordering::Relaxed);
    if changes > NOTED_MOST && may() {
        IS_DUE.store(true, Ordering::Relaxed);
    }
}

/// At the end of a call, writes a batch if one is due, so that the notes do not take all memory.
pub fn relieve() {
    // Relaxed: a hint
    if IS_DUE.load(Ordering::Relaxed) && IS_DUE.swap(false, Ordering::Relaxed) {
        let _ = sync(None); // a caller that asks gets the error; the tree is in memory nevertheless
    }
}
