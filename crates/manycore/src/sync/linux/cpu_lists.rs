//! The memory node of each CPU, as the kernel lists them: where no instruction gives it.

use core::ffi::CStr;
use core::iter;
use core::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use super::cpu::{nodes, read};

/// CPUs beyond these count as those of the first node.
const CPUS: usize = 1024;
/// Nodes that have a list.
const NODES: u32 = 256;

static NODE_OF: [AtomicU8; CPUS] = [const { AtomicU8::new(0) }; CPUS];

/// The node of a CPU, below [`nodes`]. The lists are read at the first call.
#[inline]
pub fn node_of(cpu: u32) -> u32 {
    static ARE_READ: AtomicBool = AtomicBool::new(false);
    if nodes() == 1 {
        return 0;
    }
    // Acquire: partner of the store below.
    if !ARE_READ.load(Ordering::Acquire) {
        read_lists();
        // Release: who sees this sees the table. Several threads may write the same to it.
        ARE_READ.store(true, Ordering::Release);
    }
    // Relaxed: ordered by the load above.
    NODE_OF.get(cpu as usize).map_or(0, |node| node.load(Ordering::Relaxed).into())
}

#[cold]
fn read_lists() {
    let mut text = [0; 1024];
    for node in 0..nodes().min(NODES) {
        let path = path_of(node);
        let list = CStr::from_bytes_until_nul(&path).ok().and_then(|path| read(path, &mut text));
        for cpu in list.into_iter().flat_map(cpus) {
            NODE_OF[cpu].store(node as u8, Ordering::Relaxed); // Relaxed: released by the caller
        }
    }
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
        let name = |node| CStr::from_bytes_until_nul(&path_of(node)).unwrap().to_owned();
        assert_eq!(name(0).as_c_str(), c"/sys/devices/system/node/node0/cpulist");
        assert_eq!(name(10).as_c_str(), c"/sys/devices/system/node/node10/cpulist");
        assert_eq!(name(205).as_c_str(), c"/sys/devices/system/node/node205/cpulist");
    }

    #[test]
    fn every_cpu_is_on_a_node() {
        assert!((0..CPUS as u32 + 1).all(|cpu| node_of(cpu) < nodes()));
    }
}
