//! A disk that is cut off at every flush, and the results of recovery.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use khronos_disk::{
    BLOCK_BYTES, Block, Device, DeviceError, Disk, Error, Image, MemoryDisk, Page, ROOT, Record,
};

const BLOCKS: usize = 96;
const SECTOR: usize = 512;

/// A sector that was written, and is not known to be durable.
type Write = (u64, usize, [u8; SECTOR]);

/// A disk that remembers its durable contents, and checks them before each flush.
struct CutDisk {
    now: MemoryDisk,
    shared: Rc<RefCell<Cut>>,
}

struct Cut {
    durable: MemoryDisk,
    unflushed: Vec<Write>,
    random: fastrand::Rng,
    /// Images after each batch that a crash may leave, and the least recent one that is allowed.
    prefixes: Vec<Image>,
    must: usize,
    /// How many crashes there were.
    states: u64,
    /// Whether the disk reports some flushes as done that it has not done.
    lies: bool,
}

impl Device for CutDisk {
    fn blocks(&self) -> u64 {
        self.now.blocks()
    }

    fn read(&self, block: u64, into: &mut Block) -> Result<(), DeviceError> {
        self.now.read(block, into)
    }

    fn write(&mut self, block: u64, data: &Block) -> Result<(), DeviceError> {
        self.now.write(block, data)?;
        let mut cut = self.shared.borrow_mut();
        for (number, sector) in data.chunks(SECTOR).enumerate() {
            cut.unflushed.push((block, number, sector.try_into().unwrap()));
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), DeviceError> {
        let mut cut = self.shared.borrow_mut();
        cut.look(16);
        if cut.lies && cut.random.bool() {
            return Ok(());
        }
        cut.durable = self.now.clone();
        cut.unflushed.clear();
        Ok(())
    }
}

impl Cut {
    /// Crashes with none, all, and some of the unflushed data, in any order of the sectors.
    fn look(&mut self, subsets: u32) {
        let writes = self.unflushed.clone();
        self.recover(&[]);
        self.recover(&writes);
        for _ in 0..subsets {
            let share = self.random.f64();
            let kept: Vec<_> =
                writes.iter().filter(|_| self.random.f64() < share).copied().collect();
            self.recover(&kept);
        }
    }

    fn recover(&mut self, writes: &[Write]) {
        let mut disk = self.durable.clone();
        let mut blocks: BTreeMap<u64, Box<Block>> = BTreeMap::new();
        for (block, sector, data) in writes {
            let block = blocks.entry(*block).or_insert_with(|| {
                let mut bytes = Box::new([0; BLOCK_BYTES]);
                disk.read(*block, &mut bytes).unwrap();
                bytes
            });
            block[sector * SECTOR..][..SECTOR].copy_from_slice(data);
        }
        blocks.into_iter().for_each(|(block, data)| disk.write(block, &data).unwrap());
        let found = Disk::open(disk).expect("a file system that can be recovered");
        let image = found.image();
        let is_prefix = self.prefixes[self.must..].iter().any(|prefix| same(prefix, image));
        assert!(is_prefix, "what is found is no prefix, or lacks what was durable: {image:?}");
        found.check().unwrap();
        check_pages(&found);
        let again = Disk::open(found.into_device()).unwrap();
        assert!(self.prefixes[self.must..].iter().any(|prefix| same(prefix, again.image())));
        self.states += 1;
    }
}

/// Whether inodes, names, sizes and pages are the same. Blocks are the disk's own matter.
fn same(model: &Image, found: &Image) -> bool {
    let of = |image: &Image| -> Vec<_> {
        let pages = |file: &khronos_disk::File| file.pages.keys().copied().collect::<Vec<_>>();
        image.files().map(|(number, file)| (number, file.names, file.size, pages(file))).collect()
    };
    let names = |image: &Image, directory| -> Vec<(Vec<u8>, u64)> {
        image.names_in(directory).map(|(name, inode)| (name.to_vec(), inode)).collect()
    };
    let directories: Vec<_> = model.files().map(|(number, _)| number).collect();
    of(model) == of(found)
        && directories.into_iter().all(|number| names(model, number) == names(found, number))
}

/// All bytes of each page encode its file and its page number: old data would be noticed.
fn page_of(number: u64, page: u64) -> Box<Block> {
    let mut block = Box::new([0; BLOCK_BYTES]);
    for word in block.chunks_mut(16) {
        word[..8].copy_from_slice(&number.to_le_bytes());
        word[8..].copy_from_slice(&page.to_le_bytes());
    }
    block
}

fn check_pages<D: Device>(disk: &Disk<D>) {
    let mut bytes = Box::new([0; BLOCK_BYTES]);
    for (number, file) in disk.image().files() {
        for page in file.pages.keys() {
            disk.read_page(number, *page, &mut bytes).unwrap();
            assert_eq!(bytes, page_of(number, *page), "page {page} of inode {number} is another's");
        }
    }
}

/// Batches of a few records and pages, as calls make them.
struct Batches {
    random: fastrand::Rng,
    next: u64,
}

impl Batches {
    fn next(&mut self, image: &Image) -> (Vec<Record>, Vec<(u64, u64)>) {
        let (mut records, mut pages) = (Vec::new(), Vec::new());
        for _ in 0..self.random.usize(1..4) {
            let files: Vec<_> = image.files().map(|(number, _)| number).collect();
            let number = files[self.random.usize(..files.len())];
            let name = vec![b'a' + self.random.u8(..6); self.random.usize(1..200)];
            let name = name[..1.max(name.len() / 40 * 40)].to_vec();
            match self.random.u32(..8) {
                0..3 => {
                    self.next += 1;
                    let inode = self.next;
                    let times = [inode; 3];
                    let mode = 0o100_644;
                    let new =
                        Record::Inode { number: inode, mode, user: 0, group: 0, device: 0, times };
                    records.push(new);
                    records.push(Record::Name { directory: ROOT, name, inode });
                }
                3 | 4 if number != ROOT => {
                    let (page, count) = (self.random.u64(..4), self.random.u64(1..3));
                    let size = (page + count) * BLOCK_BYTES as u64;
                    let before = image.file(number).map_or(0, |file| file.size);
                    records.push(Record::Size { number, bytes: size.max(before) });
                    pages.extend((page..page + count).map(|page| (number, page)));
                }
                5 if number != ROOT => records.push(Record::Size { number, bytes: 5000 }),
                6 => {
                    let old = image.names_in(ROOT).next().map(|(old, inode)| (old.to_vec(), inode));
                    if let Some((old, inode)) = old.filter(|(old, _)| *old != name) {
                        records.push(Record::NoName { directory: ROOT, name: old });
                        records.push(Record::Name { directory: ROOT, name, inode });
                    }
                }
                _ => records.push(Record::NoName { directory: ROOT, name }),
            }
        }
        pages.sort_unstable();
        pages.dedup();
        // Inodes that a name in the same batch has replaced are not written any more.
        (records, pages)
    }
}

/// The model after a batch. Its blocks are numbers that no code reads.
fn after(image: &Image, records: &[Record], pages: &[(u64, u64)]) -> Image {
    let mut records = records.to_vec();
    for (number, page) in pages {
        records.push(Record::Pages { number: *number, page: *page, block: 0, count: 1 });
    }
    let mut image = image.clone();
    image.apply(&records);
    image
}

fn crashes(seed: u64, batches: usize, lies: bool) -> u64 {
    let now = MemoryDisk::new(BLOCKS);
    let cut = Cut {
        durable: now.clone(),
        unflushed: Vec::new(),
        random: fastrand::Rng::with_seed(seed),
        prefixes: vec![Image::default()],
        must: 0,
        states: 0,
        lies,
    };
    // Until there is a file system, there is nothing to recover.
    let formatted = Disk::format(now).unwrap().into_device();
    let shared = Rc::new(RefCell::new(Cut { durable: formatted.clone(), ..cut }));
    let device = CutDisk { now: formatted, shared: Rc::clone(&shared) };
    let mut disk = Disk::open(device).unwrap();
    let mut maker = Batches { random: fastrand::Rng::with_seed(seed), next: 1 };
    for _ in 0..batches {
        let model = shared.borrow().prefixes.last().unwrap().clone();
        let (records, pages) = maker.next(&model);
        let next = after(&model, &records, &pages);
        let data: Vec<_> = pages.iter().map(|(number, page)| page_of(*number, *page)).collect();
        let with_data: Vec<_> = pages
            .iter()
            .zip(&data)
            .map(|((number, page), data)| Page { number: *number, page: *page, data })
            .collect();
        shared.borrow_mut().prefixes.push(next);
        match disk.commit(records, &with_data) {
            Ok(()) => {
                let mut cut = shared.borrow_mut();
                cut.must = cut.prefixes.len() - 1;
                cut.look(4);
            }
            Err(Error::Full) => _ = shared.borrow_mut().prefixes.pop(),
            Err(error) => panic!("{error}"),
        }
        // Recently enough for any that may still be found.
        let mut cut = shared.borrow_mut();
        let old = cut.must.saturating_sub(1);
        cut.prefixes.drain(..old);
        cut.must -= old;
    }
    disk.check().unwrap();
    shared.borrow().states
}

#[test]
fn every_crash_leaves_a_prefix() {
    let states: u64 = (0..4).map(|seed| crashes(seed, 30, false)).sum();
    assert!(states > 2_000, "{states}");
}

/// This shows that the test finds a missing flush.
#[test]
#[should_panic(expected = "is another's")]
fn a_disk_that_lies_about_flushes_is_noticed() {
    crashes(1, 30, true);
}

/// Runs for a minute: `cargo test -p khronos-disk -- --ignored --nocapture`.
#[test]
#[ignore = "a minute"]
fn ten_thousand_crashes_a_minute() {
    let start = std::time::Instant::now();
    let mut states = 0;
    for seed in 100.. {
        states += crashes(seed, 60, false);
        if start.elapsed().as_secs() >= 60 {
            break;
        }
    }
    println!("{states} crash states in {:?}, none wrong", start.elapsed());
    assert!(states >= 10_000, "{states} in a minute");
}
