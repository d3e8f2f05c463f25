//! The mechanism `uring`: a thread of the kernel on each CPU executes calls, out of rings.
//!
//! A caller puts an entry into the ring of its route's CPU, and spins: a caller that finds
//! completions takes all of them and answers their calls. Before it sleeps it has the pool's worker
//! of that CPU listen to the ring. Three kinds of calls go to the pool: calls that have to wait,
//! operations that io_uring lacks, and operations whose answer could differ from the system call's,
//! such as `close`, which would answer before the other end knows.
//!
//! The kernel's thread has the process' rights from the time at which the ring was set up, and
//! presents that user to the other end of a local socket. So `connect` and `open` go to the pool,
//! and all calls do after the process has changed its user or groups.

use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use manycore::sync::{clock, hint};
use syscalls::{Sysno, raw_syscall};

use super::attempt::{RECEIVE_TRIES, SEND_TRIES, is_non_blocking};
use super::internal_fds;
use super::raw;
use super::ring::{Completion, Entry, Ring};
use super::ring_backoff::RingBackoff;
use super::slab::Zeroed;
use manycore_channel::call::{Answer, Call, Kind};
use manycore_channel::slot::{Reply, Slot};

const RECVMSG: u8 = 10;
const ACCEPT: u8 = 13;
const CANCEL: u8 = 14;
const SEND: u8 = 26;
const RECV: u8 = 27;
const SHUTDOWN: u8 = 34;

/// The kernel features that the mechanism needs.
const NEEDED: [u8; 5] = [RECVMSG, ACCEPT, CANCEL, SEND, RECV];

const NEW: u32 = 0;
const STARTING: u32 = 1;
const RUNNING: u32 = 2;
const FAILED: u32 = 3;

/// The ring of a CPU. All zero: it is not set up.
#[derive(Debug)]
#[repr(C, align(128))]
pub struct Feed {
    state: AtomicU32,
    /// Callers that sleep.
    sleepers: AtomicU32,
    /// The process has changed its user or groups since.
    is_stale: AtomicBool,
    pub lateness: RingBackoff,
    ring: core::cell::UnsafeCell<core::mem::MaybeUninit<Ring>>,
}

// SAFETY: it consists of numbers and a ring that does not exist yet, for which any bytes are valid.
unsafe impl Zeroed for Feed {}
// SAFETY: `start` writes the ring once, before the state announces it, and `end` drops it when no
// thread uses it; all else is atomic.
unsafe impl Sync for Feed {}

impl Feed {
    /// The ring, if it is set up.
    fn ring(&self) -> Option<&Ring> {
        // Acquire: partner of the Release in `start`. SAFETY: the state says that `start` has
        // written the ring; it is dropped only in `end`, when no thread uses it.
        (self.state.load(Ordering::Acquire) == RUNNING)
            .then(|| unsafe { (*self.ring.get()).assume_init_ref() })
    }

    /// The ring, which is set up if necessary. `None` if the kernel refuses, which is reported once
    /// in the process; or if no worker waits for it, and none can be made now.
    pub fn started(
        &self,
        cpu: u16,
        has_worker: impl FnOnce() -> bool,
        listen: impl FnOnce(i32) -> bool,
        say: fn(&[&[u8]]),
    ) -> Option<&Ring> {
        // Acquire on failure: partner of the Release in `start`, for the ring. Relaxed on success:
        // only one thread goes on.
        match self.state.compare_exchange(NEW, STARTING, Ordering::Relaxed, Ordering::Acquire) {
            Ok(_) => self.start(cpu, has_worker, listen, say),
            // Another sets it up: this call goes to the pool.
            Err(_) if self.is_stale.load(Ordering::Relaxed) => None, // Relaxed: the program orders its own change
            Err(_) => self.ring(),
        }
    }

    /// Notes that the process has changed its user or groups: a ring that is set up, or is being
    /// set up, may have the old ones.
    pub fn change_rights(&self) {
        // Relaxed, both: a ring that is set up later has the new user and groups; the program
        // itself orders its calls and the change.
        if self.state.load(Ordering::Relaxed) != NEW {
            self.is_stale.store(true, Ordering::Relaxed);
        }
    }

    #[cold]
    fn start(
        &self,
        cpu: u16,
        has_worker: impl FnOnce() -> bool,
        listen: impl FnOnce(i32) -> bool,
        say: fn(&[&[u8]]),
    ) -> Option<&Ring> {
        // The ring has its number from among those of ours.
        let has_numbers = internal_fds::has_numbers();
        if has_numbers && !has_worker() {
            // A handler may not make one: another call will.
            self.state.store(NEW, Ordering::Relaxed); // Relaxed: nothing was written
            return None;
        }
        match if has_numbers { set_up(cpu, listen) } else { Err(libc::EMFILE) } {
            Ok(ring) => {
                // SAFETY: the state is `STARTING`, so that this thread alone is here, and no other
                // reads the ring.
                unsafe { (*self.ring.get()).write(ring) };
                self.state.store(RUNNING, Ordering::Release); // Release: partner of the Acquire in `ring`
            }
            Err(errno) => {
                say_refused(errno, say);
                // Release: partner of the Acquire in `ring`.
                self.state.store(FAILED, Ordering::Release);
            }
        }
        self.ring()
    }

    /// Passes a call to the kernel's thread; returns false if it is a call for the pool.
    ///
    /// # Safety
    ///
    /// The slot is initialised, no other thread has it, and it stays until it is answered. So do
    /// the targets of the call's arguments.
    pub unsafe fn send(&self, ring: &Ring, call: &Call, kind: Kind, slot: *mut Slot) -> bool {
        let Some(mut entry) = entry(call, kind) else { return false };
        entry.data = slot.expose_provenance() as u64;
        ring.has(entry.opcode) && ring.submit(&entry)
    }

    /// Answers the calls that are over; returns false if another thread does so.
    pub fn reap(&self) -> bool {
        let answer = |completion: &Completion| {
            let slot = core::ptr::with_exposed_provenance::<Slot>(completion.data as usize);
            if slot.is_null() {
                return; // that of a cancellation
            }
            let reply = Reply { answer: completion.result as Answer, signal: 0 };
            // SAFETY: `send` has put the slot's address into the entry, which the kernel completes
            // once. Until then the slot is valid, and no other thread answers it.
            unsafe { Slot::answer(slot, reply) };
        };
        // A handler that jumped out of here would leave the ring locked.
        let before = raw::block(!0);
        let is_done = self.ring().is_none_or(|ring| ring.reap(answer));
        raw::block(before);
        is_done
    }

    /// Spins for the answer, and answers others meanwhile.
    pub fn spin(&self, slot: &Slot, limit: u64) -> bool {
        let start = clock::now();
        loop {
            if slot.gate().poll().is_some() {
                return true;
            }
            if self.ring().is_some_and(Ring::is_ready) {
                self.reap();
            } else if clock::has_passed(start, limit) {
                return false;
            }
            hint::spin_loop();
        }
    }

    /// Tells the pool's worker, which has this epoll descriptor, that it has to answer a caller
    /// that will sleep.
    pub fn enlist(&self, epoll: i32) {
        self.sleepers.fetch_add(1, Ordering::SeqCst); // SeqCst: partner of the load in `attend`
        self.listen(epoll);
    }

    /// Notes that the caller does not sleep any more.
    pub fn leave(&self) {
        self.sleepers.fetch_sub(1, Ordering::Relaxed); // Relaxed: too many wake-ups do no harm
    }

    fn listen(&self, epoll: i32) {
        if let Some(ring) = self.ring() {
            listen(epoll, libc::EPOLL_CTL_MOD, ring.descriptor);
        }
    }

    /// The worker's part, when the ring has completions.
    pub fn attend(&self, epoll: i32) {
        if !self.reap() {
            hint::yield_now();
        }
        // SeqCst: partner of the addition in `enlist`: a thread that comes later listens itself.
        if self.sleepers.load(Ordering::SeqCst) > 0 {
            self.listen(epoll);
        }
    }

    /// Asks the kernel to end a call.
    pub fn cancel(&self, slot: *const Slot) {
        let entry = Entry {
            opcode: CANCEL,
            descriptor: -1,
            address: slot.addr() as u64,
            ..Entry::default()
        };
        let before = raw::block(!0); // as in `reap`
        if let Some(ring) = self.ring() {
            ring.submit(&entry);
        }
        raw::block(before);
        self.reap();
    }

    /// Gives the ring back to the kernel, for good.
    ///
    /// # Safety
    ///
    /// No other thread uses it.
    pub unsafe fn end(&self) {
        // Relaxed, both: no other thread is there.
        if self.state.swap(FAILED, Ordering::Relaxed) == RUNNING {
            // SAFETY: the state said that the ring was written. No other thread uses it (contract
            // of this function), and none can find it now.
            unsafe { (*self.ring.get()).assume_init_drop() };
        }
    }

    /// Forgets the ring in the child of a fork: it belongs to the parent. [`internal_fds::forked`]
    /// closes it.
    ///
    /// # Safety
    ///
    /// The calling thread is the only one of the process, and executes nothing here.
    pub unsafe fn forked(&self) {
        // Relaxed, all: there is no other thread. What was refused stays so.
        if self.state.load(Ordering::Relaxed) != FAILED {
            self.state.store(NEW, Ordering::Relaxed);
        }
        self.sleepers.store(0, Ordering::Relaxed);
        self.is_stale.store(false, Ordering::Relaxed);
    }
}

/// Sets up a ring for which the worker waits; returns the kernel's error if it refuses.
fn set_up(cpu: u16, listen: impl FnOnce(i32) -> bool) -> Result<Ring, i32> {
    let ring = Ring::new(cpu)?;
    if !NEEDED.iter().all(|opcode| ring.has(*opcode)) {
        return Err(libc::ENOSYS);
    }
    if listen(ring.descriptor) { Ok(ring) } else { Err(libc::ENOSPC) }
}

/// Marks a ring's event at the pool's worker.
pub const RING: u64 = u64::MAX - 1;

/// Has an epoll descriptor listen to a ring, once.
pub fn listen(epoll: i32, operation: i32, ring: i32) -> bool {
    let events = (libc::EPOLLIN | libc::EPOLLONESHOT) as u32;
    let event = libc::epoll_event { events, u64: RING };
    // SAFETY: the kernel reads the event, which is in this frame.
    unsafe { raw_syscall!(Sysno::epoll_ctl, epoll, operation, ring, &raw const event) == 0 }
}

/// The entry for a call; `None` if io_uring has no operation with the same result.
///
/// Only calls that need not wait go into the ring. io_uring does not check whether the descriptor
/// is in non-blocking mode, so every entry says that it must not wait. If there is no data, the
/// pool makes the call again; it checks the mode, and waits.
fn entry(call: &Call, kind: Kind) -> Option<Entry> {
    let [descriptor, second, third, fourth, fifth, _] = call.args;
    if matches!(kind, Kind::Timed | Kind::File) {
        return None;
    }
    let at_once = libc::MSG_DONTWAIT as usize;
    let others = |tries: i32| !(tries | libc::MSG_DONTWAIT) as u32 as usize;
    let (receives, sends) = (others(RECEIVE_TRIES), others(SEND_TRIES));
    let (opcode, address, length, flags, offset) = match call.number as i64 {
        libc::SYS_read if third > 0 => (RECV, second, third, at_once, 0),
        libc::SYS_recvfrom if fifth == 0 && third > 0 && fourth & receives == 0 => {
            (RECV, second, third, fourth | at_once, 0)
        }
        libc::SYS_recvmsg if third & receives == 0 => (RECVMSG, second, 1, third | at_once, 0),
        libc::SYS_write => (SEND, second, third, at_once, 0),
        libc::SYS_sendto if fifth == 0 && fourth & sends == 0 => {
            (SEND, second, third, fourth | at_once, 0)
        }
        libc::SYS_accept => (ACCEPT, second, 0, 0, third as u64),
        libc::SYS_accept4 => (ACCEPT, second, 0, fourth, third as u64),
        libc::SYS_shutdown => (SHUTDOWN, 0, second, 0, 0),
        _ => return None,
    };
    Some(Entry {
        opcode,
        descriptor: descriptor as i32,
        offset,
        address: address as u64,
        length: u32::try_from(length).ok()?,
        operation_flags: flags as u32,
        priority: if opcode == ACCEPT { ACCEPT_AT_ONCE } else { 0 },
        ..Entry::default()
    })
}

/// `IORING_ACCEPT_DONTWAIT`, since Linux 6.10; older ones answer `EINVAL`.
const ACCEPT_AT_ONCE: u16 = 1 << 1;

/// The reply to a call that a handler interrupted while the kernel's thread executed it. io_uring
/// then answers with an error of its own, and with EAGAIN where the system call would have waited.
pub fn interrupted(call: &Call, reply: Reply) -> Reply {
    let is_other = |errno| reply.answer == raw::error(errno);
    let was_to_wait = is_other(libc::EAGAIN)
        && matches!(meaning(call, reply), Meaning::Other)
        && !is_non_blocking(call.args[0]);
    if is_other(libc::ECANCELED) || was_to_wait {
        return Reply { answer: raw::error(libc::EINTR), signal: 0 };
    }
    reply
}

/// What the kernel's answer to an entry means.
pub enum Meaning {
    Answer(Reply),
    /// The call has to wait, or io_uring did not execute it: the pool does.
    Other,
    /// This many bytes of a send were sent, and a blocking send continues with the rest.
    Part(usize),
}

/// The answer to the call, derived from that to its entry.
pub fn meaning(call: &Call, reply: Reply) -> Meaning {
    let answer = reply.answer;
    let (is_transfer, is_send, flags) = match call.number as i64 {
        libc::SYS_read => (true, false, 0),
        libc::SYS_recvfrom => (true, false, call.args[3]),
        libc::SYS_recvmsg => (true, false, call.args[2]),
        libc::SYS_write => (true, true, 0),
        libc::SYS_sendto => (true, true, call.args[3]),
        libc::SYS_accept | libc::SYS_accept4 => (true, false, 0),
        _ => (false, false, 0),
    };
    let has = |flag: i32| flags & flag as usize != 0;
    // Errors for which the call may have another: io_uring of Linux 6.1 says EINVAL of a message of
    // too many parts, where the call says EMSGSIZE.
    let is_other = [libc::ENOTSOCK, libc::EOPNOTSUPP, libc::EINVAL].map(raw::error);
    let may_wait = !has(libc::MSG_DONTWAIT);
    if is_transfer {
        if is_other.contains(&answer) || (may_wait && answer == raw::error(libc::EAGAIN)) {
            return Meaning::Other;
        }
        if may_wait && is_send && answer > 0 && (answer as usize) < call.args[2] {
            return Meaning::Part(answer as usize);
        }
    }
    // io_uring never sends the signal. The kernel sends it to a thread that writes to a stream.
    let is_broken_pipe = is_send
        && answer == raw::error(libc::EPIPE)
        && !has(libc::MSG_NOSIGNAL)
        && is_stream(call.args[0]);
    Meaning::Answer(Reply { answer, signal: if is_broken_pipe { libc::SIGPIPE } else { 0 } })
}

fn is_stream(descriptor: usize) -> bool {
    raw::socket_type(descriptor) == Some(libc::SOCK_STREAM)
}

/// Says once that calls go to the pool.
#[cold]
fn say_refused(errno: i32, say: fn(&[&[u8]])) {
    static SAID: AtomicU32 = AtomicU32::new(0);
    // Relaxed: only one says it.
    if SAID.swap(1, Ordering::Relaxed) != 0 {
        return;
    }
    let why: &[u8] = match errno {
        libc::EPERM | libc::EACCES => {
            b"not permitted (sysctl kernel.io_uring_disabled, or a sandbox)"
        }
        libc::ENOSYS => b"not in this kernel, or too old",
        libc::ENOMEM => b"no memory for its rings (ulimit -l)",
        libc::EMFILE => b"no descriptors for it (ulimit -n, at least 256)",
        libc::EINVAL => b"its thread cannot be bound to the CPU",
        _ => b"the kernel refuses it",
    };
    say(&[b"io_uring: ", why, b"; system calls go to the pool"]);
}
