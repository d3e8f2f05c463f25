//! Where threads wait: the calls of sampled waits, counted by class of lock and place.

use core::sync::atomic::Ordering;

use manycore_stats::{Mapping, SITES, Site};

use super::index::{Index, key};
use super::room::{self, Part};

/// The sites' numbers.
static NUMBERS: Index<{ 2 * SITES }> = Index::new();

// Relaxed throughout, unless noted: counters are independent of each other, and the number of sites
// publishes the counted places.

/// Counts a wait by the calls of this stack, for a lock of the class with this record. The wait
/// took `ticks` ticks.
pub fn count(mapping: &Mapping, class: u32, stack: u32, ticks: u64) {
    let key = key([class.into(), stack.into()]);
    // Sites without room are mostly the rare ones, since the frequent ones came first.
    let number = NUMBERS.number(key, || append(mapping, class, stack)).unwrap_or(0);
    let site = &mapping.sites[number as usize];
    site.waits.fetch_add(1, Ordering::Relaxed);
    site.wait.fetch_add(ticks, Ordering::Relaxed);
}

/// Adds a site, if there is room. One at a time: the caller has the index locked.
fn append(mapping: &Mapping, class: u32, stack: u32) -> Option<u32> {
    let number = mapping.header.sites.load(Ordering::Relaxed);
    let site = mapping.sites.get(number as usize)?;
    if !room::has(mapping, Part::Sites, number as usize + 1) {
        return None;
    }
    fill_in(site, class, stack);
    // Release: partner of the command's Acquire; a reader that sees the number sees the site's
    // data.
    mapping.header.sites.store(number + 1, Ordering::Release);
    Some(number)
}

fn fill_in(site: &Site, class: u32, stack: u32) {
    site.record.store(class, Ordering::Relaxed);
    site.stack.store(stack, Ordering::Relaxed);
}

/// Called in the child of a fork: copies the places without their waits to its own mapping.
pub fn forked(old: &Mapping, new: &Mapping) {
    NUMBERS.forked();
    // Acquire: partner of the Release in `append`. Another thread of the parent may have appended
    // more by now.
    let kept = old.header.sites.load(Ordering::Acquire);
    let kept = kept.min(room::capacity(Part::Sites) as u32);
    for (from, to) in old.sites.iter().zip(new.sites.iter()).take(kept as usize) {
        fill_in(to, from.record.load(Ordering::Relaxed), from.stack.load(Ordering::Relaxed));
    }
    // Release: partner of the command's Acquire, as in `append`.
    new.header.sites.store(kept, Ordering::Release);
}
