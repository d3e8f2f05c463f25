//! A directory for files that processes of any user make, and that no other user finds.
//!
//! The program's processes write the directory's contents, possibly as other users, so all users
//! may write there. In `/dev/shm` everybody sees the outer directory, but only its owner can list
//! it: a process must have been told the name of the inner directory to get in. Otherwise a
//! stranger could put files there that look like statistics, and truncate them while they are read.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, OFlags, flock};
use rustix::io::Errno;
use rustix::process::geteuid;
use tempfile::{Builder, TempDir};

/// How the outer ones are called.
const PREFIX: &str = "manycore-run-";
/// No run tries this many names.
const UNGUESSABLE: usize = 24;

/// A directory within a directory. Both are removed when this is dropped.
#[derive(Debug)]
pub struct PrivateDir {
    inner: PathBuf,
    /// Declared before the lock, so that it is removed while the lock is held.
    _outer: TempDir,
    /// Locked as long as this command exists, however it ends.
    _lock: File,
}

impl PrivateDir {
    /// Makes one.
    pub fn make(parent: &Path) -> io::Result<Self> {
        loop {
            let outer = Builder::new().prefix(PREFIX).tempdir_in(parent)?;
            // Not in the mode of the creating call, to which the umask would be applied.
            fs::set_permissions(outer.path(), Permissions::from_mode(0o711))?;
            let lock = File::open(outer.path())?;
            // Where there are no locks, no other process gets it either.
            let is_taken =
                flock(&lock, FlockOperation::NonBlockingLockExclusive) == Err(Errno::WOULDBLOCK);
            // Another command may have found it before it was locked, and removed it.
            if is_taken || !outer.path().exists() {
                continue;
            }
            let inner =
                Builder::new().prefix("").rand_bytes(UNGUESSABLE).tempdir_in(&outer)?.keep();
            // Writable by all: a server gives up its privileges, and its children write as another
            // user. As in /tmp, no user can remove or list another's files.
            fs::set_permissions(&inner, Permissions::from_mode(0o1733))?;
            return Ok(Self { inner, _outer: outer, _lock: lock });
        }
    }

    /// The inner one.
    pub fn path(&self) -> &Path {
        &self.inner
    }
}

/// Removes the directories that killed commands of this user left: running commands have theirs
/// locked.
pub fn remove_abandoned(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(PREFIX) {
            // One that cannot be removed stays.
            let _ = remove_if_abandoned(&entry.path());
        }
    }
}

fn remove_if_abandoned(path: &Path) -> io::Result<()> {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW;
    let directory = File::options().read(true).custom_flags(flags.bits() as i32).open(path)?;
    if directory.metadata()?.uid() != geteuid().as_raw() {
        return Ok(());
    }
    // Held until the directory is removed: a command that creates it at the same time sees it
    // complete or not at all.
    flock(&directory, FlockOperation::NonBlockingLockExclusive)?;
    fs::remove_dir_all(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o7777
    }

    #[test]
    fn anybody_can_write_who_knows_where_and_nobody_can_look() {
        let parent = tempfile::tempdir().unwrap();
        let place = PrivateDir::make(parent.path()).unwrap();
        let outer = place.path().parent().unwrap();
        assert_eq!((mode(outer), mode(place.path())), (0o711, 0o1733));
        assert_eq!(outer.parent().unwrap(), parent.path());
        assert!(place.path().file_name().unwrap().len() >= UNGUESSABLE);
        let path = outer.to_owned();
        drop(place);
        assert!(!path.exists());
    }

    #[test]
    fn what_was_left_is_removed_and_what_is_used_stays() {
        let parent = tempfile::tempdir().unwrap();
        let used = PrivateDir::make(parent.path()).unwrap();
        fs::write(used.path().join("1-1.stats"), "x").unwrap();
        let left = PrivateDir::make(parent.path()).unwrap();
        fs::write(left.path().join("2-2.stats"), "x").unwrap();
        let path = left.path().to_owned();
        // As if it were killed: the lock goes, the directory stays.
        let PrivateDir { _outer, _lock, .. } = left;
        let _ = _outer.keep();
        drop(_lock);
        let other = parent.path().join("manycore-soak");
        fs::create_dir(&other).unwrap();
        std::os::unix::fs::symlink(&other, parent.path().join("manycore-run-link")).unwrap();
        remove_abandoned(parent.path());
        assert!(!path.parent().unwrap().exists(), "its owner is gone");
        assert!(used.path().join("1-1.stats").exists() && other.exists());
    }
}
