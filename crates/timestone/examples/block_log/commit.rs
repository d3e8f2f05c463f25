//! Threads that commit, and acknowledge each commit on the disk itself.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use timestone::Store;
use timestone::device::{Device, Directory, Storage};

use crate::Outcome;
use crate::log::{BLOCK, MARK, THREAD_BYTES};
use crate::numbers::{self, COMMITS, THREADS};

/// After this number of its commits, the first thread requests an image, so that one is written
/// between commits however the journal fills.
const IMAGE_AFTER: u64 = COMMITS / 3;

/// A block, aligned as a disk without a cache requires.
#[repr(align(4096))]
struct Block([u8; BLOCK]);

/// Writes to the disk itself.
struct Acknowledge {
    disk: File,
    at: u64,
}

impl Acknowledge {
    fn open(device: &str, at: u64) -> io::Result<Self> {
        let direct = rustix::fs::OFlags::DIRECT.bits().cast_signed();
        let disk = OpenOptions::new().write(true).custom_flags(direct).open(device)?;
        Ok(Self { disk, at })
    }

    /// Writes a block. The disk's log has it when this returns.
    fn write(&self, thread: u64, number: u64) -> io::Result<()> {
        let mut block = Block([0; BLOCK]);
        for (place, word) in [MARK, thread, number].into_iter().enumerate() {
            block.0[8 * place..][..8].copy_from_slice(&word.to_le_bytes());
        }
        self.disk.write_all_at(&block.0, self.at + thread * THREAD_BYTES)
    }
}

pub fn commit(directory: &str, device: &str, at: u64, is_flushed: bool) -> Outcome {
    let acknowledge = Acknowledge::open(device, at)?;
    let files = Directory::open(directory)?;
    let storage: Arc<dyn Storage> =
        if is_flushed { Arc::new(files) } else { Arc::new(Unflushed(files)) };
    let store = Store::open_on(storage, numbers::options())?;
    let map = numbers::open(&store)?;
    let work = |thread: u64| -> Outcome {
        let mut me = store.register()?;
        for number in 1..=COMMITS {
            me.run(|tx| numbers::write(tx, map, thread, number))?;
            acknowledge.write(thread, number)?;
            if (thread, number) == (0, IMAGE_AFTER) {
                store.checkpoint()?;
            }
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..THREADS).map(|thread| scope.spawn(move || work(thread))).collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("a thread has panicked"))
    })?;
    let stats = store.stats();
    println!(
        "{THREADS} threads have committed {COMMITS} times: {} frames, {} images",
        stats.frames, stats.images
    );
    Ok(store.close()?)
}

/// The planted fault: the journal is flushed when it is created, and never later.
struct Unflushed(Directory);

impl Storage for Unflushed {
    fn open(&self, name: &'static str) -> io::Result<Arc<dyn Device>> {
        let file = self.0.open(name)?;
        Ok(if name == "journal" {
            Arc::new(UnflushedFile { file, is_made: AtomicBool::new(false) })
        } else {
            file
        })
    }

    fn flush_names(&self) -> io::Result<()> {
        self.0.flush_names()
    }
}

struct UnflushedFile {
    file: Arc<dyn Device>,
    is_made: AtomicBool,
}

impl Device for UnflushedFile {
    fn size(&self) -> io::Result<u64> {
        self.file.size()
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.file.read_at(offset, into)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.file.write_at(offset, bytes)
    }

    fn flush(&self) -> io::Result<()> {
        // Relaxed: one thread at a time flushes.
        if self.is_made.swap(true, Ordering::Relaxed) { Ok(()) } else { self.file.flush() }
    }

    fn cut(&self, size: u64) -> io::Result<()> {
        self.file.cut(size)
    }
}
