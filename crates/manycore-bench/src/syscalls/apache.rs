//! Apache prefork with mod_php, as in the publication: a process for each connection, a connection
//! for each request.

use std::ffi::OsString;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::geteuid;
use tempfile::TempDir;

use super::Point;
use super::driver::Driver;
use super::jmeter::Jmeter;
use super::policy::Policy;
use super::tools::{GRACE, installed, not_installed};
use super::work::Work;
use manycore_compare::trial::{Load, Outcome, Plan, Ready};
use manycore_launch::failure::{Failure, Result};

/// The configuration: only the parts that serve the page. The address, files and numbers of
/// processes are in the command.
const CONFIGURATION: &str = "\
ServerName localhost
LoadModule mpm_prefork_module {modules}/mod_mpm_prefork.so
LoadModule authz_core_module {modules}/mod_authz_core.so
LoadModule php_module {php}
KeepAlive Off
LogLevel error
DocumentRoot {place}/www
<Directory {place}/www>
    Require all granted
</Directory>
<FilesMatch \"\\.php$\">
    SetHandler application/x-httpd-php
</FilesMatch>
";

/// What is made ready for all runs.
#[derive(Debug)]
pub struct Apache {
    server: PathBuf,
    place: TempDir,
    jmeter: Option<Jmeter>,
}

impl Apache {
    /// Finds the programs, and writes the configuration and the page.
    pub fn prepare(loops: u32, drivers: &[Driver]) -> Result<Self> {
        let server = installed("apache2", "apache2-bin")?;
        let modules = modules(&server)?;
        let php = php(&modules)?;
        let place = tempfile::Builder::new().prefix("mc-web-").tempdir().map_err(cannot_prepare)?;
        let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"/._-+".contains(byte);
        if !place.path().as_os_str().as_encoded_bytes().iter().all(plain) {
            return Err(Failure::bad_input(
                format!("'{}' would have to be quoted", place.path().display()),
                "let TMPDIR name a directory of letters, digits and /._-+ only",
            ));
        }
        let mut text = CONFIGURATION.to_owned();
        let here = place.path();
        for (name, path) in [("{modules}", modules.as_path()), ("{php}", &php), ("{place}", here)] {
            text = text.replace(name, &path.display().to_string());
        }
        if geteuid().is_root() {
            // Apache's children run as another user, and have to be able to read the page.
            text += "User nobody\nGroup nogroup\n";
        }
        let page = format!("<?php $x = 0; for ($i = 0; $i < {loops}; $i++) $x += $i; echo $x;\n");
        let open = Permissions::from_mode(0o755);
        fs::write(here.join("httpd.conf"), text)
            .and_then(|()| fs::create_dir(here.join("www")))
            .and_then(|()| fs::write(here.join("www/loop.php"), page))
            .and_then(|()| fs::set_permissions(here, open))
            .map_err(cannot_prepare)?;
        let has_jmeter = drivers.contains(&Driver::Jmeter);
        let jmeter = has_jmeter.then(|| Jmeter::prepare(here)).transpose()?;
        Ok(Self { server, place, jmeter })
    }

    /// A server with this many clients, and their load.
    pub fn work(&self, point: Point, policy: &Policy, time: Duration) -> Result<Work> {
        let clients = point.level;
        let (warm_up, command, value): (_, OsString, fn(&Outcome) -> Result<f64>) =
            match (point.driver, &self.jmeter) {
                (Driver::Jmeter, Some(jmeter)) => {
                    (None, jmeter.command(clients, time)?, Jmeter::requests_per_second)
                }
                // A second that does not count: each process makes its threads, and reads the page,
                // with its first requests.
                (Driver::Wrk, _) => {
                    (Some(wrk(clients, 1)), wrk(clients, time.as_secs()), requests_per_second)
                }
                (driver, _) => {
                    return Err(Failure::failed(format!("{} does not drive it", driver.name())));
                }
            };
        let load = Load {
            command,
            ready: Ready::Tcp("127.0.0.1:{port}".into()),
            ready_timeout: GRACE,
            grace: GRACE,
        };
        let plan = Plan {
            command: policy.over(self.start(clients))?,
            prepare: None,
            load: Some(load),
            timeout: time + GRACE,
            ..Plan::default()
        };
        Ok(Work { plan, warm_up, value })
    }

    /// The server's command.
    fn start(&self, clients: usize) -> impl Iterator<Item = OsString> {
        // As many processes as clients from the beginning, and one to spare: none has to be made
        // while requests are counted.
        let most = clients + 16;
        let directives = [
            "Listen 127.0.0.1:{port}".to_owned(),
            "PidFile {dir}/pid".to_owned(),
            "ErrorLog {dir}/errors".to_owned(),
            "DefaultRuntimeDir {dir}".to_owned(),
            format!("StartServers {}", clients + 2),
            "MinSpareServers 1".to_owned(),
            format!("MaxSpareServers {most}"),
            format!("ServerLimit {most}"),
            format!("MaxRequestWorkers {most}"),
        ];
        let file = self.place.path().join("httpd.conf").into_os_string();
        let start = [self.server.clone().into(), "-DFOREGROUND".into(), "-f".into(), file];
        // After the file, which has the module that knows them.
        let more = directives.into_iter().flat_map(|words| ["-c".into(), OsString::from(words)]);
        start.into_iter().chain(more)
    }
}

fn wrk(clients: usize, seconds: u64) -> OsString {
    format!("wrk --threads 1 --connections {clients} --duration {seconds}s http://127.0.0.1:{{port}}/loop.php").into()
}

/// wrk's output. Requests that were not served correctly do not count, and fail the run.
fn requests_per_second(outcome: &Outcome) -> Result<f64> {
    let after = |start: &str| {
        outcome.output.lines().find_map(|line| line.trim().strip_prefix(start)).map(str::trim)
    };
    if let Some(count) = after("Non-2xx or 3xx responses:") {
        return Err(Failure::failed(format!("Apache did not serve {count} of the requests")));
    }
    // Connections that were refused or reset, and answers that came late.
    if let Some(errors) = after("Socket errors:") {
        return Err(Failure::failed(format!("Apache's connections failed: {errors}")));
    }
    let printed = after("Requests/sec:").and_then(|number| number.parse().ok());
    printed.ok_or_else(|| {
        Failure::failed("wrk did not print how many requests there were")
            .with_output(&outcome.output)
    })
}

fn cannot_prepare(error: std::io::Error) -> Failure {
    Failure::bad_input(
        format!("cannot make a directory for Apache: {error}"),
        "let TMPDIR name one that you may write to",
    )
}

/// The directory of modules that belongs to a server.
fn modules(server: &Path) -> Result<PathBuf> {
    let real = server.canonicalize().unwrap_or_else(|_| server.to_owned());
    let beside = real.parent().and_then(Path::parent).unwrap_or(Path::new("/usr"));
    let found = ["lib/apache2/modules", "lib/httpd/modules", "libexec/apache2"]
        .map(|place| beside.join(place))
        .into_iter()
        .find(|place| place.join("mod_mpm_prefork.so").is_file());
    found.ok_or_else(|| not_installed("mod_mpm_prefork of Apache", "apache2-bin"))
}

/// The newest mod_php among the modules.
fn php(modules: &Path) -> Result<PathBuf> {
    let entries = fs::read_dir(modules).into_iter().flatten().flatten();
    let is_php = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("libphp") && name.ends_with(".so")
    };
    let found = entries.map(|entry| entry.path()).filter(is_php).max();
    found.ok_or_else(|| not_installed("mod_php", "libapache2-mod-php"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(output: &str) -> Result<f64> {
        requests_per_second(&Outcome::said(output))
    }

    #[test]
    fn requests_that_failed_are_not_counted() {
        let good = "  4020 requests in 1.00s\nRequests/sec:   4019.5\nTransfer/sec: 1MB\n";
        assert_eq!(said(good).unwrap(), 4019.5);
        let bad = format!("  Non-2xx or 3xx responses: 17\n{good}");
        assert!(said(&bad).unwrap_err().to_string().contains("17"));
        let reset = format!("  Socket errors: connect 0, read 3, write 0, timeout 0\n{good}");
        assert!(said(&reset).unwrap_err().to_string().contains("read 3"));
        assert!(said("unable to connect").is_err());
    }
}
