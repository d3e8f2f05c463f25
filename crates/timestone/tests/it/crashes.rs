//! Power cuts at every call, with any part of the unflushed data; and again while the store is
//! opened.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use fastrand::Rng;
use timestone::device::{Cut, Device, Simulated, Storage};
use timestone::volume::{Begin, Volume};

use crate::engine::{Engine, Objects, recover};

/// What a test has come to.
#[derive(Default)]
struct Count {
    images: u64,
    reopened: u64,
}

/// Checks every state that a cut may leave; opens some of them for writing, with a crash in that,
/// too.
fn check(cut: &Cut, engine: &Engine, promised: u64, rng: &mut Rng, plan: Plan, count: &mut Count) {
    let mut choose = Rng::with_seed(rng.u64(..));
    cut.images(rng, plan.most, plan.garbage, |disk| {
        count.images += 1;
        let before = disk.calls();
        let (recovered, objects) = recover(&disk).expect("a crash is no damage");
        engine.judge(&recovered, &objects, promised);
        let horizon = recovered.horizon;
        if plan.depth == 0 || choose.u32(..plan.one_in) != 0 {
            return;
        }
        count.reopened += 1;
        let mut volume = recovered.start(&mut objects.entries()).expect("the disk is sound");
        let deeper = Plan { depth: plan.depth - 1, most: 4, one_in: 4, ..plan };
        let opened = disk.calls();
        write_whole(&mut volume, &objects, horizon).expect("the disk is sound");
        disk.recording().cuts(before, |calls, cut| {
            // Once the store was opened, its contents at that time are not lost any more.
            let promised = if calls >= opened { horizon } else { promised };
            check(cut, engine, promised, &mut choose, deeper, count);
        });
    });
}

/// Closes a store with these objects.
fn write_whole(volume: &mut Volume, objects: &Objects, horizon: u64) -> timestone::Result<()> {
    let begin = Begin::at(&volume.journal, horizon);
    let mut image = volume.images.begin();
    image.push(horizon, objects.entries());
    volume.images.publish(image.finish()?, begin, horizon, true)
}

#[derive(Clone, Copy)]
struct Plan {
    /// At most this number of states at a cut.
    most: usize,
    garbage: bool,
    /// How many crashes follow each other, each while the store is opened after the one before.
    depth: u32,
    /// One in this number of states is opened for writing.
    one_in: u32,
}

fn explore(seeds: std::ops::Range<u64>, frames: usize, plan: Plan) -> Count {
    let mut count = Count::default();
    for seed in seeds {
        let mut rng = Rng::with_seed(seed);
        let disk = Simulated::new();
        let mut engine = Engine::open(&disk).expect("a new store");
        engine.run(&disk, &mut rng, frames);
        disk.recording().cuts(0, |calls, cut| {
            check(cut, &engine, engine.promised(calls), &mut rng, plan, &mut count);
        });
    }
    count
}

#[test]
fn a_cut_at_any_call_loses_nothing_that_was_acknowledged() {
    let plan = Plan { most: 1 << 12, garbage: false, depth: 0, one_in: 1 };
    let count = explore(0..2, 12, plan);
    assert!(count.images > 20_000, "{}", count.images);
}

#[test]
fn a_cut_may_leave_garbage_in_what_was_being_written() {
    let plan = Plan { most: 200, garbage: true, depth: 0, one_in: 1 };
    assert!(explore(100..104, 20, plan).images > 10_000);
}

#[test]
fn a_cut_while_the_store_is_opened_after_a_cut_loses_nothing_either() {
    let plan = Plan { most: 12, garbage: false, depth: 3, one_in: 16 };
    let count = explore(200..204, 8, plan);
    assert!(count.images > 10_000 && count.reopened > 200, "{} {}", count.images, count.reopened);
}

/// A disk that reports one file as flushed, and does nothing.
struct Careless {
    disk: Simulated,
    file: &'static str,
}

struct Unflushed(Arc<dyn Device>);

impl Storage for Careless {
    fn open(&self, name: &'static str) -> io::Result<Arc<dyn Device>> {
        let device = self.disk.open(name)?;
        Ok(if name == self.file { Arc::new(Unflushed(device)) } else { device })
    }

    fn flush_names(&self) -> io::Result<()> {
        if self.file.is_empty() { Ok(()) } else { self.disk.flush_names() }
    }
}

impl Device for Unflushed {
    fn size(&self) -> io::Result<u64> {
        self.0.size()
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.0.read_at(offset, into)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        self.0.write_at(offset, bytes)
    }

    fn flush(&self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_flush_that_is_left_out_is_noticed() {
    for file in ["store", "journal", "image.0", "image.1", ""] {
        let mut rng = Rng::with_seed(300);
        let disk = Careless { disk: Simulated::new(), file };
        let mut engine = Engine::open(&disk).expect("a new store");
        engine.run(&disk.disk, &mut rng, 20);
        let plan = Plan { most: 100, garbage: false, depth: 0, one_in: 1 };
        let explored = catch_unwind(AssertUnwindSafe(|| {
            disk.disk.recording().cuts(0, |calls, cut| {
                let promised = engine.promised(calls);
                check(cut, &engine, promised, &mut rng, plan, &mut Count::default());
            });
        }));
        assert!(explored.is_err(), "no thread flushes {file:?}, and no state is wrong");
    }
}

/// The engine's steps in a wrong order: tests of the tests.
#[test]
fn frames_that_are_written_over_too_early_are_noticed() {
    let explored = catch_unwind(AssertUnwindSafe(|| {
        for seed in 400..410 {
            let mut rng = Rng::with_seed(seed);
            let disk = Simulated::new();
            let mut engine = Engine::open(&disk).expect("a new store");
            engine.run(&disk, &mut rng, 4);
            let begin = Begin::at(&engine.volume.journal, 0);
            let early = |engine: &mut Engine| {
                // The superblock that needs the frames before still counts.
                engine.volume.journal.release(begin.mark);
                for _ in 0..3 {
                    engine.transact(&mut rng);
                    if engine.append().is_ok() {
                        engine.acknowledge(&disk);
                    }
                }
                Ok(())
            };
            engine.image_in_pieces(3, false, early).expect("the disk is sound");
            let plan = Plan { most: 100, garbage: false, depth: 0, one_in: 1 };
            let mut rng = Rng::with_seed(seed);
            disk.recording().cuts(0, |calls, cut| {
                let promised = engine.promised(calls);
                check(cut, &engine, promised, &mut rng, plan, &mut Count::default());
            });
        }
    }));
    assert!(explored.is_err(), "frames were written over that were needed, and no state is wrong");
}

/// Takes an image in pieces for one of a single moment, its begin; returns whether a check fails.
fn is_noticed(seed: u64) -> bool {
    let mut rng = Rng::with_seed(seed);
    let disk = Simulated::new();
    let mut engine = Engine::open(&disk).expect("a new store");
    engine.run(&disk, &mut rng, 4);
    engine.image(false).expect("the disk is sound");
    let begin = Begin::at(&engine.volume.journal, 0);
    let mut image = engine.volume.images.begin();
    for piece in 0..3 {
        let horizon = engine.volume.journal.horizon();
        let objects = engine.states[&horizon].entries();
        image.push(horizon, objects.filter(|entry| entry.place / 64 % 3 == piece));
        engine.transact(&mut rng);
        engine.append().expect("there is room");
        engine.acknowledge(&disk);
    }
    let image = image.finish().expect("the disk is sound");
    let sharp = begin.horizon;
    engine.volume.images.publish(image, begin, sharp, false).expect("the disk is sound");
    match recover(&disk) {
        Ok((recovered, objects)) => {
            engine.judge(&recovered, &objects, engine.promised(usize::MAX));
            false
        }
        Err(_) => true,
    }
}

#[test]
fn an_image_of_several_moments_that_is_taken_for_one_is_noticed() {
    // Not if nothing was made or has ended meanwhile: then the state is right.
    let noticed = (500..520).filter(|seed| is_noticed(*seed)).count();
    assert!(noticed > 5, "{noticed}");
}

/// The bar: 100,000 states a minute.
#[test]
fn a_hundred_thousand_states_take_less_than_a_minute() {
    let start = std::time::Instant::now();
    let plan = Plan { most: 256, garbage: false, depth: 0, one_in: 1 };
    let (mut images, mut seed) = (0, 1000);
    while images < 100_000 {
        images += explore(seed..seed + 1, 20, plan).images;
        seed += 1;
    }
    let elapsed = start.elapsed();
    println!("{images} states in {elapsed:?}");
    assert!(elapsed.as_secs() < 60 || cfg!(debug_assertions), "{images} states in {elapsed:?}");
}
