//! Which CPUs threads run on.

use std::io;

/// The CPUs that this process may run on.
pub fn allowed() -> Vec<usize> {
    // SAFETY: the set consists of numbers, and all zero is the empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes at most the given number of bytes into the set.
    let result = unsafe { libc::sched_getaffinity(0, size_of_val(&set), &mut set) };
    if result != 0 {
        // More CPUs than the set has room for. The count is known all the same.
        return (0..std::thread::available_parallelism().map_or(1, usize::from)).collect();
    }
    let capacity = 8 * size_of_val(&set);
    // SAFETY: the index is below the capacity of the set.
    (0..capacity).filter(|cpu| unsafe { libc::CPU_ISSET(*cpu, &set) }).collect()
}

/// Keeps the calling thread on one CPU.
pub(crate) fn pin(cpu: usize) -> io::Result<()> {
    // SAFETY: the set consists of numbers, and all zero is the empty set.
    let mut set: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    // SAFETY: `cpu` came from `allowed`, so it is below the capacity of the set.
    unsafe { libc::CPU_SET(cpu, &mut set) };
    // SAFETY: the kernel reads as many bytes as the set has.
    match unsafe { libc::sched_setaffinity(0, size_of_val(&set), &set) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pinned_thread_may_run_on_one_cpu() {
        let last = *allowed().last().unwrap();
        let seen = std::thread::spawn(move || {
            pin(last).unwrap();
            allowed()
        });
        assert_eq!(seen.join().unwrap(), [last]);
    }
}
