//! What a mechanism counts, while threads work.

use std::collections::BTreeMap;

/// The numbers of a counter at a moment, by name. They only grow.
#[derive(Clone, Debug)]
pub(crate) struct Counts(BTreeMap<&'static str, u64>);

impl Counts {
    /// The numbers as `statistics` visits them.
    pub fn read(statistics: impl FnOnce(&mut dyn FnMut(&'static str, u64))) -> Self {
        let mut counts = BTreeMap::new();
        statistics(&mut |name, count| _ = counts.insert(name, count));
        Self(counts)
    }

    /// The counts since an earlier moment, for each of this many operations.
    pub fn since(&self, earlier: &Self, operations: u64) -> BTreeMap<String, f64> {
        let each = |(name, count): (&&'static str, &u64)| {
            let before = earlier.0.get(name).copied().unwrap_or_default();
            let count = count.saturating_sub(before);
            ((*name).to_owned(), count as f64 / operations.max(1) as f64)
        };
        self.0.iter().map(each).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_there_before_does_not_count() {
        let at = |drains| Counts::read(|visit| visit("drains", drains));
        let found = at(30).since(&at(10), 40);
        assert_eq!(found, BTreeMap::from([("drains".to_owned(), 0.5)]));
    }
}
