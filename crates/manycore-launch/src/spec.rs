//! The name of a lock on the command line: `futex`, `hybrid:give-up=yield`, `glibc`.

use std::fmt;
use std::str::FromStr;

use manycore::delegate::FlatCombining;
use manycore::lock::PlainLock;
use manycore::{LockInfo, RawRwLock, for_each_inline_lock, for_each_lock, for_each_rw_lock};

use crate::failure::Failure;

/// The name for the unmodified program, with nothing preloaded.
pub const GLIBC: &str = "glibc";

/// Every lock's description of itself, in the order of the registry; the last delegates sections.
pub fn all() -> Vec<LockInfo> {
    macro_rules! infos {
        ($($lock:ident),* $(,)?) => {
            vec![$(<manycore::lock::$lock as PlainLock>::INFO,)* FlatCombining::INFO]
        };
    }
    for_each_lock!(infos)
}

/// The same of the reader-writer locks.
pub fn all_rw() -> Vec<LockInfo> {
    macro_rules! infos {
        ($($lock:ident),* $(,)?) => { vec![$(<manycore::lock::$lock as RawRwLock>::INFO),*] };
    }
    for_each_rw_lock!(infos)
}

/// The reader-writer lock that a program gets, whichever lock is chosen for its mutexes.
pub const RW_LOCK_OF_PROGRAMS: LockInfo = <manycore::lock::AdaptiveRw as RawRwLock>::INFO;

/// Whether the lock can be put into a program: it fits into a pthread mutex.
pub fn is_inline(lock: &LockInfo) -> bool {
    macro_rules! names {
        ($($lock:ident),* $(,)?) => { [$(<manycore::lock::$lock as PlainLock>::INFO.name),*] };
    }
    for_each_inline_lock!(names).contains(&lock.name)
}

/// A lock to run a program with, checked against the registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Spec {
    text: String,
    name: String,
}

impl Spec {
    /// The program as it is.
    pub fn glibc() -> Self {
        Self { text: GLIBC.to_owned(), name: GLIBC.to_owned() }
    }

    /// The lock that `run` uses by default.
    pub fn usual() -> Self {
        let name = all().first().map_or(GLIBC, |info| info.name);
        let name = if all().iter().any(|info| info.name == "adaptive") { "adaptive" } else { name };
        Self { text: name.to_owned(), name: name.to_owned() }
    }

    /// Whether nothing is to be preloaded.
    pub fn is_glibc(&self) -> bool {
        self.name == GLIBC
    }

    /// As the preload library reads it.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl FromStr for Spec {
    type Err = Failure;

    fn from_str(text: &str) -> Result<Self, Failure> {
        let mut parts = text.split(':');
        let name = parts.next().unwrap_or_default();
        if name != GLIBC {
            check_name(name)?;
        }
        for parameter in parts {
            if name == GLIBC {
                return Err(Failure::bad_input(
                    "glibc's own lock takes no parameters",
                    "write `glibc`",
                ));
            }
            check_parameter(parameter)?;
        }
        Ok(Self { text: text.to_owned(), name: name.to_owned() })
    }
}

fn check_name(name: &str) -> Result<(), Failure> {
    match all().iter().find(|info| info.name == name) {
        Some(info) if is_inline(info) => Ok(()),
        Some(_) => Err(Failure::bad_input(
            format!(
                "{name} is too large for a pthread mutex: it is for programs that use the library"
            ),
            "`manycore locks --plain` lists those that can be put into a program",
        )),
        None => Err(unknown(name)),
    }
}

fn check_parameter(parameter: &str) -> Result<(), Failure> {
    let (key, value) = parameter.split_once('=').unwrap_or((parameter, ""));
    let valid = match key {
        "rounds" | "delay" | "few-cpus" => value.parse::<u32>().is_ok(),
        "give-up" => matches!(value, "sleep" | "yield"),
        _ => false,
    };
    if valid {
        return Ok(());
    }
    Err(Failure::bad_input(
        format!("bad lock parameter '{parameter}'"),
        "there are rounds=NUMBER, delay=NUMBER, few-cpus=NUMBER and give-up=sleep|yield",
    ))
}

fn unknown(name: &str) -> Failure {
    let names: Vec<&str> = all().iter().map(|info| info.name).chain([GLIBC]).collect();
    let remedy = match closest(name, &names) {
        Some(close) => format!("did you mean '{close}'? (`manycore locks` lists them all)"),
        None => "`manycore locks` lists those that there are".to_owned(),
    };
    Failure::bad_input(format!("unknown lock '{name}'"), remedy)
}

/// The name that was probably meant, if one is similar.
fn closest<'a>(name: &str, names: &[&'a str]) -> Option<&'a str> {
    let likeness = |candidate: &str| strsim::jaro_winkler(name, candidate);
    let best = names.iter().max_by(|a, b| likeness(a).total_cmp(&likeness(b)))?;
    (likeness(best) > 0.75).then_some(*best)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_checked() {
        for good in ["futex", "futex:rounds=3", "futex:rounds=3:delay=0:give-up=yield", "glibc"] {
            assert_eq!(good.parse::<Spec>().unwrap().as_str(), good);
        }
        for bad in
            ["", "futex:", "futex:rounds", "futex:rounds=-1", "futex:give-up=no", "glibc:delay=1"]
        {
            assert!(matches!(bad.parse::<Spec>(), Err(Failure::BadInput(_))), "{bad}");
        }
    }

    #[test]
    fn a_misspelt_name_is_recognised() {
        assert_eq!(closest("futx", &["futex", "mcs"]), Some("futex"));
        assert_eq!(closest("zzz", &["futex", "mcs"]), None);
    }

    #[test]
    fn a_lock_that_is_too_large_is_not_put_into_programs() {
        let Err(Failure::BadInput(line)) = "anderson".parse::<Spec>() else { panic!("accepted") };
        assert!(line.contains("too large"), "{line}");
    }
}
