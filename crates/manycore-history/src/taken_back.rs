//! Histories in which a thread takes back its pushes: these operations concern only that thread.
//!
//! A push that was taken back has no effect on other threads, wherever in its thread's program the
//! two take effect. So the results of the other operations have to be explained without them, and
//! the thread's own operations have to be in order by themselves.

use crate::history::Call;
use crate::specification::SequenceOperation::{self, Push, TakeBack};

/// What a thread did with a sequence.
pub type Log = Vec<Call<SequenceOperation, Vec<u64>>>;

/// Removes the taken-back pushes from a thread's log, together with the operations that took them
/// back.
///
/// # Errors
///
/// The withdrawn value is not the last one that the thread had pushed and not withdrawn yet.
pub fn leave_out(log: Log) -> Result<Log, String> {
    let mut left: Log = Vec::new();
    for call in log {
        if call.operation != TakeBack {
            left.push(call);
            continue;
        }
        let Some(value) = call.result.first() else { continue };
        let last = left.iter().rposition(|other| matches!(other.operation, Push(_)));
        let last = last.map(|at| left.remove(at).operation);
        if call.result.len() > 1 || last != Some(Push(*value)) {
            let (thread, result) = (call.thread, &call.result);
            return Err(format!("thread {thread} took back {result:?}, and {last:?} was its last"));
        }
    }
    Ok(left)
}
