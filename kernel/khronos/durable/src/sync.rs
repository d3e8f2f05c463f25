//! Making batches.

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use khronos_disk::{Device, Disk, Error, Image, Page, Record, Staged};
use khronos_fs::{Changed, Changes, InodeHandle, Taken, Which};

use crate::Tree;

/// The number of pages that are taken from a file at a time. In between, other threads may change
/// it.
const PIECE: usize = 64;

/// What is written of a file, for the batch.
struct Written<'fs> {
    file: InodeHandle<'fs>,
    cut: Option<u64>,
    pages: BTreeMap<u64, Staged>,
}

impl Written<'_> {
    /// Writes what was taken.
    fn add<D: Device>(&mut self, disk: &mut Disk<D>, taken: &Taken) -> Result<(), Error> {
        if let Some(cut) = taken.cut {
            self.cut = Some(self.cut.unwrap_or(u64::MAX).min(cut));
            // What was behind is gone.
            let gone = self.pages.split_off(&cut.div_ceil(khronos_disk::BLOCK_BYTES as u64));
            disk.give_up(gone.into_values());
        }
        for (number, data) in &taken.pages {
            let page = Page { number: self.file.number(), page: *number, data };
            let before = self.pages.insert(*number, disk.stage(&page)?);
            disk.give_up(before);
        }
        Ok(())
    }
}

/// Makes changes durable: those of all names and inodes, and the bytes of these files.
///
/// # Errors
///
/// [`Error::Full`]: nothing more is durable than before, and another try may succeed after
/// something was removed. Or if the disk fails, now or before: from then on nothing is written.
pub fn sync<'fs, D: Device>(
    tree: &impl Tree<'fs>,
    disk: &mut Disk<D>,
    which: Which<'_>,
) -> Result<(), Error> {
    let mut written = BTreeMap::new();
    let result = write_early(tree, disk, which, &mut written)
        .and_then(|()| write_batch(tree, disk, which, &mut written));
    for Written { file, cut, pages } in written.into_values() {
        if result.is_err() {
            let lost: Vec<_> = pages.keys().copied().collect();
            tree.with(|cx| cx.give_back(&file, cut, &lost));
        }
        disk.give_up(pages.into_values());
        tree.with(|cx| cx.close(file));
    }
    result
}

/// Writes the bytes that have changed so far.
fn write_early<'fs, D: Device>(
    tree: &impl Tree<'fs>,
    disk: &mut Disk<D>,
    which: Which<'_>,
    written: &mut BTreeMap<u64, Written<'fs>>,
) -> Result<(), Error> {
    let files: Vec<_> = tree.with(|cx| match which {
        Which::All => cx.changed_files(),
        Which::Files(files) => files.iter().filter_map(|file| cx.hold(file)).collect(),
    });
    let mut result = Ok(());
    for file in files {
        let number = file.number();
        let one = Written { file, cut: None, pages: BTreeMap::new() };
        if let Some(twice) = written.insert(number, one) {
            tree.with(|cx| cx.close(twice.file));
        }
        let one = written.get_mut(&number).expect("inserted above");
        // A thread that writes all the time does not delay this: the rest is taken with the names.
        let mut rounds = None;
        while result.is_ok()
            && rounds != Some(0)
            && let Some(taken) = tree.with(|cx| cx.take_data(&one.file, PIECE))
        {
            let pages = taken.size / (PIECE * khronos_disk::BLOCK_BYTES) as u64;
            rounds = Some(rounds.unwrap_or(pages + 2) - 1);
            result = one.add(disk, &taken);
            if result.is_err() {
                give_back(tree, one, &taken);
            }
            if taken.pages.len() < PIECE {
                break;
            }
        }
    }
    result
}

/// Some pages may not have been written.
fn give_back<'fs>(tree: &impl Tree<'fs>, of: &Written<'fs>, taken: &Taken) {
    let pages: Vec<_> = taken.pages.iter().map(|(page, _)| *page).collect();
    tree.with(|cx| cx.give_back(&of.file, taken.cut, &pages));
}

/// Writes what has changed at one moment, as a batch.
fn write_batch<'fs, D: Device>(
    tree: &impl Tree<'fs>,
    disk: &mut Disk<D>,
    which: Which<'_>,
    written: &mut BTreeMap<u64, Written<'fs>>,
) -> Result<(), Error> {
    let changes = tree.with(|cx| cx.changes(which));
    let result = write_changes(tree, disk, &changes, written);
    tree.with(|cx| match result {
        Ok(()) => cx.keep(changes),
        Err(_) => cx.put_back(changes),
    });
    result
}

fn write_changes<'fs, D: Device>(
    tree: &impl Tree<'fs>,
    disk: &mut Disk<D>,
    changes: &Changes<'fs>,
    written: &mut BTreeMap<u64, Written<'fs>>,
) -> Result<(), Error> {
    for data in &changes.data {
        let file = || tree.with(|cx| cx.hold(&data.file)).expect("the changes hold it");
        let of = written.entry(data.file.number()).or_insert_with(|| Written {
            file: file(),
            cut: None,
            pages: BTreeMap::new(),
        });
        of.add(disk, &data.taken)?;
    }
    let mut records = records(disk.image(), changes);
    for data in &changes.data {
        let number = data.file.number();
        let of = written.get_mut(&number).expect("added above");
        records.extend(of.cut.map(|bytes| Record::Size { number, bytes }));
        records.push(Record::Size { number, bytes: data.taken.size });
    }
    if records.is_empty() {
        // Nothing has changed since the last batch; if that has failed, this fails, too.
        return disk.has_not_failed();
    }
    // The pages stay with `written` if the batch is not written: their numbers are noted again.
    let (mut places, mut blocks) = (Vec::new(), Vec::new());
    for data in &changes.data {
        let number = data.file.number();
        let of = written.get_mut(&number).expect("added above");
        for (page, staged) in core::mem::take(&mut of.pages) {
            places.push((number, page));
            blocks.push(staged);
        }
    }
    disk.commit_staged(records, blocks).inspect_err(|_| {
        for (number, page) in places {
            let of = &written[&number];
            tree.with(|cx| cx.give_back(&of.file, of.cut, &[page]));
        }
    })
}

/// What the batch says of names and inodes.
fn records(image: &Image, changes: &Changes<'_>) -> Vec<Record> {
    let mut records = Vec::new();
    for (number, Changed { stat, target }) in &changes.inodes {
        let (number, mode, user, group) = (*number, stat.mode, stat.user, stat.group);
        let (device, times) = (stat.device, [stat.accessed, stat.modified, stat.changed]);
        let known = image.file(number);
        let is_same = known.is_some_and(|file| {
            (file.mode, file.owners, file.times) == (mode, [user, group], times)
        });
        if !is_same {
            records.push(Record::Inode { number, mode, user, group, device, times });
        }
        if known.is_none() && !target.is_empty() {
            records.push(Record::Target { number, path: target.to_vec() });
        }
    }
    for changed in &changes.names {
        let (directory, name) = (changed.directory, changed.name.to_vec());
        match changed.inode {
            Some(inode) if image.find(directory, &name) == Some(inode) => {}
            Some(inode) => records.push(Record::Name { directory, name, inode }),
            None if image.find(directory, &name).is_none() => {}
            None => records.push(Record::NoName { directory, name }),
        }
    }
    records
}
