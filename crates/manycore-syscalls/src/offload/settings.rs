//! The user's choices: the mechanism that moves calls, and the CPUs to which they are moved.

use core::ffi::{c_int, c_void};

/// The thread that executes a moved call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Mechanism {
    /// No thread but the caller.
    InPlace = 0,
    /// A system call thread for each route, as published.
    Thread = 1,
    /// A worker for each CPU, which serves all routes of that CPU.
    Pool = 2,
    /// io_uring with a submission thread of the kernel on each CPU. Calls that io_uring does not
    /// have go to the pool.
    Uring = 3,
}

impl Mechanism {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 4] = [Self::InPlace, Self::Thread, Self::Pool, Self::Uring];

    /// As the command line and the environment name it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::InPlace => "in-place",
            Self::Thread => "thread",
            Self::Pool => "pool",
            Self::Uring => "uring",
        }
    }
}

/// Which group of CPUs serves a new route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// The first group, round robin.
    First,
    /// The group of the CPU on which the route is opened, or the first group if none has it.
    Own,
    /// The first group with a CPU that serves fewer routes of this process than this number; if
    /// there is none, the group with the fewest.
    Spill(u32),
}

/// The most CPUs on which routes can be put.
pub const CPUS_MAX: usize = 1024;
/// Groups of them, at most.
pub const GROUPS_MAX: usize = 64;

/// Groups of CPUs, in order of preference.
#[derive(Clone, Copy, Debug)]
pub struct Groups {
    cpus: [u16; CPUS_MAX],
    ends: [u16; GROUPS_MAX],
    groups: usize,
}

impl Groups {
    /// None yet.
    pub const fn new() -> Self {
        Self { cpus: [0; CPUS_MAX], ends: [0; GROUPS_MAX], groups: 0 }
    }

    /// Begins a group; false if there are [`GROUPS_MAX`] already.
    pub const fn begin(&mut self) -> bool {
        if self.groups == GROUPS_MAX {
            return false;
        }
        self.ends[self.groups] = self.len() as u16;
        self.groups += 1;
        true
    }

    /// Adds a CPU to the last group; returns false if there is no group, no room, or no machine has
    /// such a CPU.
    pub const fn add(&mut self, cpu: u32) -> bool {
        if self.groups == 0 || self.len() == CPUS_MAX || cpu > u16::MAX as u32 {
            return false;
        }
        let at = self.len();
        self.cpus[at] = cpu as u16;
        self.ends[self.groups - 1] += 1;
        true
    }

    /// How many CPUs there are, in all groups.
    pub const fn len(&self) -> usize {
        match self.groups {
            0 => 0,
            groups => self.ends[groups - 1] as usize,
        }
    }

    /// Whether there is no CPU.
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many groups.
    pub const fn groups(&self) -> usize {
        self.groups
    }

    /// Where the CPUs of a group are among [`cpus`](Self::cpus).
    pub fn range(&self, group: usize) -> core::ops::Range<usize> {
        let begin = if group == 0 { 0 } else { self.ends[group - 1] as usize };
        begin..self.ends[group] as usize
    }

    /// The CPUs of all groups, one group after the other.
    pub fn cpus(&self) -> &[u16] {
        &self.cpus[..self.len()]
    }
}

impl Default for Groups {
    fn default() -> Self {
        Self::new()
    }
}

/// Makes a detached thread with the C library's own `pthread_create`, so that the library's actions
/// on all threads (such as a change of user) reach it. Returns 0 or an error number. All signals
/// are blocked when it is called, and [`MayCreateThread`] has just returned true.
pub type CreateThread = unsafe extern "C" fn(
    run: extern "C" fn(*mut c_void) -> *mut c_void,
    argument: *mut c_void,
) -> c_int;

/// Whether the calling thread may make a thread; checked before any preparation. `blocked` are the
/// signals that were blocked before the thread's call; all signals are blocked when this is called.
/// Returns false if the calling thread is in a signal handler, which may have interrupted it in the
/// allocator.
pub type MayCreateThread = unsafe extern "C" fn(blocked: u64) -> bool;

/// Makes threads for a call that needs one, on behalf of the calling thread. No other thread does
/// that: a thread that executes calls must not wait for an allocator's lock, because the lock's
/// owner may be waiting for its own call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Maker {
    /// How.
    pub settings: &'static Settings,
    /// The signals that the thread had blocked before its call.
    pub blocked: u64,
}

impl Maker {
    /// Whether the thread that makes the call may make one.
    ///
    /// # Safety
    ///
    /// All signals are blocked.
    pub unsafe fn may_make(self) -> bool {
        // SAFETY: all signals are blocked (contract of this function), as the function expects.
        unsafe { (self.settings.may_create_thread)(self.blocked) }
    }

    /// Makes one; returns whether it was made.
    ///
    /// # Safety
    ///
    /// All signals are blocked, [`may_make`](Self::may_make) has said yes, and the argument is the
    /// function's expected one.
    pub unsafe fn make(
        self,
        run: extern "C" fn(*mut c_void) -> *mut c_void,
        argument: *mut c_void,
    ) -> bool {
        // SAFETY: all signals are blocked, the function and its argument belong together (contract
        // of this function), and `may_make` has said yes.
        unsafe { (self.settings.create_thread)(run, argument) == 0 }
    }
}

/// Sleeps while `*word == expected` (futex, private). It sleeps without a timeout, so that the
/// kernel restarts it after a handler with `SA_RESTART`; or, if `never_restarts`, with a distant
/// timeout, so that every handler ends it. Returns 0 or an error number: `EINTR`, `EAGAIN`. The
/// thread may be cancelled in there, and then unwinds.
pub type Sleep =
    unsafe extern "C-unwind" fn(word: *const u32, expected: u32, never_restarts: bool) -> c_int;

/// All that is chosen when a process starts.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// The threads that execute moved calls.
    pub mechanism: Mechanism,
    /// Where.
    pub groups: Groups,
    /// Which group serves a new route.
    pub rule: Rule,
    /// Whether calls are left in place where moving them costs more than it saves.
    pub bypass: bool,
    /// Whether the calling thread may make one.
    pub may_create_thread: MayCreateThread,
    /// How threads are made.
    pub create_thread: CreateThread,
    /// How callers sleep.
    pub sleep: Sleep,
    /// Says a line, in parts, to the user of the program.
    pub say: fn(&[&[u8]]),
}
