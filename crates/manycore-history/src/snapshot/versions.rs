//! The transactions that made each version and replaced it.

use std::collections::HashMap;

use super::{Anomaly, Object, Transaction, Version, Violation};

/// The chains of all objects' versions. Transactions are their numbers in the history.
pub(super) struct Versions<'h> {
    pub(super) history: &'h [Transaction],
    made: HashMap<(Object, Version), usize>,
    replaced: HashMap<(Object, Version), usize>,
}

impl<'h> Versions<'h> {
    /// Finds three kinds of mistakes on the way.
    pub(super) fn of(history: &'h [Transaction]) -> Result<Self, Violation> {
        let mut versions = Self { history, made: HashMap::new(), replaced: HashMap::new() };
        let committed = history.iter().enumerate().filter(|(_, t)| t.committed);
        for (i, write) in committed.flat_map(|(i, t)| t.writes.iter().map(move |w| (i, w))) {
            let made = versions.made.insert((write.object, write.after), i);
            assert!(made.is_none() && write.after != 0, "{write:?} makes a version anew");
            if let Some(other) = versions.replaced.insert((write.object, write.before), i) {
                return Err(versions.lost_update(other, i, write.object, write.before));
            }
        }
        for (i, transaction) in history.iter().enumerate() {
            if let Some(object) = transaction.lost.first() {
                return Err(versions.lost_write(i, *object));
            }
            let seen = transaction.writes.iter().map(|write| (write.object, write.before));
            for (object, version) in transaction.reads.iter().copied().chain(seen) {
                if version != 0 && !versions.made.contains_key(&(object, version)) {
                    return Err(versions.read_from_nowhere(i, object, version));
                }
            }
        }
        Ok(versions)
    }

    /// The transaction that made the version; none for the first.
    pub(super) fn maker(&self, object: Object, version: Version) -> Option<usize> {
        self.made.get(&(object, version)).copied()
    }

    /// The transaction that replaced it.
    pub(super) fn successor(&self, object: Object, version: Version) -> Option<usize> {
        self.replaced.get(&(object, version)).copied()
    }

    /// A transaction as a message names it.
    pub(super) fn name(&self, i: usize) -> String {
        let Transaction { thread, began, ended, .. } = self.history[i];
        format!("transaction {i} (thread {thread}, moments {began} to {ended})")
    }

    fn lost_write(&self, i: usize, object: Object) -> Violation {
        let step = format!("{} does not see its own version of object {object}", self.name(i));
        Violation { anomaly: Anomaly::LostWrite, steps: vec![step] }
    }

    fn lost_update(&self, one: usize, other: usize, object: Object, version: Version) -> Violation {
        let step = |i| format!("{} replaces version {version} of object {object}", self.name(i));
        Violation { anomaly: Anomaly::LostUpdate, steps: vec![step(one), step(other)] }
    }

    fn read_from_nowhere(&self, i: usize, object: Object, version: Version) -> Violation {
        let made = |t: &Transaction| {
            t.writes.iter().any(|write| (write.object, write.after) == (object, version))
        };
        let maker = match self.history.iter().position(made) {
            Some(maker) => format!("made by {}, which did not commit", self.name(maker)),
            None => "made by no transaction (or overwritten by the one that made it)".to_owned(),
        };
        let step = format!("{} sees version {version} of object {object}, {maker}", self.name(i));
        Violation { anomaly: Anomaly::ReadFromNowhere, steps: vec![step] }
    }
}
