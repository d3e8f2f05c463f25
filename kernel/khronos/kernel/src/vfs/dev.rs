//! Devices, by their numbers.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicU64, Ordering};

use khronos_fs::{At, Kind, Stat};

use super::console;
use super::file::Object;
use super::tree;
use crate::arch::tsc;
use crate::call::errno::{Errno, Result};

/// The number of a device, as `stat` says it.
const fn number(major: u64, minor: u64) -> u64 {
    major << 8 | minor
}

const NULL: u64 = number(1, 3);
const ZERO: u64 = number(1, 5);
const RANDOM: u64 = number(1, 8);
const URANDOM: u64 = number(1, 9);
const TTY: u64 = number(5, 0);
const CONSOLE: u64 = number(5, 1);

/// Makes their names in `/dev`.
pub fn make_names() -> Result<()> {
    let root = tree::fs().root();
    let list: [(&[u8], u64); 6] = [
        (b"/dev/null", NULL),
        (b"/dev/zero", ZERO),
        (b"/dev/random", RANDOM),
        (b"/dev/urandom", URANDOM),
        (b"/dev/tty", TTY),
        (b"/dev/console", CONSOLE),
    ];
    for directory in [b"/dev".as_slice(), b"/tmp", b"/proc", b"/root"] {
        match tree::with(|cx| cx.mkdir(At { directory: root, path: directory }, 0o755)) {
            Ok(()) | Err(khronos_fs::Errno::Exists) => {}
            Err(error) => return Err(error.into()),
        }
    }
    for (path, device) in list {
        let mode = CHARACTER_DEVICE | 0o666;
        match tree::with(|cx| cx.mknod(At { directory: root, path }, mode, device)) {
            Ok(()) | Err(khronos_fs::Errno::Exists) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Opens the device with these attributes.
pub fn open(stat: Stat) -> Result<Arc<dyn Object>> {
    match stat.device {
        NULL => Ok(Arc::new(Null(stat))),
        ZERO => Ok(Arc::new(Zero(stat))),
        RANDOM | URANDOM => Ok(Arc::new(Random(stat))),
        TTY | CONSOLE => Ok(Arc::new(console::Console(stat))),
        _ => Err(Errno::NO_DEVICE_ADDRESS),
    }
}

/// In a mode: a character device.
pub const CHARACTER_DEVICE: u32 = 0o020_000;
/// In a mode: a pipe.
pub const PIPE: u32 = 0o010_000;

/// The attributes of an object without a name in the tree.
pub fn stat_of(kind: Kind, mode: u32, size: u64) -> Stat {
    Stat {
        number: 1,
        kind,
        mode: kind.mode() | mode,
        links: 1,
        size,
        user: 0,
        group: 0,
        device: 0,
        accessed: 0,
        modified: 0,
        changed: 0,
    }
}

struct Null(Stat);
struct Zero(Stat);
struct Random(Stat);

impl Object for Null {
    fn read(&self, _offset: u64, _into: &mut [u8], _wait: bool) -> Result<usize> {
        Ok(0)
    }

    fn write(&self, _offset: Option<u64>, from: &[u8], _wait: bool) -> Result<(u64, usize)> {
        Ok((0, from.len()))
    }

    fn stat(&self) -> Stat {
        self.0
    }
}

impl Object for Zero {
    fn read(&self, _offset: u64, into: &mut [u8], _wait: bool) -> Result<usize> {
        into.fill(0);
        Ok(into.len())
    }

    fn write(&self, _offset: Option<u64>, from: &[u8], _wait: bool) -> Result<(u64, usize)> {
        Ok((0, from.len()))
    }

    fn stat(&self) -> Stat {
        self.0
    }
}

impl Object for Random {
    fn read(&self, _offset: u64, into: &mut [u8], _wait: bool) -> Result<usize> {
        fill_random(into);
        Ok(into.len())
    }

    fn stat(&self) -> Stat {
        self.0
    }
}

/// Fills a buffer with numbers that differ each time: for hash tables of programs, not for secrets.
pub fn fill_random(into: &mut [u8]) {
    static STATE: AtomicU64 = AtomicU64::new(0);
    for piece in into.chunks_mut(8) {
        // Relaxed: a number that was not used before; splitmix64 turns it into one that looks
        // random.
        let mut word =
            STATE.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed).wrapping_add(tsc::read());
        word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        piece.copy_from_slice(&(word ^ word >> 31).to_le_bytes()[..piece.len()]);
    }
}
