//! Which file, and which place in it, an address of a process belongs to.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use crate::layout::{MODULES, Mapping, Module};

/// The mapped files of a process.
#[derive(Debug, Default)]
pub struct Modules {
    ranges: Vec<Range>,
}

#[derive(Debug)]
struct Range {
    start: u64,
    end: u64,
    /// Where the file's first byte is mapped.
    base: u64,
    path: PathBuf,
    inode: u64,
    is_deleted: bool,
}

/// An address, as a place in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place<'a> {
    /// The file.
    pub path: &'a Path,
    /// The distance from where the file's first byte is mapped.
    pub offset: u64,
    /// The file's number in its file system; 0 if it is not known.
    pub inode: u64,
    /// Whether the file was gone when the process mapped or still had it. Another may be in its place.
    pub is_deleted: bool,
}

impl Modules {
    /// Reads what the process has noted.
    pub fn read(mapping: &Mapping) -> Self {
        // Acquire: partner of the Release by which the process says that a module is noted.
        let noted = mapping.header.modules.load(Ordering::Acquire) as usize;
        let mut modules = Self::default();
        for module in &mapping.modules[..noted.min(MODULES)] {
            // Relaxed: ordered by the Acquire above.
            let [start, end, offset, inode] =
                [&module.start, &module.end, &module.offset, &module.inode]
                    .map(|number| number.load(Ordering::Relaxed));
            modules.add(start, end, offset, path(module), inode);
        }
        modules
    }

    /// Of a list as the kernel keeps it, `/proc/PID/maps`: files, and the zero-initialised data behind them.
    pub fn of_maps(list: &[u8]) -> Self {
        let mut modules = Self::default();
        let mut extends = false;
        for line in list.split(|byte| *byte == b'\n') {
            extends = modules.add_line(line, extends).unwrap_or_default();
        }
        modules
    }

    /// `start-end perms offset device inode path`. Whether what comes next can be the file's zero-initialised data: right behind
    /// data of the file that can be written to, in one piece. None of a line that has not that form.
    fn add_line(&mut self, line: &[u8], extends: bool) -> Option<bool> {
        let number = |text| u64::from_str_radix(text, 16).ok();
        // Paths have spaces, may be in any encoding, and are set off by many spaces.
        let mut fields = line.splitn(6, |byte| *byte == b' ');
        let [range, permissions, offset, _device, inode] =
            [(); 5].map(|()| str::from_utf8(fields.next()?).ok());
        let path = fields.next().unwrap_or_default().trim_ascii_start();
        let (start, end) = range?.split_once('-')?;
        let (start, end) = (number(start)?, number(end)?);
        let is_data = permissions?.starts_with("rw-");
        let offset = number(offset?)?;
        let inode = inode?.parse().ok()?;
        if path.starts_with(b"/") || path == b"[vdso]" {
            self.add(start, end, offset, OsStr::from_bytes(path).into(), inode);
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

    /// Adds a range. The ranges of a file come in the order of their addresses, as the kernel lists them.
    pub fn add(&mut self, start: u64, end: u64, offset: u64, path: PathBuf, inode: u64) {
        // What the kernel says of a file that is gone.
        let bytes = path.as_os_str().as_bytes();
        let (path, is_deleted) = match bytes.strip_suffix(b" (deleted)") {
            Some(bytes) => (OsString::from_vec(bytes.to_vec()).into(), true),
            None => (path, false),
        };
        // A library that is loaded twice begins twice.
        let begun = self.ranges.iter().rev().find(|range| range.path == path && range.base < start);
        let base = match begun {
            Some(range) if offset != 0 => range.base,
            _ => start.wrapping_sub(offset),
        };
        self.ranges.push(Range { start, end, base, path, inode, is_deleted });
    }

    /// The place of an address; none on the heap, a stack or in other memory without a file.
    pub fn find(&self, address: u64) -> Option<Place<'_>> {
        // What was mapped last: a library may have been unloaded and another be in its place.
        let range = self.ranges.iter().rev().find(|r| (r.start..r.end).contains(&address))?;
        let Range { base, ref path, inode, is_deleted, .. } = *range;
        Some(Place { path, offset: address.wrapping_sub(base), inode, is_deleted })
    }

    /// The program: the kernel lists it first.
    pub fn program(&self) -> Option<&Path> {
        self.ranges.first().map(|range| range.path.as_path())
    }
}

fn path(module: &Module) -> PathBuf {
    // Relaxed: ordered by the Acquire in `read`.
    let words = module.path.iter().map(|word| word.load(Ordering::Relaxed).to_le_bytes());
    let bytes: Vec<u8> = words.flatten().take_while(|byte| *byte != 0).collect();
    OsString::from_vec(bytes).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_list_is_read() {
        let modules = Modules::of_maps(
            b"55d0c0a00000-55d0c0a02000 r--p 00000000 fe:00 131                        /tmp/a b\n\
             55d0c0a02000-55d0c0a03000 rw-p 00002000 fe:00 131                        /tmp/a b\n\
             55d0c0a03000-55d0c0a05000 rw-p 00000000 00:00 0 \n\
             55d0c0a05000-55d0c0a06000 rw-p 00000000 00:00 0                          [heap]\n\
             7f0000000000-7f0000001000 rw-p 00000000 00:00 0 \n\
             7f0000001000-7f0000002000 r-xp 00000000 fe:00 9                          /lib/x.so (deleted)\n\
             7f0000003000-7f0000004000 r-xp 00000000 fe:00 10                         /lib/\xe4\xff.so\n",
        );
        // In an encoding that is none of ours.
        let path = modules.find(0x7f00_0000_3000).unwrap().path;
        assert_eq!(path.as_os_str().as_bytes(), b"/lib/\xe4\xff.so");
        let found = |address| modules.find(address).map(|p| (p.path.to_str().unwrap(), p.offset));
        assert_eq!(found(0x55d0_c0a0_2010), Some(("/tmp/a b", 0x2010)));
        assert_eq!(found(0x55d0_c0a0_4fff), Some(("/tmp/a b", 0x4fff)));
        assert_eq!(found(0x55d0_c0a0_5000), None);
        assert_eq!(found(0x7f00_0000_0000), None);
        assert!(modules.find(0x7f00_0000_1000).unwrap().is_deleted);
        assert_eq!(modules.find(0x55d0_c0a0_2010).unwrap().inode, 131);
    }

    #[test]
    fn memory_beside_a_file_is_not_the_files() {
        let modules = Modules::of_maps(
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
        let found: Vec<u64> =
            (1..16).map(|page| page << 12).filter(|page| modules.find(*page).is_some()).collect();
        // Of those without a file only the first behind x.so is its data.
        assert_eq!(found, [0x1000, 0x2000, 0x5000, 0x8000, 0xc000]);
    }

    #[test]
    fn offsets_count_from_where_the_file_begins() {
        let mut modules = Modules::default();
        modules.add(0x5000, 0x6000, 0, "prog".into(), 0);
        modules.add(0x6000, 0x8000, 0x1000, "prog".into(), 0);
        // The last mapping repeats a page of the file, and zero-initialised data follows.
        modules.add(0x9000, 0xc000, 0x2000, "prog".into(), 0);
        for base in [0x10_0000, 0x20_0000] {
            modules.add(base, base + 0x1000, 0, "lib".into(), 0);
            modules.add(base + 0x1000, base + 0x2000, 0x1000, "lib".into(), 0);
        }

        let found = |address| modules.find(address).map(|p| (p.path.to_str().unwrap(), p.offset));
        assert_eq!(found(0x5010), Some(("prog", 0x10)));
        assert_eq!(found(0xbfff), Some(("prog", 0x6fff)));
        assert_eq!(found(0x10_1000), Some(("lib", 0x1000)));
        assert_eq!(found(0x20_1004), Some(("lib", 0x1004)));
        assert_eq!(found(0x8000), None);
        assert_eq!(found(0), None);
        assert_eq!(modules.program(), Some(Path::new("prog")));
    }
}
