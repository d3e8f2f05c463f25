//! Machines as the kernel shows them in sysfs and /proc. The trees are written file by file, like
//! those of real machines of these kinds.

use std::fmt::Write;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use manycore_placement::{Choice, CpuSet, Machine, Problem, Tree, choose};
use tempfile::TempDir;

/// What a machine is built of.
#[derive(Clone, Debug)]
pub struct Shape {
    pub packages: usize,
    pub cores: usize,
    pub threads: usize,
    /// Cores with a last-level cache in common.
    pub cache_cores: usize,
    /// The distance of node b from node a.
    pub distance: fn(usize, usize) -> u32,
}

impl Shape {
    /// Numbers go through all cores first, then through their second threads, as firmware numbers
    /// them for Linux.
    fn number(&self, package: usize, core: usize, thread: usize) -> usize {
        (thread * self.packages + package) * self.cores + core
    }

    pub fn cpus(&self) -> usize {
        self.packages * self.cores * self.threads
    }

    fn of_cores(&self, package: usize, cores: std::ops::Range<usize>) -> CpuSet {
        let numbers = cores.flat_map(|core| {
            (0..self.threads).map(move |thread| self.number(package, core, thread))
        });
        numbers.collect()
    }
}

/// Two packages with a link between them.
pub fn pair(a: usize, b: usize) -> u32 {
    if a == b { 10 } else { 21 }
}

/// Eight packages: two boards of four, where each package has its counterpart on the other board.
pub fn boards(a: usize, b: usize) -> u32 {
    match (a == b, a / 4 == b / 4, a % 4 == b % 4) {
        (true, ..) => 10,
        (_, true, _) | (_, _, true) => 20,
        _ => 30,
    }
}

/// 2 x 10 cores, Ivy Bridge, hyper-threading off: the publication's machine.
pub const IVY_BRIDGE: Shape =
    Shape { packages: 2, cores: 10, threads: 1, cache_cores: 10, distance: pair };

/// 8 x 15 cores without hyper-threading.
pub const EIGHT_SOCKETS: Shape =
    Shape { packages: 8, cores: 15, threads: 1, cache_cores: 15, distance: boards };

/// Two packages of 32 cores, with four cores for each last-level cache, and two threads for each
/// core.
pub const MANY_CACHES: Shape =
    Shape { packages: 2, cores: 32, threads: 2, cache_cores: 4, distance: pair };

/// A tree of files in a temporary directory.
pub struct Built {
    directory: TempDir,
}

impl Built {
    /// A machine without a network card; every CPU may be used.
    pub fn new(shape: &Shape) -> Self {
        let built = Self { directory: tempfile::tempdir().unwrap() };
        let all = format!("0-{}", shape.cpus() - 1);
        built.file("sys/devices/system/cpu/online", &all);
        for package in 0..shape.packages {
            for core in 0..shape.cores {
                for thread in 0..shape.threads {
                    built.cpu(shape, package, core, thread);
                }
            }
            let node = format!("sys/devices/system/node/node{package}");
            let distances: Vec<String> =
                (0..shape.packages).map(|to| (shape.distance)(package, to).to_string()).collect();
            built.file(&format!("{node}/distance"), &distances.join(" "));
            let cpus = shape.of_cores(package, 0..shape.cores);
            built.file(&format!("{node}/cpulist"), &cpus.to_string());
        }
        built.file("sys/devices/system/node/online", "0");
        built.file("proc/self/status", &format!("Name:\tmanycore\nCpus_allowed_list:\t{all}\n"));
        built.loopback();
        built
    }

    fn cpu(&self, shape: &Shape, package: usize, core: usize, thread: usize) {
        let directory =
            format!("sys/devices/system/cpu/cpu{}", shape.number(package, core, thread));
        let siblings = shape.of_cores(package, core..core + 1).to_string();
        self.file(&format!("{directory}/topology/physical_package_id"), &package.to_string());
        self.file(&format!("{directory}/topology/core_id"), &core.to_string());
        self.file(&format!("{directory}/topology/core_cpus_list"), &siblings);
        self.file(&format!("{directory}/topology/thread_siblings_list"), &siblings);
        let first = core / shape.cache_cores * shape.cache_cores;
        let shared = shape.of_cores(package, first..first + shape.cache_cores).to_string();
        let caches = [
            ("Data", 1, "32K", 8, &siblings),
            ("Instruction", 1, "32K", 8, &siblings),
            ("Unified", 2, "256K", 8, &siblings),
            ("Unified", 3, "25600K", 20, &shared),
        ];
        for (index, (kind, level, size, ways, sharers)) in caches.into_iter().enumerate() {
            let cache = format!("{directory}/cache/index{index}");
            self.file(&format!("{cache}/type"), kind);
            self.file(&format!("{cache}/level"), &level.to_string());
            self.file(&format!("{cache}/size"), size);
            self.file(&format!("{cache}/ways_of_associativity"), &ways.to_string());
            self.file(&format!("{cache}/shared_cpu_list"), sharers);
        }
    }

    /// The directory in which `sys` and `proc` are.
    pub fn root(&self) -> &Path {
        self.directory.path()
    }

    fn loopback(&self) {
        self.file("sys/class/net/lo/type", "772");
        self.file("sys/class/net/lo/queues/rx-0/rps_cpus", "0");
    }

    /// A card at a node with an interrupt of each queue on these CPUs, and a second card that
    /// announces no packets on CPU 0. The default route uses the first card.
    pub fn card(self, name: &str, node: i32, cpus: &[usize]) -> Self {
        const ADDRESS: &str = "0000:3b:00.0";
        let device = format!("sys/devices/pci0000:3a/{ADDRESS}");
        self.file(&format!("{device}/numa_node"), &node.to_string());
        self.file(&format!("{device}/net/{name}/type"), "1");
        self.link(
            &format!("../../devices/pci0000:3a/{ADDRESS}/net/{name}"),
            &format!("sys/class/net/{name}"),
        );
        self.link(&format!("../../../{ADDRESS}"), &format!("{device}/net/{name}/device"));
        let columns = self.online();
        let mut table = String::from("      ");
        for cpu in &columns {
            let _ = write!(table, "      CPU{cpu}");
        }
        let interrupts = [("mlx5_async".to_owned(), 0)].into_iter();
        let queues = cpus.iter().enumerate().map(|(q, cpu)| (format!("mlx5_comp{q}"), *cpu));
        for (index, (kind, cpu)) in interrupts.chain(queues).enumerate() {
            let number = 100 + index;
            self.file(&format!("{device}/msi_irqs/{number}"), "msix");
            self.serve(number, &cpu.to_string());
            let counts: String = columns
                .iter()
                .map(|column| format!(" {:>10}", if *column == cpu { 1000 + index } else { 0 }))
                .collect();
            let _ = write!(
                table,
                "\n {number}:{counts} IR-PCI-MSI {}-edge      {kind}@pci:{ADDRESS}",
                30_932_992 + index
            );
        }
        table.push_str("\nNMI:          0          0   Non-maskable interrupts\n");
        self.file("proc/interrupts", &table);
        for queue in 0..cpus.len() {
            self.file(&format!("{device}/net/{name}/queues/rx-{queue}/rps_cpus"), "00000000");
            self.file(&format!("{device}/net/{name}/queues/tx-{queue}/xps_cpus"), "00000000");
        }
        self.route(name);
        self
    }

    /// The CPUs that serve an interrupt.
    pub fn serve(&self, interrupt: usize, cpus: &str) {
        self.file(&format!("proc/irq/{interrupt}/effective_affinity_list"), cpus);
        self.file(&format!("proc/irq/{interrupt}/smp_affinity_list"), cpus);
    }

    /// A default route.
    pub fn route(&self, name: &str) {
        let heading =
            "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n";
        let routes = format!(
            "{heading}eno1\t00000000\t010200C0\t0003\t0\t0\t600\t00000000\t0\t0\t0\n\
             {name}\t00000000\t010200C0\t0003\t0\t0\t100\t00000000\t0\t0\t0\n\
             {name}\t000200C0\t00000000\t0001\t0\t0\t100\t00FFFFFF\t0\t0\t0\n"
        );
        self.file("proc/self/net/route", &routes);
    }

    fn online(&self) -> Vec<usize> {
        let text = fs::read_to_string(self.path("sys/devices/system/cpu/online")).unwrap();
        text.parse::<CpuSet>().unwrap().iter().collect()
    }

    /// Lets this process use these CPUs only.
    pub fn mask(self, cpus: &str) -> Self {
        self.file("proc/self/status", &format!("Name:\tmanycore\nCpus_allowed_list:\t{cpus}\n"));
        self
    }

    /// Puts this process into a group of the newer interface.
    pub fn group(self, cpuset: &str, quota: &str) -> Self {
        self.file("proc/self/cgroup", "0::/system.slice/web.service\n");
        self.file(
            "proc/self/mountinfo",
            "31 23 0:28 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n",
        );
        let group = "sys/fs/cgroup/system.slice/web.service";
        self.file(&format!("{group}/cpuset.cpus.effective"), cpuset);
        self.file(&format!("{group}/cpu.max"), quota);
        self.file("sys/fs/cgroup/system.slice/cpu.max", "1600000 100000");
        self
    }

    pub fn path(&self, path: &str) -> std::path::PathBuf {
        self.directory.path().join(path)
    }

    /// Writes a file, as the kernel does with a line's end.
    pub fn file(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("{text}\n")).unwrap();
    }

    pub fn link(&self, target: &str, path: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        symlink(target, path).unwrap();
    }

    /// Takes a file or a directory away.
    pub fn remove(&self, path: &str) {
        let path = self.path(path);
        match path.is_dir() {
            true => fs::remove_dir_all(path).unwrap(),
            false => fs::remove_file(path).unwrap(),
        }
    }

    pub fn read(&self, device: Option<&str>) -> Result<Machine, Problem> {
        Machine::read(&Tree::below(self.directory.path()), device)
    }

    pub fn choose(&self, request: &str) -> Result<Choice, Problem> {
        let request: manycore_placement::Request = request.parse()?;
        choose(&request, &self.read(request.device())?)
    }

    /// What the library is told.
    pub fn settings(&self, request: &str) -> String {
        self.choose(request).unwrap_or_else(|problem| panic!("{request}: {problem}")).settings()
    }

    /// The CPUs, and the reasons in one text.
    pub fn outcome(&self, request: &str) -> (String, String) {
        let choice = self.choose(request).unwrap_or_else(|problem| panic!("{request}: {problem}"));
        (choice.cpus().to_string(), choice.reasons.join("\n"))
    }
}

/// The CPUs of sixteen queues on a node with ten CPUs: a driver assigns one after the other, and
/// then begins again.
pub fn sixteen_queues() -> Vec<usize> {
    (0..16).map(|queue| queue % 10).collect()
}
