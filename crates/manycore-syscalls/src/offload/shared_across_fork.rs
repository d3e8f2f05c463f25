//! The data that a process shares with the children that it forks: the next CPU in turn, and the
//! measured durations of moved calls.
//!
//! A server that forks a child for each connection, or for some, has few sockets in each process.
//! If each process chose by itself, all would choose the same CPU. And each would have to repeat
//! the others' measurements.
//!
//! A program that a child executes starts anew, at a CPU that its process number chooses.

use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};

use manycore_interpose::process;

use super::inline_policy::PathPreference;
use super::raw;

/// The shared data. Its parts are on lines of their own, because each new route writes the turn.
#[derive(Debug)]
#[repr(C, align(128))]
pub struct Page {
    /// What new routes begin with.
    pub habit: PathPreference,
    next_cpu: NextCpu,
}

/// Counts up, for the rules that go round.
#[derive(Debug)]
#[repr(align(128))]
struct NextCpu(AtomicU32);

impl Page {
    /// Whose turn it is.
    pub fn next_cpu(&self) -> usize {
        self.next_cpu.0.fetch_add(1, Ordering::Relaxed) as usize // Relaxed: any order will do
    }
}

/// A process and its children.
#[derive(Debug)]
pub struct SharedAcrossFork {
    shared: AtomicPtr<Page>,
    /// The page of a process that gets no memory to share.
    own: Page,
}

impl SharedAcrossFork {
    /// Nothing is shared yet.
    pub const fn new() -> Self {
        let own = Page { habit: PathPreference::new(), next_cpu: NextCpu(AtomicU32::new(0)) };
        Self { shared: AtomicPtr::new(core::ptr::null_mut()), own }
    }

    /// Shares memory with all later children. Programs that are started one after the other begin
    /// with different CPUs.
    pub fn start(&self) {
        let page = raw::map_for_children(size_of::<Page>()).cast::<Page>();
        // Release: partner of the Acquire in `page`.
        self.shared.store(page, Ordering::Release);
        self.page().next_cpu.0.store(scattered(process::id()), Ordering::Relaxed); // Relaxed: there is no other thread
    }

    /// Called in the child of a fork: without memory to share it goes its own way.
    pub fn forked(&self) {
        // Relaxed, both: no other thread is there.
        if self.shared.load(Ordering::Relaxed).is_null() {
            self.own.next_cpu.0.store(scattered(process::id()), Ordering::Relaxed);
        }
    }

    /// What is shared.
    #[inline]
    pub fn page(&self) -> &Page {
        // Acquire: partner of the Release in `start`. SAFETY: null, or mapped permanently in
        // `start`, and all zero is a valid page.
        unsafe { self.shared.load(Ordering::Acquire).as_ref() }.unwrap_or(&self.own)
    }
}

/// Scatters the numbers of processes: adjacent numbers, or every second one, give numbers that are
/// far apart.
fn scattered(process: u32) -> u32 {
    process.wrapping_mul(0x9E37_79B9) >> 16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn children_go_on_where_others_were() {
        let family = SharedAcrossFork::new();
        family.start();
        let first = family.page().next_cpu();
        for _ in 0..3 {
            // SAFETY: the child makes one system call, and ends by `_exit`.
            let child = unsafe { libc::fork() };
            if child == 0 {
                family.forked();
                family.page().next_cpu();
                // SAFETY: ends the child without running any other code of the process.
                unsafe { libc::_exit(0) };
            }
            let mut status = 0;
            // SAFETY: the kernel writes one number, into `status`.
            assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
        }
        assert_eq!(family.page().next_cpu(), first + 4);
    }

    #[test]
    fn without_shared_memory_processes_differ() {
        for (cpus, step) in [(2, 1), (2, 2), (3, 1), (8, 2), (20, 4)] {
            let mut chosen = vec![0; cpus];
            (0..1000 * cpus as u32)
                .for_each(|n| chosen[scattered(4711 + n * step) as usize % cpus] += 1);
            assert!(
                chosen.iter().all(|count| (700..1300).contains(count)),
                "{cpus} {step}: {chosen:?}"
            );
        }
    }
}
