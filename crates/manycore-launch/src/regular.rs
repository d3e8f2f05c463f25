//! Opening files at paths that a program under observation can change, while it runs.
//!
//! Opening a pipe waits for its other end, and releases that end; opening a device may do anything.
//! So the kind of file at the path is determined first, by a descriptor that refers to the file and
//! reads nothing (`O_PATH`). Then that same file is opened, because the path may lead elsewhere by
//! now.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Opens a regular file for reading. It never waits for another process, and has no effect on one.
///
/// # Errors
///
/// Those of open(2), or that the file is not a regular one.
pub fn open(path: &Path) -> io::Result<File> {
    open_place(path, 0)
}

/// As [`open`], but the path's last part must not be a symbolic link.
///
/// # Errors
///
/// As [`open`].
pub fn open_no_link(path: &Path) -> io::Result<File> {
    open_place(path, libc::O_NOFOLLOW)
}

/// All that is in a regular file.
///
/// # Errors
///
/// As [`open`], or those of read(2).
pub fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn open_place(path: &Path, flags: i32) -> io::Result<File> {
    let place = File::options().read(true).custom_flags(libc::O_PATH | flags).open(path)?;
    if !place.metadata()?.is_file() {
        return Err(io::Error::other("it is no regular file"));
    }
    File::open(format!("/proc/self/fd/{}", place.as_raw_fd()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::process::Command;

    use super::*;

    #[test]
    fn what_is_no_regular_file_is_refused_at_once() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        assert!(Command::new("mkfifo").arg(at("pipe")).status().unwrap().success());
        let _socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
        symlink(at("pipe"), at("to the pipe")).unwrap();
        for name in ["pipe", "socket", "to the pipe", "."] {
            assert!(open(&at(name)).is_err(), "{name}");
            assert!(read(&at(name)).is_err(), "{name}");
        }
        for device in ["/dev/zero", "/dev/tty"] {
            assert!(open(Path::new(device)).is_err(), "{device}");
        }
    }

    /// A writer that waits for a reader of a pipe continues to wait: opening the pipe, even without
    /// waiting, would let it continue.
    #[test]
    fn the_other_end_of_a_pipe_does_not_notice() {
        let directory = tempfile::tempdir().unwrap();
        let pipe = directory.path().join("pipe");
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let mut writer =
            Command::new("sh").args(["-c", "echo > \"$0\""]).arg(&pipe).spawn().unwrap();
        for _ in 0..50 {
            assert!(open(&pipe).is_err());
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        assert!(writer.try_wait().unwrap().is_none(), "the writer still waits for a reader");
        writer.kill().unwrap();
        writer.wait().unwrap();
    }

    #[test]
    fn a_file_is_read_through_a_link_if_that_is_wanted() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        std::fs::write(at("file"), "text").unwrap();
        symlink(at("file"), at("link")).unwrap();
        assert_eq!(read(&at("link")).unwrap(), b"text");
        assert!(open_no_link(&at("file")).is_ok());
        assert!(open_no_link(&at("link")).is_err());
    }
}
