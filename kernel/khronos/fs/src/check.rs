//! A check of the whole file system, while no thread changes it.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use manycore::session::View;

use crate::fs::{Ask, Cx};
use crate::inode::{Inode, Kind};
use crate::name::Key;
use crate::sync::held::InodeHandle;

/// What is there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Inodes, with the root.
    pub inodes: u64,
    /// Directories among them.
    pub directories: u64,
    /// Names.
    pub names: u64,
}

/// A directory's children, held, and its parent's number.
struct Listed<'fs> {
    parent: u64,
    children: Vec<InodeHandle<'fs>>,
    error: Option<String>,
}

impl<'fs> Cx<'fs> {
    /// Checks the tree: each inode has as many links as names. A directory has one name, and that
    /// is in its parent directory. Names are in their chains, in order, each once. No other thread
    /// may change anything meanwhile.
    ///
    /// # Errors
    ///
    /// What is wrong first.
    pub fn check_all(&mut self) -> Result<Totals, String> {
        let root = self.hold_root();
        let mut names: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
        let (mut left, mut totals) = (Vec::from([root]), Totals { inodes: 1, ..Totals::default() });
        let mut result = Ok(());
        while let Some(directory) = left.pop() {
            totals.directories += 1;
            if result.is_ok() {
                result = self.check_directory(&directory, &mut left, &mut names, &mut totals);
            }
            self.close(directory);
        }
        result?;
        for (number, (links, names)) in names {
            totals.inodes += 1;
            if links != names {
                return Err(format!("inode {number} has {links} links and {names} names"));
            }
        }
        Ok(totals)
    }

    fn check_directory(
        &mut self,
        directory: &Inode,
        left: &mut Vec<InodeHandle<'fs>>,
        names: &mut BTreeMap<u64, (u64, u64)>,
        totals: &mut Totals,
    ) -> Result<(), String> {
        let mut listed = self.list_held(directory)?;
        let mut result = listed.error.take().map_or(Ok(()), Err);
        for child in listed.children {
            totals.names += 1;
            let seen = names.entry(child.number()).or_insert((child.links(), 0));
            seen.1 += 1;
            let is_again = seen.1 > 1;
            if child.kind() != Kind::Directory {
                self.close(child);
            } else if is_again {
                result = Err(format!("directory {} has two names", child.number()));
                self.close(child);
            } else {
                let parent = self.list_held(&child).map(|listed| {
                    let parent = listed.parent;
                    listed.children.into_iter().for_each(|child| self.close(child));
                    parent
                });
                if parent != Ok(directory.number()) {
                    result = Err(format!(
                        "directory {} is in {}, and its parent is {parent:?}",
                        child.number(),
                        directory.number()
                    ));
                }
                left.push(child);
            }
        }
        result
    }

    fn hold_root(&mut self) -> InodeHandle<'fs> {
        self.hold(self.fs.root()).expect("the root is there until the end")
    }

    fn list_held(&mut self, directory: &Inode) -> Result<Listed<'fs>, String> {
        let mut held = Vec::new();
        let listed = self.run(View::Latest, Ask::of(directory), |tx, brought, _| {
            let found = tx.enter(brought.inode)?;
            let parent = tx.parent(found).map_or(0, |parent| parent.number());
            let (mut places, mut error) = (Vec::new(), None);
            tx.each(found, 0, &mut |key, inode| {
                places.push((key.hash, key.bytes.to_vec(), inode.number()));
                match crate::sync::held::Held::acquire(&inode) {
                    Some(inode) => held.push(inode),
                    None => {
                        error = Some(format!("inode {} is gone, and has a name", inode.number()))
                    }
                }
                true
            });
            if !places.is_sorted_by(|one, next| (one.0, &one.1) < (next.0, &next.1)) {
                error = Some(format!("names of directory {} are not in order", found.number()));
            }
            for (hash, name, number) in &places {
                let key = Key { bytes: name, hash: *hash };
                if tx.find(found, key).is_none_or(|again| again.number() != *number) {
                    error = Some(format!("a name of directory {} is not found", found.number()));
                }
            }
            Ok((parent, error))
        });
        let children = held.into_iter().map(InodeHandle::new).collect();
        let number = directory.number();
        let ((parent, error), _) =
            listed.map_err(|errno| format!("directory {number}: {errno}"))?;
        Ok(Listed { parent, children, error })
    }
}
