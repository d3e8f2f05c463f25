//! The memory nodes as the kernel lists them: how many there are, and which CPUs each has.

use core::ffi::CStr;

use syscalls::{Sysno, raw_syscall};

#[cfg(target_arch = "aarch64")]
pub use of_cpus::node_of;

/// The last number of a list such as `0-1` or `0,2`, in a file of the kernel's; none where there is
/// no such file.
pub fn last_node() -> Option<u32> {
    let mut text = [0u8; 64];
    last_number(read(c"/sys/devices/system/node/online", &mut text)?)
}

/// The beginning of a file, as much as there is room for; none where it cannot be read.
fn read<'a>(path: &CStr, room: &'a mut [u8]) -> Option<&'a [u8]> {
    // SAFETY: a NUL-terminated path, and a buffer to write to of that length.
    let length = unsafe {
        let file = raw_syscall!(Sysno::openat, libc::AT_FDCWD, path.as_ptr(), libc::O_RDONLY);
        let length = raw_syscall!(Sysno::read, file, room.as_mut_ptr(), room.len());
        raw_syscall!(Sysno::close, file);
        length
    };
    room.get(..length) // an error is a larger number
}

fn last_number(list: &[u8]) -> Option<u32> {
    let mut numbers =
        list.rsplit(|byte| !byte.is_ascii_digit()).filter(|number| !number.is_empty());
    str::from_utf8(numbers.next()?).ok()?.parse().ok()
}

/// Where no instruction gives the node.
#[cfg(any(test, target_arch = "aarch64"))]
mod of_cpus {
    use core::ffi::CStr;
    use core::iter;
    use core::sync::atomic::{AtomicU8, Ordering};

    use super::{last_node, read};

    /// CPUs beyond these count as those of the first node.
    const CPUS: usize = 1024;
    /// As many nodes as have a list, and a number below.
    const NODES: u32 = 255;

    /// One more than each CPU's node; 0 if it is not known yet.
    static NODE_OF: [AtomicU8; CPUS] = [const { AtomicU8::new(0) }; CPUS];

    // Relaxed throughout: each entry is all there is to know of its CPU, and every thread finds the
    // same.

    /// The node of a CPU. The lists are read at the first call.
    #[inline]
    pub fn node_of(cpu: u32) -> u32 {
        let Some(entry) = NODE_OF.get(cpu as usize) else { return 0 };
        match entry.load(Ordering::Relaxed) {
            0 => find(entry),
            node => u32::from(node) - 1,
        }
    }

    #[cold]
    fn find(entry: &AtomicU8) -> u32 {
        let mut text = [0; 1024];
        for node in 0..last_node().map_or(0, |last| last + 1).min(NODES) {
            let path = path_of(node);
            let path = CStr::from_bytes_until_nul(&path).ok();
            let list = path.and_then(|path| read(path, &mut text));
            for cpu in list.into_iter().flat_map(cpus) {
                NODE_OF[cpu].store(node as u8 + 1, Ordering::Relaxed);
            }
        }
        // A CPU in no list counts as one of the first node.
        let node = entry.load(Ordering::Relaxed).max(1);
        entry.store(node, Ordering::Relaxed);
        u32::from(node) - 1
    }

    fn path_of(node: u32) -> [u8; 48] {
        let digits = [node / 100 % 10, node / 10 % 10, node % 10].map(|digit| b'0' + digit as u8);
        let leading = digits[..2].iter().take_while(|digit| **digit == b'0').count();
        let parts = [b"/sys/devices/system/node/node", &digits[leading..], b"/cpulist"];
        let mut path = [0; 48];
        path.iter_mut().zip(parts.into_iter().flatten()).for_each(|(to, from)| *to = *from);
        path
    }

    /// The CPUs of a list such as `0-3,8`, as far as there is a place for them.
    fn cpus(list: &[u8]) -> impl Iterator<Item = usize> {
        let number = |text: &[u8]| str::from_utf8(text).ok()?.parse::<usize>().ok();
        let ranges = list.trim_ascii().split(|byte| *byte == b',').filter_map(move |range| {
            let mut ends = range.splitn(2, |byte| *byte == b'-');
            let first = number(ends.next()?)?;
            Some((first, ends.next().map_or(Some(first), number)?))
        });
        ranges.flat_map(|(first, last)| {
            let next = move |cpu: &usize| (*cpu < last).then_some(cpu + 1);
            iter::successors(Some(first), next).take_while(|cpu| *cpu < CPUS)
        })
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn lists_are_understood() {
            assert!(cpus(b"0-2,5,1022-2000\n").eq([0, 1, 2, 5, 1022, 1023]));
            assert!(cpus(b"\n").next().is_none() && cpus(b"x-3,-").next().is_none());
        }

        #[test]
        fn each_node_has_its_list() {
            let is = |node, path| CStr::from_bytes_until_nul(&path_of(node)) == Ok(path);
            assert!(is(0, c"/sys/devices/system/node/node0/cpulist"));
            assert!(is(10, c"/sys/devices/system/node/node10/cpulist"));
            assert!(is(205, c"/sys/devices/system/node/node205/cpulist"));
        }

        #[test]
        fn every_cpu_is_on_a_node() {
            let last = last_node().unwrap_or(0);
            assert!((0..CPUS as u32 + 1).all(|cpu| node_of(cpu) <= last));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_node_is_read() {
        assert_eq!(last_number(b"0\n"), Some(0));
        assert_eq!(last_number(b"0-3,7-10\n"), Some(10));
        assert_eq!(last_number(b"\n"), None);
    }
}
