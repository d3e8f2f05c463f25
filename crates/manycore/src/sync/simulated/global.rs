//! Parameters of the simulated process: each simulation starts with the initial ones.

use manycore_sim::backend;

use crate::sync::of_process::OfProcess;

/// A number that is one for the whole process.
#[derive(Debug)]
pub struct Global {
    number: usize,
    initial: u32,
}

impl Global {
    /// The parameter, and its initial value.
    pub const fn new(parameter: OfProcess, initial: u32) -> Self {
        let number = parameter as usize;
        assert!(number < backend::WORDS);
        Self { number, initial }
    }

    /// The value.
    pub fn get(&self) -> u32 {
        // 0 if no thread has set it.
        backend::word(self.number).checked_sub(1).map_or(self.initial, |value| value as u32)
    }

    /// Sets the value.
    pub fn set(&self, value: u32) {
        backend::set_word(self.number, u64::from(value) + 1);
    }
}

/// The number of repetitions, if code is repeated only for speed: fewer where schedules are
/// explored, so that the code after it is reached.
pub fn shortened(usual: u32, explored: u32) -> u32 {
    if backend::explores() { explored } else { usual }
}
