//! The known parts of a file system, except for the bytes of its files.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use crate::device::BLOCK_BYTES;
use crate::record::Record;

/// The number of the root.
pub const ROOT: u64 = 1;

const ROOT_MODE: u32 = 0o040_755;

/// An inode.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct File {
    /// Kind and permissions.
    pub mode: u32,
    /// The numbers of user and group.
    pub owners: [u32; 2],
    /// The device's number of something special.
    pub device: u64,
    /// Nanoseconds since 1970: accessed, modified, changed.
    pub times: [u64; 3],
    /// How many names lead to it.
    pub names: u64,
    /// Bytes.
    pub size: u64,
    /// The path of a symbolic link.
    pub target: Vec<u8>,
    /// The block of each page that was ever written.
    pub pages: BTreeMap<u64, u64>,
}

/// Inodes and names, after some batches of records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    files: BTreeMap<u64, File>,
    names: BTreeMap<(u64, Vec<u8>), u64>,
}

impl Default for Image {
    /// With the root only.
    fn default() -> Self {
        let root = File { mode: ROOT_MODE, ..File::default() };
        Self { files: [(ROOT, root)].into(), names: BTreeMap::new() }
    }
}

impl Image {
    /// Applies a batch. Inodes that have no name afterwards are removed. Returns their blocks on
    /// the disk, together with other blocks that were given up. A record about a missing inode has
    /// no effect.
    pub fn apply(&mut self, batch: &[Record]) -> Vec<u64> {
        let (mut freed, mut touched) = (Vec::new(), Vec::new());
        for record in batch {
            self.apply_one(record, &mut freed, &mut touched);
        }
        // What a directory has had goes with it, and so on.
        while let Some(number) = touched.pop() {
            let is_gone = number != ROOT && self.files.get(&number).is_some_and(|f| f.names == 0);
            if is_gone && let Some(file) = self.files.remove(&number) {
                freed.extend(file.pages.into_values());
                let below: Vec<_> = self.names_in(number).map(|(name, _)| name.to_vec()).collect();
                for name in below {
                    self.remove_name(number, name, &mut touched);
                }
            }
        }
        freed
    }

    fn apply_one(&mut self, record: &Record, freed: &mut Vec<u64>, touched: &mut Vec<u64>) {
        match record {
            Record::Inode { number, mode, user, group, device, times } => {
                let file = self.files.entry(*number).or_default();
                (file.mode, file.owners) = (*mode, [*user, *group]);
                (file.device, file.times) = (*device, *times);
                touched.push(*number);
            }
            Record::Target { number, path } => {
                if let Some(file) = self.files.get_mut(number) {
                    file.target.clone_from(path);
                    file.size = path.len() as u64;
                }
            }
            Record::Name { directory, name, inode } => {
                // First the new one, in case that the name leads there already.
                if let Some(file) = self.files.get_mut(inode) {
                    file.names += 1;
                    let before = self.names.insert((*directory, name.clone()), *inode);
                    self.has_lost_name(before, touched);
                }
            }
            Record::NoName { directory, name } => {
                self.remove_name(*directory, name.clone(), touched);
            }
            Record::Size { number, bytes } => {
                if let Some(file) = self.files.get_mut(number) {
                    file.size = *bytes;
                    let behind = file.pages.split_off(&bytes.div_ceil(BLOCK_BYTES as u64));
                    freed.extend(behind.into_values());
                }
            }
            Record::Pages { number, page, block, count } => {
                if let Some(file) = self.files.get_mut(number) {
                    for offset in 0..*count {
                        let before = file.pages.insert(page + offset, block + offset);
                        freed.extend(before.filter(|before| *before != block + offset));
                    }
                }
            }
        }
    }

    fn remove_name(&mut self, directory: u64, name: Vec<u8>, touched: &mut Vec<u64>) {
        let inode = self.names.remove(&(directory, name));
        self.has_lost_name(inode, touched);
    }

    fn has_lost_name(&mut self, inode: Option<u64>, touched: &mut Vec<u64>) {
        if let Some(number) = inode
            && let Some(file) = self.files.get_mut(&number)
        {
            file.names -= 1;
            touched.push(number);
        }
    }

    /// What a name leads to.
    pub fn find(&self, directory: u64, name: &[u8]) -> Option<u64> {
        self.names.get(&(directory, name.to_vec())).copied()
    }

    /// The names in a directory, and their targets.
    pub fn names_in(&self, directory: u64) -> impl Iterator<Item = (&[u8], u64)> {
        let begin = (directory, Vec::new());
        let names = self.names.range(begin..);
        names
            .take_while(move |((of, _), _)| *of == directory)
            .map(|((_, name), inode)| (name.as_slice(), *inode))
    }

    /// An inode by its number.
    pub fn file(&self, number: u64) -> Option<&File> {
        self.files.get(&number)
    }

    /// All inodes.
    pub fn files(&self) -> impl Iterator<Item = (u64, &File)> {
        self.files.iter().map(|(number, file)| (*number, file))
    }

    /// The records that make this image from an empty one: a checkpoint.
    pub(crate) fn records(&self) -> Vec<Record> {
        let mut records = Vec::new();
        for (number, file) in self.files() {
            let &File { mode, owners: [user, group], device, times, size: bytes, .. } = file;
            records.push(Record::Inode { number, mode, user, group, device, times });
            if !file.target.is_empty() {
                records.push(Record::Target { number, path: file.target.clone() });
            } else if bytes > 0 {
                records.push(Record::Size { number, bytes });
            }
            let pages = file.pages.iter().map(|(page, block)| (*page, *block));
            records.extend(runs(number, pages));
        }
        let name = |((directory, name), inode): (&(u64, Vec<u8>), &u64)| Record::Name {
            directory: *directory,
            name: name.clone(),
            inode: *inode,
        };
        records.extend(self.names.iter().map(name));
        records
    }
}

/// Records for pages and blocks that follow each other.
pub(crate) fn runs(number: u64, pages: impl IntoIterator<Item = (u64, u64)>) -> Vec<Record> {
    let mut runs: Vec<(u64, u64, u64)> = Vec::new();
    for (page, block) in pages {
        match runs.last_mut() {
            Some((first, of, count)) if *first + *count == page && *of + *count == block => {
                *count += 1;
            }
            _ => runs.push((page, block, 1)),
        }
    }
    let record = |(page, block, count)| Record::Pages { number, page, block, count };
    runs.into_iter().map(record).collect()
}
