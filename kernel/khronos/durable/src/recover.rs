//! From a disk to a tree.

use alloc::collections::BTreeMap;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

use khronos_disk::{Block, Device, Disk, File, ROOT, zeros};
use khronos_fs::{Errno, InodeHandle, Kind, Restored};

use crate::Tree;

/// Why there is no tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RecoverError {
    /// The disk.
    Disk(khronos_disk::Error),
    /// What is on the disk does not fit together.
    Fault(khronos_disk::Fault),
    /// A name cannot be made.
    Name {
        /// In this directory.
        directory: u64,
        /// Why.
        errno: khronos_fs::Errno,
    },
}

impl From<khronos_disk::Error> for RecoverError {
    fn from(error: khronos_disk::Error) -> Self {
        Self::Disk(error)
    }
}

impl fmt::Display for RecoverError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Disk(error) => write!(f, "{error}"),
            Self::Fault(fault) => write!(f, "the disk is damaged: {fault}"),
            Self::Name { directory, errno } => {
                write!(f, "a name in directory {directory} of the disk cannot be made: {errno}")
            }
        }
    }
}

impl core::error::Error for RecoverError {}

/// Files with several names, and directories whose names are not made yet.
struct Recovery<'fs> {
    linked: BTreeMap<u64, InodeHandle<'fs>>,
    left: Vec<(u64, InodeHandle<'fs>)>,
    made: u64,
}

/// Makes the disk's tree in an empty file system that no other code uses. Returns the number of
/// inodes, without the root.
///
/// # Errors
///
/// If the disk fails or is damaged, or there is no memory. Then the tree must not be used.
pub fn recover<'fs, D: Device>(tree: &impl Tree<'fs>, disk: &Disk<D>) -> Result<u64, RecoverError> {
    disk.check().map_err(RecoverError::Fault)?;
    let (image, mut block) = (disk.image(), zeros());
    if let Some(file) = image.file(ROOT) {
        tree.with(|cx| cx.restore_root(&restored(ROOT, file)));
    }
    let root = tree.with(|cx| cx.hold(cx.fs().root())).expect("the root is there");
    let mut recovery = Recovery { linked: BTreeMap::new(), left: vec![(ROOT, root)], made: 0 };
    let mut result = Ok(());
    while let Some((number, directory)) = recovery.left.pop() {
        for (name, inode) in image.names_in(number) {
            if result.is_ok() {
                result = recovery.name(tree, disk, (number, &directory), (name, inode), &mut block);
            }
        }
        tree.with(|cx| cx.close(directory));
    }
    recovery.linked.into_values().for_each(|node| tree.with(|cx| cx.close(node)));
    result.map(|()| recovery.made)
}

impl<'fs> Recovery<'fs> {
    fn name<D: Device>(
        &mut self,
        tree: &impl Tree<'fs>,
        disk: &Disk<D>,
        (number, directory): (u64, &InodeHandle<'fs>),
        (name, inode): (&[u8], u64),
        block: &mut Block,
    ) -> Result<(), RecoverError> {
        let failed = |errno| RecoverError::Name { directory: number, errno };
        if let Some(node) = self.linked.get(&inode) {
            let linked = tree.with(|cx| cx.restore_link(directory, name, node));
            return linked.map_err(failed);
        }
        let Some(file) = disk.image().file(inode) else {
            return Err(RecoverError::Fault(khronos_disk::Fault::Name { directory: number }));
        };
        let what = restored(inode, file);
        let node = tree.with(|cx| cx.restore(directory, name, &what)).map_err(failed)?;
        self.made += 1;
        let read = match what.kind() {
            Kind::File => read(tree, disk, &node, file, block, failed),
            _ => Ok(()),
        };
        match what.kind() {
            Kind::Directory => self.left.push((inode, node)),
            _ if file.names > 1 => _ = self.linked.insert(inode, node),
            _ => tree.with(|cx| cx.close(node)),
        }
        read
    }
}

/// Reads the bytes of a file; `failed` makes the error if the tree refuses them.
fn read<'fs, D: Device>(
    tree: &impl Tree<'fs>,
    disk: &Disk<D>,
    node: &InodeHandle<'fs>,
    file: &File,
    block: &mut Block,
    failed: impl Fn(Errno) -> RecoverError,
) -> Result<(), RecoverError> {
    for page in file.pages.keys() {
        disk.read_page(node.number(), *page, block)?;
        tree.with(|cx| cx.restore_page(node, *page, block)).map_err(&failed)?;
    }
    tree.with(|cx| cx.restore_size(node, file.size)).map_err(failed)
}

fn restored(number: u64, file: &File) -> Restored<'_> {
    let File { mode, owners, device, times, ref target, .. } = *file;
    Restored { number, mode, owners, device, times, target }
}
