//! The loader's information: command line, memory map, modules, and the place of ACPI's tables; by
//! PVH or multiboot2.

use core::slice;

use crate::mm::direct_map::{self, physical};
use crate::sync::once::Once;

/// Ranges of the memory map, or modules, at most.
const MOST: usize = 64;

/// A range of physical addresses.
#[derive(Clone, Copy, Default, Debug)]
pub struct Range {
    /// First.
    pub start: u64,
    /// Behind the last.
    pub end: u64,
}

/// A list of fixed capacity; further entries are left out.
#[derive(Clone, Copy)]
pub struct Ranges {
    list: [Range; MOST],
    count: usize,
}

impl Ranges {
    const NONE: Self = Self { list: [Range { start: 0, end: 0 }; MOST], count: 0 };

    fn push(&mut self, start: u64, bytes: u64) {
        if self.count < MOST && bytes > 0 {
            self.list[self.count] = Range { start, end: start + bytes };
            self.count += 1;
        }
    }

    /// As a slice.
    pub fn as_slice(&self) -> &[Range] {
        &self.list[..self.count]
    }
}

/// All of it, copied.
pub struct Information {
    command_line: [u8; 1024],
    command_line_bytes: usize,
    /// Usable memory.
    pub memory: Ranges,
    /// Files that the loader has put into memory: the first one is the archive of the root.
    pub modules: Ranges,
    /// The physical address of ACPI's root pointer; 0 if the loader did not pass it.
    pub acpi: u64,
}

static INFORMATION: Once<Information> = Once::new();

/// What the loader said.
pub fn information() -> &'static Information {
    INFORMATION.get()
}

impl Information {
    /// The command line.
    pub fn command_line(&self) -> &str {
        core::str::from_utf8(&self.command_line[..self.command_line_bytes]).unwrap_or("")
    }

    /// The value of a word `name=value` on the command line; empty for the word alone.
    pub fn option(&self, name: &str) -> Option<&str> {
        self.command_line().split_ascii_whitespace().find_map(|word| {
            let (key, value) = word.split_once('=').unwrap_or((word, ""));
            (key == name).then_some(value)
        })
    }

    fn set_command_line(&mut self, address: u64) {
        // SAFETY: the loader ends it with a zero, in memory below 4 GB, which is mapped.
        let text = unsafe { core::ffi::CStr::from_ptr(physical(address).cast()) }.to_bytes();
        let bytes = text.len().min(self.command_line.len());
        self.command_line[..bytes].copy_from_slice(&text[..bytes]);
        self.command_line_bytes = bytes;
    }
}

/// Reads and keeps the information at `address`, in the format of the protocol `magic`.
///
/// # Panics
///
/// If the protocol is another.
pub fn read(magic: u32, address: u64) {
    let mut information = Information {
        command_line: [0; 1024],
        command_line_bytes: 0,
        memory: Ranges::NONE,
        modules: Ranges::NONE,
        acpi: 0,
    };
    match magic {
        0x336e_c578 => read_pvh(&mut information, address),
        0x36d7_6289 => read_multiboot(&mut information, address),
        _ => panic!("started by a protocol that is neither PVH nor multiboot2: magic {magic:#x}"),
    }
    INFORMATION.set(information);
}

fn word(address: u64) -> u32 {
    // SAFETY: the loader's structures are in memory below 4 GB, which is mapped.
    unsafe { physical(address).cast::<u32>().read_unaligned() }
}

fn double(address: u64) -> u64 {
    // SAFETY: the loader's structures are in memory below 4 GB, which is mapped.
    unsafe { physical(address).cast::<u64>().read_unaligned() }
}

fn read_pvh(information: &mut Information, start: u64) {
    assert!(word(start) == 0x336e_c578, "PVH's start information has another magic");
    let modules = double(start + 16);
    for module in 0..u64::from(word(start + 12)) {
        let at = modules + 32 * module;
        information.modules.push(double(at), double(at + 8));
    }
    if double(start + 24) != 0 {
        information.set_command_line(double(start + 24));
    }
    information.acpi = double(start + 32);
    let map = double(start + 40);
    for entry in 0..u64::from(word(start + 48)) {
        let at = map + 24 * entry;
        if word(at + 16) == 1 {
            information.memory.push(double(at), double(at + 8));
        }
    }
}

fn read_multiboot(information: &mut Information, start: u64) {
    let end = start + u64::from(word(start));
    let mut tag = start + 8;
    while tag < end {
        let (kind, bytes) = (word(tag), u64::from(word(tag + 4)));
        match kind {
            0 => break,
            1 => information.set_command_line(tag + 8),
            3 => {
                let (from, to) = (u64::from(word(tag + 8)), u64::from(word(tag + 12)));
                information.modules.push(from, to - from);
            }
            6 => {
                let entry_bytes = u64::from(word(tag + 8)).max(24);
                for at in (tag + 16..tag + bytes).step_by(entry_bytes as usize) {
                    if word(at + 16) == 1 {
                        information.memory.push(double(at), double(at + 8));
                    }
                }
            }
            14 | 15 => information.acpi = tag + 8,
            _ => {}
        }
        tag += bytes.next_multiple_of(8);
    }
}

/// The bytes of the module `number`, if the loader has loaded it.
pub fn module(number: usize) -> Option<&'static [u8]> {
    let range = information().modules.as_slice().get(number)?;
    // SAFETY: the loader has put it there; its frames are never handed out, and no code writes it.
    Some(unsafe {
        slice::from_raw_parts(
            direct_map::physical(range.start).cast_const(),
            (range.end - range.start) as usize,
        )
    })
}
