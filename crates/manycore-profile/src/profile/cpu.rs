//! Where the time went.

use serde::{Deserialize, Serialize};

/// The time of all threads, in seconds. The first three parts are CPU time and add up to all of it;
/// the last one is time off the CPU.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Cpu {
    /// In the kernel, but for the waits.
    pub kernel: f64,
    /// In the program and its libraries, except for the waits.
    pub program: f64,
    /// In waits for locks: spinning, going to sleep and waking up. From samples.
    pub lock_spin: f64,
    /// Asleep, or ready but without a CPU, in waits for locks.
    pub lock_wait: f64,
    /// Ready but without a CPU, in waits for locks or not, as the kernel's scheduler counts it;
    /// null where it was not observed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready: Option<f64>,
}

impl Cpu {
    /// Divides the CPU time, `user` and `kernel`, so that no part contains another. `spin` is the
    /// part that was spent in waits for locks, according to samples; `waited` is the duration of
    /// those waits.
    pub(crate) fn of(user: f64, kernel: f64, spin: f64, waited: f64) -> Self {
        let all = kernel + user;
        // The samples' sum may exceed what there was.
        let lock_spin = spin.min(all);
        // It is not known which part of a wait's CPU time is in the kernel, so both parts are
        // reduced in proportion.
        let rest = if all > 0.0 { 1.0 - lock_spin / all } else { 1.0 };
        let lock_wait = (waited - spin).max(0.0);
        Self { kernel: kernel * rest, program: user * rest, lock_spin, lock_wait, ready: None }
    }
}
