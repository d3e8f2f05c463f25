//! JMeter as a load: a plan that its own classes make, because Debian's JMeter cannot read one from
//! a file.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use super::tools::{for_shell, installed, not_installed};
use manycore_compare::trial::Outcome;
use manycore_launch::failure::{Failure, Result};

const SOURCE: &str = include_str!("Load.java");

/// The time before counting, in which the virtual machine compiles frequently used code.
const WARM_UP: Duration = Duration::from_secs(2);

/// JMeter, and its plan, compiled.
#[derive(Debug)]
pub struct Jmeter {
    java: PathBuf,
    home: PathBuf,
    class_path: String,
}

impl Jmeter {
    /// Finds JMeter (`JMETER_HOME`, or Debian's directory), and compiles the plan into a directory.
    pub fn prepare(place: &Path) -> Result<Self> {
        let package = "jmeter jmeter-http default-jdk-headless";
        let (java, javac) = (installed("java", package)?, installed("javac", package)?);
        let home = env::var_os("JMETER_HOME").unwrap_or_else(|| "/usr/share/jmeter".into());
        let home = PathBuf::from(home);
        if !home.join("lib/ext/ApacheJMeter_http.jar").is_file() {
            return Err(not_installed("JMeter with its sampler of HTTP", package));
        }
        let own = place.join("jmeter");
        // As written by the virtual machine itself, which knows wildcards.
        let (at, of) = (own.display(), home.display());
        let class_path = format!("{at}:{of}/bin/*:{of}/lib/*:{of}/lib/ext/*");
        let source = own.join("Load.java");
        fs::create_dir(&own).and_then(|()| fs::write(&source, SOURCE)).map_err(|error| {
            Failure::failed(format!("cannot write '{}': {error}", source.display()))
        })?;
        let mut compile = Command::new(javac);
        compile.args(["-cp", &class_path, "-d"]).arg(&own).arg(&source).stdin(Stdio::null());
        let done = compile.output();
        let done = done.map_err(|error| Failure::failed(format!("cannot run javac: {error}")))?;
        if !done.status.success() {
            let said = String::from_utf8_lossy(&done.stderr);
            return Err(
                Failure::failed("javac does not compile a plan for this JMeter").with_output(&said)
            );
        }
        Ok(Self { java, home, class_path })
    }

    /// The shell command that makes this many clients send requests.
    pub fn command(&self, clients: usize, time: Duration) -> Result<OsString> {
        let words = ["-cp", &self.class_path, "Load"].map(OsString::from);
        let java = [self.java.clone().into_os_string()];
        let words: Vec<_> =
            java.into_iter().chain(words).chain([self.home.clone().into()]).collect();
        let mut text = for_shell(&words)?;
        let (warm_up, counted) = (WARM_UP.as_millis(), time.as_millis());
        // It keeps a log where it is.
        text = [OsString::from("cd {dir} && exec "), text].into_iter().collect();
        text.push(format!(" {{port}} {clients} {warm_up} {counted}"));
        Ok(text)
    }

    /// The rate that the plan printed. If requests failed, the run fails.
    pub fn requests_per_second(outcome: &Outcome) -> Result<f64> {
        let after = |start: &str| {
            let line = outcome.output.lines().find_map(|line| line.strip_prefix(start))?;
            line.trim().parse::<f64>().ok()
        };
        match (after("failed:"), after("requests/s:")) {
            (Some(0.0), Some(rate)) => Ok(rate),
            (Some(failed @ 1.0..), _) => {
                Err(Failure::failed(format!("{failed} of JMeter's requests failed")))
            }
            _ => Err(Failure::failed("JMeter did not say how many requests there were")
                .with_output(&outcome.output)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_that_failed_fail_the_run() {
        let said = |output: &str| Jmeter::requests_per_second(&Outcome::said(output));
        assert_eq!(said("INFO\nfailed: 0\nrequests/s: 392.5\n").unwrap(), 392.5);
        assert!(said("failed: 3\nrequests/s: 392.5\n").unwrap_err().to_string().contains('3'));
        assert!(said("Exception in thread main").is_err());
    }
}
