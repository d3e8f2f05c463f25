//! Libraries that are carried in the command, put where the dynamic linker can load them.
//!
//! The directory is in the user's cache. Only the user and root can change it, or the directories
//! that lead there. The file is used only if it is equal, byte for byte, to the command's copy.
//! Otherwise a new one is written beside it and renamed, so no program ever loads half of a file,
//! and a program with an older file keeps that.

use std::env;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::StatVfsMountFlags;
use rustix::process::geteuid;
use tempfile::Builder;

use super::purpose::Purpose;

/// A library that the command carries.
#[derive(Clone, Copy, Debug)]
pub struct Embedded {
    name: &'static str,
    bytes: &'static [u8],
}

impl Embedded {
    /// The library for this purpose, if this command contains it.
    #[cfg(feature = "embedded")]
    pub fn of(purpose: Purpose) -> Option<Self> {
        const LOCKS: &[u8] =
            include_bytes!(concat!(env!("MANYCORE_LIBRARIES"), "/libmanycore_preload.so"));
        const CALLS: &[u8] =
            include_bytes!(concat!(env!("MANYCORE_LIBRARIES"), "/libmanycore_syscalls.so"));
        let bytes = match purpose {
            Purpose::Locks => LOCKS,
            Purpose::Calls => CALLS,
        };
        Some(Self { name: purpose.file_name(), bytes })
    }

    /// The library for this purpose, if this command contains it.
    #[cfg(not(feature = "embedded"))]
    pub fn of(_purpose: Purpose) -> Option<Self> {
        None
    }

    /// Writes it to the first suitable directory; otherwise returns why none is suitable.
    pub fn unpack(self) -> Result<PathBuf, String> {
        let mut refused = Vec::new();
        for cache in caches() {
            match self.unpack_in(&cache) {
                Ok(path) => return Ok(path),
                Err(why) => refused.push(format!("{}: {why}", cache.display())),
            }
        }
        Err(if refused.is_empty() { "there is no HOME".to_owned() } else { refused.join("; ") })
    }

    fn unpack_in(self, cache: &Path) -> Result<PathBuf, String> {
        let version = env!("CARGO_PKG_VERSION");
        let directory = cache.join("manycore").join(format!("{version}-{:08x}", self.checksum()));
        let said = |error: io::Error| error.to_string();
        DirBuilder::new().recursive(true).mode(0o755).create(&directory).map_err(said)?;
        // What leads there by links is judged as what it is.
        let directory = directory.canonicalize().map_err(said)?;
        check_owners(&directory)?;
        let flags = rustix::fs::statvfs(&directory).map_err(|error| said(error.into()))?.f_flag;
        if flags.contains(StatVfsMountFlags::NOEXEC) {
            return Err("nothing there may be executed (noexec)".to_owned());
        }
        let path = directory.join(self.name);
        if !self.is_at(&path) {
            self.write(&directory, &path).map_err(said)?;
        }
        Ok(path)
    }

    /// Whether just this is there. A link is not followed.
    fn is_at(self, path: &Path) -> bool {
        let file = File::options().read(true).custom_flags(libc::O_NOFOLLOW).open(path);
        let Ok(mut file) = file else { return false };
        let is_safe = file.metadata().is_ok_and(|found| {
            found.is_file() && found.len() == self.bytes.len() as u64 && is_ours(&found)
        });
        let mut bytes = Vec::new();
        is_safe && file.read_to_end(&mut bytes).is_ok() && bytes == self.bytes
    }

    fn write(self, directory: &Path, path: &Path) -> io::Result<()> {
        let mut file = Builder::new().prefix(".unpacking-").tempfile_in(directory)?;
        file.write_all(self.bytes)?;
        // Programs of other users load it, too, where root or `sudo -u` starts them.
        file.as_file().set_permissions(fs::Permissions::from_mode(0o644))?;
        file.as_file().sync_all()?;
        file.persist(path)?;
        Ok(())
    }

    /// A checksum that distinguishes builds in the name of the directory. The file itself is
    /// compared in full.
    fn checksum(self) -> u32 {
        crc32fast::hash(self.bytes)
    }
}

/// The directories to try. For root, they include one that other users can read: a program that
/// root starts may become another user before it loads the library.
fn caches() -> Vec<PathBuf> {
    let absolute = |name| env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let system = geteuid().is_root().then(|| PathBuf::from("/var/cache"));
    let own = absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")));
    system.into_iter().chain(own).chain(absolute("XDG_RUNTIME_DIR")).collect()
}

/// Checks that only this user and root can put another file there, or another directory.
fn check_owners(directory: &Path) -> Result<(), String> {
    for (depth, one) in directory.ancestors().enumerate() {
        let found = fs::symlink_metadata(one).map_err(|error| error.to_string())?;
        // In a sticky directory only the owner of an entry can replace it.
        let is_sticky_above = depth > 0 && found.mode() & 0o1000 != 0 && is_owned(&found);
        if !is_ours(&found) && !is_sticky_above {
            return Err(format!("others can write to {}", one.display()));
        }
    }
    Ok(())
}

fn is_ours(found: &fs::Metadata) -> bool {
    is_owned(found) && found.mode() & 0o022 == 0
}

fn is_owned(found: &fs::Metadata) -> bool {
    [0, geteuid().as_raw()].contains(&found.uid())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{chown, symlink};
    use std::thread;

    use super::*;

    const ONE: Embedded = Embedded { name: "libone.so", bytes: b"\x7fELF and more" };
    const OTHER: Embedded = Embedded { name: "libone.so", bytes: b"\x7fELF of another build" };

    fn set_mode(path: &Path, mode: u32) {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn it_is_there_afterwards_and_stays() {
        let cache = tempfile::tempdir().unwrap();
        let path = ONE.unpack_in(cache.path()).unwrap();
        assert_eq!(fs::read(&path).unwrap(), ONE.bytes);
        let inode = fs::metadata(&path).unwrap().ino();
        assert_eq!(ONE.unpack_in(cache.path()).unwrap(), path);
        assert_eq!(fs::metadata(&path).unwrap().ino(), inode, "it is not written again");
        assert_ne!(OTHER.unpack_in(cache.path()).unwrap(), path, "another build is beside it");
        let around = path.parent().unwrap();
        assert_eq!(fs::read_dir(around).unwrap().count(), 1, "nothing is left over");
    }

    #[test]
    fn what_is_not_just_this_is_replaced() {
        let cache = tempfile::tempdir().unwrap();
        let path = ONE.unpack_in(cache.path()).unwrap();
        let replaced = |what: &str| {
            assert_eq!(ONE.unpack_in(cache.path()).unwrap(), path, "{what}");
            let found = fs::symlink_metadata(&path).unwrap();
            assert!(found.is_file() && is_ours(&found), "{what}");
            assert_eq!(fs::read(&path).unwrap(), ONE.bytes, "{what}");
        };
        fs::write(&path, "\x7fELF and evil").unwrap();
        replaced("as long, and something else");
        fs::write(&path, "").unwrap();
        replaced("cut");
        set_mode(&path, 0o666);
        replaced("others can write to it");
        let elsewhere = cache.path().join("elsewhere");
        fs::write(&elsewhere, ONE.bytes).unwrap();
        fs::remove_file(&path).unwrap();
        symlink(&elsewhere, &path).unwrap();
        replaced("a link");
    }

    #[test]
    fn a_directory_of_others_is_refused() {
        let cache = tempfile::tempdir().unwrap();
        let path = ONE.unpack_in(cache.path()).unwrap();
        for directory in [path.parent().unwrap(), &cache.path().join("manycore"), cache.path()] {
            set_mode(directory, 0o777);
            let why = ONE.unpack_in(cache.path()).unwrap_err();
            assert!(why.contains("others can write to"), "{why}");
            set_mode(directory, 0o755);
            if geteuid().is_root() {
                chown(directory, Some(12_345), None).unwrap();
                assert!(ONE.unpack_in(cache.path()).is_err(), "it is another user's");
                chown(directory, Some(0), None).unwrap();
            }
        }
        assert!(ONE.unpack_in(cache.path()).is_ok());
        // By way of a link into such a directory.
        let [open, link] = ["open", "link"].map(|name| cache.path().join(name));
        fs::create_dir(&open).unwrap();
        set_mode(&open, 0o777);
        symlink(&open, &link).unwrap();
        assert!(ONE.unpack_in(&link).unwrap_err().contains("open"));
    }

    #[test]
    fn many_at_once_see_whole_files() {
        let cache = tempfile::tempdir().unwrap();
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    let path = ONE.unpack_in(cache.path()).unwrap();
                    assert_eq!(fs::read(path).unwrap(), ONE.bytes);
                });
            }
        });
    }
}
