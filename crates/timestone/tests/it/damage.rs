//! Bits that have changed, and files that do not belong together: the right state or an error,
//! never another state.

use fastrand::Rng;
use timestone::Error;
use timestone::device::Simulated;

use crate::engine::{Engine, recover};

/// A store with an image that was written beside frames, and more frames, and the state before its
/// last frame.
fn store(seed: u64) -> (Simulated, Engine, u64) {
    let mut rng = Rng::with_seed(seed);
    let disk = Simulated::new();
    let mut engine = Engine::open(&disk).expect("a new store");
    for _ in 0..3 {
        engine.transact(&mut rng);
        engine.flush().expect("the disk is sound");
        engine.acknowledge(&disk);
    }
    engine.image_beside_frames(&disk, &mut rng).expect("the disk is sound");
    let mut before_last = 0;
    for _ in 0..2 {
        before_last = engine.promised(usize::MAX);
        engine.transact(&mut rng);
        engine.flush().expect("the disk is sound");
        engine.acknowledge(&disk);
    }
    (disk.survivor(), engine, before_last)
}

const FILES: [&str; 4] = ["store", "journal", "image.0", "image.1"];

/// Damage to the last acknowledged commit may be mistaken for a torn frame; no other damage may be.
fn judge(disk: &Simulated, engine: &Engine, before_last: u64, what: &str) -> bool {
    match recover(disk) {
        Ok((recovered, objects)) => {
            assert!(recovered.horizon >= before_last, "{what}: {}", recovered.horizon);
            engine.judge(&recovered, &objects, before_last);
            true
        }
        Err(Error::Corrupted { .. } | Error::Version { .. }) => false,
        Err(other) => panic!("{what}: {other}"),
    }
}

#[test]
fn every_byte_that_changes_is_noticed_or_harmless() {
    let (disk, engine, before_last) = store(1);
    let (mut harmless, mut noticed) = (0, 0);
    for file in FILES {
        let length = disk.tamper(file, |bytes| bytes.len()).expect("all files are there");
        for at in 0..length {
            disk.tamper(file, |bytes| bytes[at] ^= 0x10);
            let right = judge(&disk, &engine, before_last, &format!("byte {at} of {file}"));
            *(if right { &mut harmless } else { &mut noticed }) += 1;
            disk.tamper(file, |bytes| bytes[at] ^= 0x10);
        }
    }
    assert!(harmless > 1000 && noticed > 1000, "{harmless} harmless, {noticed} noticed");
}

#[test]
fn damage_to_one_superblock_is_harmless_and_to_both_is_noticed() {
    let (disk, engine, _) = store(2);
    let whole = engine.promised(usize::MAX);
    for at in [0, 4096] {
        disk.tamper("store", |bytes| bytes[at + 57] ^= 1);
        let (recovered, objects) = recover(&disk).expect("the other copy is whole");
        engine.judge(&recovered, &objects, whole);
        disk.tamper("store", |bytes| bytes[at + 57] ^= 1);
    }
    disk.tamper("store", |bytes| {
        (bytes[57], bytes[4096 + 57]) = (bytes[57] ^ 1, bytes[4096 + 57] ^ 1)
    });
    let error = recover(&disk).err().expect("no superblock").to_string();
    assert!(error.contains("both copies of the superblock"), "{error}");
}

#[test]
fn files_of_another_store_are_refused() {
    for file in FILES {
        let (disk, engine, before_last) = store(3);
        let (other, ..) = store(4);
        let foreign = other.tamper(file, |bytes| bytes.clone()).expect("all files are there");
        disk.tamper(file, |bytes| *bytes = foreign);
        let is_used = judge(&disk, &engine, before_last, file);
        // One of the images does not count.
        assert!(!is_used || file.starts_with("image"), "{file} of another store");
    }
}

#[test]
fn files_that_are_cut_off_are_refused_and_longer_ones_are_not() {
    for file in FILES {
        let (disk, engine, before_last) = store(5);
        let length = disk.tamper(file, |bytes| bytes.len()).expect("all files are there");
        for part in (0..length).step_by(512) {
            let whole = disk.tamper(file, |bytes| bytes.split_off(part)).expect("a file");
            judge(&disk, &engine, before_last, &format!("{file} cut off at {part}"));
            disk.tamper(file, |bytes| bytes.extend_from_slice(&whole));
        }
        let mut rng = Rng::with_seed(6);
        disk.tamper(file, |bytes| bytes.extend((0..10_000).map(|_| rng.u8(..))));
        let (recovered, objects) = recover(&disk).expect("what is behind the end is not read");
        engine.judge(&recovered, &objects, engine.promised(usize::MAX));
    }
}

#[test]
fn the_first_frame_that_is_damaged_is_no_torn_tail() {
    let (disk, engine, _) = store(7);
    let start = engine.volume.images.superblock().start;
    disk.tamper("journal", |bytes| bytes[4096 + start.position as usize + 70] ^= 1);
    let error = recover(&disk).err().expect("a frame is damaged").to_string();
    let (first, next) = (start.link.sequence, start.link.sequence + 1);
    let said = format!("frame {first} is not here, and frame {next} is behind");
    assert!(error.contains(&said), "{error}");
}

#[test]
fn a_journal_that_ends_before_its_image_does_is_refused() {
    let mut rng = Rng::with_seed(11);
    let disk = Simulated::new();
    let mut engine = Engine::open(&disk).expect("a new store");
    engine.transact(&mut rng);
    engine.flush().expect("the disk is sound");
    let mut pieces = 0;
    let beside = |engine: &mut Engine| {
        pieces += 1;
        if pieces != 2 {
            return Ok(());
        }
        engine.transact(&mut rng);
        engine.append()
    };
    engine.image_in_pieces(2, false, beside).expect("the disk is sound");
    assert!(recover(&disk).is_ok());
    // The last frame: without the image, it would be taken for a torn one.
    let start = engine.volume.images.superblock().start;
    disk.tamper("journal", |bytes| bytes[4096 + start.position as usize + 70] ^= 1);
    let error = recover(&disk).err().expect("the image is of several moments").to_string();
    assert!(error.contains("the image needs it up to"), "{error}");
}

#[test]
fn an_old_superblock_of_another_life_is_not_taken_for_the_present_one() {
    let mut rng = Rng::with_seed(8);
    let disk = Simulated::new();
    let mut engine = Engine::open(&disk).expect("a new store");
    let old = disk.tamper("store", |bytes| bytes.clone()).expect("a file");
    engine.reopen(&disk).expect("the disk is sound");
    engine.transact(&mut rng);
    engine.flush().expect("the disk is sound");
    disk.tamper("store", |bytes| *bytes = old);
    let error = recover(&disk).err().expect("an old superblock").to_string();
    assert!(error.contains("is lost"), "{error}");
}

/// An old image and all frames since are the right state. When frames were written over, they are
/// not all there.
#[test]
fn an_old_superblock_is_good_for_as_long_as_its_frames_are_there() {
    let mut rng = Rng::with_seed(9);
    let disk = Simulated::new();
    let mut engine = Engine::open(&disk).expect("a new store");
    let superblock = || disk.tamper("store", |bytes| bytes.clone()).expect("a file");
    let old = superblock();
    let (mut right, mut refused) = (0, 0);
    for _ in 0..20 {
        engine.transact(&mut rng);
        engine.flush().expect("the disk is sound");
        engine.acknowledge(&disk);
        if engine.volume.journal.used() < 2 * 4096 {
            continue;
        }
        engine.image(false).expect("the disk is sound");
        let present = superblock();
        disk.tamper("store", |bytes| bytes.clone_from(&old));
        match recover(&disk) {
            Ok((recovered, objects)) => {
                engine.judge(&recovered, &objects, engine.promised(usize::MAX));
                right += 1;
            }
            Err(Error::Corrupted { .. }) => refused += 1,
            Err(other) => panic!("{other}"),
        }
        disk.tamper("store", |bytes| bytes.clone_from(&present));
    }
    assert!(right > 0 && refused > 0, "{right} right, {refused} refused");
}
