//! The machine that a measurement was made on.

use std::ffi::CStr;
use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

/// The properties of a host that a reader needs for comparing its figures with others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Host {
    /// The model name that the CPU reports.
    pub cpu: String,
    /// CPUs that the process may run on.
    pub cpus: u32,
    /// Sockets.
    pub sockets: u32,
    /// Memory nodes.
    pub numa_nodes: u32,
    /// Whether the CPU says that it runs under a hypervisor.
    #[serde(rename = "virtual")]
    pub is_virtual: bool,
    /// The kernel's version.
    pub kernel: String,
    /// The version of the C library.
    pub glibc: String,
}

impl Host {
    /// Describes this host. Values that procfs and sysfs do not give are `unknown`, or 1.
    pub fn describe() -> Self {
        let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let or_unknown = |text: Option<&str>| text.unwrap_or("unknown").trim().to_string();
        let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").ok();
        Self {
            cpu: or_unknown(field(&cpuinfo, "model name")),
            cpus: std::thread::available_parallelism().map_or(1, |n| n.get() as u32),
            sockets: sockets(&cpuinfo),
            numa_nodes: numbered(Path::new("/sys/devices/system/node"), "node").max(1),
            is_virtual: field(&cpuinfo, "flags")
                .is_some_and(|flags| flags.split(' ').any(|flag| flag == "hypervisor")),
            kernel: or_unknown(kernel.as_deref()),
            glibc: glibc(),
        }
    }
}

impl std::fmt::Display for Host {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { cpu, cpus, kernel, glibc, .. } = self;
        let kind = if self.is_virtual { "virtual CPU" } else { "CPU" };
        let plural = if *cpus == 1 { "" } else { "s" };
        write!(f, "{cpus} {kind}{plural} ({cpu}), Linux {kernel}, glibc {glibc}")
    }
}

/// The first value of a field in the form of `/proc/cpuinfo`.
fn field<'a>(cpuinfo: &'a str, name: &str) -> Option<&'a str> {
    let pairs = cpuinfo.lines().filter_map(|line| line.split_once(':'));
    pairs.into_iter().find(|(key, _)| key.trim() == name).map(|(_, value)| value.trim())
}

fn sockets(cpuinfo: &str) -> u32 {
    let lines = cpuinfo.lines().filter(|line| line.starts_with("physical id"));
    let distinct: std::collections::BTreeSet<_> = lines.collect();
    (distinct.len() as u32).max(1)
}

/// How many entries of a directory are called `prefix` and a number.
fn numbered(directory: &Path, prefix: &str) -> u32 {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let matches =
        |name: &str| name.strip_prefix(prefix).is_some_and(|rest| rest.parse::<u32>().is_ok());
    entries.filter(|entry| entry.file_name().to_str().is_some_and(matches)).count() as u32
}

fn glibc() -> String {
    // SAFETY: the function returns a string constant of the C library.
    let version = unsafe { CStr::from_ptr(libc::gnu_get_libc_version()) };
    version.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const CPUINFO: &str = "processor\t: 0\nmodel name\t: A CPU\nphysical id\t: 0\nflags\t\t: fpu hypervisor vme\n\
                           processor\t: 1\nmodel name\t: A CPU\nphysical id\t: 3\n";

    #[test]
    fn cpuinfo_is_understood() {
        assert_eq!(field(CPUINFO, "model name"), Some("A CPU"));
        assert_eq!(field(CPUINFO, "no such field"), None);
        assert_eq!(sockets(CPUINFO), 2);
        assert_eq!(sockets(""), 1);
    }

    #[test]
    fn this_host_is_described() {
        let host = Host::describe();
        assert!(host.cpus >= 1 && host.numa_nodes >= 1);
        assert!(host.glibc.starts_with("2."), "{}", host.glibc);
        assert!(host.to_string().contains("Linux"));
    }
}
