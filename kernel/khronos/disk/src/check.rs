//! A check of a disk.

use alloc::collections::BTreeMap;
use core::fmt;

use crate::device::Device;
use crate::disk::Disk;
use crate::image::ROOT;

/// A fault of a file system on a disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// A block has two owners, or has an owner although it is free.
    TwoOwners {
        /// The block.
        block: u64,
    },
    /// A page is in a block that is not for pages.
    Outside {
        /// The file.
        number: u64,
        /// The block.
        block: u64,
    },
    /// A name is in a directory that does not exist, or leads to no inode.
    Name {
        /// The directory.
        directory: u64,
    },
    /// The number of an inode's names differs from its link count.
    Names {
        /// The inode.
        number: u64,
    },
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TwoOwners { block } => write!(f, "block {block} has two owners"),
            Self::Outside { number, block } => {
                write!(f, "inode {number} has a page in block {block}, which is not for pages")
            }
            Self::Name { directory } => {
                write!(f, "a name in directory {directory} has no directory or no inode")
            }
            Self::Names { number } => write!(f, "inode {number} counts its names wrongly"),
        }
    }
}

impl core::error::Error for Fault {}

impl<D: Device> Disk<D> {
    /// Checks what is durable.
    ///
    /// # Errors
    ///
    /// What is wrong first.
    pub fn check(&self) -> Result<(), Fault> {
        let (mut owned, pages) = (0, self.layout().pages());
        let mut owners = alloc::collections::BTreeSet::new();
        let mut names: BTreeMap<u64, u64> = BTreeMap::new();
        for (number, file) in self.image().files() {
            for &block in file.pages.values() {
                if !pages.contains(&block) {
                    return Err(Fault::Outside { number, block });
                }
                if !owners.insert(block) {
                    return Err(Fault::TwoOwners { block });
                }
                owned += 1;
            }
            for (_, inode) in self.image().names_in(number) {
                if self.image().file(inode).is_none() {
                    return Err(Fault::Name { directory: number });
                }
                *names.entry(inode).or_default() += 1;
            }
        }
        for (number, file) in self.image().files() {
            let found = names.get(&number).copied().unwrap_or_default();
            if found != file.names || found == 0 && number != ROOT {
                return Err(Fault::Names { number });
            }
        }
        if owned + self.free_blocks() != pages.end - pages.start {
            return Err(Fault::TwoOwners { block: pages.start });
        }
        Ok(())
    }
}
