//! Why a call has failed, with the numbers that Linux gives to programs on x86-64.

use core::fmt;

/// Why a call has failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Errno {
    /// The call cannot be used for this kind of file (EPERM).
    NotPermitted = 1,
    /// There is no such name (ENOENT).
    NoEntry = 2,
    /// There is no memory for it (ENOMEM).
    NoMemory = 12,
    /// The directory is in use, as the root is (EBUSY).
    Busy = 16,
    /// The name is there already (EEXIST).
    Exists = 17,
    /// A part of the path is no directory (ENOTDIR).
    NotDirectory = 20,
    /// It is a directory (EISDIR).
    IsDirectory = 21,
    /// An argument is not valid; or a directory would be moved below itself (EINVAL).
    Invalid = 22,
    /// A file would be larger than is possible (EFBIG).
    TooLarge = 27,
    /// There is no room (ENOSPC).
    NoSpace = 28,
    /// A file has the most names that it can have (EMLINK).
    TooManyLinks = 31,
    /// A name has more than 255 bytes, or a path more than 4095 (ENAMETOOLONG).
    NameTooLong = 36,
    /// The directory has names in it (ENOTEMPTY).
    NotEmpty = 39,
    /// A path leads over more than 40 symbolic links (ELOOP).
    TooManySymlinks = 40,
}

impl Errno {
    /// The number that a program gets.
    pub const fn number(self) -> i32 {
        self as i32
    }
}

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotPermitted => "operation not permitted",
            Self::NoEntry => "no such file or directory",
            Self::NoMemory => "out of memory",
            Self::Busy => "device or resource busy",
            Self::Exists => "file exists",
            Self::NotDirectory => "not a directory",
            Self::IsDirectory => "is a directory",
            Self::Invalid => "invalid argument",
            Self::TooLarge => "file too large",
            Self::NoSpace => "no space left on device",
            Self::TooManyLinks => "too many links",
            Self::NameTooLong => "file name too long",
            Self::NotEmpty => "directory not empty",
            Self::TooManySymlinks => "too many levels of symbolic links",
        })
    }
}

impl core::error::Error for Errno {}
