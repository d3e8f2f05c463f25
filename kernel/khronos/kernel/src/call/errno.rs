//! Why a call has failed: Linux' numbers.

/// A number that programs know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Errno(pub i32);

/// What a call gives.
pub type Result<T> = core::result::Result<T, Errno>;

macro_rules! errors {
    ($($(#[doc = $doc:literal])* $name:ident = $number:literal;)*) => {
        impl Errno { $($(#[doc = $doc])* pub const $name: Self = Self($number);)* }
    };
}

errors! {
    /// No such file.
    NO_ENTRY = 2;
    /// No such process.
    NO_PROCESS = 3;
    /// A signal has come.
    INTERRUPTED = 4;
    /// A device has failed.
    IO = 5;
    /// No such device.
    NO_DEVICE_ADDRESS = 6;
    /// Arguments are too long.
    TOO_BIG = 7;
    /// Not a program.
    NOT_EXECUTABLE = 8;
    /// Not an open file.
    BAD_FILE = 9;
    /// There is no child.
    NO_CHILD = 10;
    /// Would have to wait.
    AGAIN = 11;
    /// No memory.
    NO_MEMORY = 12;
    /// Not allowed.
    ACCESS = 13;
    /// Not the program's memory.
    FAULT = 14;
    /// It is there.
    EXISTS = 17;
    /// The device cannot do that.
    NO_DEVICE = 19;
    /// Not a directory.
    NOT_DIRECTORY = 20;
    /// A directory.
    IS_DIRECTORY = 21;
    /// An argument makes no sense.
    INVALID = 22;
    /// Too many open files.
    TOO_MANY_FILES = 24;
    /// Not a terminal.
    NOT_TERMINAL = 25;
    /// A number is too large.
    TOO_LARGE = 27;
    /// No room is left on the disk.
    NO_SPACE = 28;
    /// Not a file with positions.
    NOT_SEEKABLE = 29;
    /// No thread reads the pipe.
    PIPE = 32;
    /// The result does not fit.
    RANGE = 34;
    /// A name is too long.
    NAME_TOO_LONG = 36;
    /// No such call.
    NO_CALL = 38;
    /// Too many symbolic links.
    LOOP = 40;
    /// It was removed.
    REMOVED = 43;
    /// The time is over.
    TIMED_OUT = 110;
}

/// The call is restarted unless a signal handler prevents that. Programs never see this value.
pub const RESTART: Errno = Errno(512);

impl From<crate::sync::wait::Early> for Errno {
    fn from(early: crate::sync::wait::Early) -> Self {
        match early {
            crate::sync::wait::Early::Signal => RESTART,
            crate::sync::wait::Early::Deadline => Self::TIMED_OUT,
        }
    }
}

impl From<khronos_fs::Errno> for Errno {
    fn from(error: khronos_fs::Errno) -> Self {
        Self(error.number())
    }
}
