//! The errors, and how the caller can react to each.

use std::fmt;
use std::io;

/// Why an operation of a store has failed.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// A file could not be opened, read or written. This had no other effect.
    Io {
        /// The failed action, with the name of the file.
        doing: String,
        /// What the operating system said.
        cause: io::Error,
    },
    /// The journal or the disk has no room. The transaction is aborted; later ones succeed when
    /// there is room.
    Full(String),
    /// A transaction writes more than one record can hold.
    TooLarge {
        /// Bytes of its record.
        bytes: usize,
        /// The most that one may have.
        max: usize,
    },
    /// A write has failed whose outcome on the disk is unknown. From now on nothing is
    /// acknowledged; open the store again.
    Poisoned(String),
    /// A file does not contain the data that was written to it, or does not belong to this store.
    Corrupted {
        /// The file.
        file: &'static str,
        /// Where in it.
        offset: u64,
        /// What is wrong.
        what: String,
    },
    /// Another handle or process has the store open.
    Locked(String),
    /// The store was written by a version of this library with another format.
    Version {
        /// The version of the format in the file.
        found: u16,
        /// The one that this library reads.
        wanted: u16,
    },
    /// The program has stopped its transaction by [`Stop::Cancel`](crate::Stop::Cancel).
    Cancelled,
    /// A name stands for something of another type.
    Schema {
        /// The name.
        name: String,
        /// What it stands for in the store.
        found: String,
        /// What the caller has asked for.
        wanted: String,
    },
    /// The program has not registered an operation that it calls, or that the journal has.
    UnknownOperation {
        /// Its name.
        name: String,
        /// Its version.
        version: u32,
        /// The number of transactions in the journal that are calls of it.
        records: u64,
    },
    /// An operation was run again with its original inputs, and acted differently than before.
    ReplayDiffers {
        /// Its name.
        name: String,
        /// The stamp of the transaction.
        stamp: u64,
        /// What is different.
        what: String,
    },
}

/// A result with this crate's [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// An error of the operating system.
    pub(crate) fn io(doing: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let doing = doing.into();
        |cause| match cause.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                Self::Full(format!("{doing}: {cause}"))
            }
            _ => Self::Io { doing, cause },
        }
    }
}

#[cfg(not(loom))]
impl Error {
    /// The same error, for another that it concerns.
    pub(crate) fn again(&self) -> Self {
        match self {
            Self::Io { doing, cause } => {
                let cause = io::Error::new(cause.kind(), cause.to_string());
                Self::Io { doing: doing.clone(), cause }
            }
            Self::Full(what) => Self::Full(what.clone()),
            Self::Poisoned(cause) => Self::Poisoned(cause.clone()),
            other => Self::Poisoned(other.to_string()),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { doing, cause } => write!(f, "{doing}: {cause}"),
            Self::Full(what) => write!(f, "no room: {what}"),
            Self::TooLarge { bytes, max } => {
                write!(f, "a transaction of {bytes} bytes, at most {max} fit: divide it")
            }
            Self::Poisoned(cause) => {
                write!(f, "a write failed before ({cause}); open the store again")
            }
            Self::Corrupted { file, offset, what } => {
                write!(f, "the file {file} is damaged at byte {offset}: {what}")
            }
            Self::Locked(path) => write!(f, "{path} is open already, here or in another process"),
            Self::Version { found, wanted } => {
                write!(f, "the store has format {found}, this library reads {wanted}")
            }
            Self::Cancelled => write!(f, "the transaction was stopped by the program"),
            Self::Schema { name, found, wanted } => {
                write!(f, "{name:?} is {found} in the store, not {wanted}")
            }
            Self::UnknownOperation { name, version, records: 0 } => {
                write!(
                    f,
                    "the program calls the operation {name:?}, version {version}: register it by Options::with_operations"
                )
            }
            Self::UnknownOperation { name, version, records } => {
                write!(
                    f,
                    "{records} transactions in the journal are calls of the operation {name:?}, version {version}, which this program has not registered: open the store with one that has, and close it"
                )
            }
            Self::ReplayDiffers { name, stamp, what } => {
                write!(
                    f,
                    "the operation {name:?} does not do again what it did at time {stamp}: {what}. Open the store with the program that has written it; an operation reads clocks and the like by Transaction::input only"
                )
            }
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { cause, .. } => Some(cause),
            _ => None,
        }
    }
}
