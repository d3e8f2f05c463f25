//! What libraries under programs are for, and what they are called.

/// What a library does for a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// It puts other locks in.
    Locks,
    /// It executes system calls on chosen CPUs.
    Calls,
}

impl Purpose {
    /// All of them.
    pub const ALL: [Self; 2] = [Self::Locks, Self::Calls];

    /// What its file is called.
    pub fn file_name(self) -> &'static str {
        match self {
            Self::Locks => "libmanycore_preload.so",
            Self::Calls => "libmanycore_syscalls.so",
        }
    }

    /// The variable that names the library, instead of the search beside the command.
    pub fn variable(self) -> &'static str {
        match self {
            Self::Locks => "MANYCORE_PRELOAD",
            Self::Calls => "MANYCORE_SYSCALLS_PRELOAD",
        }
    }

    /// What it is called in messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Locks => "the preload library",
            Self::Calls => "the library for system calls",
        }
    }
}
