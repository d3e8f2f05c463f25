//! nuttcp, the descendant of the publication's TTCP. Its server listens on all interfaces, and has
//! no option to change that. So both ends run in a network namespace of their own, which has only
//! the loopback interface.

use std::ffi::OsString;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::geteuid;

use super::policy::Policy;
use super::tools::{GRACE, installed};
use super::work::Work;
use manycore_compare::trial::{Outcome, Plan};
use manycore_launch::failure::{Failure, Result};

/// Runs the server, and then a client until it reaches the server. The arguments are the client's.
const SCRIPT: &str = r#"
ip link set lo up || exit
nuttcp -S --nofork > /dev/null 2>&1 &
server=$!
tries=1
until said=$(nuttcp -t "$@" -fparse 127.0.0.1 2>&1) || [ $tries -ge 40 ]; do
    tries=$((tries + 1))
    sleep 0.05
done
kill $server
echo "$said"
"#;

/// The command that enters a namespace. A user who is not root becomes root in a namespace of its
/// own.
fn namespace() -> impl Iterator<Item = OsString> {
    let user = (!geteuid().is_root()).then_some("--map-root-user");
    ["unshare"].into_iter().chain(user).chain(["--net"]).map(OsString::from)
}

/// Fails if something is not installed, or the kernel does not permit such a namespace.
pub fn check() -> Result<()> {
    for (program, package) in [("nuttcp", "nuttcp"), ("unshare", "util-linux"), ("ip", "iproute2")]
    {
        installed(program, package)?;
    }
    let words: Vec<OsString> = namespace().collect();
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).arg("true").stdin(Stdio::null()).stderr(Stdio::null());
    if command.status().is_ok_and(|status| status.success()) {
        return Ok(());
    }
    Err(Failure::bad_input(
        "nuttcp would listen on all interfaces: the kernel refuses a network namespace for it",
        "run this as root, or permit user namespaces (sysctl user.max_user_namespaces), or leave nuttcp out, with --driver",
    ))
}

/// Both ends under the policy, which is applied outside of the namespace.
pub fn work(policy: &Policy, bytes: usize, time: Duration) -> Result<Work> {
    let client = ["-l", &bytes.to_string(), "-T", &time.as_secs().to_string()].map(OsString::from);
    let shell = ["sh", "-c", SCRIPT, "sh"].map(OsString::from);
    let command = policy.over(namespace().chain(shell).chain(client))?;
    let plan =
        Plan { command, prepare: None, load: None, timeout: time + GRACE, ..Plan::default() };
    Ok(Work { plan, warm_up: None, value: received })
}

/// What the server received, in bytes a second.
fn received(outcome: &Outcome) -> Result<f64> {
    let rate = outcome.output.split_whitespace().find_map(|word| word.strip_prefix("rate_Mbps="));
    let megabits: Option<f64> = rate.and_then(|rate| rate.parse().ok());
    megabits.map(|megabits| megabits * 1e6 / 8.0).ok_or_else(|| {
        Failure::failed("nuttcp did not print how much was transferred")
            .with_output(&outcome.output)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nuttcp_prints_is_understood() {
        let line = "megabytes=6.0000 real_seconds=1.00 rate_Mbps=80.5 tx_cpu=42 retrans=0\n";
        assert_eq!(received(&Outcome::said(line)).unwrap(), 10_062_500.0);
        assert!(received(&Outcome::said("nuttcp-t: Error: connect: refused")).is_err());
    }

    #[test]
    fn the_namespace_is_within_the_policy() {
        let auto = super::super::policy::list("auto").unwrap();
        let work = work(auto.iter().next().unwrap(), 64, Duration::from_secs(2)).unwrap();
        let words: Vec<_> = work.plan.command.iter().filter_map(|word| word.to_str()).collect();
        let at = |wanted: &str| words.iter().position(|word| *word == wanted).unwrap();
        assert!(at("auto") < at("unshare") && at("unshare") < at("--net"), "{words:?}");
        assert_eq!(words[words.len() - 4..], ["-l", "64", "-T", "2"]);
    }
}
