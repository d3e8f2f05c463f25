//! Histories in which a thread takes back what it has pushed: these operations are between it and
//! itself.
//!
//! A push that was taken back has no effect on anybody else, wherever in its thread's program the
//! two are thought to happen. So what the other operations returned has to be explained without
//! them; and they have to be in order by themselves.

use crate::history::Call;
use crate::specification::PileOperation::{self, Push, TakeBack};

/// What a thread did with a pile.
pub type Log = Vec<Call<PileOperation, Vec<u64>>>;

/// Leaves out of a thread's log what it has taken back, both the pushes and the taking.
///
/// # Errors
///
/// What was taken back is not what the thread had pushed last, of what it had not taken back.
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
