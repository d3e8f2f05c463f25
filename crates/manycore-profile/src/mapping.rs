//! Opening a statistics file, of a process that lives or of one that has died by any means.

use std::fmt;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use memmap2::{MmapOptions, MmapRaw};

use crate::layout::{MAGIC, Mapping};

/// A statistics file, mapped: what the process writes meanwhile shows.
#[derive(Debug)]
pub struct StatsFile {
    map: MmapRaw,
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

impl StatsFile {
    /// Maps the file and checks that it is one of this layout. None if the process has noted nothing yet.
    pub fn open(path: &Path) -> Result<Option<Self>, Unreadable> {
        let unreadable = |why: String| Unreadable { path: path.to_owned(), why };
        let failed = |error: std::io::Error| unreadable(error.to_string());
        let file = File::open(path).map_err(failed)?;
        let (found, whole) = (file.metadata().map_err(failed)?.len(), size_of::<Mapping>() as u64);
        if found < whole {
            return Err(unreadable(format!(
                "{found} bytes instead of {whole}: the file was cut, or is no statistics file"
            )));
        }
        let map = MmapOptions::new().map_raw_read_only(&file).map_err(failed)?;
        let this = Self { map };
        // Acquire: partner of the Release by which the process says that the header is there.
        match this.get().header.magic.load(Ordering::Acquire) {
            MAGIC => Ok(Some(this)),
            0 => Ok(None),
            _ => Err(unreadable(
                "no statistics file of this version: the command and the preload library must be of one build".into(),
            )),
        }
    }

    /// The statistics.
    pub fn get(&self) -> &Mapping {
        // SAFETY: the map is as long as a `Mapping` (checked above), aligned to a page, lives as long as `self` and
        // consists of atomics, for which any bytes are values and writes by another process are in order. Nobody
        // cuts a file of these: the process makes it once, and the command removes but never shortens it.
        unsafe { &*self.map.as_ptr().cast::<Mapping>() }
    }
}
