//! The calls, by Linux' numbers. Programs get ENOSYS for all others.

use super::{Call, files, ipc, memory, names, processes, signals, status, time, transfer};

/// Handled by itself: it returns to the code that a signal interrupted, by another frame.
pub const SIGRETURN: u64 = 15;
/// Handled by itself: it starts a program, by another frame.
pub const EXECVE: u64 = 59;

macro_rules! table {
    ($($number:literal $name:literal $call:expr;)*) => {
        const CALLS: &[(u64, &str, Call)] = &[$(($number, $name, $call)),*];
    };
}

table! {
    0 "read" transfer::read;
    1 "write" transfer::write;
    2 "open" files::open;
    3 "close" files::close;
    4 "stat" status::stat;
    5 "fstat" status::fstat;
    6 "lstat" status::lstat;
    7 "poll" files::poll;
    8 "lseek" files::lseek;
    9 "mmap" memory::mmap;
    10 "mprotect" memory::mprotect;
    11 "munmap" memory::munmap;
    12 "brk" memory::brk;
    13 "rt_sigaction" signals::sigaction;
    14 "rt_sigprocmask" signals::sigprocmask;
    15 "rt_sigreturn" signals::sigreturn;
    16 "ioctl" files::ioctl;
    17 "pread64" transfer::pread;
    18 "pwrite64" transfer::pwrite;
    19 "readv" transfer::readv;
    20 "writev" transfer::writev;
    21 "access" status::access;
    22 "pipe" files::pipe;
    24 "sched_yield" processes::sched_yield;
    25 "mremap" memory::mremap;
    28 "madvise" memory::madvise;
    29 "shmget" ipc::shmget;
    30 "shmat" ipc::shmat;
    31 "shmctl" ipc::shmctl;
    32 "dup" files::dup;
    33 "dup2" files::dup2;
    34 "pause" signals::pause;
    35 "nanosleep" time::nanosleep;
    36 "getitimer" time::getitimer;
    37 "alarm" time::alarm;
    38 "setitimer" time::setitimer;
    39 "getpid" processes::getpid;
    40 "sendfile" transfer::sendfile;
    56 "clone" processes::clone;
    57 "fork" processes::fork;
    58 "vfork" processes::vfork;
    59 "execve" processes::execve;
    60 "exit" processes::exit;
    61 "wait4" processes::wait4;
    62 "kill" signals::kill;
    63 "uname" status::uname;
    64 "semget" ipc::semget;
    65 "semop" ipc::semop;
    66 "semctl" ipc::semctl;
    67 "shmdt" ipc::shmdt;
    72 "fcntl" files::fcntl;
    73 "flock" files::flock;
    74 "fsync" files::fsync;
    75 "fdatasync" files::fsync;
    76 "truncate" names::truncate;
    77 "ftruncate" files::ftruncate;
    79 "getcwd" names::getcwd;
    80 "chdir" names::chdir;
    81 "fchdir" names::fchdir;
    82 "rename" names::rename;
    83 "mkdir" names::mkdir;
    84 "rmdir" names::rmdir;
    85 "creat" files::creat;
    86 "link" names::link;
    87 "unlink" names::unlink;
    88 "symlink" names::symlink;
    89 "readlink" names::readlink;
    90 "chmod" names::chmod;
    91 "fchmod" names::fchmod;
    92 "chown" names::chown;
    93 "fchown" names::fchown;
    94 "lchown" names::lchown;
    95 "umask" names::umask;
    96 "gettimeofday" time::gettimeofday;
    97 "getrlimit" status::getrlimit;
    98 "getrusage" status::getrusage;
    99 "sysinfo" status::sysinfo;
    100 "times" time::times;
    102 "getuid" processes::zero;
    104 "getgid" processes::zero;
    105 "setuid" processes::zero;
    106 "setgid" processes::zero;
    107 "geteuid" processes::zero;
    108 "getegid" processes::zero;
    109 "setpgid" processes::setpgid;
    110 "getppid" processes::getppid;
    111 "getpgrp" processes::getpgrp;
    112 "setsid" processes::setsid;
    115 "getgroups" processes::zero;
    116 "setgroups" processes::zero;
    117 "setresuid" processes::zero;
    119 "setresgid" processes::zero;
    121 "getpgid" processes::getpgid;
    124 "getsid" processes::getsid;
    127 "rt_sigpending" signals::sigpending;
    130 "rt_sigsuspend" signals::sigsuspend;
    131 "sigaltstack" signals::sigaltstack;
    132 "utime" names::utime;
    137 "statfs" status::statfs;
    138 "fstatfs" status::fstatfs;
    157 "prctl" processes::prctl;
    158 "arch_prctl" processes::arch_prctl;
    161 "chroot" processes::zero;
    162 "sync" files::sync;
    165 "mount" processes::zero;
    166 "umount2" processes::zero;
    169 "reboot" processes::reboot;
    170 "sethostname" processes::zero;
    186 "gettid" processes::gettid;
    200 "tkill" signals::tkill;
    201 "time" time::time;
    202 "futex" processes::futex;
    203 "sched_setaffinity" processes::sched_setaffinity;
    204 "sched_getaffinity" processes::sched_getaffinity;
    217 "getdents64" files::getdents64;
    218 "set_tid_address" processes::set_tid_address;
    220 "semtimedop" ipc::semtimedop;
    221 "fadvise64" processes::zero;
    228 "clock_gettime" time::clock_gettime;
    229 "clock_getres" time::clock_getres;
    230 "clock_nanosleep" time::clock_nanosleep;
    231 "exit_group" processes::exit_group;
    234 "tgkill" signals::tgkill;
    235 "utimes" names::utimes;
    247 "waitid" processes::waitid;
    257 "openat" files::openat;
    258 "mkdirat" names::mkdirat;
    260 "fchownat" names::fchownat;
    262 "newfstatat" status::newfstatat;
    263 "unlinkat" names::unlinkat;
    264 "renameat" names::renameat;
    265 "linkat" names::linkat;
    266 "symlinkat" names::symlinkat;
    267 "readlinkat" names::readlinkat;
    268 "fchmodat" names::fchmodat;
    269 "faccessat" status::faccessat;
    271 "ppoll" files::ppoll;
    273 "set_robust_list" processes::zero;
    280 "utimensat" names::utimensat;
    285 "fallocate" files::fallocate;
    292 "dup3" files::dup3;
    293 "pipe2" files::pipe2;
    295 "preadv" transfer::preadv;
    296 "pwritev" transfer::pwritev;
    302 "prlimit64" status::prlimit64;
    306 "syncfs" files::syncfs;
    316 "renameat2" names::renameat2;
    318 "getrandom" status::getrandom;
    324 "membarrier" processes::membarrier;
    332 "statx" status::statx;
    439 "faccessat2" status::faccessat;
}

/// Calls that C libraries try, and do without: statx and time are not among them.
const TRIED: &[u64] = &[
    334, // rseq
    435, // clone3
    436, // close_range
    324, 425, 426, 41, 23, 270, 78, 187, 326, 40, 189, 191, 193,
];

/// Whether no user is to be told that there is no such call.
pub fn is_refused_silently(number: u64) -> bool {
    TRIED.contains(&number)
}

const PLACES: usize = 512;

const fn index() -> [u16; PLACES] {
    let mut index = [u16::MAX; PLACES];
    let mut place = 0;
    while place < CALLS.len() {
        index[CALLS[place].0 as usize] = place as u16;
        place += 1;
    }
    index
}

static INDEX: [u16; PLACES] = index();

/// The call with this number, and its name.
pub fn find(number: u64) -> Option<(&'static str, Call)> {
    let place = *INDEX.get(usize::try_from(number).ok()?)?;
    CALLS.get(place as usize).map(|&(_, name, call)| (name, call))
}
