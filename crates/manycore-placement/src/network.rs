//! The network card: the default route's, or one that the user names.

use serde::Serialize;

use crate::cpu_set::CpuSet;
use crate::interrupts::{self, Interrupt};
use crate::problem::Problem;
use crate::tree::Tree;

const CLASS: &str = "sys/class/net";

/// The kernel's number for loopback devices.
const LOOPBACK: u32 = 772;

/// The largest depth of devices on top of others: a VLAN on a bond on cards.
const DEPTH_MAX: u32 = 8;

/// A network device, and the CPUs that it keeps busy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Nic {
    /// Its name.
    pub name: String,
    /// Why it is this one.
    pub route: Route,
    /// The hardware devices below this one, or itself; none for a device that is only software.
    pub hardware: Vec<String>,
    /// Whether it only leads back to this machine.
    pub loopback: bool,
    /// The memory node of the card's hardware, if the kernel shows it.
    pub node: Option<usize>,
    /// The interrupts of its hardware, ascending.
    pub interrupts: Vec<Interrupt>,
    /// Its queues, and the CPUs that are to serve them.
    pub queues: Queues,
}

/// How a device was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Route {
    /// The user named it.
    Named,
    /// The default route leads over it.
    Default,
}

/// The queues of a device and its software steering.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Queues {
    /// Queues of received packets.
    pub receive: usize,
    /// Queues of packets to send.
    pub transmit: usize,
    /// The CPUs to which packets are passed after the interrupt (RPS). If there is none, the
    /// interrupt's CPU processes them.
    pub rps: CpuSet,
    /// Receive queues with such CPUs.
    pub with_rps: usize,
    /// The CPUs that have transmit queues of their own (XPS). If there is none, the kernel chooses
    /// by the flow.
    pub xps: CpuSet,
}

impl Nic {
    /// The device of this name, or the default route's. There may be none.
    pub(crate) fn read(
        tree: &Tree,
        named: Option<&str>,
        notes: &mut Vec<String>,
    ) -> Result<Option<Self>, Problem> {
        let (name, route) = match named {
            Some(name) => (name.to_owned(), Route::Named),
            None => match default_route(tree)? {
                Some(name) => (name, Route::Default),
                None => return Ok(None),
            },
        };
        let known = tree.names(CLASS)?.unwrap_or_default();
        if !known.contains(&name) || !tree.has(&format!("{CLASS}/{name}/type")) {
            // In a container that has only its own network, /sys shows the devices of another.
            if route == Route::Default {
                notes.push(format!("the default route's device '{name}' is not in /{CLASS}"));
                return Ok(None);
            }
            return Err(Problem::new(
                format!("there is no network device '{name}'"),
                format!("name one of {}", known.join(", ")),
            ));
        }
        let loopback = tree.value::<u32>(&format!("{CLASS}/{name}/type"))? == Some(LOOPBACK);
        let mut nic = Self {
            hardware: Vec::new(),
            loopback,
            node: None,
            interrupts: Vec::new(),
            queues: Queues::default(),
            name,
            route,
        };
        nic.hardware = hardware(tree, &nic.name, 0)?;
        for device in nic.hardware.clone() {
            nic.add(tree, &device, notes)?;
        }
        Ok(Some(nic))
    }

    /// Takes in what one device of hardware says.
    fn add(&mut self, tree: &Tree, device: &str, notes: &mut Vec<String>) -> Result<(), Problem> {
        // A virtio device has its interrupts and its node at the PCI device above it.
        let own = format!("{CLASS}/{device}/device");
        let directories = [own.clone(), format!("{own}/..")];
        for directory in &directories {
            let node = tree.value::<i64>(&format!("{directory}/numa_node"))?;
            // Firmware without nodes says -1.
            self.node = self.node.or(node.and_then(|node| usize::try_from(node).ok()));
        }
        let names: Vec<String> =
            [Some(device.to_owned()), tree.name_behind(&own)].into_iter().flatten().collect();
        self.interrupts.extend(interrupts::of_device(tree, &directories, &names, notes)?);
        self.queues.add(tree, device)
    }

    /// The CPUs that process received packets: those to which software passes packets where that is
    /// set up, and those of the interrupts of the card's queues.
    pub fn serving(&self) -> CpuSet {
        let queues = self.interrupts.iter().filter(|interrupt| interrupt.of_queue);
        let by_interrupt = queues.fold(CpuSet::default(), |all, queue| all.or(&queue.cpus));
        match self.queues.with_rps {
            0 => by_interrupt,
            some if some >= self.queues.receive => self.queues.rps.clone(),
            _ => self.queues.rps.or(&by_interrupt),
        }
    }
}

impl Queues {
    fn add(&mut self, tree: &Tree, device: &str) -> Result<(), Problem> {
        let directory = format!("{CLASS}/{device}/queues");
        for queue in tree.names(&directory)?.unwrap_or_default() {
            let path = format!("{directory}/{queue}");
            if queue.starts_with("rx-") {
                let mask = tree.mask(&format!("{path}/rps_cpus"))?.unwrap_or_default();
                self.receive += 1;
                self.with_rps += usize::from(!mask.is_empty());
                self.rps = self.rps.or(&mask);
            } else if queue.starts_with("tx-") {
                self.transmit += 1;
                let mask = tree.mask(&format!("{path}/xps_cpus"))?.unwrap_or_default();
                self.xps = self.xps.or(&mask);
            }
        }
        Ok(())
    }
}

/// The hardware devices below this one: itself, or the parts of a bond, a bridge, a VLAN.
fn hardware(tree: &Tree, device: &str, depth: u32) -> Result<Vec<String>, Problem> {
    let directory = format!("{CLASS}/{device}");
    if tree.has(&format!("{directory}/device")) {
        return Ok(vec![device.to_owned()]);
    }
    let mut found = Vec::new();
    if depth < DEPTH_MAX {
        for name in tree.names(&directory)?.unwrap_or_default() {
            if let Some(lower) = name.strip_prefix("lower_") {
                found.extend(hardware(tree, lower, depth + 1)?);
            }
        }
    }
    found.sort_unstable();
    found.dedup();
    Ok(found)
}

/// The device of the default route with the least metric. IPv6 counts only if IPv4 has no default
/// route.
fn default_route(tree: &Tree) -> Result<Option<String>, Problem> {
    const UP: u32 = 1;
    // An unreachable network, as firewalls set up: it leads nowhere.
    const REJECT: u32 = 0x200;
    let leads = |flags: u32| flags & (UP | REJECT) == UP;
    let hex = |word: &str| u32::from_str_radix(word, 16).ok();
    let old = tree.text("proc/self/net/route")?.unwrap_or_default();
    let routes = old.lines().skip(1).filter_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [device, "00000000", _, flags, _, _, metric, "00000000", ..] = words[..] else {
            return None;
        };
        leads(hex(flags)?).then_some((metric.parse::<u32>().ok()?, device.to_owned()))
    });
    let new = tree.text("proc/self/net/ipv6_route")?.unwrap_or_default();
    let new_routes = new.lines().filter_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [target, "00", _, _, _, metric, _, _, flags, device] = words[..] else { return None };
        let is_default = target.bytes().all(|digit| digit == b'0') && device != "lo";
        (is_default && leads(hex(flags)?)).then_some((hex(metric)?, device.to_owned()))
    });
    let least = |routes: &mut dyn Iterator<Item = (u32, String)>| {
        routes.min_by_key(|(metric, _)| *metric).map(|(_, device)| device)
    };
    Ok(least(&mut { routes }).or_else(|| least(&mut { new_routes })))
}
