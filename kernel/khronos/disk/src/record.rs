//! Records of changes. Each has the present state of an object, so applying one twice has the same
//! effect as once.

use alloc::vec::Vec;

use crate::bytes::{Malformed, Reader, put_bytes};

/// What has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// An inode exists, with these attributes. A new one has no bytes.
    Inode {
        /// Its number, which no other inode ever has.
        number: u64,
        /// Kind and permissions.
        mode: u32,
        /// The user's number.
        user: u32,
        /// The group's number.
        group: u32,
        /// The device's number of something special.
        device: u64,
        /// Nanoseconds since 1970: accessed, modified, changed.
        times: [u64; 3],
    },
    /// A symbolic link leads to this path.
    Target {
        /// The link.
        number: u64,
        /// The path.
        path: Vec<u8>,
    },
    /// A name leads to an inode, in place of its earlier target.
    Name {
        /// The directory.
        directory: u64,
        /// The name.
        name: Vec<u8>,
        /// The inode.
        inode: u64,
    },
    /// A name is gone.
    NoName {
        /// The directory.
        directory: u64,
        /// The name.
        name: Vec<u8>,
    },
    /// A file has this many bytes. Pages beyond them are removed.
    Size {
        /// The file.
        number: u64,
        /// Bytes.
        bytes: u64,
    },
    /// Pages of a file are in these blocks: the first page, the first block, the number.
    Pages {
        /// The file.
        number: u64,
        /// The first page.
        page: u64,
        /// Its block.
        block: u64,
        /// How many pages and blocks.
        count: u64,
    },
}

impl Record {
    /// Appends it to bytes.
    pub(crate) fn write(&self, into: &mut Vec<u8>) {
        let mut put = |kind: u8, numbers: &[u64]| {
            into.push(kind);
            numbers.iter().for_each(|number| into.extend_from_slice(&number.to_le_bytes()));
        };
        match self {
            Self::Inode { number, mode, user, group, device, times } => {
                let words = [*mode, *user, *group].map(u64::from);
                let [mode, user, group] = words;
                let [accessed, modified, changed] = *times;
                put(1, &[*number, mode, user, group, *device, accessed, modified, changed]);
            }
            Self::Target { number, path } => {
                put(2, &[*number]);
                put_bytes(into, path);
            }
            Self::Name { directory, name, inode } => {
                put(3, &[*directory, *inode]);
                put_bytes(into, name);
            }
            Self::NoName { directory, name } => {
                put(4, &[*directory]);
                put_bytes(into, name);
            }
            Self::Size { number, bytes } => put(5, &[*number, *bytes]),
            Self::Pages { number, page, block, count } => {
                put(6, &[*number, *page, *block, *count]);
            }
        }
    }

    /// The next one.
    pub(crate) fn read(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        let word = |from: &mut Reader<'_>| u32::try_from(from.u64()?).map_err(|_| Malformed);
        Ok(match from.u8()? {
            1 => Self::Inode {
                number: from.u64()?,
                mode: word(from)?,
                user: word(from)?,
                group: word(from)?,
                device: from.u64()?,
                times: [from.u64()?, from.u64()?, from.u64()?],
            },
            2 => Self::Target { number: from.u64()?, path: from.bytes()? },
            3 => {
                let (directory, inode) = (from.u64()?, from.u64()?);
                Self::Name { directory, name: from.bytes()?, inode }
            }
            4 => Self::NoName { directory: from.u64()?, name: from.bytes()? },
            5 => Self::Size { number: from.u64()?, bytes: from.u64()? },
            6 => Self::Pages {
                number: from.u64()?,
                page: from.u64()?,
                block: from.u64()?,
                count: from.u64()?,
            },
            _ => return Err(Malformed),
        })
    }

    /// All that there are.
    pub(crate) fn read_all(bytes: &[u8]) -> Result<Vec<Self>, Malformed> {
        let (mut from, mut records) = (Reader(bytes), Vec::new());
        while !from.0.is_empty() {
            records.push(Self::read(&mut from)?);
        }
        Ok(records)
    }
}
