//! Reading a stack that may end anywhere.
//!
//! The calls on a coroutine's stack have ended long ago beyond the first one that it was started
//! with (greenlet copies the rest away), and what is left there is no address of a stack. So a page
//! is read only after the kernel has read it.

use syscalls::Sysno;

use crate::stats::asked::asked;

/// The smallest page of any kernel.
const PAGE: usize = 4096;

/// Pages of one stack of which it is known that they can be read.
pub struct Memory {
    from: usize,
    to: usize,
}

impl Memory {
    /// The memory around an address that the calling thread has just used.
    pub fn around(address: usize) -> Self {
        let from = address & !(PAGE - 1);
        Self { from, to: from + PAGE }
    }

    /// The word at an address; `None` if there is none.
    pub fn word(&mut self, address: usize) -> Option<usize> {
        let page = address & !(PAGE - 1);
        if !address.is_multiple_of(size_of::<usize>())
            || !((self.from..self.to).contains(&page) || self.reaches(page))
        {
            return None;
        }
        // SAFETY: aligned, and on a page that can be read: the thread's own stack, or what the
        // kernel has just read.
        Some(unsafe { (address as *const usize).read_volatile() })
    }

    fn reaches(&mut self, page: usize) -> bool {
        if !is_readable(page) {
            return false;
        }
        if page == self.to {
            self.to += PAGE;
        } else {
            (self.from, self.to) = (page, page + PAGE);
        }
        true
    }
}

/// Whether the kernel can read there: it reads a set of signals before it refuses what to do with
/// it. A kernel that may not be asked has read nothing.
fn is_readable(address: usize) -> bool {
    const NO_SUCH_CHANGE: usize = usize::MAX;
    // SAFETY: with a change that does not exist, the call changes nothing, wherever the set is.
    let refused = unsafe {
        asked!(Sysno::rt_sigprocmask, NO_SUCH_CHANGE, address, 0_usize, size_of::<u64>())
    };
    refused == (-libc::EINVAL) as usize
}
