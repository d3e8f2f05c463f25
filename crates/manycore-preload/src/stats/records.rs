//! Records: giving objects their numbers, and reusing a number after its object is gone.

use core::sync::atomic::{AtomicU32, Ordering};

use manycore::lock::{Futex, PlainLock};
use manycore_stats::{
    CROWD, Distributions, HISTOGRAMS, INITIALISED, Kind, Mapping, RECORDS, RECORDS_OWN, Record,
};

use super::index::{Index, key};
use super::room::{self, Part};
use super::{Object, modules, stacks};

/// Protects the distribution of records. Held for some microseconds at an object's first use and at
/// its end.
static REGISTRY: Futex = Futex::new();

/// The record of the first object of each class. A class is all objects of one kind that were
/// created by the same calls; an object in a variable is a class of its own.
static CLASSES: Index<{ 2 * RECORDS }> = Index::new();

/// The record of the first object of its class, for each record.
static CLASS: [AtomicU32; RECORDS] = [const { AtomicU32::new(0) }; RECORDS];

/// The latest retired record of each class, by the record of its first object; 0 for none.
static RETIRED: [AtomicU32; RECORDS] = [const { AtomicU32::new(0) }; RECORDS];

/// The retired record before each one, of the same class.
static RETIRED_BEFORE: [AtomicU32; RECORDS] = [const { AtomicU32::new(0) }; RECORDS];

/// A flag in an object before its first use: the number is that of its initialisation's stack, not
/// of its record.
const NOTED: u32 = INITIALISED;

// Relaxed throughout, unless noted: `REGISTRY` orders all accesses to `CLASS`, `RETIRED`,
// `RETIRED_BEFORE` and the numbers of the header; an object's own record is read by threads that
// use the object.

/// The number of objects without a record: it is beyond all records, and stands for the catch-all.
const REST: u32 = RECORDS as u32;

/// The record with this number; record 0 if there is none.
pub fn get(mapping: &Mapping, number: u32) -> &Record {
    // A number may be another process' number, in memory that both share.
    let is_there = (number as usize) < room::capacity(Part::Records);
    &mapping.records[if is_there { number as usize } else { 0 }]
}

/// Whether a number is that of a record other than the catch-all.
pub fn is_own(number: u32) -> bool {
    number != 0 && number < REST
}

/// The record of the first object of the class to which a record belongs.
pub fn class(number: u32) -> u32 {
    CLASS.get(number as usize).map_or(0, |class| class.load(Ordering::Relaxed))
}

/// Notes the stack of an object's initialisation. The object's earlier identity is lost.
pub fn initialised(mapping: &Mapping, record: &AtomicU32, caller: usize) {
    let stack = stacks::of_lock(mapping, caller);
    let noted = if stack == 0 { 0 } else { NOTED | stack };
    record.store(noted, Ordering::Relaxed);
}

/// The number of the object's record, which it is given now if it has none.
pub fn of(mapping: &Mapping, object: &Object) -> u32 {
    match object.record.load(Ordering::Relaxed) {
        0 => give(mapping, object, stacks::of_lock(mapping, object.caller)),
        noted if noted & NOTED != 0 => give(mapping, object, noted),
        number => number,
    }
}

/// Gives a record to the object, which was created by this stack.
#[cold]
fn give(mapping: &Mapping, object: &Object, stack: u32) -> u32 {
    let address = object.address as u64;
    let is_variable = modules::contain(mapping, address);
    if is_variable {
        modules::note(mapping, &[address]);
    }
    let salt = modules::salt(mapping, &[address]);
    REGISTRY.acquire();
    let mut number = object.record.load(Ordering::Relaxed);
    if number == 0 || number & NOTED != 0 {
        let new = |most| fresh(mapping, object, stack, most);
        let kind = object.kind as u64;
        let of_variable = is_variable
            .then(|| CLASSES.number(key([kind, address, salt, 1]), || new(RECORDS_OWN)))
            .flatten();
        number = of_variable.unwrap_or_else(|| {
            let class = CLASSES.number(key([kind, stack.into(), 0]), || new(RECORDS));
            let own = |class| unretire(class).or_else(|| new(RECORDS_OWN)).unwrap_or(class);
            class.map_or(REST, |class| {
                let is_free = get(mapping, class).objects.load(Ordering::Relaxed) == 0;
                let number = if is_free { class } else { own(class) };
                CLASS[number as usize].store(class, Ordering::Relaxed);
                number
            })
        });
        if let Some(number) = of_variable {
            CLASS[number as usize].store(number, Ordering::Relaxed);
        }
        if number == REST {
            mapping.header.unrecorded.fetch_add(1, Ordering::Relaxed);
        } else {
            join(get(mapping, number), address, of_variable.is_some());
        }
        object.record.store(number, Ordering::Relaxed);
    }
    // SAFETY: this function has acquired the lock above, and has not released it since.
    unsafe { REGISTRY.release() };
    number
}

/// Notes that the record is an object's, too.
fn join(record: &Record, address: u64, is_variable: bool) {
    let live = record.live.load(Ordering::Relaxed);
    let is_shared = live & !CROWD != 0;
    if is_shared && is_variable {
        // It is the same object: the program initialised it again without destroying it.
        return;
    }
    let crowd = if is_shared { CROWD } else { live & CROWD };
    record.live.store(((live & !CROWD) + 1) | crowd, Ordering::Relaxed);
    record.objects.fetch_add(1, Ordering::Relaxed);
    record.address.store(if crowd == 0 { address } else { 0 }, Ordering::Relaxed);
}

/// An unused record, unless there are already `most` of them.
fn fresh(mapping: &Mapping, object: &Object, stack: u32, most: usize) -> Option<u32> {
    let number = mapping.header.records.load(Ordering::Relaxed);
    if number as usize >= most || !room::has(mapping, Part::Records, number as usize + 1) {
        return None;
    }
    let record = get(mapping, number);
    record.stack.store(stack, Ordering::Relaxed);
    record.epoch.store(modules::epoch(), Ordering::Relaxed);
    // Release: partner of the command's Acquire; a thread that sees the kind sees the stack.
    record.kind.store(object.kind as u32, Ordering::Release);
    mapping.header.records.store(number + 1, Ordering::Relaxed);
    Some(number)
}

/// A record of the class whose object no longer exists.
fn unretire(class: u32) -> Option<u32> {
    let latest = &RETIRED[class as usize];
    let number = latest.load(Ordering::Relaxed);
    if number == 0 {
        return None;
    }
    latest.store(RETIRED_BEFORE[number as usize].load(Ordering::Relaxed), Ordering::Relaxed);
    Some(number)
}

/// Retires a number if its last object is gone: then another object may get it.
pub fn retire(mapping: &Mapping, number: u32) {
    if number == 0 || number as usize >= RECORDS {
        return;
    }
    REGISTRY.acquire();
    let record = get(mapping, number);
    let live = record.live.load(Ordering::Relaxed);
    if live & !CROWD != 0 {
        record.live.store(live - 1, Ordering::Relaxed);
        if live & !CROWD == 1 {
            let latest = &RETIRED[class(number) as usize];
            RETIRED_BEFORE[number as usize]
                .store(latest.swap(number, Ordering::Relaxed), Ordering::Relaxed);
        }
    }
    // SAFETY: this function has acquired the lock above, and has not released it since.
    unsafe { REGISTRY.release() };
}

/// The record's distributions. If it has none, it gets them now.
pub fn distributions<'a>(mapping: &'a Mapping, record: &Record) -> &'a Distributions {
    let mut number = record.distributions.load(Ordering::Relaxed);
    if number == 0 && record.kind.load(Ordering::Relaxed) != Kind::None as u32 {
        REGISTRY.acquire();
        number = record.distributions.load(Ordering::Relaxed);
        let next = mapping.header.distributions.load(Ordering::Relaxed);
        if number == 0
            && (next as usize) < HISTOGRAMS
            && room::has(mapping, Part::Distributions, next as usize + 1)
        {
            mapping.header.distributions.store(next + 1, Ordering::Relaxed);
            record.distributions.store(next, Ordering::Relaxed);
            number = next;
        }
        // SAFETY: this function has acquired the lock above, and has not released it since.
        unsafe { REGISTRY.release() };
    }
    &mapping.distributions[number as usize % HISTOGRAMS]
}

/// Called in the child of a fork, where no other thread exists that could hold the registry.
pub fn forked() {
    CLASSES.forked();
    crate::own_lock::set_free(&REGISTRY);
}
