//! Sets of CPUs, as the kernel writes them: lists such as `0-3,8` and masks such as `ff,00000000`.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

/// More CPUs than any kernel supports: a list with a larger number is no list of CPUs.
const CPUS_MAX: usize = 1 << 16;

/// A set of CPUs by their numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct CpuSet(BTreeSet<usize>);

impl CpuSet {
    /// A mask as in `rps_cpus`: hexadecimal groups of 32 CPUs, the highest first. None if the text
    /// is no mask.
    pub fn from_mask(text: &str) -> Option<Self> {
        let mut cpus = BTreeSet::new();
        let groups: Vec<&str> = text.trim().split(',').collect();
        for (place, group) in groups.iter().rev().enumerate() {
            let bits = u32::from_str_radix(group, 16).ok()?;
            cpus.extend((0..32).filter(|bit| bits >> bit & 1 == 1).map(|bit| 32 * place + bit));
        }
        Some(Self(cpus))
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The one with the least number.
    pub fn first(&self) -> Option<usize> {
        self.0.first().copied()
    }

    /// Whether this CPU is among them.
    pub fn contains(&self, cpu: usize) -> bool {
        self.0.contains(&cpu)
    }

    /// The numbers, ascending.
    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.0.iter().copied()
    }

    /// The CPUs in both sets.
    pub fn and(&self, other: &Self) -> Self {
        Self(self.0.intersection(&other.0).copied().collect())
    }

    /// The CPUs in one or both sets.
    pub fn or(&self, other: &Self) -> Self {
        Self(self.0.union(&other.0).copied().collect())
    }

    /// The CPUs that are not in the other set.
    pub fn without(&self, other: &Self) -> Self {
        Self(self.0.difference(&other.0).copied().collect())
    }

    /// As a sentence calls them: `CPU 3`, `CPUs 0-3`.
    pub(crate) fn named(&self) -> String {
        format!("CPU{} {self}", if self.len() == 1 { "" } else { "s" })
    }

    /// A verb with these CPUs before it.
    pub(crate) fn verb(&self, plural: &str) -> String {
        format!("{plural}{}", if self.len() == 1 { "s" } else { "" })
    }

    /// Whether the other has all of them.
    pub fn is_within(&self, other: &Self) -> bool {
        self.0.is_subset(&other.0)
    }
}

impl FromIterator<usize> for CpuSet {
    fn from_iter<I: IntoIterator<Item = usize>>(cpus: I) -> Self {
        Self(cpus.into_iter().collect())
    }
}

impl FromStr for CpuSet {
    type Err = String;

    /// Reads a list; the empty one has no CPU.
    fn from_str(text: &str) -> Result<Self, String> {
        let mut cpus = BTreeSet::new();
        let bad = |part: &str| format!("'{part}' is no CPU and no range of CPUs");
        for part in text.trim().split(',').filter(|_| !text.trim().is_empty()) {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let number = |digits: &str| digits.parse::<usize>().map_err(|_| bad(part));
            let (first, last) = (number(first)?, number(last)?);
            if last < first || last >= CPUS_MAX {
                return Err(bad(part));
            }
            cpus.extend(first..=last);
        }
        Ok(Self(cpus))
    }
}

impl fmt::Display for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.iter().peekable();
        let mut separator = "";
        while let Some(first) = rest.next() {
            let mut last = first;
            while rest.next_if_eq(&(last + 1)).is_some() {
                last += 1;
            }
            f.write_str(separator)?;
            match last {
                _ if last == first => write!(f, "{first}")?,
                _ => write!(f, "{first}-{last}")?,
            }
            separator = ",";
        }
        Ok(())
    }
}

impl Serialize for CpuSet {
    /// As a list in the kernel's form.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_and_written() {
        for (text, again) in
            [("", ""), ("3", "3"), ("0-3,8\n", "0-3,8"), ("8,0-1,2,5-5", "0-2,5,8")]
        {
            assert_eq!(text.parse::<CpuSet>().unwrap().to_string(), again);
        }
        for bad in ["a", "3-", "-", "4-2", "0,,1", "0-99999999", "0-3:1/2"] {
            assert!(bad.parse::<CpuSet>().is_err(), "{bad}");
        }
    }

    #[test]
    fn masks_are_read() {
        assert_eq!(CpuSet::from_mask("00000001,0000000f\n").unwrap().to_string(), "0-3,32");
        assert!(CpuSet::from_mask("0,00000000").unwrap().is_empty());
        assert_eq!(CpuSet::from_mask("xyz"), None);
    }
}
