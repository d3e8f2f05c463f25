//! Where threads wait: the calls of sampled waits, counted by lock and place.
//!
//! A hash table in the mapping, without a lock: a place is taken by writing its key, and never given back.

use core::sync::atomic::Ordering;

use manycore_profile::layout::{Mapping, SITES, Site};

use super::sites::{self, Frames};

/// So many places from its own are looked at for a key. A table that is as full as that counts no new sites; those
/// that it has are the ones that came first, and so, mostly, the frequent ones.
const LOOKS: usize = 16;

// Relaxed throughout, unless noted: counters are independent of each other.

/// Counts a wait for the lock with this record, which took so many ticks.
pub fn count(mapping: &Mapping, record: u32, frames: &Frames, ticks: u64) {
    // Record 0 stands for all locks that found none.
    if record == 0 {
        return;
    }
    let key = key(record, frames);
    let places = (0..LOOKS).map(|look| &mapping.sites[(key as usize).wrapping_add(look) % SITES]);
    if let Some(site) = places.into_iter().find(|site| is_mine(site, key)) {
        if site.record.load(Ordering::Relaxed) == 0 {
            fill_in(site, record, frames);
            sites::note(mapping, frames);
        }
        site.waits.fetch_add(1, Ordering::Relaxed);
        site.wait.fetch_add(ticks, Ordering::Relaxed);
    }
}

/// Whether the place has this key, or gets it now.
fn is_mine(site: &Site, key: u64) -> bool {
    let taken = site.key.compare_exchange(0, key, Ordering::Relaxed, Ordering::Relaxed);
    taken.is_ok() || taken == Err(key)
}

/// Threads that do this at the same time write the same.
fn fill_in(site: &Site, record: u32, frames: &Frames) {
    for (place, frame) in site.frames.iter().zip(frames) {
        place.store(*frame, Ordering::Relaxed);
    }
    // Release: partner of the command's Acquire; whoever sees the record sees the frames.
    site.record.store(record, Ordering::Release);
}

/// Not 0. Two sites of one key would be counted as one: with 64 bits that does not happen.
fn key(record: u32, frames: &Frames) -> u64 {
    let mix =
        |hash: u64, word: u64| (hash ^ word).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29);
    frames.iter().fold(mix(1, record.into()), |hash, frame| mix(hash, *frame)).max(1)
}
