//! The kernel's list of tracepoints.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;

use rustix::fs::{Mode, OFlags, openat, statfs};
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};

/// Where it usually is.
const PLACES: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
const TRACEFS_MAGIC: u64 = 0x7472_6163;

/// An open tracefs.
#[derive(Debug)]
pub struct Tracefs {
    root: OwnedFd,
}

impl Tracefs {
    /// Opens the mounted file system or, if there is none, a private instance: nothing has to be
    /// mounted for us.
    pub fn open() -> io::Result<Self> {
        let mounted = PLACES.iter().find(|place| {
            statfs(**place).is_ok_and(|system| system.f_type as u64 == TRACEFS_MAGIC)
        });
        let root = match mounted {
            Some(place) => OpenOptions::new()
                .read(true)
                .custom_flags(OFlags::DIRECTORY.bits() as i32)
                .open(place)?
                .into(),
            None => {
                let system = fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC)?;
                fsconfig_create(&system)?;
                fsmount(&system, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::MOUNT_ATTR_RDONLY)?
            }
        };
        Ok(Self { root })
    }

    /// The number of a tracepoint, `group/name`, for perf events.
    pub fn id(&self, tracepoint: &str) -> io::Result<u64> {
        let text = self.read(&format!("events/{tracepoint}/id"))?;
        text.trim().parse().map_err(|_| io::ErrorKind::InvalidData.into())
    }

    /// The offset and size, in bytes, of a field in a tracepoint's record.
    pub fn field(&self, tracepoint: &str, field: &str) -> io::Result<(usize, usize)> {
        let text = self.read(&format!("events/{tracepoint}/format"))?;
        place_of(&text, field).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    fn read(&self, path: &str) -> io::Result<String> {
        let file = openat(&self.root, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
        let mut text = String::new();
        File::from(file).read_to_string(&mut text)?;
        Ok(text)
    }
}

/// Lines: `field:void * lock_addr; offset:8; size:8; signed:0;`.
fn place_of(format: &str, field: &str) -> Option<(usize, usize)> {
    let line = format.lines().map(str::trim).find(|line| {
        let declaration = line.strip_prefix("field:").and_then(|rest| rest.split(';').next());
        declaration.is_some_and(|text| text.rsplit([' ', '*']).next() == Some(field))
    })?;
    let number = |key: &str| {
        let part = line.split(';').map(str::trim).find_map(|part| part.strip_prefix(key))?;
        part.parse::<usize>().ok()
    };
    Some((number("offset:")?, number("size:")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_by_name() {
        let format = "name: contention_begin\nID: 408\nformat:\n\
            \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n\
            \tfield:void * lock_addr;\toffset:8;\tsize:8;\tsigned:0;\n\
            \tfield:unsigned int flags;\toffset:16;\tsize:4;\tsigned:0;\n\n\
            print fmt: \"%p (flags=%s)\", REC->lock_addr\n";
        assert_eq!(place_of(format, "lock_addr"), Some((8, 8)));
        assert_eq!(place_of(format, "flags"), Some((16, 4)));
        assert_eq!(place_of(format, "lock"), None);
    }
}
