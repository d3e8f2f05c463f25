//! Records: giving objects their numbers, and using a number again after its object is gone.

use core::sync::atomic::{AtomicU32, Ordering};

use manycore::lock::{Futex, PlainLock};
use manycore_profile::layout::{Distributions, HISTOGRAMS, Kind, Mapping, RECORDS, Record};

use super::sites::Frames;
use super::{Object, sites};

/// Protects the giving out of records. Held for some microseconds at an object's first use and at its end.
static REGISTRY: Futex = Futex::new();

const SITES: usize = 4_096;

/// The latest retired record of each hash of a first use's site; 0 for none.
static RETIRED: [AtomicU32; SITES] = [const { AtomicU32::new(0) }; SITES];

/// The retired record before each one, of the same hash.
static RETIRED_BEFORE: [AtomicU32; RECORDS] = [const { AtomicU32::new(0) }; RECORDS];

// Relaxed throughout, unless noted: `REGISTRY` orders all accesses to `RETIRED`, `RETIRED_BEFORE` and the numbers of
// the header.

/// The record of a number; the catch-all if the number is none.
pub fn get(mapping: &Mapping, number: u32) -> &Record {
    mapping.records.get(number as usize).unwrap_or(&mapping.records[0])
}

/// The number of the object's record, which it is given now if it has none.
pub fn of(mapping: &Mapping, object: &Object) -> u32 {
    match object.record.load(Ordering::Relaxed) {
        0 => give(mapping, object),
        number => number,
    }
}

#[cold]
fn give(mapping: &Mapping, object: &Object) -> u32 {
    // Without the lock: unwinding the stack takes time.
    let frames = sites::backtrace(object.caller);
    REGISTRY.acquire();
    let mut number = object.record.load(Ordering::Relaxed);
    if number == 0 {
        number = unretire(mapping, object).unwrap_or_else(|| fresh(mapping, object, &frames));
        let record = get(mapping, number);
        record.objects.fetch_add(1, Ordering::Relaxed);
        record.address.store(object.address as u64, Ordering::Relaxed);
        record.live.store(1, Ordering::Relaxed);
        object.record.store(number, Ordering::Relaxed);
    }
    // SAFETY: acquired above.
    unsafe { REGISTRY.release() };
    sites::note(mapping, &frames);
    number
}

/// A record that nobody has had; the catch-all when there is none left.
fn fresh(mapping: &Mapping, object: &Object, frames: &Frames) -> u32 {
    let number = mapping.header.records.load(Ordering::Relaxed);
    if number as usize == RECORDS {
        mapping.header.unrecorded.fetch_add(1, Ordering::Relaxed);
        return 0;
    }
    let record = get(mapping, number);
    for (place, frame) in record.frames.iter().zip(frames) {
        place.store(*frame, Ordering::Relaxed);
    }
    // Release: partner of the command's Acquire; whoever sees the kind sees the frames.
    record.kind.store(object.kind as u32, Ordering::Release);
    mapping.header.records.store(number + 1, Ordering::Relaxed);
    number
}

fn site(caller: u64) -> &'static AtomicU32 {
    &RETIRED[(caller.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 52) as usize % SITES]
}

/// The record of an object that is gone and was first used by the same caller.
fn unretire(mapping: &Mapping, object: &Object) -> Option<u32> {
    let site = site(object.caller as u64);
    let number = site.load(Ordering::Relaxed);
    let record = get(mapping, number);
    let same = record.kind.load(Ordering::Relaxed) == object.kind as u32
        && record.frames[0].load(Ordering::Relaxed) == object.caller as u64;
    if number == 0 || !same {
        return None;
    }
    site.store(RETIRED_BEFORE[number as usize].load(Ordering::Relaxed), Ordering::Relaxed);
    Some(number)
}

/// Lets another object have this number.
pub fn retire(mapping: &Mapping, number: u32) {
    if number == 0 || number as usize >= RECORDS {
        return;
    }
    REGISTRY.acquire();
    let record = get(mapping, number);
    if record.live.swap(0, Ordering::Relaxed) == 1 {
        let site = site(record.frames[0].load(Ordering::Relaxed));
        RETIRED_BEFORE[number as usize]
            .store(site.swap(number, Ordering::Relaxed), Ordering::Relaxed);
    }
    // SAFETY: acquired above.
    unsafe { REGISTRY.release() };
}

/// The record's distributions, which it is given now if it has none.
pub fn distributions<'a>(mapping: &'a Mapping, record: &Record) -> &'a Distributions {
    let mut number = record.distributions.load(Ordering::Relaxed);
    if number == 0 && record.kind.load(Ordering::Relaxed) != Kind::None as u32 {
        REGISTRY.acquire();
        number = record.distributions.load(Ordering::Relaxed);
        let next = mapping.header.distributions.load(Ordering::Relaxed);
        if number == 0 && (next as usize) < HISTOGRAMS {
            mapping.header.distributions.store(next + 1, Ordering::Relaxed);
            record.distributions.store(next, Ordering::Relaxed);
            number = next;
        }
        // SAFETY: acquired above.
        unsafe { REGISTRY.release() };
    }
    &mapping.distributions[number as usize % HISTOGRAMS]
}

/// In the child of a fork, no other thread is left that could hold the registry.
pub fn forked() {
    // Either it is free and is acquired here, or its holder is a thread of the parent.
    let _ = REGISTRY.try_acquire();
    // SAFETY: held, and not by any thread of this process.
    unsafe { REGISTRY.release() };
}
