//! The mapping of a process whose system calls are moved to other threads: the moved calls, the
//! others, and the reasons.
//!
//! ```text
//! Header | Shard x SHARDS
//! ```
//!
//! A file of its own, `PID-TICKS.syscalls`, written by the library of `manycore run --syscalls`.
//! All of it is zero at first, and sparse. There is a *shard* for each CPU (modulo [`SHARDS`]), so
//! counting a call touches no memory of another CPU; sums over all shards are exact.
//!
//! Relaxed throughout, unless noted: counters are independent of each other.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::Histogram;

/// `manycoS` and the version of this layout.
pub const MAGIC: u64 = u64::from_le_bytes(*b"manycoS\x04");
/// CPUs that count apart.
pub const SHARDS: usize = 64;
/// Words of the set of CPUs: a bit each.
pub const CPU_WORDS: usize = 16;

macro_rules! numbered {
    ($(#[$meta:meta])* $name:ident, $count:ident { $($(#[$doc:meta])* $variant:ident = $text:literal,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub enum $name {
            $($(#[$doc])* $variant,)*
        }

        impl $name {
            /// All, in the order of their numbers.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// As reports have it.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)*
                }
            }
        }

        /// How many there are.
        pub const $count: usize = $name::ALL.len();
    };
}

numbered! {
    /// What became of a call.
    Outcome, OUTCOMES {
        /// Another thread executed it.
        Moved = "moved",
        /// Executed in place, because moving the calls of its descriptor costs more than it saves.
        Bypassed = "bypassed: moving costs more than it saves",
        /// In place: the descriptor is not a socket, and calls on files are not to be moved.
        Plain = "not a socket",
        /// In place: stdio has the descriptor.
        Stream = "a stream of stdio",
        /// In place: not a descriptor, or one about which nothing is known.
        Unknown = "not an open descriptor",
        /// In place: the library has not started in this process yet, or cannot.
        NotStarted = "before the start",
        /// In place: a signal handler made the call while a call of its thread was being moved.
        Handler = "in a handler that interrupted a call",
        /// In place: a child of vfork shares its parent's memory.
        SharedMemory = "in a child that shares memory",
        /// In place: the program has changed state that the kernel keeps for each thread.
        ThreadState = "the kernel ties something to the thread",
        /// In place: the call changes the thread's signal mask while it waits.
        SignalMask = "waits with another signal mask",
        /// In place: it is unknown whether other threads may execute this command or option.
        Unsure = "not known to be movable",
        /// In place: the size of files is limited, and the signal for exceeding it goes to the
        /// calling thread.
        FileLimit = "the size of files is limited",
        /// In place: the mechanism is `in-place`.
        Off = "the mechanism is in-place",
        /// In place: the process may use only one CPU. A thread that executes the call elsewhere
        /// would have to wait for it.
        OneCpu = "one CPU for the whole program",
        /// In place: the call may block, and all threads that may block are busy.
        NoThread = "no thread to block",
        /// Moved, but its thread was cancelled or jumped out of it, so no thread received the
        /// result.
        Abandoned = "abandoned by its thread",
    }
}

numbered! {
    /// The functions that are counted. Variants (fortified, or under another name) count as the
    /// same function.
    Function, FUNCTIONS {
        /// `socket`
        Socket = "socket",
        /// `socketpair`
        Socketpair = "socketpair",
        /// `accept`
        Accept = "accept",
        /// `accept4`
        Accept4 = "accept4",
        /// `connect`
        Connect = "connect",
        /// `bind`
        Bind = "bind",
        /// `listen`
        Listen = "listen",
        /// `shutdown`
        Shutdown = "shutdown",
        /// `getsockopt`
        Getsockopt = "getsockopt",
        /// `setsockopt`
        Setsockopt = "setsockopt",
        /// `getsockname`
        Getsockname = "getsockname",
        /// `getpeername`
        Getpeername = "getpeername",
        /// `close`
        Close = "close",
        /// `dup`
        Dup = "dup",
        /// `dup2`
        Dup2 = "dup2",
        /// `dup3`
        Dup3 = "dup3",
        /// `fcntl`
        Fcntl = "fcntl",
        /// `ioctl`
        Ioctl = "ioctl",
        /// `read`
        Read = "read",
        /// `readv`
        Readv = "readv",
        /// `write`
        Write = "write",
        /// `writev`
        Writev = "writev",
        /// `send`
        Send = "send",
        /// `sendto`
        Sendto = "sendto",
        /// `sendmsg`
        Sendmsg = "sendmsg",
        /// `sendmmsg`
        Sendmmsg = "sendmmsg",
        /// `recv`
        Recv = "recv",
        /// `recvfrom`
        Recvfrom = "recvfrom",
        /// `recvmsg`
        Recvmsg = "recvmsg",
        /// `recvmmsg`
        Recvmmsg = "recvmmsg",
        /// `sendfile`
        Sendfile = "sendfile",
        /// `splice`
        Splice = "splice",
        /// `poll`
        Poll = "poll",
        /// `ppoll`
        Ppoll = "ppoll",
        /// `select`
        Select = "select",
        /// `pselect`
        Pselect = "pselect",
        /// `epoll_ctl`
        EpollCtl = "epoll_ctl",
        /// `epoll_wait`
        EpollWait = "epoll_wait",
        /// `epoll_pwait`
        EpollPwait = "epoll_pwait",
        /// `epoll_pwait2`
        EpollPwait2 = "epoll_pwait2",
        /// `open`, and its like
        Open = "open",
        /// `pread`
        Pread = "pread",
        /// `pwrite`
        Pwrite = "pwrite",
        /// `preadv`
        Preadv = "preadv",
        /// `pwritev`
        Pwritev = "pwritev",
        /// `fsync`
        Fsync = "fsync",
        /// `fdatasync`
        Fdatasync = "fdatasync",
    }
}

/// The whole mapping.
#[repr(C)]
pub struct Mapping {
    /// About the process.
    pub header: Header,
    /// Counters, by CPU.
    pub shards: [Shard; SHARDS],
}

/// About the process.
#[repr(C, align(64))]
pub struct Header {
    /// [`MAGIC`], stored last (Release) when the mapping is ready.
    pub magic: AtomicU64,
    /// The process.
    pub pid: AtomicU32,
    /// Its parent.
    pub parent: AtomicU32,
    /// When the mapping was made, in ticks.
    pub started: AtomicU64,
    /// The CPUs on which routes may be, one bit for each.
    pub cpus: [AtomicU64; CPU_WORDS],
    /// The CPUs on whose routes calls were executed, one bit for each.
    pub used: [AtomicU64; CPU_WORDS],
    /// The mechanism's name, in bytes, zero at the end.
    pub mechanism: [AtomicU64; 4],
    /// The path of the program, zero-terminated; cut if it is longer.
    pub program: [AtomicU64; 64],
}

/// What was counted on a CPU.
#[repr(C, align(64))]
pub struct Shard {
    /// Calls, by function and outcome.
    pub calls: [[AtomicU64; OUTCOMES]; FUNCTIONS],
    /// The duration of moved calls from the caller's side, in ticks.
    pub latency: Histogram,
    /// The same for moved calls that do not wait.
    pub quick: Histogram,
}

impl Mapping {
    /// Counts a call, on the shard of a CPU.
    #[inline]
    pub fn count(&self, cpu: u32, function: Function, outcome: Outcome) {
        let shard = &self.shards[cpu as usize % SHARDS];
        shard.calls[function as usize][outcome as usize].fetch_add(1, Ordering::Relaxed);
    }
}
