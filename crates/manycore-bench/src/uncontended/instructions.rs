//! How many instructions a pair of lock and unlock executes, counted exactly.
//!
//! The worker runs under callgrind, which counts the instructions of one function, [`REGION`], and
//! writes the sum to a file each time that function returns. There are two calls, the second with
//! twice as many pairs: the difference is the cost of the pairs, without the rest of the function.
//! The same measurement for a contender that locks nothing gives the cost of the loop around the
//! lock, which is subtracted.

use std::ffi::OsString;
use std::path::Path;

use super::pairs::{Pairs, REGION};
use crate::contender::NOTHING;
use crate::failure::Failure;
use crate::worker::{Command, Subject, Through, Worker};

/// Pairs in the first call. Enough that every instruction counts for less than a thousandth of a
/// pair.
const PAIRS: u32 = 1_000;

/// Counts, for any number of subjects.
pub(super) struct Counter<'a> {
    command: &'a Command,
    /// What the loop costs.
    loop_cost: f64,
}

impl<'a> Counter<'a> {
    pub fn new(command: &'a Command) -> Result<Self, Failure> {
        let missing = |_| {
            let remedy =
                "install it (apt-get install valgrind) or leave the instruction counts out";
            Failure::Usage(format!("instruction counts need valgrind: {remedy}"))
        };
        std::process::Command::new("valgrind").arg("--version").output().map_err(missing)?;
        let nothing = Subject { lock: NOTHING.into(), through: Through::Native, shared: false };
        Ok(Self { command, loop_cost: per_turn(command, &nothing)? })
    }

    /// Instructions of one pair.
    pub fn count(&self, subject: &Subject) -> Result<f64, Failure> {
        Ok(per_turn(self.command, subject)? - self.loop_cost)
    }
}

/// Instructions of one turn of the loop.
fn per_turn(command: &Command, subject: &Subject) -> Result<f64, Failure> {
    let failed = |error: std::io::Error| {
        Failure::Failed(format!("counting instructions of {subject}: {error}"))
    };
    let directory = tempfile::tempdir().map_err(failed)?;
    let output = directory.path().join("counts");
    let mut worker = Worker::start(command, &callgrind(&output), subject)?;
    worker.execute(&Pairs(PAIRS))?;
    worker.execute(&Pairs(2 * PAIRS))?;
    drop(worker);
    let [once, twice] = [1, 2].map(|call| {
        let file = directory.path().join(format!("counts.{call}"));
        std::fs::read_to_string(file).map_err(failed).and_then(|text| {
            let none = || Failure::Failed(format!("callgrind counted nothing for {subject}"));
            total(&text).ok_or_else(none)
        })
    });
    Ok((twice? - once?) / f64::from(PAIRS))
}

fn callgrind(output: &Path) -> Vec<OsString> {
    let mut file = OsString::from("--callgrind-out-file=");
    file.push(output);
    vec![
        "valgrind".into(),
        "--tool=callgrind".into(),
        "--quiet".into(),
        file,
        format!("--toggle-collect={REGION}").into(),
        format!("--dump-after={REGION}").into(),
    ]
}

/// The sum of a callgrind file.
fn total(text: &str) -> Option<f64> {
    let line = text.lines().find_map(|line| line.strip_prefix("totals: "))?;
    line.split(' ').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_is_found() {
        assert_eq!(total("events: Ir\nfn=(1)\n3 5\n\ntotals: 51234\n"), Some(51_234.0));
        assert_eq!(total("events: Ir\n"), None);
    }
}
