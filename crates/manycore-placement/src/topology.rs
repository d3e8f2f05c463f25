//! Packages, cores, memory nodes and caches, as the kernel shows them in sysfs.

use serde::Serialize;

use crate::cpu_set::CpuSet;
use crate::problem::Problem;
use crate::tree::{Tree, number_after};

const CPUS: &str = "sys/devices/system/cpu";
const NODES: &str = "sys/devices/system/node";

/// The CPUs that are online, and what they share.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Topology {
    /// In ascending order; at least one.
    pub cpus: Vec<Cpu>,
    /// Memory nodes, ascending; at least one.
    pub nodes: Vec<NumaNode>,
    /// The facts that the kernel does not show, and the assumptions in their place.
    pub notes: Vec<String>,
}

/// A CPU's place.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Cpu {
    /// The kernel's number.
    pub number: usize,
    /// Its socket.
    pub package: usize,
    /// Its memory node.
    pub node: usize,
    /// The hardware threads of its core, itself among them.
    pub siblings: CpuSet,
    /// The CPUs that share the last-level cache with this one, which is among them.
    pub last_level: CpuSet,
    /// Its caches that hold data, nearest first.
    pub caches: Vec<Cache>,
}

/// A cache that holds data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Cache {
    /// 1 is the nearest.
    pub level: u32,
    /// Its size; 0 if the kernel does not tell.
    pub bytes: u64,
    /// The lines of a set; 0 if the kernel does not show it.
    pub ways: u32,
}

/// A memory node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NumaNode {
    /// The kernel's number.
    pub number: usize,
    /// Its CPUs that are online; some nodes have memory only.
    pub cpus: CpuSet,
    /// The distances to all nodes in the order of the list, in the firmware's unit: 10 is the node
    /// itself.
    pub distances: Vec<u32>,
}

impl Topology {
    /// Reads the topology of the machine that the tree describes.
    ///
    /// # Errors
    /// If it does not say which CPUs there are, or contradicts itself.
    pub fn read(tree: &Tree) -> Result<Self, Problem> {
        let path = format!("{CPUS}/online");
        let online: CpuSet = tree.value(&path)?.ok_or_else(|| tree.missing(&path))?;
        if online.is_empty() {
            return Err(tree.broken(&path, "no CPU is online"));
        }
        let mut notes = Vec::new();
        let nodes = nodes(tree, &online, &mut notes)?;
        let read = |number| Cpu::read(tree, number, &online, &nodes, &mut notes);
        let mut cpus = online.iter().map(read).collect::<Result<Vec<_>, _>>()?;
        share_packages(&mut cpus, &mut notes);
        Ok(Self { cpus, nodes, notes })
    }

    /// All CPUs that are online.
    pub fn online(&self) -> CpuSet {
        self.cpus.iter().map(|cpu| cpu.number).collect()
    }

    /// This CPU, if it is online.
    pub fn cpu(&self, number: usize) -> Option<&Cpu> {
        self.cpus.iter().find(|cpu| cpu.number == number)
    }

    /// The node of this number.
    pub fn node(&self, number: usize) -> Option<&NumaNode> {
        self.nodes.iter().find(|node| node.number == number)
    }

    /// The CPUs that share a last-level cache, cache by cache, by their first CPU.
    pub fn last_levels(&self) -> Vec<&CpuSet> {
        let mut caches: Vec<&CpuSet> = self.cpus.iter().map(|cpu| &cpu.last_level).collect();
        caches.sort_unstable();
        caches.dedup();
        caches
    }

    /// How many packages there are.
    pub fn packages(&self) -> usize {
        self.cpus.iter().map(|cpu| cpu.package).collect::<CpuSet>().len()
    }

    /// How many cores there are.
    pub fn cores(&self) -> usize {
        self.one_thread_a_core(&self.online()).len()
    }

    /// All CPUs that share a last-level cache with one of these.
    pub fn near(&self, cpus: &CpuSet) -> CpuSet {
        let of = |cpu| self.cpu(cpu).map(|cpu| &cpu.last_level);
        cpus.iter().filter_map(of).fold(CpuSet::default(), |all, cache| all.or(cache))
    }

    /// The first hardware thread of each core among these CPUs.
    pub fn one_thread_a_core(&self, cpus: &CpuSet) -> CpuSet {
        let is_first = |cpu: &usize| {
            self.cpu(*cpu).is_none_or(|place| place.siblings.and(cpus).first() == Some(*cpu))
        };
        cpus.iter().filter(is_first).collect()
    }

    /// The nodes, the nearest to this one first: itself, then by distance and number.
    pub fn nodes_from(&self, number: usize) -> Vec<&NumaNode> {
        let mut nodes: Vec<(usize, &NumaNode)> = self.nodes.iter().enumerate().collect();
        if let Some(start) = self.node(number) {
            nodes.sort_by_key(|(place, node)| {
                (node.number != number, start.distances[*place], node.number)
            });
        }
        nodes.into_iter().map(|(_, node)| node).collect()
    }
}

impl Cpu {
    fn read(
        tree: &Tree,
        number: usize,
        online: &CpuSet,
        nodes: &[NumaNode],
        notes: &mut Vec<String>,
    ) -> Result<Self, Problem> {
        let directory = format!("{CPUS}/cpu{number}");
        let package: Option<i64> =
            tree.value(&format!("{directory}/topology/physical_package_id"))?;
        if package.is_none() {
            notes.push(format!("the kernel does not tell the package of CPU {number}: 0 is taken"));
        }
        let mut siblings = None;
        for name in ["core_cpus_list", "thread_siblings_list"] {
            let path = format!("{directory}/topology/{name}");
            siblings = siblings.or(shared(tree, &path, number, online)?);
        }
        let (caches, last_level) = caches(tree, number, online)?;
        Ok(Self {
            number,
            // Some firmware gives no number, which the kernel shows as -1.
            package: package.and_then(|package| usize::try_from(package).ok()).unwrap_or(0),
            node: nodes.iter().find(|node| node.cpus.contains(number)).map_or(0, |n| n.number),
            // Where the kernel shows nothing, as on some virtual machines, each CPU is a core.
            siblings: siblings.unwrap_or_else(|| [number].into_iter().collect()),
            last_level: last_level.unwrap_or_default(),
            caches,
        })
    }
}

/// The CPUs of a list that are online. The list has to contain `number`.
fn shared(
    tree: &Tree,
    path: &str,
    number: usize,
    online: &CpuSet,
) -> Result<Option<CpuSet>, Problem> {
    match tree.value::<CpuSet>(path)? {
        Some(list) if !list.contains(number) => {
            Err(tree.broken(path, format!("'{list}' does not have CPU {number}, whose file it is")))
        }
        list => Ok(list.map(|list| list.and(online))),
    }
}

/// The caches of a CPU that hold data, nearest first, and the CPUs that share the last one.
fn caches(
    tree: &Tree,
    number: usize,
    online: &CpuSet,
) -> Result<(Vec<Cache>, Option<CpuSet>), Problem> {
    let directory = format!("{CPUS}/cpu{number}/cache");
    let mut found = Vec::new();
    for name in tree.names(&directory)?.unwrap_or_default() {
        if number_after(&name, "index").is_none() {
            continue;
        }
        let path = format!("{directory}/{name}");
        let kind = tree.text(&format!("{path}/type"))?;
        let Some(level) = tree.value::<u32>(&format!("{path}/level"))? else { continue };
        if kind.as_deref() == Some("Instruction") {
            continue;
        }
        let bytes = tree.text(&format!("{path}/size"))?.and_then(|size| bytes(&size)).unwrap_or(0);
        let ways = tree.value(&format!("{path}/ways_of_associativity"))?.unwrap_or(0);
        let sharers = shared(tree, &format!("{path}/shared_cpu_list"), number, online)?;
        found.push((Cache { level, bytes, ways }, sharers));
    }
    found.sort_by_key(|(cache, _)| cache.level);
    let last = found.last().and_then(|(_, sharers)| sharers.clone());
    Ok((found.into_iter().map(|(cache, _)| cache).collect(), last))
}

/// A size such as `25600K`.
fn bytes(size: &str) -> Option<u64> {
    let (digits, unit) = match size.strip_suffix('M') {
        Some(digits) => (digits, 1 << 20),
        None => (size.strip_suffix('K')?, 1 << 10),
    };
    digits.parse::<u64>().ok()?.checked_mul(unit)
}

/// Gives CPUs without a known last-level cache that of their package.
fn share_packages(cpus: &mut [Cpu], notes: &mut Vec<String>) {
    let unknown: CpuSet =
        cpus.iter().filter(|cpu| cpu.last_level.is_empty()).map(|cpu| cpu.number).collect();
    if unknown.is_empty() {
        return;
    }
    notes.push(format!(
        "the kernel does not tell who shares a cache with CPUs {unknown}: those of their package are taken"
    ));
    let places: Vec<(usize, usize)> = cpus.iter().map(|cpu| (cpu.number, cpu.package)).collect();
    for cpu in cpus.iter_mut().filter(|cpu| unknown.contains(cpu.number)) {
        let mates = places
            .iter()
            .filter(|(other, package)| *package == cpu.package && unknown.contains(*other));
        cpu.last_level = mates.map(|(other, _)| *other).collect();
    }
}

fn nodes(tree: &Tree, online: &CpuSet, notes: &mut Vec<String>) -> Result<Vec<NumaNode>, Problem> {
    let names = tree.names(NODES)?.unwrap_or_default();
    let mut numbers: Vec<usize> =
        names.iter().filter_map(|name| number_after(name, "node")).collect();
    numbers.sort_unstable();
    if numbers.is_empty() {
        notes.push("the kernel tells no memory nodes: one is taken".to_owned());
        return Ok(vec![NumaNode { number: 0, cpus: online.clone(), distances: vec![10] }]);
    }
    let mut nodes = Vec::new();
    for number in &numbers {
        let path = format!("{NODES}/node{number}/cpulist");
        let cpus: CpuSet = tree.value(&path)?.ok_or_else(|| tree.missing(&path))?;
        let path = format!("{NODES}/node{number}/distance");
        let text = tree.text(&path)?.ok_or_else(|| tree.missing(&path))?;
        let distances: Option<Vec<u32>> = text.split_whitespace().map(|d| d.parse().ok()).collect();
        let distances = distances.filter(|row| row.len() == numbers.len()).ok_or_else(|| {
            tree.broken(&path, format!("'{text}' are no distances to {} nodes", numbers.len()))
        })?;
        nodes.push(NumaNode { number: *number, cpus: cpus.and(online), distances });
    }
    let placed = nodes.iter().fold(CpuSet::default(), |all, node| all.or(&node.cpus));
    let rest = online.without(&placed);
    if !rest.is_empty() {
        return Err(tree.broken(NODES, format!("CPUs {rest} are online, and in no node")));
    }
    Ok(nodes)
}
