//! The file of a process' address, and the position in that file.
//!
//! A list of mappings has the positions of files' pages, but not their meaning, which is in the
//! files' program headers. So a [`CodeLocation`] is an address together with the mappings of its
//! file, from which `Binary` computes the address that symbols use.

use std::path::Path;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::analyze::names::listed::Listed;
use manycore_stats::{MAPPED_CODE, MAPPED_SHARED, MODULES, Mapping, Module, PATHS};

/// The key of a process that is the same in its records and in the observations while it ran: its
/// number, and the start of its statistics, in ticks.
pub type Key = (u32, u64);

/// The key of a process that may run.
pub fn key(mapping: &Mapping) -> Key {
    // Relaxed, both: written before the header's magic, by which the file was recognised.
    (mapping.header.pid.load(Ordering::Relaxed), mapping.header.started.load(Ordering::Relaxed))
}

/// The mapped files of a process.
#[derive(Debug, Default)]
pub struct Modules {
    /// Whose they are.
    pub owner: Key,
    ranges: Vec<Range>,
    files: Vec<Listed>,
}

/// Pages of a file.
#[derive(Clone, Copy, Debug)]
pub struct Range {
    /// First address.
    pub start: u64,
    /// The end, exclusive. It includes zero-initialised data that directly follows the file's.
    pub end: u64,
    /// The file's offset at `start`.
    pub offset: u64,
    /// Whether they can be executed.
    pub is_code: bool,
    /// Whether what is written there is written to the file.
    is_shared: bool,
    /// The address at which the file's first byte is mapped, unless its program headers say
    /// otherwise.
    base: u64,
    /// Its number in `files`.
    file: usize,
    /// The range of epochs in which the mapping exists: the first one with it, and the first one
    /// without it; 0 if it still exists.
    since: Epoch,
    until: Epoch,
}

/// A moment in the life of a process: the number of times that a library had been unloaded.
pub type Epoch = u32;
/// The last one.
pub const NOW: Epoch = u32::MAX;

/// An address in a mapped file, or right behind one.
#[derive(Clone, Copy, Debug)]
pub struct CodeLocation<'a> {
    /// The file.
    pub file: &'a Listed,
    /// The address.
    pub address: u64,
    /// The mapped range that contains the address, or ends right before it.
    pub range: &'a Range,
    /// Whether the range contains the address.
    pub is_inside: bool,
    modules: &'a Modules,
}

impl CodeLocation<'_> {
    /// The distance from where the file's first byte is mapped.
    pub fn offset(&self) -> u64 {
        self.address.wrapping_sub(self.range.base)
    }

    /// All pages of the file.
    pub fn ranges(&self) -> impl Iterator<Item = &Range> {
        self.modules.ranges.iter().filter(|range| range.file == self.range.file)
    }

    /// Whether the file is mapped as programs and libraries are: some of it is code, and none is
    /// shared.
    pub fn is_of_object(&self) -> bool {
        self.ranges().any(|range| range.is_code) && !self.ranges().any(|range| range.is_shared)
    }
}

impl Modules {
    /// Reads what the process has noted.
    pub fn read(mapping: &Mapping) -> Self {
        // Acquire: partner of the Release by which the process publishes a noted module.
        let noted = mapping.header.modules.load(Ordering::Acquire) as usize;
        let mut modules = Self { owner: key(mapping), ..Self::default() };
        for module in &mapping.modules[..noted.min(MODULES)] {
            // Relaxed: ordered by the Acquire above.
            let number = |word: &AtomicU64| word.load(Ordering::Relaxed);
            // Relaxed: as above.
            let short = |word: &AtomicU32| word.load(Ordering::Relaxed);
            let file = Listed {
                text: text(mapping, module),
                device: number(&module.device),
                inode: number(&module.inode),
            };
            let flags = short(&module.flags);
            let range = Range {
                start: number(&module.start),
                end: number(&module.end),
                offset: number(&module.offset),
                is_code: flags & MAPPED_CODE != 0,
                is_shared: flags & MAPPED_SHARED != 0,
                base: 0,
                file: 0,
                since: short(&module.since),
                until: short(&module.until),
            };
            modules.add(range, file);
        }
        modules
    }

    /// Parses a list in the kernel's form, `/proc/PID/maps`: files, and the zero-initialised data
    /// behind them.
    pub fn of_maps(owner: Key, list: &[u8]) -> Self {
        let mut modules = Self { owner, ..Self::default() };
        let mut extends = false;
        for line in list.split(|byte| *byte == b'\n') {
            extends = modules.add_line(line, extends).unwrap_or_default();
        }
        modules
    }

    /// Parses `start-end perms offset device inode path`. Returns whether the next mapping may be
    /// the file's zero-initialised data, which is adjacent to a writable mapping of the file.
    /// `None` for a line of another form.
    fn add_line(&mut self, line: &[u8], extends: bool) -> Option<bool> {
        let number = |text| u64::from_str_radix(text, 16).ok();
        // Paths may have spaces, and are set off by many.
        let mut fields = line.splitn(6, |byte| *byte == b' ');
        let [range, permissions, offset, device, inode] =
            [(); 5].map(|()| str::from_utf8(fields.next()?).ok());
        // As the kernel pads it: the path itself may begin with anything but a space.
        let path = fields.next().unwrap_or_default();
        let path = &path[path.iter().position(|byte| *byte != b' ').unwrap_or(path.len())..];
        let (start, end) = range?.split_once('-')?;
        let (start, end) = (number(start)?, number(end)?);
        let permissions = permissions?;
        let is_data = permissions.starts_with("rw-");
        let (major, minor) = device?.split_once(':')?;
        let device = number(major)? << 32 | number(minor)?;
        let (offset, inode) = (number(offset?)?, inode?.parse().ok()?);
        if path.starts_with(b"/") || path == b"[vdso]" {
            let range = Range {
                start,
                end,
                offset,
                is_code: permissions.as_bytes().get(2) == Some(&b'x'),
                is_shared: permissions.as_bytes().get(3) == Some(&b's'),
                base: 0,
                file: 0,
                since: 0,
                until: 0,
            };
            self.add(range, Listed { text: path.to_owned(), device, inode });
            return Some(is_data);
        }
        if let Some(last) = self.ranges.last_mut()
            && extends
            && is_data
            && path.is_empty()
            && last.end == start
        {
            last.end = end;
        }
        Some(false)
    }

    /// Adds a mapping of a file. A file's mappings come in the order of their addresses, as the
    /// kernel lists them.
    fn add(&mut self, range: Range, file: Listed) {
        let file = self.files.iter().rposition(|known| *known == file).unwrap_or_else(|| {
            self.files.push(file);
            self.files.len() - 1
        });
        let Range { start, offset, .. } = range;
        // A library that is loaded twice begins twice.
        let begun = self.ranges.iter().rev().find(|range| range.file == file && range.base < start);
        let base = match begun {
            Some(range) if offset != 0 => range.base,
            _ => start.wrapping_sub(offset),
        };
        self.ranges.push(Range { base, file, ..range });
    }

    /// The location of an address at some time: in a file, or in other memory behind one.
    pub fn find(&self, address: u64, epoch: Epoch) -> Option<CodeLocation<'_>> {
        let was_there = |r: &&Range| r.since <= epoch && (r.until == 0 || epoch < r.until);
        let is_inside = |r: &&Range| (r.start..r.end).contains(&address);
        // The last mappings, read from the process if they were not noted in time.
        let range = (self.ranges.iter().rev().filter(was_there).find(is_inside))
            .or_else(|| self.ranges.iter().rev().find(is_inside));
        let before = || {
            let before = self.ranges.iter().filter(was_there).filter(|r| r.end <= address);
            before.max_by_key(|range| range.end)
        };
        let (range, is_inside) =
            range.map(|range| (range, true)).or_else(|| Some((before()?, false)))?;
        Some(CodeLocation {
            file: &self.files[range.file],
            address,
            range,
            is_inside,
            modules: self,
        })
    }

    /// The program: the kernel lists it first.
    pub fn program(&self) -> Option<&Listed> {
        self.ranges.first().map(|range| &self.files[range.file])
    }

    /// Files, each with one of its ranges.
    pub fn files(&self) -> impl Iterator<Item = (&Listed, &Range)> {
        let first = |file| self.ranges.iter().find(|range| range.file == file);
        self.files.iter().enumerate().filter_map(move |(at, file)| Some((file, first(at)?)))
    }

    /// Whether an address is in pages of a file of this name.
    pub fn is_in(&self, address: u64, name: &std::ffi::OsStr) -> bool {
        let place = self.find(address, NOW).filter(|place| place.is_inside);
        place.is_some_and(|place| Path::file_name(&place.file.path()) == Some(name))
    }
}

fn text(mapping: &Mapping, module: &Module) -> Vec<u8> {
    // Relaxed: ordered by the Acquire in `read`.
    let [start, length] =
        [&module.path, &module.length].map(|n| n.load(Ordering::Relaxed) as usize);
    let words = mapping.paths.iter().skip(start.min(PATHS)).take(length.div_ceil(8));
    // Relaxed: as above.
    let bytes = words.flat_map(|word| word.load(Ordering::Relaxed).to_le_bytes());
    bytes.take(length).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths_and_offsets(modules: &Modules, address: u64) -> Option<(String, u64)> {
        let place = modules.find(address, NOW).filter(|place| place.is_inside)?;
        Some((String::from_utf8_lossy(&place.file.text).into_owned(), place.offset()))
    }

    #[test]
    fn the_kernels_list_is_read() {
        let modules = Modules::of_maps(
            (1, 0),
            b"55d0c0a00000-55d0c0a02000 r--p 00000000 fe:00 131                        /tmp/a b\n\
             55d0c0a02000-55d0c0a03000 rw-p 00002000 fe:00 131                        /tmp/a b\n\
             55d0c0a03000-55d0c0a05000 rw-p 00000000 00:00 0 \n\
             55d0c0a05000-55d0c0a06000 rw-p 00000000 00:00 0                          [heap]\n\
             7f0000000000-7f0000001000 rw-p 00000000 00:00 0 \n\
             7f0000001000-7f0000002000 r-xp 00000000 fe:00 9                          /lib/x.so (deleted)\n\
             7f0000003000-7f0000004000 r-xp 00000000 fe:00 10                         /lib/\xe4\xff.so\t\r \n\
             7f0000005000-7f0000006000 rw-s 00000000 00:01 12                         /dev/zero (deleted)\n",
        );
        // In an encoding that is none of ours, and with white space at its end.
        let place = modules.find(0x7f00_0000_3000, NOW).unwrap();
        assert_eq!(place.file.text, b"/lib/\xe4\xff.so\t\r ");
        assert!(place.is_of_object());
        let found = |address| paths_and_offsets(&modules, address);
        assert_eq!(found(0x55d0_c0a0_2010), Some(("/tmp/a b".into(), 0x2010)));
        assert_eq!(found(0x55d0_c0a0_4fff), Some(("/tmp/a b".into(), 0x4fff)));
        assert_eq!(found(0x55d0_c0a0_5000), None);
        assert_eq!(found(0x7f00_0000_0000), None);
        let file = modules.find(0x55d0_c0a0_2010, NOW).unwrap().file;
        assert_eq!((file.device, file.inode), (0xfe << 32, 131));
        assert!(!modules.find(0x7f00_0000_5000, NOW).unwrap().is_of_object());
    }

    #[test]
    fn memory_beside_a_file_is_not_the_files() {
        let modules = Modules::of_maps(
            (1, 0),
            b"1000-2000 rw-p 00000000 fe:00 9                          /lib/x.so\n\
             2000-3000 rw-p 00000000 00:00 0 \n\
             3000-4000 rw-p 00000000 00:00 0 \n\
             5000-6000 r-xp 00000000 fe:00 8                          /lib/y.so\n\
             6000-7000 rw-p 00000000 00:00 0 \n\
             8000-9000 rw-p 00000000 fe:00 7                          /lib/z.so\n\
             9000-a000 ---p 00000000 00:00 0 \n\
             a000-b000 rw-p 00000000 00:00 0 \n\
             c000-d000 rw-p 00000000 fe:00 6                          /lib/w.so\n\
             e000-f000 rw-p 00000000 00:00 0 \n",
        );
        let found: Vec<u64> = (1..16)
            .map(|page| page << 12)
            .filter(|page| modules.find(*page, NOW).is_some_and(|place| place.is_inside))
            .collect();
        // Among the mappings without a file, only the first behind x.so is its data.
        assert_eq!(found, [0x1000, 0x2000, 0x5000, 0x8000, 0xc000]);
    }

    #[test]
    fn offsets_count_from_where_the_file_begins() {
        // The last mapping of the program repeats a page of the file, and zero-initialised data
        // follows.
        let modules = Modules::of_maps(
            (1, 0),
            b"5000-6000 r--p 00000000 fe:00 9 /prog\n\
             6000-8000 r-xp 00001000 fe:00 9 /prog\n\
             9000-c000 rw-p 00002000 fe:00 9 /prog\n\
             100000-101000 r--p 00000000 fe:00 8 /lib\n\
             101000-102000 r-xp 00001000 fe:00 8 /lib\n\
             200000-201000 r--p 00000000 fe:00 8 /lib\n\
             201000-202000 r-xp 00001000 fe:00 8 /lib\n",
        );
        let found = |address| paths_and_offsets(&modules, address);
        assert_eq!(found(0x5010), Some(("/prog".into(), 0x10)));
        assert_eq!(found(0xbfff), Some(("/prog".into(), 0x6fff)));
        assert_eq!(found(0x10_1000), Some(("/lib".into(), 0x1000)));
        assert_eq!(found(0x20_1004), Some(("/lib".into(), 0x1004)));
        assert_eq!((found(0x8000), found(0)), (None, None));
        assert_eq!(modules.program().unwrap().path(), Path::new("/prog"));
        assert!(modules.is_in(0x6000, "prog".as_ref()) && !modules.is_in(0x8000, "prog".as_ref()));
    }

    #[test]
    fn an_address_is_of_what_was_there_at_the_time() {
        let range = |since, until| Range {
            start: 0x1000,
            end: 0x2000,
            offset: 0,
            is_code: true,
            is_shared: false,
            base: 0,
            file: 0,
            since,
            until,
        };
        let file =
            |name: &[u8]| Listed { text: name.to_vec(), device: 0, inode: name.len() as u64 };
        let mut modules = Modules::default();
        modules.add(range(0, 2), file(b"/a"));
        modules.add(range(2, 5), file(b"/bb"));
        modules.add(range(6, 0), file(b"/ccc"));
        let found = |epoch| modules.find(0x1800, epoch).unwrap().file.inode;
        // In between it belonged to no module: the module was noted too late.
        assert_eq!([0, 1, 2, 4, 5, 6, NOW].map(found), [2, 2, 3, 3, 4, 4, 4]);
    }
}
