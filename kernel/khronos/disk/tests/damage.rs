//! Disks whose bytes differ from the written ones, and disks that fail.

use khronos_disk::{
    BLOCK_BYTES, Block, Device, DeviceError, Disk, Error, MemoryDisk, ROOT, Record,
};
use proptest::prelude::*;

fn name(letter: u8, inode: u64) -> [Record; 2] {
    [
        Record::Inode {
            number: inode,
            mode: 0o100_644,
            user: 1,
            group: 2,
            device: 0,
            times: [3; 3],
        },
        Record::Name { directory: ROOT, name: vec![letter], inode },
    ]
}

fn filled() -> MemoryDisk {
    let mut disk = Disk::format(MemoryDisk::new(64)).unwrap();
    for number in 0..12 {
        disk.commit(name(b'a' + number, 2 + u64::from(number)).to_vec(), &[]).unwrap();
    }
    disk.into_device()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Refused, or a prefix; never a panic.
    #[test]
    fn bits_that_are_flipped_are_noticed(
        flips in prop::collection::vec((0_u64..64, 0..BLOCK_BYTES, 0_u8..8), 1..20),
    ) {
        let mut disk = filled();
        for (block, byte, bit) in flips {
            let mut bytes = [0; BLOCK_BYTES];
            disk.read(block, &mut bytes).unwrap();
            bytes[byte] ^= 1 << bit;
            disk.write(block, &bytes).unwrap();
        }
        match Disk::open(disk) {
            Err(error) => prop_assert_eq!(error, Error::NotFormatted),
            Ok(disk) => {
                prop_assert_eq!(disk.check(), Ok(()));
                let names = disk.image().names_in(ROOT).count();
                let is_prefix = (0..names).all(|n| disk.image().find(ROOT, &[b'a' + n as u8]).is_some());
                prop_assert!(is_prefix);
            }
        }
    }

    #[test]
    fn any_bytes_are_no_file_system_or_one(seed in any::<u64>()) {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut disk = MemoryDisk::new(32);
        for block in 0..32 {
            let mut bytes = [0; BLOCK_BYTES];
            random.fill(&mut bytes);
            disk.write(block, &bytes).unwrap();
        }
        prop_assert_eq!(Disk::open(disk).map(|_| ()), Err(Error::NotFormatted));
    }
}

/// Fails from some write on.
struct Failing(MemoryDisk, u32);

impl Device for Failing {
    fn blocks(&self) -> u64 {
        self.0.blocks()
    }

    fn read(&self, block: u64, into: &mut Block) -> Result<(), DeviceError> {
        self.0.read(block, into)
    }

    fn write(&mut self, block: u64, data: &Block) -> Result<(), DeviceError> {
        self.1 = self.1.checked_sub(1).ok_or(DeviceError)?;
        self.0.write(block, data)
    }

    fn flush(&mut self) -> Result<(), DeviceError> {
        Ok(())
    }
}

#[test]
fn after_a_failure_nothing_is_promised() {
    let mut disk = Disk::open(Failing(filled(), 1)).unwrap();
    assert_eq!(disk.commit(name(b'x', 50).to_vec(), &[]), Ok(()));
    assert_eq!(disk.commit(name(b'y', 51).to_vec(), &[]), Err(Error::Device));
    assert_eq!(disk.commit(name(b'z', 52).to_vec(), &[]), Err(Error::Device));
    let again = Disk::open(disk.into_device().0).unwrap();
    assert_eq!(again.image().find(ROOT, b"x"), Some(50));
    assert_eq!(again.image().find(ROOT, b"z"), None);
}

#[test]
fn a_full_disk_says_so_and_goes_on() {
    let mut disk = Disk::format(MemoryDisk::new(32)).unwrap();
    disk.commit(name(b'a', 2).to_vec(), &[]).unwrap();
    let data = Box::new([7; BLOCK_BYTES]);
    let free = disk.free_blocks();
    let pages = |count: u64| -> Vec<_> {
        (0..count).map(|page| khronos_disk::Page { number: 2, page, data: &data }).collect()
    };
    assert_eq!(disk.commit(Vec::new(), &pages(free + 1)), Err(Error::Full));
    assert_eq!(disk.commit(Vec::new(), &pages(free)), Ok(()));
    assert_eq!(disk.commit(Vec::new(), &pages(1)), Err(Error::Full));
    disk.commit(vec![Record::Size { number: 2, bytes: 0 }], &[]).unwrap();
    assert_eq!(disk.free_blocks(), free);
    assert_eq!(disk.commit(Vec::new(), &pages(1)), Ok(()));
    disk.check().unwrap();
}
