//! The lines that two calls share, at least one of which writes: counted exactly, in a simulated
//! program.
//!
//! Two threads, on two CPUs, make a call each, one after the other. The lines that each has read
//! and written show which lines they share, independent of time.

use alloc::format;
use alloc::vec::Vec;

use khronos_fs::{At, Fs, Options};
use manycore::sync::atomic::{AtomicU32, Ordering};
use manycore::sync::hint;
use manycore_sim::{Footprint, thread};

use crate::calls::Call;

/// The number of trials of each pair, with other names each time. Lines that are shared only
/// sometimes do not count as the call's: for example when memory comes from a common store, or
/// names fall into one chain.
const TRIES: u32 = 4;

/// The lines that two calls share: the fewest of several trials.
///
/// # Errors
///
/// If links and names do not agree after it.
///
/// # Panics
///
/// Outside of a simulated program.
pub fn shared_lines(options: Options, calls: [Call; 2]) -> Result<usize, &'static str> {
    let fs = Fs::new(options);
    let directory = At { directory: fs.root(), path: b"d" };
    fs.context().mkdir(directory, 0o755).map_err(|_| "no directory")?;
    let turn = AtomicU32::new(0);
    let footprints = thread::parallel(2, |me| take_turns(&fs, calls[me as usize], me, &turn));
    fs.context().check_all().map_err(|_| "links and names do not agree")?;
    let pairs = footprints[0].iter().zip(&footprints[1]);
    // The first is for memory that each thread takes once.
    Ok(pairs.skip(1).map(|(one, two)| one.conflicts(two)).min().unwrap_or(0))
}

/// One thread's part of the trial. One thread completes a step before the other begins its own.
fn take_turns(fs: &Fs, call: Call, me: u32, turn: &AtomicU32) -> Vec<Footprint> {
    let mut cx = fs.context();
    let mut footprints = Vec::new();
    for number in 0..TRIES + 1 {
        let [name, other] = [0, 1].map(|which| format!("d/{me}-{}", 2 * number + which));
        for part in 0..2 {
            let mine = (number * 2 + part) * 2 + me;
            // Acquire: partner of the other's Release, below: what it has done is over.
            while turn.load(Ordering::Acquire) != mine {
                hint::spin_loop();
            }
            if part == 0 {
                call.prepare(&mut cx, &name);
            } else {
                footprints.push(thread::footprint(|| call.act(&mut cx, &name, &other)).1);
            }
            turn.store(mine + 1, Ordering::Release); // Release: partner of the Acquire above
        }
    }
    footprints
}
