//! Why a transaction ends without a commit.

use manycore::session::Conflict;

use crate::error::Error;

/// The reason why a transaction does not commit. `?` makes it from a method's error.
#[derive(Debug)]
pub enum Stop {
    /// Another thread was faster: [`Member::run`](super::Member::run) runs it again.
    Conflict(Conflict),
    /// The program's own choice: [`Member::run`](super::Member::run) returns [`Error::Cancelled`].
    Cancel,
    /// An error, which [`Member::run`](super::Member::run) returns.
    Error(Error),
}

impl From<Conflict> for Stop {
    fn from(conflict: Conflict) -> Self {
        Self::Conflict(conflict)
    }
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}
