//! A thread's operations, drawn before it starts, because drawing costs as much as a short section.

use super::Settings;

/// One section and the time after it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Step {
    /// Iterations of work in the section.
    pub section: u32,
    /// Iterations of work after it.
    pub outside: u32,
    /// The lock's number.
    pub lock: u32,
    /// Whether the section only reads.
    pub reads: bool,
}

/// The number of steps before the plan repeats: 4 KiB, which leaves the cache to the lock.
const STEPS: usize = 256;

/// The steps of one thread.
pub(super) fn draw(settings: &Settings, index: usize) -> Box<[Step]> {
    // Any odd multiplier keeps the threads' seeds apart.
    let seed = settings.seed.wrapping_add((index as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let mut random = fastrand::Rng::with_seed(seed);
    let mix = &settings.mix;
    let outsides = mix.outside.draw(STEPS, &mut random);
    let reading = (mix.reads / 100.0 * STEPS as f64).round() as usize;
    let mut reads: Vec<bool> = (0..STEPS).map(|step| step < reading).collect();
    random.shuffle(&mut reads);
    let step = |index: usize| {
        let lock = mix.draw(&mut random);
        let of_lock = mix.locks[lock].shared;
        Step {
            section: 0,
            outside: settings.pace.iterations(outsides[index]),
            lock: lock as u32,
            reads: of_lock.map_or(reads[index], |share| random.f64() < share / 100.0),
        }
    };
    let mut steps: Box<[Step]> = (0..STEPS).map(step).collect();
    for (number, lock) in mix.locks.iter().enumerate() {
        // Few sections, too, have the mean of their lock.
        let count = steps.iter().filter(|step| step.lock as usize == number).count();
        let sections = lock.section.draw(count, &mut random);
        let of_lock = steps.iter_mut().filter(|step| step.lock as usize == number);
        of_lock.zip(sections).for_each(|(step, ns)| step.section = settings.pace.iterations(ns));
    }
    steps
}
