//! The files without threads, in short: the tests of `timestone` have more of it, and no mistakes
//! planted.

use fastrand::Rng;
use timestone::Error;
use timestone::device::{Fault, Faulty, Simulated};

use crate::engine::{Engine, recover};

#[test]
fn a_cut_loses_nothing() {
    for seed in 0..2 {
        let mut rng = Rng::with_seed(seed);
        let disk = Simulated::new();
        let mut engine = Engine::open(&disk).expect("a new store");
        engine.run(&disk, &mut rng, 12);
        disk.recording().cuts(0, |calls, cut| {
            cut.images(&mut rng, 16, false, |left| {
                let (recovered, objects) = recover(&left).expect("a cut is no damage");
                engine.judge(&recovered, &objects, engine.promised(calls));
            });
        });
    }
}

#[test]
fn damage_is_no_cut() {
    let mut rng = Rng::with_seed(1);
    let disk = Simulated::new();
    let mut engine = Engine::open(&disk).expect("a new store");
    for _ in 0..3 {
        engine.transact(&mut rng);
        engine.flush().expect("the disk is sound");
    }
    let damaged = disk.survivor();
    // The first of three frames; two were written after its flush.
    damaged.tamper("journal", |bytes| bytes[4096 + 100] ^= 1);
    let refused = recover(&damaged).map(|(recovered, _)| recovered.horizon);
    assert!(matches!(refused, Err(Error::Corrupted { .. })), "it is taken for a cut: {refused:?}");
}

#[test]
fn a_flush_that_failed_is_the_last() {
    let disk = Faulty::new(Simulated::new());
    let mut engine = Engine::open(&disk).expect("a new store");
    disk.plan(0, Fault::Flush);
    let mut rng = Rng::with_seed(1);
    engine.transact(&mut rng);
    assert!(engine.flush().is_err() && disk.met() == 1);
    engine.transact(&mut rng);
    let refused = engine.flush();
    assert!(matches!(refused, Err(Error::Poisoned(_))), "it goes on: {refused:?}");
}
