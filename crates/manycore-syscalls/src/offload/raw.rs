//! System calls of our own: raw, because the library that this is part of exports functions of
//! their names.

use core::ffi::c_int;
use core::ptr::null_mut;
use syscalls::{Sysno, raw_syscall};

use manycore_channel::call::{Answer, Call};
use manycore_interpose::process;

/// Times that need not be exact are this power of two shorter in ticks than on x86-64: a counter of
/// AArch64 has 25 MHz to 1 GHz.
pub const SLOWER: u32 = if cfg!(target_arch = "aarch64") { 5 } else { 0 };

/// An error number as the kernel returns it.
pub const fn error(errno: c_int) -> Answer {
    -(errno as Answer)
}

/// Makes the call in the calling thread.
///
/// # Safety
///
/// The arguments' pointers lead to memory that the call may access as its manual page says, and
/// what else it does to memory, such as unmapping, leaves no reference invalid.
#[inline]
pub unsafe fn execute(call: &Call) -> Answer {
    #[cfg(target_arch = "aarch64")]
    // SAFETY: what the old call does to memory is sound (contract of this function), and the new
    // one does the same.
    if let Some(answer) = unsafe { super::number::execute_replaced(call) } {
        return answer;
    }
    let [a, b, c, d, e, f] = call.args;
    let result: usize;
    // SAFETY: the x86-64 convention of Linux has these registers, and overwrites rcx and r11; what
    // the call does to memory is sound (contract of this function).
    #[cfg(target_arch = "x86_64")]
    unsafe {
        core::arch::asm!(
            "syscall",
            inlateout("rax") call.number => result,
            in("rdi") a, in("rsi") b, in("rdx") c, in("r10") d, in("r8") e, in("r9") f,
            lateout("rcx") _, lateout("r11") _,
            options(nostack),
        );
    }
    // SAFETY: the AArch64 convention of Linux has these registers; what the call does to memory is
    // sound (contract of this function).
    #[cfg(target_arch = "aarch64")]
    unsafe {
        core::arch::asm!(
            "svc 0",
            in("x8") call.number,
            inlateout("x0") a => result,
            in("x1") b, in("x2") c, in("x3") d, in("x4") e, in("x5") f,
            options(nostack),
        );
    }
    result as Answer
}

/// Zeroed memory, which takes up room only where it is written to, and is never unmapped; null if
/// the kernel refuses.
pub fn map(bytes: usize) -> *mut u8 {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a new mapping at an address that the kernel chooses touches no memory of ours.
    let address = unsafe { raw_syscall!(Sysno::mmap, 0, bytes, protection, flags, usize::MAX, 0) };
    if (address as isize) < 0 && (address as isize) >= -4095 {
        return null_mut();
    }
    core::ptr::with_exposed_provenance_mut(address)
}

/// Zeroed memory that is shared with the children of forks; null if the kernel refuses.
pub fn map_for_children(bytes: usize) -> *mut u8 {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_SHARED | libc::MAP_ANONYMOUS;
    // SAFETY: a new mapping at an address that the kernel chooses touches no memory of ours.
    let address = unsafe { raw_syscall!(Sysno::mmap, 0, bytes, protection, flags, usize::MAX, 0) };
    if (address as isize) < 0 && (address as isize) >= -4095 {
        return null_mut();
    }
    core::ptr::with_exposed_provenance_mut(address)
}

/// Memory that is shared by a descriptor of the kernel's, and that the child of a fork does not
/// have; null if the kernel refuses.
pub fn map_shared(descriptor: i32, offset: usize, bytes: usize) -> *mut u8 {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_SHARED | libc::MAP_POPULATE;
    // SAFETY: a new mapping at an address that the kernel chooses touches no memory of ours.
    unsafe {
        let address = raw_syscall!(Sysno::mmap, 0, bytes, protection, flags, descriptor, offset);
        if (address as isize) < 0 && (address as isize) >= -4095 {
            return null_mut();
        }
        raw_syscall!(Sysno::madvise, address, bytes, libc::MADV_DONTFORK);
        core::ptr::with_exposed_provenance_mut(address)
    }
}

/// Gives memory back.
///
/// # Safety
///
/// The memory came from [`map_shared`], with this number of bytes, and no code uses it.
pub unsafe fn unmap(address: *mut u8, bytes: usize) {
    // SAFETY: `map_shared` has mapped this many bytes there, and no code uses them (contract of
    // this function).
    unsafe { raw_syscall!(Sysno::munmap, address, bytes) };
}

/// Makes mapped memory zero again.
///
/// # Safety
///
/// It came from [`map`], and no thread uses it.
pub unsafe fn clear(address: *mut u8, bytes: usize) {
    // SAFETY: `map` has mapped it, private and anonymous, so it is zero at its next use, and no
    // code uses it now (contract of this function).
    unsafe { raw_syscall!(Sysno::madvise, address, bytes, libc::MADV_DONTNEED) };
}

/// The calling thread's id. It is not cached, because each thread asks for it once.
pub fn thread_id() -> u32 {
    // SAFETY: the call takes no arguments, and changes nothing in memory.
    unsafe { raw_syscall!(Sysno::gettid) as u32 }
}

/// Sends a signal to a thread of this process, if the thread exists.
pub fn signal(thread: u32, signal: c_int) {
    // SAFETY: the call takes only numbers; a signal's effect in its thread is up to its handler,
    // and this one's handler does nothing.
    unsafe { raw_syscall!(Sysno::tgkill, process::id(), thread, signal) };
}

/// Binds the calling thread to a CPU; returns false if the kernel refuses.
pub fn bind(cpu: u16) -> bool {
    let mut mask = [0u64; 1024];
    mask[usize::from(cpu) / 64] = 1 << (cpu % 64);
    bind_within(&mask)
}

/// Binds the calling thread to a set of CPUs, one bit for each; returns false if the kernel
/// refuses.
pub fn bind_within(mask: &[u64]) -> bool {
    // SAFETY: the kernel reads no more bytes than the mask has.
    unsafe { raw_syscall!(Sysno::sched_setaffinity, 0, size_of_val(mask), mask.as_ptr()) == 0 }
}

/// The set of signals with these numbers, in the kernel's form.
pub const fn signals(numbers: &[c_int]) -> u64 {
    let mut set = 0;
    let mut at = 0;
    while at < numbers.len() {
        set |= 1 << (numbers[at] - 1);
        at += 1;
    }
    set
}

/// Blocks the signals of the set, and no others; returns the old mask.
pub fn block(set: u64) -> u64 {
    let mut before = 0u64;
    // SAFETY: a set of signals has eight bytes, which the kernel reads here and writes there.
    unsafe {
        raw_syscall!(Sysno::rt_sigprocmask, libc::SIG_SETMASK, &raw const set, &raw mut before, 8)
    };
    before
}

/// Removes a pending signal of the calling thread, which has it blocked; returns whether there was
/// one.
pub fn take_pending(signal: c_int) -> bool {
    let set = signals(&[signal]);
    let no_time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the kernel reads the set and the time, and is given no place to write to.
    let taken =
        unsafe { raw_syscall!(Sysno::rt_sigtimedwait, &raw const set, 0, &raw const no_time, 8) };
    taken == signal as usize
}

/// Sleeps while the word has the expected value, for this many nanoseconds at most (below 10^9).
pub fn sleep(word: *const u32, expected: u32, nanoseconds: i64) {
    let limit = libc::timespec { tv_sec: 0, tv_nsec: nanoseconds };
    let operation = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: the kernel reads the word, if it can, and the time, which is in this frame.
    unsafe { raw_syscall!(Sysno::futex, word, operation, expected, &raw const limit) };
}

/// The type of a socket; `None` if the descriptor is not a socket.
pub fn socket_type(descriptor: usize) -> Option<c_int> {
    socket_option(descriptor, libc::SO_TYPE)
}

/// A numeric option of a socket; `None` if the descriptor is not a socket.
pub fn socket_option(descriptor: usize, option: c_int) -> Option<c_int> {
    let (mut value, mut size) = (0i32, 4u32);
    // SAFETY: the kernel writes no more than `size` says that there is room for.
    let failed = unsafe {
        let level = libc::SOL_SOCKET;
        raw_syscall!(Sysno::getsockopt, descriptor, level, option, &raw mut value, &raw mut size)
    };
    (failed == 0).then_some(value)
}

/// Whether a socket has a time-out: `SO_RCVTIMEO` or `SO_SNDTIMEO`.
pub fn has_timeout(descriptor: usize, option: c_int) -> bool {
    let mut time = libc::timeval { tv_sec: 0, tv_usec: 0 };
    let mut size = size_of_val(&time) as u32;
    // SAFETY: the kernel writes no more than `size` says that there is room for.
    unsafe {
        let level = libc::SOL_SOCKET;
        raw_syscall!(Sysno::getsockopt, descriptor, level, option, &raw mut time, &raw mut size)
    };
    time.tv_sec != 0 || time.tv_usec != 0
}

/// Whether closing a socket may wait for its other end: `SO_LINGER`.
pub fn lingers(descriptor: usize) -> bool {
    let mut linger = libc::linger { l_onoff: 0, l_linger: 0 };
    let mut size = size_of_val(&linger) as u32;
    // SAFETY: the kernel writes no more than `size` says that there is room for.
    unsafe {
        let (level, option) = (libc::SOL_SOCKET, libc::SO_LINGER);
        raw_syscall!(Sysno::getsockopt, descriptor, level, option, &raw mut linger, &raw mut size)
    };
    linger.l_onoff != 0 && linger.l_linger != 0
}

/// Nanoseconds of the monotonic clock.
pub fn nanoseconds() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the structure is as large as is written.
    unsafe { raw_syscall!(Sysno::clock_gettime, libc::CLOCK_MONOTONIC, &raw mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// The same, some milliseconds late: without a system call.
pub fn coarse_nanoseconds() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the structure is as large as is written.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC_COARSE, &raw mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// The handler of [`INTERRUPT`](super::INTERRUPT). It has to do nothing but run.
extern "C" fn interrupted(_: c_int) {}

/// Installs the handler of the signal that interrupts our threads, without `SA_RESTART`.
pub fn install_interrupt() {
    // A signal's disposition in the kernel's layout, on x86-64 and AArch64 with a restorer:
    // handler, flags, restorer, mask.
    #[repr(C)]
    struct Action {
        handler: usize,
        flags: u64,
        restorer: usize,
        mask: u64,
    }
    const RESTORER: u64 = 0x0400_0000;
    let action = Action {
        handler: interrupted as *const () as usize,
        flags: RESTORER,
        restorer: restore as *const () as usize,
        mask: 0,
    };
    // SAFETY: the kernel reads the action, which is in this frame; handler and restorer are
    // functions of this library, which is never unloaded.
    unsafe { raw_syscall!(Sysno::rt_sigaction, super::INTERRUPT, &raw const action, 0, 8) };
}

/// What a handler returns to.
#[unsafe(naked)]
extern "C" fn restore() {
    // SAFETY: the kernel wants `rt_sigreturn` to be called with the stack as the handler has left
    // it; it does not return.
    #[cfg(target_arch = "x86_64")]
    core::arch::naked_asm!("mov rax, 15", "syscall");
    // SAFETY: the kernel wants `rt_sigreturn` to be called with the stack as the handler has left
    // it; it does not return.
    #[cfg(target_arch = "aarch64")]
    core::arch::naked_asm!("mov x8, 139", "svc 0");
}
