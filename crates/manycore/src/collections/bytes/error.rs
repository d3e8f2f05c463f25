//! What keeps an operation from being done.

use core::fmt;

/// Why nothing has happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// A key or a value of 4 GiB or more.
    TooLong,
    /// The changes of one transaction do not fit into a log. If
    /// [`Handle::begin`](super::Handle::begin) has begun the transaction, it can only be aborted.
    TooLarge,
    /// The transaction has met an error before, or other threads' snapshots have filled its log: it
    /// can only be aborted.
    Failed,
    /// The handle keeps others out already.
    Already,
    /// The handle is in no transaction.
    NoTransaction,
    /// Another thread keeps others out.
    Busy,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::TooLong => "a key or a value is 4 GiB long or longer: make it shorter",
            Self::TooLarge => {
                "more is changed at a time than a log has room for: change less, or make \
                 Config::segments_max larger"
            }
            Self::Failed => "the transaction has failed before: abort it",
            Self::Already => "the thread keeps others out already: end that first",
            Self::NoTransaction => "the thread is in no transaction: begin one first",
            Self::Busy => "another thread keeps others out: try again later",
        })
    }
}

impl core::error::Error for Error {}
