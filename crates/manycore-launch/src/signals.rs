//! Signals that come while the command runs programs of its own.
//!
//! Signals are collected, and no handler acts on them. The thread that waits for a program sees the
//! signal. It either stops the processes that it has started and lets the command die of the
//! signal, or passes the signal on.
//!
//! # Who sent it
//!
//! If a process sends a signal to the command, it means the program: the signal is passed on. The
//! terminal's signals go to all processes in the foreground, so the program has them already. The
//! kernel's signals for a fault or a broken pipe of this command concern only the command.

use std::io::{self, PipeReader, PipeWriter, Read};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use libc::{c_int, c_void, siginfo_t, sigset_t};
use rustix::fs::{OFlags, fcntl_setfl};

use crate::failure::{Failure, Result};

/// Signals by which the user asks the command to end.
const ASK_TO_END: [c_int; 4] = [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM];

/// Other signals by which a process dies unless it handles them.
const END: [c_int; 8] = [
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGALRM,
    libc::SIGVTALRM,
    libc::SIGPROF,
    libc::SIGIO,
    libc::SIGPWR,
    libc::SIGSTKFLT,
];

/// The kernel's signals for a fault: continuing would only repeat the fault.
const FAULTS: [c_int; 6] =
    [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE, libc::SIGTRAP, libc::SIGSYS];

/// The descriptor to which the handler writes; none if negative. Relaxed, throughout: it stands for
/// itself, and is set before the handler.
static TO: AtomicI32 = AtomicI32::new(-1);

/// Signals that have come since it was opened.
#[derive(Debug)]
pub struct Inbox {
    from: PipeReader,
    _to: PipeWriter,
    before: Vec<(c_int, libc::sigaction)>,
    mask: Option<sigset_t>,
    outer: i32,
}

/// A signal that has come.
#[derive(Clone, Copy)]
pub struct Arrived(siginfo_t);

impl Inbox {
    /// Starts to collect the signals by which the command would die, except for those that this
    /// process ignores: `nohup` relies on that.
    pub fn open() -> Result<Self> {
        let real_time = libc::SIGRTMIN()..=libc::SIGRTMAX();
        let all = ASK_TO_END.into_iter().chain(END).chain(real_time);
        Self::watch(all.filter(|&signal| !is_ignored(signal)), None).map_err(cannot)
    }

    /// Collects all signals that can be passed on to a program, including those that this process
    /// ignores or blocks, because the program may not. Start the program with
    /// [`start_like_us`](Self::start_like_us).
    pub fn to_hand_on() -> Result<Self> {
        // SAFETY: an empty set, and the old one is written to a variable of ours.
        let mask = unsafe {
            let (mut none, mut before) = (MaybeUninit::uninit(), MaybeUninit::uninit());
            libc::sigemptyset(none.as_mut_ptr());
            libc::pthread_sigmask(libc::SIG_SETMASK, none.as_ptr(), before.as_mut_ptr());
            before.assume_init()
        };
        Self::watch(every(), Some(mask)).map_err(cannot)
    }

    fn watch(signals: impl Iterator<Item = c_int>, mask: Option<sigset_t>) -> io::Result<Self> {
        let (from, to) = io::pipe()?;
        for end in [from.as_fd(), to.as_fd()] {
            fcntl_setfl(end, OFlags::NONBLOCK)?;
        }
        // Relaxed: see `TO`.
        let outer = TO.swap(to.as_raw_fd(), Ordering::Relaxed);
        let mut inbox = Self { from, _to: to, before: Vec::new(), mask, outer };
        for signal in signals {
            let handler: extern "C" fn(c_int, *mut siginfo_t, *mut c_void) = arrived;
            inbox.set(signal, handler as usize)?;
        }
        Ok(inbox)
    }

    /// Makes a program start with the ignored and blocked signals with which this command was
    /// started.
    pub fn start_like_us(&self, program: &mut Command) {
        keep_ignored_pipe(program);
        let before = self.before.iter().filter(|(_, action)| action.sa_sigaction == libc::SIG_IGN);
        let ignored: Vec<c_int> = before.map(|(signal, _)| *signal).collect();
        let mask = self.mask;
        // SAFETY: the closure makes system calls, and reads data that were allocated before the
        // fork.
        unsafe {
            program.pre_exec(move || {
                ignored.iter().for_each(|signal| _ = libc::signal(*signal, libc::SIG_IGN));
                if let Some(mask) = &mask {
                    libc::pthread_sigmask(libc::SIG_SETMASK, mask, std::ptr::null_mut());
                }
                Ok(())
            });
        }
    }

    /// Called after the program has ended. From now on, signals that end a process end the command;
    /// others have no receiver.
    pub fn end_by_default(&mut self) {
        let watched: Vec<_> =
            self.before.iter().map(|(signal, action)| (*signal, action.sa_sigaction)).collect();
        for (signal, before) in watched {
            let is_for_nobody = END.contains(&signal) || signal >= libc::SIGRTMIN();
            let action = if is_for_nobody { libc::SIG_IGN } else { before };
            // Fails for no signal for which it has succeeded.
            let _ = self.set(signal, action);
        }
    }

    fn set(&mut self, signal: c_int, action: usize) -> io::Result<()> {
        // SAFETY: all zero is a valid value of both structures; the handler has the signature that
        // its flags require, and does only what a handler may.
        let before = unsafe {
            let mut new: libc::sigaction = std::mem::zeroed();
            new.sa_sigaction = action;
            new.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART | libc::SA_NOCLDSTOP;
            let mut before: libc::sigaction = std::mem::zeroed();
            if libc::sigaction(signal, &raw const new, &raw mut before) != 0 {
                return Err(io::Error::last_os_error());
            }
            before
        };
        if !self.before.iter().any(|(known, _)| *known == signal) {
            self.before.push((signal, before));
        }
        Ok(())
    }

    /// Becomes readable when a signal has come.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.from.as_fd()
    }

    /// The next signal that has come, if any has.
    pub fn take(&mut self) -> Option<Arrived> {
        let mut bytes = [0; size_of::<siginfo_t>()];
        // The handler writes complete records, with fewer bytes than a pipe takes at once.
        self.from.read_exact(&mut bytes).ok()?;
        // SAFETY: the bytes of one that the kernel gave to the handler.
        Some(Arrived(unsafe {
            std::mem::transmute::<[u8; size_of::<siginfo_t>()], siginfo_t>(bytes)
        }))
    }
}

impl Drop for Inbox {
    fn drop(&mut self) {
        for (signal, action) in &self.before {
            // SAFETY: the action is what `set` got from the kernel, so that its handler, if any, is
            // a function that this process had given.
            unsafe { libc::sigaction(*signal, action, std::ptr::null_mut()) };
        }
        // Relaxed: see `TO`.
        TO.store(self.outer, Ordering::Relaxed);
        if let Some(mask) = &self.mask {
            // SAFETY: the mask is the one that the thread had before this inbox was opened.
            unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, mask, std::ptr::null_mut()) };
        }
    }
}

impl std::fmt::Debug for Arrived {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "signal {} ({})", self.signal(), self.0.si_code)
    }
}

impl Arrived {
    /// Its number.
    pub fn signal(&self) -> c_int {
        self.0.si_signo
    }

    /// Whether it asks to end.
    pub fn asks_to_end(&self) -> bool {
        ASK_TO_END.contains(&self.signal())
    }

    /// Whether it asks to stop until it is continued.
    pub fn asks_to_stop(&self) -> bool {
        [libc::SIGTSTP, libc::SIGTTIN, libc::SIGTTOU].contains(&self.signal())
    }

    /// Whether it came from the terminal. Then the whole foreground group has it, and not only this
    /// process.
    pub fn is_from_terminal(&self) -> bool {
        let sent = [libc::SIGINT, libc::SIGQUIT, libc::SIGHUP, libc::SIGTSTP, libc::SIGWINCH];
        self.0.si_code > 0 && sent.contains(&self.signal())
    }

    /// Sends it to a process, with its value if the sender gave one.
    pub fn hand_on(&self, to: BorrowedFd<'_>) {
        let (call, to, no_flags) = (libc::SYS_pidfd_send_signal, to.as_raw_fd(), 0);
        // With the sender's identity, the kernel lets a process pass on only signals that carry a
        // value.
        let with_value = (self.0.si_code == libc::SI_QUEUE).then_some(&raw const self.0);
        let info = with_value.unwrap_or(std::ptr::null());
        // Fails only when the process has ended already.
        // SAFETY: the kernel reads the information, if there is any.
        unsafe { libc::syscall(call, to, self.signal(), info, no_flags) };
    }
}

/// All signals for which a process can have a handler. The two between the real-time ones and the
/// others belong to the C library.
fn every() -> impl Iterator<Item = c_int> {
    let first = (1..32).filter(|signal| ![libc::SIGKILL, libc::SIGSTOP].contains(signal));
    first.chain(libc::SIGRTMIN()..=libc::SIGRTMAX())
}

/// Whether the command was started with broken pipes ignored; Rust ignores them always.
static PIPE_WAS_IGNORED: AtomicBool = AtomicBool::new(false);

#[used]
#[unsafe(link_section = ".init_array")]
static BEFORE_RUST: extern "C" fn() = {
    extern "C" fn note() {
        // Relaxed: there is one thread.
        PIPE_WAS_IGNORED.store(is_ignored(libc::SIGPIPE), Ordering::Relaxed);
    }
    note
};

/// Makes a program start with SIGPIPE ignored if this command was. Otherwise Rust would make the
/// program die of it.
pub fn keep_ignored_pipe(program: &mut Command) {
    // Relaxed: as above.
    if PIPE_WAS_IGNORED.load(Ordering::Relaxed) {
        // SAFETY: between fork and exec the closure makes system calls only.
        unsafe {
            program.pre_exec(|| {
                libc::signal(libc::SIGPIPE, libc::SIG_IGN);
                Ok(())
            });
        }
    }
}

extern "C" fn arrived(signal: c_int, info: *mut siginfo_t, _: *mut c_void) {
    // SAFETY: the kernel's, and valid while this runs; `errno` is this thread's, and the calls are
    // safe in a handler.
    unsafe {
        let errno = *libc::__errno_location();
        match about(&*info) {
            About::Program => {
                // Relaxed: see `TO`.
                let to = TO.load(Ordering::Relaxed);
                // A full pipe has more signals than can be told apart.
                libc::write(to, info.cast(), size_of::<siginfo_t>());
            }
            About::Neither => {}
            About::Command => {
                libc::signal(signal, libc::SIG_DFL);
                libc::raise(signal);
            }
            About::Terminal => {
                libc::raise(libc::SIGSTOP);
            }
        }
        *libc::__errno_location() = errno;
    }
}

/// Whom a signal is about.
enum About {
    /// The program, or the process that waits for it.
    Program,
    /// Neither program nor command: the signal has served its purpose.
    Neither,
    /// This command: the signal must have its usual effect.
    Command,
    /// A background process has used the terminal: the whole job stops.
    Terminal,
}

fn about(info: &siginfo_t) -> About {
    let signal = info.si_signo;
    if info.si_code > 0 {
        return match signal {
            signal if FAULTS.contains(&signal) => About::Command,
            libc::SIGTTIN | libc::SIGTTOU => About::Terminal,
            libc::SIGCHLD | libc::SIGPIPE | libc::SIGXFSZ | libc::SIGXCPU | libc::SIGURG => {
                About::Neither
            }
            _ => About::Program,
        };
    }
    let has_sender = [libc::SI_USER, libc::SI_TKILL, libc::SI_QUEUE].contains(&info.si_code);
    // SAFETY: `has_sender` says that the kernel has filled in the sender.
    if !has_sender || unsafe { info.si_pid() } as u32 != std::process::id() {
        return About::Program;
    }
    match signal {
        // The call that failed says so, too.
        libc::SIGPIPE | libc::SIGXFSZ => About::Neither,
        _ => About::Command,
    }
}

fn is_ignored(signal: c_int) -> bool {
    // SAFETY: all zero is a valid value of the structure.
    let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: no new action is given, and the old one is written to a structure of ours.
    let known = unsafe { libc::sigaction(signal, std::ptr::null(), &raw mut action) } == 0;
    known && action.sa_sigaction == libc::SIG_IGN
}

fn cannot(error: io::Error) -> Failure {
    Failure::failed(format!("cannot catch signals: {error}"))
}
