//! The machine that a measurement was made on.

use std::collections::BTreeSet;
use std::ffi::CStr;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// The properties of a host that a reader needs for comparing its figures with others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Host {
    /// The model name that the CPU reports, or what its numbers stand for.
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
            cpu: model(&cpuinfo).unwrap_or_else(|| "unknown".to_owned()),
            cpus: std::thread::available_parallelism().map_or(1, |n| n.get() as u32),
            sockets: sockets(Path::new("/sys/devices/system/cpu")).max(1),
            numa_nodes: (numbered(Path::new("/sys/devices/system/node"), "node").count() as u32)
                .max(1),
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

/// The CPU's model: its name, or, for Arm's, whose numbers the kernel gives alone, the name of
/// theirs.
fn model(cpuinfo: &str) -> Option<String> {
    if let Some(name) = field(cpuinfo, "model name") {
        return Some(name.to_owned());
    }
    let number = |name| u32::from_str_radix(field(cpuinfo, name)?.strip_prefix("0x")?, 16).ok();
    let (maker, part) = (number("CPU implementer")?, number("CPU part")?);
    let known = ARM.iter().find(|(of, number, _)| (*of, *number) == (maker, part));
    Some(match known {
        Some((.., name)) => (*name).to_owned(),
        None => format!("Arm, implementer {maker:#x}, part {part:#x}"),
    })
}

/// Servers' processors, by implementer and part, as Linux has them in
/// `arch/arm64/include/asm/cputype.h`.
const ARM: [(u32, u32, &str); 14] = [
    (0x41, 0xd07, "Arm Cortex-A57"),
    (0x41, 0xd08, "Arm Cortex-A72"),
    (0x41, 0xd0b, "Arm Cortex-A76"),
    (0x41, 0xd0c, "Arm Neoverse-N1"),
    (0x41, 0xd40, "Arm Neoverse-V1"),
    (0x41, 0xd49, "Arm Neoverse-N2"),
    (0x41, 0xd4f, "Arm Neoverse-V2"),
    (0x41, 0xd84, "Arm Neoverse-V3"),
    (0x41, 0xd8e, "Arm Neoverse-N3"),
    (0x43, 0x0af, "Cavium ThunderX2"),
    (0x46, 0x001, "Fujitsu A64FX"),
    (0x48, 0xd01, "HiSilicon TSV110"),
    (0xc0, 0xac3, "Ampere AmpereOne"),
    (0xc0, 0xac4, "Ampere AmpereOne A"),
];

/// The number of packages that CPUs are in; 0 where the kernel does not say.
fn sockets(cpus: &Path) -> u32 {
    let package = |cpu: PathBuf| fs::read_to_string(cpu.join("topology/physical_package_id")).ok();
    numbered(cpus, "cpu").filter_map(package).collect::<BTreeSet<_>>().len() as u32
}

/// The entries of a directory that are called `prefix` and a number.
fn numbered(directory: &Path, prefix: &str) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(move |path| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.and_then(|name| name.strip_prefix(prefix)).is_some_and(|it| it.parse::<u32>().is_ok())
    })
}

fn glibc() -> String {
    // SAFETY: the function returns a string constant of the C library.
    let version = unsafe { CStr::from_ptr(libc::gnu_get_libc_version()) };
    version.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const CPUINFO: &str = "processor\t: 0\nmodel name\t: A CPU\nflags\t\t: fpu hypervisor vme\n\
                           processor\t: 1\nmodel name\t: A CPU\n";

    #[test]
    fn cpuinfo_is_understood() {
        assert_eq!(model(CPUINFO).as_deref(), Some("A CPU"));
        assert_eq!(field(CPUINFO, "no such field"), None);
        assert_eq!(model(""), None);
    }

    #[test]
    fn a_model_of_arm_is_told_by_its_numbers() {
        let of = |maker: &str, part: &str| {
            model(&format!("processor\t: 0\nCPU implementer\t: {maker}\nCPU part\t: {part}\n"))
        };
        assert_eq!(of("0x41", "0xd0c").as_deref(), Some("Arm Neoverse-N1"));
        assert_eq!(of("0x61", "0x022").as_deref(), Some("Arm, implementer 0x61, part 0x22"));
        assert_eq!(of("0x41", "nothing"), None);
    }

    #[test]
    fn this_host_is_described() {
        let host = Host::describe();
        assert!(host.cpus >= 1 && host.numa_nodes >= 1 && host.sockets >= 1);
        assert_eq!(sockets(Path::new("/nonexistent")), 0);
        assert!(host.glibc.starts_with("2."), "{}", host.glibc);
        assert!(host.to_string().contains("Linux"));
    }
}
