//! Whether an index has what threads have put into it.

use super::any_index::{Abilities, AnyIndex};
use super::data::Seen;
use super::operations::{Inserted, Tally};
use super::task::{Task, key_of};

/// The largest number of records that are looked up at the end: all records, or every n-th.
const LOOKED_UP: u64 = 200_000;

/// What was found, apart from that all records are there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Verdict {
    /// The number of lost updates: ones that read and then wrote, and whose value another update
    /// has overwritten without reading it. `None` if all updates were one step, if there were none,
    /// or if not all records were looked up.
    pub lost: Option<u64>,
}

/// Verifies an index that no thread uses any more; calls `between` after each look-up.
///
/// If the index is at fault, in one line, unless the fault is a known property of it.
pub(super) fn verify(
    index: &dyn AnyIndex,
    abilities: Abilities,
    task: &Task,
    inserted: &Inserted,
    tally: &Tally,
    mut between: impl FnMut(),
) -> Result<Verdict, String> {
    index.check();
    if tally.wrong > 0 {
        return Err(format!("{} values were none of their keys", tally.wrong));
    }
    if tally.missed > 0 && !abilities.misses {
        return Err(format!("{} look-ups of keys that are there found nothing", tally.missed));
    }
    let step = (task.records.initial + inserted.count()).div_ceil(LOOKED_UP).max(1);
    let records = (0..task.records.initial).chain(inserted.all());
    let mut handle = index.handle();
    let mut counts = 0;
    for number in records.step_by(step as usize) {
        match handle.get(key_of(number)) {
            Seen::Count(count) => counts += u64::from(count),
            Seen::Nothing => return Err(format!("record {number} is not there at the end")),
            Seen::Wrong => return Err(format!("record {number} has a value of another key")),
        }
        between();
    }
    // Values begin with a count of 0.
    let lost = tally.modified as i64 - counts as i64;
    let all_counted = task.mix.modifies() && step == 1;
    match all_counted {
        true if lost < 0 || (lost > 0 && abilities.modifies) => Err(format!(
            "of {} updates that read and write in one step, {counts} are there",
            tally.modified
        )),
        true if !abilities.modifies => Ok(Verdict { lost: Some(lost as u64) }),
        _ => Ok(Verdict { lost: None }),
    }
}
