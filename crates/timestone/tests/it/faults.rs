//! Calls that fail: acknowledged commits are there, and the store goes on where it can.

use fastrand::Rng;
use timestone::Error;
use timestone::device::{Fault, Faulty, Simulated};

use crate::engine::{Engine, recover};

/// Checks what any crash leaves of the disk.
fn judge_cuts(disk: &Simulated, engine: &Engine, rng: &mut Rng) {
    disk.recording().cuts(0, |calls, cut| {
        cut.images(rng, 40, false, |left| {
            let (recovered, objects) = recover(&left).expect("a crash is no damage");
            engine.judge(&recovered, &objects, engine.promised(calls));
        });
    });
}

#[test]
fn after_a_failed_flush_nothing_is_acknowledged() {
    for nth in 0..12 {
        let mut rng = Rng::with_seed(nth);
        let disk = Faulty::new(Simulated::new());
        let mut engine = Engine::open(&disk).expect("a new store");
        disk.plan(nth as u32, Fault::Flush);
        for _ in 0..20 {
            engine.transact(&mut rng);
            match engine.flush() {
                Ok(()) => engine.acknowledge(disk.below()),
                Err(_) if disk.met() == 0 => panic!("an error without a fault"),
                // A failed image leaves the journal as it was.
                Err(_) if engine.volume.journal.check().is_ok() => {}
                Err(_) => break,
            }
        }
        assert_eq!(disk.met(), 1);
        if engine.volume.journal.check().is_err() {
            engine.transact(&mut rng);
            let refused = engine.flush();
            assert!(matches!(refused, Err(Error::Poisoned(_))), "{refused:?}");
        }
        judge_cuts(disk.below(), &engine, &mut rng);
    }
}

#[test]
fn a_write_that_fails_is_made_good_by_the_next() {
    for fault in [Fault::ShortWrite, Fault::WriteError] {
        for nth in 0..12 {
            let mut rng = Rng::with_seed(nth);
            let disk = Faulty::new(Simulated::new());
            let mut engine = Engine::open(&disk).expect("a new store");
            disk.plan(nth as u32, fault);
            for _ in 0..20 {
                engine.transact(&mut rng);
                if engine.flush().is_ok() {
                    engine.acknowledge(disk.below());
                }
                if engine.volume.journal.check().is_err() {
                    break;
                }
            }
            assert_eq!(disk.met(), 1);
            judge_cuts(disk.below(), &engine, &mut rng);
        }
    }
}

#[test]
fn a_full_disk_keeps_an_image_from_being_written_and_nothing_else() {
    let mut rng = Rng::with_seed(9);
    let disk = Faulty::new(Simulated::new());
    let mut engine = Engine::open(&disk).expect("a new store");
    disk.plan(0, Fault::Full);
    let full = loop {
        engine.transact(&mut rng);
        match engine.flush() {
            Ok(()) => engine.acknowledge(disk.below()),
            Err(error) => break error,
        }
    };
    assert!(matches!(full, Error::Full(_)), "{full}");
    // Still full, and then there is room: without opening the store again.
    assert!(engine.flush().is_err());
    disk.heal();
    engine.flush().expect("there is room again");
    engine.acknowledge(disk.below());
    engine.run(disk.below(), &mut rng, 5);
    judge_cuts(disk.below(), &engine, &mut rng);
}

/// Transactions, images beside them, and one call that fails at any place among them. Acknowledged
/// commits are there after any cut.
#[test]
fn a_call_that_fails_beside_an_image_costs_nothing_that_was_acknowledged() {
    let mut met = 0;
    for fault in [Fault::Flush, Fault::ShortWrite, Fault::WriteError, Fault::Full] {
        for nth in 0..30 {
            let mut rng = Rng::with_seed(nth);
            let disk = Faulty::new(Simulated::new());
            let mut engine = Engine::open(&disk).expect("a new store");
            disk.plan(nth as u32, fault);
            for _ in 0..6 {
                let frames = (0..3).try_for_each(|_| {
                    engine.transact(&mut rng);
                    engine.flush()?;
                    engine.acknowledge(disk.below());
                    Ok::<(), Error>(())
                });
                let image = engine.image_beside_frames(disk.below(), &mut rng);
                if frames.is_err() || image.is_err() {
                    assert_eq!(disk.met(), 1, "an error without a fault");
                    disk.heal();
                }
                if engine.volume.journal.check().is_err() {
                    break;
                }
            }
            met += disk.met();
            judge_cuts(disk.below(), &engine, &mut rng);
        }
    }
    assert!(met > 60, "{met}");
}
