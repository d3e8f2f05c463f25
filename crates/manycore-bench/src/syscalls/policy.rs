//! Policies by name, and a program's command over one: `manycore run --syscalls POLICY -- ...`.

use std::ffi::OsString;
use std::fmt;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::conversation::{Order, What};

use manycore_launch::failure::{Failure, Result};

/// The policy for system calls: one of `manycore run --syscalls`, or execution in place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy(Option<String>);

/// Policies of one mention of the option.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct List(Vec<Policy>);

impl List {
    /// One after the other.
    pub fn iter(&self) -> impl Iterator<Item = &Policy> {
        self.0.iter()
    }
}

/// Divides a list at its commas, except for those within a policy: there a digit follows, as in
/// `cpus=0-3,8`.
pub fn list(text: &str) -> Result<List> {
    let mut policies: Vec<String> = Vec::new();
    for part in text.split(',') {
        match policies.last_mut() {
            Some(last) if part.starts_with(|c: char| c.is_ascii_digit()) => {
                last.push(',');
                last.push_str(part);
            }
            _ if part.is_empty() => {
                return Err(Failure::bad_input(
                    format!("'{text}' has an empty policy in it"),
                    "write policies as of `manycore run --syscalls`, with a comma between two",
                ));
            }
            _ => policies.push(part.to_owned()),
        }
    }
    Ok(List(policies.into_iter().map(|policy| Policy(Some(policy))).collect()))
}

/// The file of this command.
fn this_command() -> Result<OsString> {
    let path = std::env::current_exe().map_err(|error| {
        Failure::failed(format!("cannot tell where this command is installed: {error}"))
    })?;
    Ok(path.into_os_string())
}

impl Policy {
    /// The base line.
    pub fn none() -> Self {
        Self(None)
    }

    /// A program's command over this policy.
    pub fn over(&self, program: impl IntoIterator<Item = OsString>) -> Result<Vec<OsString>> {
        let Some(policy) = &self.0 else { return Ok(program.into_iter().collect()) };
        let words = ["run", "--quiet", "--syscalls", policy, "--"].map(OsString::from);
        Ok([this_command()?].into_iter().chain(words).chain(program).collect())
    }

    /// The command of a conversation of two processes, both with this policy.
    pub fn conversation(&self, order: &Order) -> Result<Vec<OsString>> {
        let order =
            serde_json::to_string(order).map_err(|error| Failure::failed(error.to_string()))?;
        let own = this_command()?;
        let words = ["bench", "conversation", &order].map(OsString::from);
        self.over([own].into_iter().chain(words))
    }

    /// Fails as `manycore run` does if there is no such policy on this machine. Also fails if the
    /// kernel refuses its mechanism, where the library takes another: then the measurement would
    /// not be of the named mechanism.
    pub fn check(&self) -> Result<()> {
        let mut command = self.conversation(&Order {
            what: What::Latency,
            message_bytes: 1,
            warm_up: Duration::ZERO,
            measured: Duration::from_millis(10),
            port: None,
        })?;
        let mut command = command.drain(..);
        let mut run = Command::new(command.next().unwrap_or_default());
        let done = run.args(command).stdin(Stdio::null()).output().map_err(|error| {
            Failure::failed(format!("this command cannot be started again: {error}"))
        })?;
        let said = String::from_utf8_lossy(&done.stderr);
        if done.status.success() && !said.contains("system calls go to the pool") {
            return Ok(());
        }
        let said = said.trim().trim_start_matches("manycore: ");
        Err(Failure::bad_input(
            format!("--syscalls {self} does not work: {said}"),
            "`manycore run --help` has the policies, and --explain says what one does here",
        ))
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.0.as_deref().unwrap_or("none"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commas_of_a_list_of_cpus_divide_nothing() {
        let names = |text: &str| -> Vec<String> {
            list(text).unwrap().iter().map(Policy::to_string).collect()
        };
        assert_eq!(names("auto"), ["auto"]);
        let two = "nic-llc:cpus=0-3,8,10:mechanism=pool,per-node";
        assert_eq!(names(two), ["nic-llc:cpus=0-3,8,10:mechanism=pool", "per-node"]);
        assert!(list("auto,").is_err() && list("").is_err());
    }

    #[test]
    fn the_base_line_is_the_program_alone() {
        let program = || ["a".into(), "b".into()];
        assert_eq!(Policy::none().over(program()).unwrap(), ["a", "b"]);
        let over = list("auto").unwrap().0[0].over(program()).unwrap();
        assert_eq!(over[1..], ["run", "--quiet", "--syscalls", "auto", "--", "a", "b"]);
    }
}
