//! The exported functions: each jumps to the one that has its signature.

use core::arch::naked_asm;
use core::ffi::CStr;

use manycore_interpose::loading;

use crate::calls::{
    descriptors, files, jumps, processes, signals, sockets, stat, streams, threads, ties, transfer,
    waiting,
};

macro_rules! exports {
    ($([$($name:ident),*] => $target:path;)*) => {
        mod exported {
            use super::*;
            $($(
                #[unsafe(naked)]
                #[unsafe(no_mangle)]
                pub extern "C" fn $name() {
                    // SAFETY: the arguments and the stack are as the caller has left them, and the
                    // target has this function's signature.
                    #[cfg(target_arch = "x86_64")]
                    naked_asm!(
                        ".cfi_startproc",
                        "jmp {target}",
                        ".cfi_endproc",
                        target = sym $target,
                    );
                    // SAFETY: the arguments, the stack and the register with the return address are
                    // as the caller has left them, and the target has this function's signature.
                    #[cfg(target_arch = "aarch64")]
                    naked_asm!(
                        ".cfi_startproc",
                        "b {target}",
                        ".cfi_endproc",
                        target = sym $target,
                    )
                }
            )*)*
        }

        /// Every exported name.
        pub const EXPORTS: &[&CStr] = &[$($(name(concat!(stringify!($name), "\0")),)*)*];
    };
}

const fn name(with_nul: &str) -> &CStr {
    match CStr::from_bytes_with_nul(with_nul.as_bytes()) {
        Ok(name) => name,
        Err(_) => unreachable!(),
    }
}

exports! {
    [socket] => sockets::socket;
    [socketpair] => sockets::socketpair;
    [accept] => sockets::accept;
    [accept4] => sockets::accept4;
    [connect, __connect] => sockets::connect;
    [bind] => sockets::bind;
    [listen] => sockets::listen;
    [shutdown] => sockets::shutdown;
    [getsockopt] => sockets::getsockopt;
    [setsockopt] => sockets::setsockopt;
    [getsockname] => sockets::getsockname;
    [getpeername] => sockets::getpeername;

    [close, __close] => descriptors::close;
    [close_range] => descriptors::close_range;
    [closefrom] => descriptors::closefrom;
    [dup] => descriptors::dup;
    [dup2, __dup2] => descriptors::dup2;
    [dup3] => descriptors::dup3;
    [fcntl, fcntl64, __fcntl] => descriptors::fcntl;
    [ioctl] => descriptors::ioctl;
    [signalfd] => descriptors::signalfd;

    [read, __read] => transfer::read;
    [__read_chk] => transfer::read_chk;
    [readv] => transfer::readv;
    [write, __write] => transfer::write;
    [writev] => transfer::writev;
    [send, __send] => transfer::send;
    [sendto] => transfer::sendto;
    [sendmsg] => transfer::sendmsg;
    [sendmmsg] => transfer::sendmmsg;
    [recv] => transfer::recv;
    [__recv_chk] => transfer::recv_chk;
    [recvfrom] => transfer::recvfrom;
    [__recvfrom_chk] => transfer::recvfrom_chk;
    [recvmsg] => transfer::recvmsg;
    [recvmmsg] => transfer::recvmmsg;
    [sendfile, sendfile64] => transfer::sendfile;
    [splice] => transfer::splice;

    [poll, __poll] => waiting::poll;
    [__poll_chk] => waiting::poll_chk;
    [ppoll] => waiting::ppoll;
    [__ppoll_chk] => waiting::ppoll_chk;
    [select, __select] => waiting::select;
    [pselect] => waiting::pselect;
    [epoll_create] => waiting::epoll_create;
    [epoll_create1] => waiting::epoll_create1;
    [epoll_ctl] => waiting::epoll_ctl;
    [epoll_wait] => waiting::epoll_wait;
    [epoll_pwait] => waiting::epoll_pwait;
    [epoll_pwait2] => waiting::epoll_pwait2;

    [open, __open] => files::open;
    [open64, __open64] => files::open64;
    [openat] => files::openat;
    [openat64] => files::openat64;
    [creat] => files::creat;
    [creat64] => files::creat64;
    [__open_2] => files::open_2;
    [__open64_2] => files::open64_2;
    [__openat_2] => files::openat_2;
    [__openat64_2] => files::openat64_2;
    [pread, pread64, __pread64] => files::pread;
    [__pread_chk, __pread64_chk] => files::pread_chk;
    [pwrite, pwrite64, __pwrite64] => files::pwrite;
    [preadv, preadv64] => files::preadv;
    [pwritev, pwritev64] => files::pwritev;
    [fsync] => files::fsync;
    [fdatasync] => files::fdatasync;

    [stat] => stat::stat;
    [stat64] => stat::stat64;
    [lstat] => stat::lstat;
    [lstat64] => stat::lstat64;
    [fstatat] => stat::fstatat;
    [fstatat64] => stat::fstatat64;
    [statx] => stat::statx;
    [opendir] => stat::opendir;
    [__xstat] => stat::__xstat;
    [__xstat64] => stat::__xstat64;
    [__lxstat] => stat::__lxstat;
    [__lxstat64] => stat::__lxstat64;
    [__fxstatat] => stat::__fxstatat;
    [__fxstatat64] => stat::__fxstatat64;

    [fdopen] => streams::fdopen;
    [fclose] => streams::fclose;
    [freopen] => streams::freopen;
    [freopen64] => streams::freopen64;
    [popen] => streams::popen;
    [pclose] => streams::pclose;

    [chroot] => ties::chroot;
    [setuid] => ties::setuid;
    [seteuid] => ties::seteuid;
    [setreuid] => ties::setreuid;
    [setresuid] => ties::setresuid;
    [setgid] => ties::setgid;
    [setegid] => ties::setegid;
    [setregid] => ties::setregid;
    [setresgid] => ties::setresgid;
    [setgroups] => ties::setgroups;
    [initgroups] => ties::initgroups;
    [setfsuid] => ties::setfsuid;
    [setfsgid] => ties::setfsgid;
    [capset] => ties::capset;
    [unshare] => ties::unshare;
    [setns] => ties::setns;
    [prctl] => ties::prctl;
    [setpriority] => ties::setpriority;
    [nice] => ties::nice;
    [sched_setscheduler] => ties::sched_setscheduler;
    [sched_setparam] => ties::sched_setparam;
    [pthread_setschedparam] => ties::pthread_setschedparam;
    [pthread_setschedprio] => ties::pthread_setschedprio;
    [pkey_alloc] => ties::pkey_alloc;

    [syscall] => jumps::syscall;
    [vfork, __vfork] => jumps::vfork;
    [clone, __clone] => processes::clone;
    [longjmp] => jumps::longjmp;
    [_longjmp] => jumps::_longjmp;
    [siglongjmp] => jumps::siglongjmp;
    [__longjmp_chk] => jumps::longjmp_chk;

    [sigaction, __sigaction] => signals::sigaction;
    [signal, bsd_signal, ssignal] => signals::signal;
    [sysv_signal, __sysv_signal] => signals::sysv_signal;
    [sigset] => signals::sigset;
    [siginterrupt] => signals::siginterrupt;

    [pthread_create] => threads::pthread_create;
    [thrd_create] => threads::thrd_create;
    [dlopen] => loading::dlopen;
}
