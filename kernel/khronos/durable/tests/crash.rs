//! A tree on a disk that is cut off at every flush, and the recovered tree.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use khronos_disk::{BLOCK_BYTES, Block, Device, DeviceError, Disk, Error, MemoryDisk};
use khronos_durable::{recover, sync};
use khronos_fs::{At, Cx, Errno, Fs, Kind, Open, Options, Rename, Sync, Which};

const SECTOR: usize = 512;

/// A disk that records the possible states after a crash, several times before each flush.
struct CutDisk {
    now: MemoryDisk,
    durable: MemoryDisk,
    unflushed: Vec<(u64, Box<Block>)>,
    shared: Rc<RefCell<Cuts>>,
}

struct Cuts {
    random: fastrand::Rng,
    left: Vec<MemoryDisk>,
}

impl CutDisk {
    fn new(blocks: usize, seed: u64) -> (Self, Rc<RefCell<Cuts>>) {
        let now = Disk::format(MemoryDisk::new(blocks)).unwrap().into_device();
        let cuts = Cuts { random: fastrand::Rng::with_seed(seed), left: Vec::new() };
        let shared = Rc::new(RefCell::new(cuts));
        let (durable, unflushed) = (now.clone(), Vec::new());
        (Self { now, durable, unflushed, shared: Rc::clone(&shared) }, shared)
    }
}

impl Device for CutDisk {
    fn blocks(&self) -> u64 {
        self.now.blocks()
    }

    fn read(&self, block: u64, into: &mut Block) -> Result<(), DeviceError> {
        self.now.read(block, into)
    }

    fn write(&mut self, block: u64, data: &Block) -> Result<(), DeviceError> {
        self.unflushed.push((block, Box::new(*data)));
        self.now.write(block, data)
    }

    fn flush(&mut self) -> Result<(), DeviceError> {
        let mut cuts = self.shared.borrow_mut();
        for _ in 0..2 {
            let (mut left, share) = (self.durable.clone(), cuts.random.f64());
            for (block, data) in &self.unflushed {
                let mut bytes = Box::new([0; BLOCK_BYTES]);
                left.read(*block, &mut bytes)?;
                for (old, new) in bytes.chunks_mut(SECTOR).zip(data.chunks(SECTOR)) {
                    if cuts.random.f64() < share {
                        old.copy_from_slice(new);
                    }
                }
                left.write(*block, &bytes)?;
            }
            cuts.left.push(left);
        }
        self.durable = self.now.clone();
        self.unflushed.clear();
        Ok(())
    }
}

fn options(sync: Sync) -> Options {
    Options { chains: 2, records: true, ..Options::new(sync) }
}

/// A user's view of a tree: each path's kind, permissions, links and bytes, and which names belong
/// to one file.
type Picture = BTreeMap<String, (Kind, u32, u64, u64, Vec<u8>)>;

fn picture(cx: &mut Cx<'_>) -> Picture {
    let (mut picture, mut left) = (Picture::new(), vec![String::new()]);
    let mut first: BTreeMap<u64, u64> = BTreeMap::new();
    let root = cx.fs().root();
    while let Some(above) = left.pop() {
        let at =
            At { directory: root, path: if above.is_empty() { b"/" } else { above.as_bytes() } };
        let node = cx.resolve(at, false).unwrap();
        let mut names = Vec::new();
        cx.readdir(&node, 2, |entry| {
            names.push(String::from_utf8(entry.name.to_vec()).unwrap());
            true
        })
        .unwrap();
        cx.close(node);
        names.sort();
        for name in names {
            let path = format!("{above}/{name}");
            let at = At { directory: root, path: path.as_bytes() };
            let stat = cx.stat(at, false).unwrap();
            let mut bytes = vec![0; 1 << 16];
            let length = match stat.kind {
                Kind::File => {
                    let file = cx.resolve(at, false).unwrap();
                    let length = cx.read(&file, 0, &mut bytes).unwrap();
                    cx.close(file);
                    length
                }
                Kind::Symlink => cx.readlink(at, &mut bytes).unwrap(),
                _ => 0,
            };
            bytes.truncate(length);
            let order = first.len() as u64;
            let same = *first.entry(stat.number).or_insert(order);
            if stat.kind == Kind::Directory {
                left.push(path.clone());
            }
            picture.insert(path, (stat.kind, stat.mode, stat.links, same, bytes));
        }
    }
    picture
}

/// The tree on a disk. Checks that it is consistent, and the same when it is read a second time.
fn recovered(disk: MemoryDisk, by: Sync) -> Picture {
    let disk = Disk::open(disk).unwrap();
    disk.check().unwrap();
    let fs = Fs::new(options(by));
    let tree = RefCell::new(fs.context());
    let made = recover(&tree, &disk).unwrap();
    let mut cx = tree.into_inner();
    assert_eq!(cx.check_all().unwrap().inodes, made + 1);
    picture(&mut cx)
}

fn path(random: &mut fastrand::Rng) -> String {
    let depth = random.usize(1..=3);
    let names: Vec<_> = (0..depth).map(|_| ["a", "b", "c"][random.usize(..3)]).collect();
    names.join("/")
}

fn step(cx: &mut Cx<'_>, random: &mut fastrand::Rng) {
    let root = cx.fs().root();
    let (from, to) = (path(random), path(random));
    let [from, to] = [&from, &to].map(|path| At { directory: root, path: path.as_bytes() });
    let _: Result<(), Errno> = match random.u32(..12) {
        0 | 1 => cx.mkdir(from, 0o755),
        2..5 => cx.open(from, Open::CREATE, 0o644).map(|file| {
            let bytes = vec![random.u8(1..); random.usize(1..9000)];
            match random.u32(..4) {
                0 => _ = cx.truncate(&file, random.u64(..12_000)),
                1 => _ = cx.append(&file, &bytes),
                _ => _ = cx.write(&file, random.u64(..20_000), &bytes),
            }
            cx.close(file);
        }),
        5 => cx.unlink(from),
        6 => cx.rmdir(from),
        7 => cx.link(from, to, false),
        8 => cx.symlink(b"b", from),
        9 => cx.rename(from, to, Rename::Exchange),
        10 => cx.resolve(from, false).map(|node| {
            cx.chmod(&node, random.u32(..0o1000));
            cx.close(node);
        }),
        _ => cx.rename(from, to, Rename::Replace),
    };
}

fn one_thread(by: Sync, seed: u64) {
    let (device, cuts) = CutDisk::new(768, seed);
    let mut disk = Disk::open(device).unwrap();
    let fs = Fs::new(options(by));
    let (tree, mut random) = (RefCell::new(fs.context()), fastrand::Rng::with_seed(seed));
    let mut before = Picture::new();
    for _ in 0..20 {
        (0..random.usize(1..40)).for_each(|_| step(&mut tree.borrow_mut(), &mut random));
        let now = picture(&mut tree.borrow_mut());
        cuts.borrow_mut().left.clear();
        sync(&tree, &mut disk, Which::All).unwrap();
        for left in cuts.borrow_mut().left.drain(..) {
            let found = recovered(left, by);
            assert!(found == now || found == before, "{by}: neither the old tree nor the new one");
        }
        disk.check().unwrap();
        before = now;
    }
    let durable = disk.into_device().durable;
    assert_eq!(recovered(durable, by), before, "{by}: what a sync that returned has made durable");
}

#[test]
fn a_crash_leaves_the_tree_of_a_batch() {
    for by in Sync::ALL {
        one_thread(by, 1);
    }
}

/// Ends the threads when it is dropped.
struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Threads create and rename names while batches are made. In every recovered tree, each thread's
/// names are as of one moment. If a thread had seen a name of another thread, that name is there
/// whenever the thread's later ones are.
fn threads(by: Sync) {
    let (device, cuts) = CutDisk::new(1024, 7);
    let mut disk = Disk::open(device).unwrap();
    let fs = Fs::new(options(by));
    let (made, is_over) = (AtomicU64::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        for thread in 0..3 {
            let (fs, made, is_over) = (&fs, &made, &is_over);
            scope.spawn(move || {
                let mut cx = fs.context();
                let root = fs.root();
                let mut last = None;
                while !is_over.load(Ordering::Relaxed) {
                    // The number before has a name, or has had one, when the next number gets its
                    // own: a thread that draws waits for that. Acquire: partner of the Release
                    // below.
                    let number = made.load(Ordering::Acquire);
                    if number % 3 != thread {
                        std::thread::yield_now();
                        continue;
                    }
                    let new = format!("{thread}-{number}");
                    let at = At { directory: root, path: new.as_bytes() };
                    match &last {
                        None => {
                            let file = cx.open(at, Open::NEW, 0o644).unwrap();
                            cx.close(file);
                        }
                        Some(old) => {
                            let old: &String = old;
                            let from = At { directory: root, path: old.as_bytes() };
                            cx.rename(from, at, Rename::NoReplace).unwrap();
                        }
                    }
                    last = Some(new);
                    made.store(number + 1, Ordering::Release); // partner of the Acquires
                }
            });
        }
        // Also if an assertion fails.
        let _end = End(&is_over);
        let tree = RefCell::new(fs.context());
        let mut must = 0;
        for _ in 0..20 {
            while made.load(Ordering::Acquire) < must + 5 {
                std::thread::yield_now();
            }
            let least = made.load(Ordering::Acquire);
            sync(&tree, &mut disk, Which::All).unwrap();
            for left in cuts.borrow_mut().left.drain(..) {
                let numbers: Vec<u64> = recovered(left, by)
                    .keys()
                    .map(|name| name.split('-').nth(1).unwrap().parse().unwrap())
                    .collect();
                let (first, last) = (numbers.iter().min(), numbers.iter().max());
                let span = last.unwrap_or(&0) - first.unwrap_or(&0);
                // Three threads take turns: three numbers that follow each other.
                assert!(numbers.len() <= 3 && span <= 2, "{by}: of no moment: {numbers:?}");
                assert!(last.is_none_or(|last| last + 1 >= must), "{by}: {numbers:?} lacks {must}");
            }
            must = least;
        }
    });
    fs.context().check_all().unwrap();
    disk.check().unwrap();
}

#[test]
fn a_batch_is_the_tree_at_one_moment() {
    Sync::ALL.into_iter().for_each(threads);
}

#[test]
fn bytes_of_other_files_wait_for_their_own_sync() {
    let mut disk = Disk::format(MemoryDisk::new(256)).unwrap();
    let fs = Fs::new(options(Sync::MvRlu));
    let tree = RefCell::new(fs.context());
    let open = |name: &'static [u8]| {
        let at = At { directory: fs.root(), path: name };
        tree.borrow_mut().open(at, Open::CREATE, 0o644).unwrap()
    };
    let (one, two) = (open(b"one"), open(b"two"));
    for file in [&one, &two] {
        tree.borrow_mut().write(file, 0, &[7; 5000]).unwrap();
    }
    sync(&tree, &mut disk, Which::Files(&[&one])).unwrap();
    let found = recovered(disk.into_device(), Sync::MvRlu);
    assert_eq!(found["/one"].4, vec![7; 5000]);
    assert_eq!(found["/two"].4, b"");
    [one, two].into_iter().for_each(|file| tree.borrow_mut().close(file));
}

#[test]
fn a_file_that_was_cut_shows_no_old_bytes() {
    let mut disk = Disk::format(MemoryDisk::new(256)).unwrap();
    let fs = Fs::new(options(Sync::Rcu));
    let tree = RefCell::new(fs.context());
    let at = At { directory: fs.root(), path: b"file" };
    let file = tree.borrow_mut().open(at, Open::CREATE, 0o644).unwrap();
    tree.borrow_mut().write(&file, 0, &[7; 10_000]).unwrap();
    sync(&tree, &mut disk, Which::All).unwrap();
    tree.borrow_mut().truncate(&file, 10).unwrap();
    tree.borrow_mut().write(&file, 8192, &[9]).unwrap();
    sync(&tree, &mut disk, Which::Files(&[&file])).unwrap();
    tree.borrow_mut().close(file);
    let found = recovered(disk.into_device(), Sync::Rcu);
    let mut expected = vec![0; 8193];
    expected[..10].fill(7);
    expected[8192] = 9;
    assert_eq!(found["/file"].4, expected);
}

#[test]
fn a_full_disk_loses_nothing() {
    let mut disk = Disk::format(MemoryDisk::new(64)).unwrap();
    let fs = Fs::new(options(Sync::MvRlu));
    let tree = RefCell::new(fs.context());
    let at = |path: &'static [u8]| At { directory: fs.root(), path };
    let small = tree.borrow_mut().open(at(b"small"), Open::CREATE, 0o644).unwrap();
    tree.borrow_mut().write(&small, 0, b"small").unwrap();
    sync(&tree, &mut disk, Which::All).unwrap();
    let free = disk.free_blocks();
    let large = tree.borrow_mut().open(at(b"large"), Open::CREATE, 0o644).unwrap();
    let bytes = vec![1; usize::try_from(free + 1).unwrap() * BLOCK_BYTES];
    tree.borrow_mut().write(&large, 0, &bytes).unwrap();
    assert_eq!(sync(&tree, &mut disk, Which::Files(&[&large])), Err(Error::Full));
    assert_eq!(disk.free_blocks(), free, "blocks of a batch that was not written");
    assert_eq!(sync(&tree, &mut disk, Which::All), Err(Error::Full));
    disk.check().unwrap();
    // Names and other files still reach the disk, and with less to write everything is there.
    tree.borrow_mut().write(&small, 5, b"er").unwrap();
    assert_eq!(sync(&tree, &mut disk, Which::Files(&[&small])), Ok(()));
    tree.borrow_mut().truncate(&large, 3 * BLOCK_BYTES as u64).unwrap();
    assert_eq!(sync(&tree, &mut disk, Which::All), Ok(()));
    [small, large].into_iter().for_each(|file| tree.borrow_mut().close(file));
    let found = recovered(disk.into_device(), Sync::Rlu);
    assert_eq!(found["/small"].4, b"smaller");
    assert_eq!(found["/large"].4, vec![1; 3 * BLOCK_BYTES]);
}

/// New inodes get numbers after those on the disk.
#[test]
fn after_recovery_all_goes_on() {
    let (mut device, mut expected) = (MemoryDisk::new(512), Picture::new());
    device = Disk::format(device).unwrap().into_device();
    for (seed, by) in (0..).zip(Sync::ALL) {
        let mut disk = Disk::open(device).unwrap();
        let fs = Fs::new(options(by));
        let tree = RefCell::new(fs.context());
        recover(&tree, &disk).unwrap();
        assert_eq!(picture(&mut tree.borrow_mut()), expected);
        let mut random = fastrand::Rng::with_seed(seed);
        (0..200).for_each(|_| step(&mut tree.borrow_mut(), &mut random));
        sync(&tree, &mut disk, Which::All).unwrap();
        expected = picture(&mut tree.borrow_mut());
        device = disk.into_device();
    }
    assert_eq!(recovered(device, Sync::Lock), expected);
}

/// Fails from some write on.
struct Failing(MemoryDisk, Rc<RefCell<u32>>);

impl Device for Failing {
    fn blocks(&self) -> u64 {
        self.0.blocks()
    }

    fn read(&self, block: u64, into: &mut Block) -> Result<(), DeviceError> {
        self.0.read(block, into)
    }

    fn write(&mut self, block: u64, data: &Block) -> Result<(), DeviceError> {
        let mut left = self.1.borrow_mut();
        *left = left.checked_sub(1).ok_or(DeviceError)?;
        self.0.write(block, data)
    }

    fn flush(&mut self) -> Result<(), DeviceError> {
        Ok(())
    }
}

#[test]
fn after_a_failure_nothing_is_acknowledged() {
    let device = Disk::format(MemoryDisk::new(256)).unwrap().into_device();
    let left = Rc::new(RefCell::new(3));
    let mut disk = Disk::open(Failing(device, Rc::clone(&left))).unwrap();
    let fs = Fs::new(options(Sync::MvRlu));
    let tree = RefCell::new(fs.context());
    let at = At { directory: fs.root(), path: b"file" };
    let file = tree.borrow_mut().open(at, Open::CREATE, 0o644).unwrap();
    tree.borrow_mut().write(&file, 0, b"first").unwrap();
    assert_eq!(sync(&tree, &mut disk, Which::All), Ok(()));
    tree.borrow_mut().write(&file, 0, &[2; 3 * BLOCK_BYTES]).unwrap();
    assert_eq!(sync(&tree, &mut disk, Which::Files(&[&file])), Err(Error::Device));
    *left.borrow_mut() = 100;
    // It works again; but a caller that got an error does not get a success for data that may be
    // lost.
    assert_eq!(sync(&tree, &mut disk, Which::Files(&[&file])), Err(Error::Device));
    assert_eq!(sync(&tree, &mut disk, Which::All), Err(Error::Device));
    tree.borrow_mut().close(file);
    let found = recovered(disk.into_device().0, Sync::MvRlu);
    assert_eq!(found["/file"].4, b"first");
}
