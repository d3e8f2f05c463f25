//! The CPU and the memory node of a thread, and the numbers of both.

use core::sync::atomic::{AtomicU32, Ordering};

use syscalls::{Sysno, raw_syscall};

use super::local::local;
use super::nodes::last_node;
use super::process;

/// The number of CPUs on which this process may run, at least 1. The kernel is asked once, about
/// the process' first thread. Other threads may be bound to one CPU each, which does not limit the
/// process.
pub fn count() -> u32 {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    once(&COUNT, allowed)
}

/// The number of memory nodes of the machine, at least 1: one more than the largest number of a
/// node. The kernel is asked once.
pub fn nodes() -> u32 {
    static NODES: AtomicU32 = AtomicU32::new(0);
    once(&NODES, || last_node().map_or(1, |last| last + 1))
}

/// The CPU on which the calling thread runs, or ran up to some hundred calls ago: for performance
/// only.
#[inline]
pub fn current() -> u32 {
    place() & CPU
}

/// The CPU on which the calling thread runs now. An instruction gives it where there is one;
/// otherwise what the kernel keeps in memory for the C library does, or else a system call.
#[inline]
pub fn here() -> u32 {
    cpu_and_node().0
}

/// The memory node of the CPU that [`current`] gives, below [`nodes`].
#[inline]
pub fn node() -> u32 {
    node_of(place())
}

#[cfg(target_arch = "aarch64")]
pub use super::rseq::area_is_at;

fn once(cell: &AtomicU32, ask: impl FnOnce() -> u32) -> u32 {
    // Relaxed: every thread computes the same number.
    match cell.load(Ordering::Relaxed) {
        0 => {
            let answer = ask();
            cell.store(answer, Ordering::Relaxed); // Relaxed: as above
            answer
        }
        answer => answer,
    }
}

fn allowed() -> u32 {
    let mut mask = [0u64; 128];
    let (first_thread, size) = (process::number(), size_of_val(&mask));
    // SAFETY: the kernel writes at most the given number of bytes into the mask.
    let written =
        unsafe { raw_syscall!(Sysno::sched_getaffinity, first_thread, size, mask.as_mut_ptr()) };
    if written > size_of_val(&mask) {
        return 1; // an error number
    }
    mask.iter().map(|word| word.count_ones()).sum::<u32>().max(1)
}

// The form of a CPU and its node in a thread's local block: the CPU in the lower bits, then the
// node.
const CPU_BITS: u32 = 16;
const CPU: u32 = (1 << CPU_BITS) - 1;
const NODE: u32 = 0xFF;

/// The number of cached reads before a thread asks the kernel for its CPU again: a system call
/// costs this many times as much.
const PROBES: u32 = 256;

#[inline]
fn place() -> u32 {
    let block = local();
    let (place, looks) = block.place();
    if looks == 0 {
        return ask_place();
    }
    block.set_place(place, looks - 1);
    place
}

/// Where an instruction gives the CPU, no system call is made: a filter may forbid it.
#[inline]
#[cfg(target_arch = "x86_64")]
fn cpu_and_node() -> (u32, u32) {
    let mut both = 0;
    if super::clock::replaced().is_none() {
        // SAFETY: every x86-64 CPU of the last fifteen years has the instruction, and no code has
        // announced that it is forbidden; Linux keeps the numbers in the register that it reads.
        unsafe { core::arch::x86_64::__rdtscp(&raw mut both) };
    } else {
        both = segment_limit();
    }
    (both & 0xFFF, both >> 12)
}

/// The same numbers, which Linux also keeps in the limit of a segment. Reading that is never
/// forbidden. The instruction for it is only the second choice, since interpreters such as valgrind
/// lack it.
#[cfg(target_arch = "x86_64")]
fn segment_limit() -> u32 {
    const CPU_AND_NODE: u32 = 15 << 3 | 3;
    let mut limit = 0;
    // SAFETY: reads no memory; for a segment that does not exist it leaves the register unchanged.
    unsafe {
        core::arch::asm!(
            "lsl {limit:e}, {segment:e}",
            limit = inout(reg) limit,
            segment = in(reg) CPU_AND_NODE,
            options(nomem, nostack),
        );
    }
    limit
}

#[cfg(target_arch = "x86_64")]
fn node_of(place: u32) -> u32 {
    (place >> CPU_BITS) & NODE
}

/// The CPU alone: its node is found when somebody asks for it.
#[cfg(target_arch = "aarch64")]
fn cpu_and_node() -> (u32, u32) {
    if let Some(cpu) = super::rseq::cpu() {
        return (cpu, 0);
    }
    let mut cpu = 0u32;
    // SAFETY: the kernel writes one number, here. Where it does not know the call, all CPUs count
    // as one.
    unsafe { raw_syscall!(Sysno::getcpu, &raw mut cpu, 0, 0) };
    (cpu, 0)
}

#[cfg(target_arch = "aarch64")]
fn node_of(place: u32) -> u32 {
    super::nodes::node_of(place & CPU)
}

#[cold]
fn ask_place() -> u32 {
    let (cpu, node) = cpu_and_node();
    let place = (cpu & CPU) | ((node & NODE) << CPU_BITS);
    local().set_place(place, PROBES);
    place
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn both_ways_find_the_same_cpu() {
        // The thread may move in between: not each time.
        let agree = (0..1000).any(|_| {
            let limit = segment_limit();
            cpu_and_node() == (limit & 0xFFF, limit >> 12)
        });
        assert!(agree);
    }

    #[test]
    fn a_thread_is_somewhere() {
        for _ in 0..2 * PROBES {
            assert!(node() < nodes());
        }
        assert!(count() >= 1);
    }
}
