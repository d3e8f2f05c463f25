//! Opening a statistics file, of a process that lives or of one that has died by any means.

use std::fmt;
use std::marker::PhantomData;
use std::mem::offset_of;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use memmap2::{MmapOptions, MmapRaw};

use manycore_launch::regular;
use manycore_stats::{Mapping, syscalls};

/// What a file of statistics consists of.
///
/// # Safety
///
/// It is made of atomics only, for which any bytes are values, and aligned to no more than a page.
pub unsafe trait Layout {
    /// What `magic` holds when the header is there.
    const MAGIC: u64;

    /// Where `magic` is.
    const MAGIC_AT: usize;

    /// Stored last (Release) by the process.
    fn magic(&self) -> &AtomicU64;
}

// SAFETY: it consists of atomics and arrays of them, for which any bytes are values, and is aligned
// to no more than a word.
unsafe impl Layout for Mapping {
    const MAGIC: u64 = manycore_stats::MAGIC;
    const MAGIC_AT: usize = offset_of!(Mapping, header.magic);

    fn magic(&self) -> &AtomicU64 {
        &self.header.magic
    }
}

// SAFETY: it consists of atomics and arrays of them, for which any bytes are values, and is aligned
// to no more than a word.
unsafe impl Layout for syscalls::Mapping {
    const MAGIC: u64 = syscalls::MAGIC;
    const MAGIC_AT: usize = offset_of!(syscalls::Mapping, header.magic);

    fn magic(&self) -> &AtomicU64 {
        &self.header.magic
    }
}

/// A statistics file, mapped: what the process writes meanwhile shows.
pub struct StatsFile<L = Mapping> {
    map: MmapRaw,
    layout: PhantomData<L>,
}

/// Why a file cannot be read as statistics, in one line.
#[derive(Debug)]
pub struct Unreadable {
    path: PathBuf,
    why: String,
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path.display(), self.why)
    }
}

impl std::error::Error for Unreadable {}

impl<L> fmt::Debug for StatsFile<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StatsFile").field("map", &self.map).finish_non_exhaustive()
    }
}

impl<L: Layout> StatsFile<L> {
    /// Maps the file and checks that it is one of this layout. None if the process has noted nothing yet.
    pub fn open(path: &Path) -> Result<Option<Self>, Unreadable> {
        let unreadable = |why: String| Unreadable { path: path.to_owned(), why };
        let failed = |error: std::io::Error| unreadable(error.to_string());
        // Others may write where this is: a link could lead anywhere.
        let file = regular::open_no_link(path).map_err(failed)?;
        let found = file.metadata().map_err(failed)?.len();
        let whole = size_of::<L>() as u64;
        if found < whole {
            return Err(unreadable(format!(
                "{found} bytes instead of {whole}: the file was cut, or is no statistics file"
            )));
        }
        // Most processes that are forked note nothing, and to map a file takes longer than to read a word.
        let mut magic = [0; 8];
        file.read_exact_at(&mut magic, L::MAGIC_AT as u64).map_err(failed)?;
        if magic == [0; 8] {
            return Ok(None);
        }
        let map = MmapOptions::new().map_raw_read_only(&file).map_err(failed)?;
        let this = Self { map, layout: PhantomData };
        // Acquire: partner of the Release by which the process says that the header is there.
        match this.get().magic().load(Ordering::Acquire) {
            magic if magic == L::MAGIC => Ok(Some(this)),
            0 => Ok(None),
            _ => Err(unreadable(
                "no statistics file of this version: the command and the preload library must be of one build".into(),
            )),
        }
    }

    /// The statistics.
    pub fn get(&self) -> &L {
        // SAFETY: the map is as long as the layout (checked above), aligned to a page, lives as long as `self` and
        // consists of atomics, for which any bytes are values and writes by another process are in order. Nobody
        // cuts a file of these: the process makes it once, and the command removes but never shortens it.
        unsafe { &*self.map.as_ptr().cast::<L>() }
    }
}
