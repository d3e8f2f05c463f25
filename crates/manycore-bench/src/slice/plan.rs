//! What a thread does, drawn before it starts: drawing costs as much as a short section.

use super::Settings;

/// One section and the time after it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub section: u32,
    pub outside: u32,
    pub lock: u32,
    pub reads: bool,
}

/// So many steps, then the same again: 4 KiB, which leaves the cache to the lock.
const STEPS: usize = 256;

/// The steps of one thread.
pub(super) fn draw(settings: &Settings, index: usize) -> Box<[Step]> {
    // Any odd multiplier keeps the threads' seeds apart.
    let seed = settings.seed.wrapping_add((index as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let mut random = fastrand::Rng::with_seed(seed);
    let sections = settings.section.draw(STEPS, &mut random);
    let outsides = settings.outside.draw(STEPS, &mut random);
    let reading = (settings.reads / 100.0 * STEPS as f64).round() as usize;
    let mut reads: Vec<bool> = (0..STEPS).map(|step| step < reading).collect();
    random.shuffle(&mut reads);
    let step = |index: usize| Step {
        section: settings.pace.turns(sections[index]),
        outside: settings.pace.turns(outsides[index]),
        lock: random.u32(..settings.locks),
        reads: reads[index],
    };
    (0..STEPS).map(step).collect()
}
