//! The numbers of calls that only x86-64's kernel has. On AArch64 they are numbers that no kernel
//! uses: [`raw::execute`](super::raw::execute) makes the call there that replaced the old one, with
//! the same arguments and the same answer.

use core::ffi::c_long;

#[cfg(target_arch = "x86_64")]
mod own {
    use super::c_long;

    pub const POLL: c_long = libc::SYS_poll;
    pub const EPOLL_WAIT: c_long = libc::SYS_epoll_wait;
    pub const SELECT: c_long = libc::SYS_select;
    pub const DUP2: c_long = libc::SYS_dup2;
}

#[cfg(target_arch = "aarch64")]
mod own {
    use super::c_long;

    /// Above all numbers of the kernel's, and those of its ABI for 32 bits.
    const FIRST: c_long = 1 << 24;

    pub const POLL: c_long = FIRST;
    pub const EPOLL_WAIT: c_long = FIRST + 1;
    pub const SELECT: c_long = FIRST + 2;
    pub const DUP2: c_long = FIRST + 3;
}

pub use own::{DUP2, EPOLL_WAIT, POLL, SELECT};

#[cfg(target_arch = "aarch64")]
pub use replaced::execute_replaced;

#[cfg(target_arch = "aarch64")]
mod replaced {
    use manycore_channel::call::{Answer, Call};
    use syscalls::{Sysno, raw_syscall};

    use super::super::raw::error;
    use super::{DUP2, EPOLL_WAIT, POLL, SELECT, c_long};

    /// Makes the call that replaced this one; `None` if the kernel has this one.
    ///
    /// # Safety
    ///
    /// The arguments' pointers lead to memory that the call may access as its manual page says.
    #[inline]
    pub unsafe fn execute_replaced(call: &Call) -> Option<Answer> {
        if call.number < POLL as usize {
            return None;
        }
        let [a, b, c, d, ..] = call.args;
        // SAFETY: the arguments' pointers lead to what the old call accesses (contract of this
        // function), and the new one accesses the same.
        let answer = unsafe {
            match call.number as c_long {
                POLL => poll(a, b, c as i32),
                EPOLL_WAIT => raw_syscall!(Sysno::epoll_pwait, a, b, c, d, 0, 8).cast_signed(),
                SELECT => select(call),
                DUP2 => dup2(a as i32, b as i32),
                _ => error(libc::ENOSYS),
            }
        };
        Some(answer)
    }

    /// # Safety
    ///
    /// As of [`execute_replaced`].
    unsafe fn poll(list: usize, count: usize, milliseconds: i32) -> Answer {
        let mut limit = libc::timespec {
            tv_sec: i64::from(milliseconds / 1000),
            tv_nsec: i64::from(milliseconds % 1000 * 1_000_000),
        };
        let limit = if milliseconds < 0 { core::ptr::null_mut() } else { &raw mut limit };
        // SAFETY: the list has `count` entries, which the kernel may write to (contract of this
        // function); the time is in this frame.
        unsafe { raw_syscall!(Sysno::ppoll, list, count, limit, 0, 8).cast_signed() }
    }

    /// The kernel writes the time that is left, which goes to the program's place for it.
    ///
    /// # Safety
    ///
    /// As of [`execute_replaced`]; the time-out is null or leads to one.
    unsafe fn select(call: &Call) -> Answer {
        let [count, read, write, except, timeout, _] = call.args;
        // SAFETY: the time-out is null or leads to one (contract of this function), which no other
        // thread uses during the call.
        let timeout =
            unsafe { core::ptr::with_exposed_provenance_mut::<libc::timeval>(timeout).as_mut() };
        let mut left = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        let mut limit = core::ptr::null_mut();
        if let Some(time) = &timeout {
            if time.tv_sec < 0 || time.tv_usec < 0 {
                return error(libc::EINVAL);
            }
            left.tv_sec = time.tv_sec.saturating_add(time.tv_usec / 1_000_000);
            left.tv_nsec = time.tv_usec % 1_000_000 * 1000;
            limit = &raw mut left;
        }
        // SAFETY: each set is null or has `count` bits, which the kernel may write to (contract of
        // this function); the time is in this frame.
        let answer = unsafe {
            raw_syscall!(Sysno::pselect6, count, read, write, except, limit, 0).cast_signed()
        };
        if let Some(time) = timeout {
            *time = libc::timeval { tv_sec: left.tv_sec, tv_usec: left.tv_nsec / 1000 };
        }
        answer
    }

    /// `dup3` refuses two equal numbers, where `dup2` only checks that the descriptor is open.
    ///
    /// # Safety
    ///
    /// As of [`execute_replaced`].
    unsafe fn dup2(fd: i32, to: i32) -> Answer {
        if fd == to {
            // SAFETY: `fcntl` with this command takes numbers only.
            let flags = unsafe { raw_syscall!(Sysno::fcntl, fd, libc::F_GETFD) }.cast_signed();
            return if flags < 0 { flags } else { fd as Answer };
        }
        // SAFETY: the call takes numbers only, and accesses no memory of the program's.
        unsafe { raw_syscall!(Sysno::dup3, fd, to, 0).cast_signed() }
    }
}
