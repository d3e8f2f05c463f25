//! What a crash may leave.

use super::versions::Versions;
use super::{Anomaly, Isolation, Object, Transaction, Verdict, Version, Violation, check};

/// Searches for mistakes in the state after a crash: `left` has each object's version.
///
/// A transaction has survived if its versions are there, or versions that have replaced them. There
/// are three requirements:
///
/// - all transactions acknowledged before the crash have survived, and those that have only read
///   have seen only survivors;
/// - the survivors are a possible history by themselves, with one more transaction that begins
///   after the crash and sees the remaining state: no part of a half transaction, and nothing that
///   depends on a lost one;
/// - no transaction has survived that began after the end of a lost one: only the last ones are
///   lost.
///
/// # Errors
///
/// The first mistake found; and those of [`check`].
///
/// # Panics
///
/// As of [`check`].
pub fn check_crash(
    history: &[Transaction],
    left: &[(Object, Version)],
    acknowledged: impl Fn(&Transaction) -> bool,
    isolation: Isolation,
) -> Result<Verdict, Violation> {
    let versions = Versions::of(history)?;
    let is_there = makers(&versions, left)?;
    let all = || history.iter().enumerate().filter(|(_, transaction)| transaction.committed);
    let lost = || all().filter(|(i, t)| !t.writes.is_empty() && !is_there[*i]);
    if let Some((i, _)) = lost().find(|(_, transaction)| acknowledged(transaction)) {
        let steps = vec![format!("{} was acknowledged", versions.name(i))];
        return Err(Violation { anomaly: Anomaly::LostCommit, steps });
    }
    let first_lost = lost().min_by_key(|(_, transaction)| transaction.ended);
    let last_left = all().filter(|(i, _)| is_there[*i]).max_by_key(|(_, t)| t.began);
    if let (Some((early, first)), Some((late, last))) = (first_lost, last_left)
        && first.ended < last.began
    {
        let (lost, left) = (versions.name(early), versions.name(late));
        let steps = vec![format!("{lost} is lost, and {left}, which began later, is not")];
        return Err(Violation { anomaly: Anomaly::LostBeforeLeft, steps });
    }
    let is_kept =
        |(i, t): &(usize, &Transaction)| is_there[*i] || (t.writes.is_empty() && acknowledged(t));
    let mut survivors: Vec<_> = all().filter(is_kept).map(|(_, t)| t.clone()).collect();
    let end = history.iter().map(|transaction| transaction.ended).max().unwrap_or(0);
    survivors.push(Transaction {
        thread: 0,
        began: end + 1,
        ended: end + 2,
        committed: true,
        reads: left.to_vec(),
        writes: Vec::new(),
        lost: Vec::new(),
    });
    check(&survivors, isolation)
}

/// The transactions that have made the versions, or versions that these have replaced.
fn makers(versions: &Versions<'_>, left: &[(Object, Version)]) -> Result<Vec<bool>, Violation> {
    let mut is_there = vec![false; versions.history.len()];
    for (object, newest) in left {
        let mut version = *newest;
        while version != 0 {
            let Some(maker) = versions.maker(*object, version) else {
                let step =
                    format!("version {version} of object {object}, which no transaction has made");
                return Err(Violation { anomaly: Anomaly::ReadFromNowhere, steps: vec![step] });
            };
            is_there[maker] = true;
            let mut writes = versions.history[maker].writes.iter();
            let write = writes.find(|write| write.object == *object);
            version = write.expect("a maker has written the object").before;
        }
    }
    Ok(is_there)
}
