//! What went wrong, as a number and as a text.

use core::ffi::{CStr, c_int};

use manycore::collections::bytes::Error;

macro_rules! statuses {
    ($($(#[$meta:meta])* $name:ident = $number:literal, $text:literal;)*) => {
        /// The result of a function that can fail: `manycore_status_t` in `manycore/status.h`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(i32)]
        pub enum Status {
            $($(#[$meta])* $name = $number,)*
        }

        impl Status {
            /// The text of a status, also of a number that is none.
            #[must_use]
            pub fn text(number: c_int) -> &'static CStr {
                match number {
                    $($number => $text,)*
                    _ => c"no status of manycore has this number",
                }
            }
        }
    };
}

statuses! {
    /// Done.
    Ok = 0, c"success";
    /// A pointer is null.
    Null = 1, c"a pointer is null that must not be";
    /// A number is out of its range.
    Invalid = 2, c"an argument is out of its range: see the header";
    /// Before the initialisation.
    NotInitialized = 3, c"RLU_INIT was not called, or RLU_FINISH was since";
    /// Twice.
    Already = 4, c"initialized already";
    /// In use.
    Busy = 5, c"in use: held, waited for, or with a session or thread that has not ended";
    /// A thread's data without `RLU_THREAD_INIT`.
    NotRegistered = 6, c"the thread is not registered: RLU_THREAD_INIT or manycore_rcu_register comes first";
    /// Another thread holds it, or no thread.
    NotOwner = 7, c"the calling thread does not hold it";
    /// It would wait for itself.
    Deadlock = 8, c"the calling thread would wait for itself";
    /// The time is over.
    TimedOut = 9, c"timed out";
    /// No lock has this name.
    UnknownLock = 10, c"no lock has this name: `manycore locks` lists them";
    /// No session is open.
    NoSession = 11, c"no session is open: RLU_READER_LOCK, manycore_rcu_read_lock, ts_begin or manycore_map_begin comes first";
    /// The same update twice.
    Repeated = 12, c"the object was inserted or removed twice in a row";
    /// Another transaction was faster.
    Conflict = 13, c"another thread was faster: abort, and begin again";
    /// The heap, the journal or the disk is full.
    Full = 14, c"no room in the heap, in the journal or on the disk";
    /// It does not fit into a record.
    TooLarge = 15, c"the transaction is too large: divide it";
    /// Nothing is written any more.
    Poisoned = 16, c"a write has failed before: close the store, and open it again";
    /// A file is damaged.
    Corrupted = 17, c"a file is damaged";
    /// Another process or handle has it.
    Locked = 18, c"the store is open already, here or in another process";
    /// A file of another version.
    OtherVersion = 19, c"the store has another format than this library";
    /// A name of something else.
    OtherType = 20, c"the name is of something else in the store";
    /// An error of the operating system.
    Io = 21, c"the operating system has refused: ts_message says what";
    /// No such key.
    NotFound = 22, c"no such key";
    /// A write in a session that only reads.
    ReadsOnly = 23, c"the session only reads";
    /// A map's transaction can only be aborted.
    Failed = 24, c"the transaction has failed before: abort it";
}

/// The statuses for the errors of a map of byte strings.
impl From<Error> for Status {
    fn from(error: Error) -> Self {
        match error {
            Error::TooLong => Self::Invalid,
            Error::TooLarge => Self::TooLarge,
            Error::Failed => Self::Failed,
            Error::Already => Self::Already,
            Error::NoTransaction => Self::NoSession,
            _ => Self::Busy,
        }
    }
}

/// Ends the process with a message in one line, for mistakes of a program that a macro without a
/// result cannot report to it.
#[cold]
pub fn fatal(mistake: &str) -> ! {
    use std::io::Write;
    // If the message cannot be written, there is nothing else to do.
    _ = writeln!(std::io::stderr(), "manycore: {mistake}");
    std::process::abort()
}
