//! Files of a directory.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustix::fs::{Advice, FlockOperation, fadvise, flock};
use rustix::io::Errno;

use super::{Device, Storage};
use crate::error::{Error, Result};

/// A directory of a filesystem, which is locked as long as this value exists.
#[derive(Debug)]
pub struct Directory {
    path: PathBuf,
    /// Locked: in all processes together, one store has the directory open, or several read it.
    _lock: File,
    access: Access,
}

/// What is done with the files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Access {
    /// Files are written, and created if they do not exist.
    Create,
    /// Files are written, and exist.
    Write,
    /// Files are read, and other processes may read them, too.
    Read,
}

impl Directory {
    /// Opens or creates a directory, and locks it.
    ///
    /// # Errors
    ///
    /// [`Error::Locked`] if it is open already; otherwise the operating system's errors.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref().to_owned();
        // A lock file was made only after the directory's name had been flushed.
        if !path.join("lock").exists() {
            let made = levels_missing(&path);
            let name = path.display();
            std::fs::create_dir_all(&path)
                .map_err(Error::io(format!("create directory {name}")))?;
            flush_name(&path, made)?;
        }
        Self::lock(path, Access::Create)
    }

    /// Opens a directory that has a store, and locks it. Creates no file.
    ///
    /// # Errors
    ///
    /// As of [`open`](Self::open); and if there is no store.
    pub fn open_existing(path: impl AsRef<Path>) -> Result<Self> {
        Self::lock(path.as_ref().to_owned(), Access::Write)
    }

    /// Opens a directory that has a store, for reading. Other programs may read it at the same
    /// time.
    ///
    /// # Errors
    ///
    /// [`Error::Locked`] if it is open for writing; and as of
    /// [`open_existing`](Self::open_existing).
    pub fn open_to_read(path: impl AsRef<Path>) -> Result<Self> {
        Self::lock(path.as_ref().to_owned(), Access::Read)
    }

    fn lock(path: PathBuf, access: Access) -> Result<Self> {
        let name = path.display().to_string();
        let lock = open_file(&path.join("lock"), access)
            .map_err(Error::io(format!("open {name}/lock")))?;
        match lock_soon(&lock, access) {
            Ok(()) => Ok(Self { path, _lock: lock, access }),
            Err(Errno::WOULDBLOCK) => Err(Error::Locked(name)),
            Err(cause) => Err(Error::io(format!("lock {name}"))(cause.into())),
        }
    }
}

impl Storage for Directory {
    fn open(&self, name: &'static str) -> io::Result<Arc<dyn Device>> {
        let file = open_file(&self.path.join(name), self.access)?;
        // Reads have to come from the disk: data that is only in memory may never have reached it.
        fadvise(&file, 0, None, Advice::DontNeed)?;
        Ok(Arc::new(OpenFile(file)))
    }

    fn flush_names(&self) -> io::Result<()> {
        flush_directory(&self.path)
    }
}

/// The number of attempts to get a lock that another process has, with pauses of a millisecond.
const ATTEMPTS: u32 = 200;

/// Locks a file. A killed process, or a forked one that has not executed its program yet, keeps its
/// files open a moment longer; so this function retries for a while.
fn lock_soon(lock: &File, access: Access) -> Result<(), Errno> {
    let operation = match access {
        Access::Read => FlockOperation::NonBlockingLockShared,
        Access::Create | Access::Write => FlockOperation::NonBlockingLockExclusive,
    };
    for _ in 1..ATTEMPTS {
        match flock(lock, operation) {
            Err(Errno::WOULDBLOCK) => std::thread::sleep(Duration::from_millis(1)),
            result => return result,
        }
    }
    flock(lock, operation)
}

/// The number of directories that have to be created for a path.
fn levels_missing(path: &Path) -> usize {
    let is_missing = |level: &&Path| !level.as_os_str().is_empty() && !level.is_dir();
    path.ancestors().take_while(is_missing).count()
}

/// Flushes the names of `made` new directories: that of this one, and those of the ones above it.
/// If none is new, flushes the name of this one, because a process that has made it may have been
/// killed.
fn flush_name(path: &Path, made: usize) -> Result<()> {
    let whole = path.canonicalize();
    let whole = whole.map_err(Error::io(format!("find directory {}", path.display())))?;
    for above in whole.ancestors().skip(1).take(made.max(1)) {
        match flush_directory(above) {
            // A process that may not read the directory above did not make the one below.
            Err(cause) if made == 0 && cause.kind() == io::ErrorKind::PermissionDenied => {}
            result => result.map_err(Error::io(format!("flush {}", above.display())))?,
        }
    }
    Ok(())
}

fn flush_directory(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

fn open_file(path: &Path, access: Access) -> io::Result<File> {
    let (writes, creates) = (access != Access::Read, access == Access::Create);
    OpenOptions::new().read(true).write(writes).create(creates).truncate(false).open(path)
}

struct OpenFile(File);

impl Device for OpenFile {
    fn size(&self) -> io::Result<u64> {
        Ok(self.0.metadata()?.len())
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.0.read_exact_at(into, offset)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.0.write_all_at(bytes, offset)
    }

    fn flush(&self) -> io::Result<()> {
        self.0.sync_data()
    }

    fn cut(&self, size: u64) -> io::Result<()> {
        if self.size()? > size { self.0.set_len(size) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_directories_that_are_made_have_their_names_flushed() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a/b/c");
        assert_eq!(levels_missing(&path), 3);
        std::fs::create_dir(directory.path().join("a")).unwrap();
        assert_eq!(levels_missing(&path), 2);
        let store = Directory::open(&path).unwrap();
        assert_eq!(levels_missing(&path), 0);
        flush_name(&path, 3).unwrap();
        assert_eq!(levels_missing(Path::new("no such/directory")), 2, "of a relative path");
        assert!(flush_name(&path.join("none"), 1).is_err());
        drop(store);
        Directory::open(&path).unwrap();
    }
}
