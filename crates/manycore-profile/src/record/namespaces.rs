//! Processes whose own number differs from the number that this command sees: those of an inner PID
//! namespace.

use std::collections::{HashMap, HashSet};
use std::fs;

use super::entry::{Entry, OWN, namespace_of};

/// Those that are there now.
#[derive(Debug, Default)]
pub struct Inner {
    /// By namespace and number there: the number here.
    known: HashMap<(u64, u32), u32>,
    /// Whose namespace is not told.
    others: HashSet<u32>,
}

impl Inner {
    /// Searches for the processes that wrote these files: among all processes, if any file is of
    /// another namespace.
    pub fn look_for(entries: &[Entry]) -> Self {
        let is_any = entries.iter().any(|entry| entry.own_pid().is_none());
        if is_any { Self::sample() } else { Self::default() }
    }

    fn sample() -> Self {
        let mut inner = Self::default();
        for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
            let name = entry.file_name();
            let Some(process) = name.to_str() else { continue };
            let Ok(number) = process.parse::<u32>() else { continue };
            let namespace = namespace_of(process);
            if namespace == Some(*OWN) {
                continue;
            }
            let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
            match (innermost(&status), namespace) {
                (Some(pid), Some(namespace)) => {
                    inner.known.insert((namespace, pid), number);
                }
                (Some(pid), None) => drop(inner.others.insert(pid)),
                // It has just ended, or is of this namespace.
                (None, _) => {}
            }
        }
        inner
    }

    /// Whether there is a process with this number in this namespace, as far as one can tell.
    pub fn has(&self, namespace: u64, pid: u32) -> bool {
        self.known.contains_key(&(namespace, pid)) || self.others.contains(&pid)
    }

    /// The number, in our namespace, of the process that wrote a file, if that is known.
    pub fn number(&self, entry: &Entry) -> Option<u32> {
        entry.own_pid().or_else(|| self.known.get(&(entry.namespace, entry.pid)).copied())
    }
}

/// The number that a process has in its own namespace.
pub fn number_inside(process: u32) -> u32 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    innermost(&status).unwrap_or(process)
}

/// The number that a process has in the innermost of its namespaces; `None` if it has only the one
/// that we see.
fn innermost(status: &str) -> Option<u32> {
    let line = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
    let numbers: Vec<&str> = line.split_whitespace().collect();
    numbers.get(1..)?.last()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_is_in_the_file() {
        manycore_fuzz::texts("/proc/PID/status", &["Name:\tx\nNSpid:\t812\t30\n"], |text| {
            _ = innermost(text);
        });
    }

    #[test]
    fn the_innermost_number_is_the_last() {
        assert_eq!(innermost("Name:\tx\nNSpid:\t812\t30\t7\nNSpgid:\t812\n"), Some(7));
        assert_eq!(innermost("Name:\tx\nNSpid:\t812\n"), None);
        assert_eq!(innermost(""), None);
    }

    #[test]
    fn this_process_is_of_no_inner_namespace() {
        assert_ne!(*OWN, 0);
        assert!(!Inner::sample().known.contains_key(&(*OWN, std::process::id())));
    }
}
