//! A system call, with its answer, and the reason why a call was not moved.

/// A system call: its number and its arguments, as in registers.
///
/// The calling thread keeps everything to which the arguments point alive until it has the answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Call {
    /// The number, `libc::SYS_*`.
    pub number: usize,
    /// The arguments. Those that the call does not have are ignored.
    pub args: [usize; 6],
}

/// The kernel's return value: a result, or a negated error number (-4095 to -1).
pub type Answer = isize;

/// How long a call can take, and what a signal handler does to it. The caller derives this from the
/// call and from the options that the program has set on the descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// Never waits for other threads: `socket`, `bind`, `fcntl`, `close` (unless the socket
    /// lingers), anything on a non-blocking descriptor.
    Quick = 0,
    /// May sleep until something happens. After a handler with `SA_RESTART` the kernel continues
    /// it.
    Waits = 1,
    /// May sleep, and ends with `EINTR` after every handler: `poll`, `select`, `epoll_wait`, and
    /// calls on sockets with `SO_RCVTIMEO`, `SO_SNDTIMEO` or `SO_RCVLOWAT`, which a non-blocking
    /// attempt would not obey.
    Timed = 2,
    /// On a file: may sleep for a disk, and a handler ends it only before it has begun. Never made
    /// by the thread that serves others.
    File = 3,
}

impl Kind {
    /// Whether a handler ends the call with `EINTR` before it has begun.
    pub const fn ends_early(self) -> bool {
        matches!(self, Self::Waits | Self::Timed)
    }
}

/// Why a call is to be executed in place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Reason {
    /// The mechanism is `in-place`, or nothing was started in this process.
    Off = 0,
    /// The process may use only one CPU: another thread that executes the call would have to wait
    /// for that CPU.
    OneCpu = 1,
    /// No thread is available: the call may block, and all threads for such calls are busy, or the
    /// kernel refused another thread, or memory.
    NoThread = 2,
}
