//! Choices on machines as they were seen.

use crate::support::{Built, EIGHT_SOCKETS, IVY_BRIDGE, MANY_CACHES, Shape, pair, sixteen_queues};
use manycore_placement::{Machine, Mechanism, Policy, Tree};

fn ivy_bridge() -> Built {
    Built::new(&IVY_BRIDGE).card("eth2", 0, &sixteen_queues())
}

#[test]
fn the_publications_machine() {
    let built = ivy_bridge();
    let machine = built.read(None).unwrap();
    assert_eq!((machine.topology.packages(), machine.topology.cores()), (2, 20));
    assert_eq!(machine.topology.cpus[10].caches[2].bytes, 25_600 << 10);
    let nic = machine.nic.unwrap();
    assert_eq!((nic.name.as_str(), nic.node, nic.queues.receive), ("eth2", Some(0), 16));
    assert_eq!(nic.serving().to_string(), "0-9");
    let kinds: Vec<bool> = nic.interrupts.iter().map(|interrupt| interrupt.of_queue).collect();
    assert_eq!(
        (kinds.len(), kinds[0], kinds[1..].iter().all(|packets| *packets)),
        (17, false, true)
    );

    assert_eq!(built.settings("nic-llc"), "pool:cpus=0-9:rule=first:files=no:bypass=no");
    let (_, why) = built.outcome("nic-llc");
    assert!(why.contains("CPUs 0-9 share the last-level cache with CPUs 0-9, which serve the interrupts of eth2 (the default route's)"), "{why}");
    assert_eq!(
        built.settings("single-node:mechanism=thread:files=yes"),
        "thread:cpus=0-9:rule=first:files=yes:bypass=no"
    );
    assert_eq!(
        built.settings("cross-node:threshold=3"),
        "pool:cpus=0-9/10-19:rule=spill-3:files=no:bypass=no"
    );
    assert_eq!(built.settings("per-node"), "pool:cpus=0-9/10-19:rule=own:files=no:bypass=no");
    assert_eq!(built.settings("auto"), "pool:cpus=0-9:rule=first:files=no:bypass=yes");
    assert_eq!(
        built.settings("auto:bypass=no:mechanism=uring"),
        "uring:cpus=0-9:rule=first:files=no:bypass=no"
    );
}

#[test]
fn of_each_core_one_thread() {
    let shape = Shape { threads: 2, ..IVY_BRIDGE };
    let built = Built::new(&shape).card("eth2", 1, &[10, 11, 32]);
    let (cpus, why) = built.outcome("nic-llc");
    assert_eq!(cpus, "10-19");
    assert!(why.contains("of each core one hardware thread: 10-19, and not 30-39"), "{why}");
    // Where the mask has only the second thread of a core, that is the one.
    assert_eq!(built.mask("10-14,30-39").outcome("nic-llc").0, "10-14,35-39");
    // CPUs that the user names are all used.
    let built = Built::new(&shape).card("eth2", 1, &[10]);
    assert_eq!(built.outcome("nic-llc:cpus=10,30").0, "10,30");
}

/// Every CPU on which a thread may run is in a group: a CPU of another node would be no better than
/// any.
#[test]
fn per_node_has_every_cpu() {
    let shape = Shape { threads: 2, ..IVY_BRIDGE };
    let built = Built::new(&shape).card("eth2", 1, &[10]);
    let settings = |request| built.choose(request).unwrap().settings();
    assert!(settings("per-node").contains("cpus=0-9,20-29/10-19,30-39:rule=own"));
    assert!(settings("per-node:cpus=0,20,10").contains("cpus=0,20/10:rule=own"));
    let (_, why) = built.outcome("per-node:cpus=0,20,10");
    assert!(why.contains("have theirs on CPUs 0,20"), "{why}");
}

#[test]
fn eight_sockets() {
    let built = Built::new(&EIGHT_SOCKETS).card("eth2", 3, &[45]);
    assert_eq!(built.outcome("nic-llc").0, "45-59");
    let choice = built.choose("cross-node").unwrap();
    let groups: Vec<String> = choice.groups.iter().map(ToString::to_string).collect();
    // Its own board and its opposite before the rest.
    let nearest = ["45-59", "0-14", "15-29", "30-44", "105-119"];
    assert_eq!((groups.len(), &groups[..5]), (8, &nearest.map(str::to_owned)[..]));
    // A package of eight is too small for all calls.
    let choice = built.choose("auto").unwrap();
    assert_eq!(choice.policy, Policy::CrossNode);
    assert!(
        choice.reasons.iter().any(|why| why.contains("15 of 120 cores")),
        "{:?}",
        choice.reasons
    );
    // It has half of those two packages.
    let choice = built.mask("45-59,105-119").choose("auto").unwrap();
    assert_eq!(
        (choice.policy, choice.settings().as_str()),
        (Policy::NicLlc, "pool:cpus=45-59:rule=first:files=no:bypass=yes")
    );
}

#[test]
fn several_caches_a_node() {
    let built = Built::new(&MANY_CACHES).card("eth2", 1, &[33, 34]);
    assert_eq!(built.outcome("nic-llc").0, "32-35");
    assert_eq!(built.outcome("single-node").0, "32-63");
    let choice = built.choose("auto").unwrap();
    assert_eq!((choice.policy, choice.cpus().to_string().as_str()), (Policy::SingleNode, "32-63"));
    let spread = Built::new(&MANY_CACHES).card("eth2", 1, &[33, 40, 41]);
    let (cpus, why) = spread.outcome("nic-llc");
    assert_eq!(cpus, "32-35,40-43");
    assert!(why.contains("one of 2 last-level caches"), "{why}");
}

#[test]
fn a_small_virtual_machine() {
    let shape = Shape { packages: 1, cores: 2, threads: 1, cache_cores: 2, distance: pair };
    let built = Built::new(&shape);
    // A virtio card: its interrupts and its node are those of the PCI device above it.
    let above = "sys/devices/pci0000:00/0000:00:03.0";
    built.file(&format!("{above}/numa_node"), "-1");
    built.file(&format!("{above}/virtio2/net/eth0/type"), "1");
    built.file(&format!("{above}/virtio2/net/eth0/queues/rx-0/rps_cpus"), "0");
    built.link("../../devices/pci0000:00/0000:00:03.0/virtio2/net/eth0", "sys/class/net/eth0");
    built.link("../../../virtio2", &format!("{above}/virtio2/net/eth0/device"));
    built.file(
        "proc/interrupts",
        "           CPU0       CPU1\n 37:   0   0 PCI-MSIX-0000:00:03.0   0-edge      virtio2-config\n \
         38:   0   9220 PCI-MSIX-0000:00:03.0   1-edge      virtio2-input.0\n \
         39:   6638   0 PCI-MSIX-0000:00:03.0   2-edge      virtio2-output.0\nLOC: 1 2 Local timer interrupts",
    );
    for (number, cpu) in [(37, "0"), (38, "1"), (39, "0")] {
        built.file(&format!("{above}/msi_irqs/{number}"), "msix");
        built.serve(number, cpu);
    }
    built.route("eth0");
    let machine = built.read(None).unwrap();
    let nic = machine.nic.unwrap();
    assert_eq!((nic.node, nic.serving().to_string().as_str()), (None, "0-1"));
    let choice = built.choose("auto").unwrap();
    assert_eq!((choice.mechanism, choice.policy), (Mechanism::InPlace, Policy::Auto));
    assert_eq!(choice.settings(), "in-place:cpus=0-1:rule=first:files=no:bypass=yes");
    assert!(choice.reasons[0].contains("share one last-level cache"), "{:?}", choice.reasons);
    // A user who requests it gets it.
    assert_eq!(built.settings("nic-llc"), "pool:cpus=0-1:rule=first:files=no:bypass=no");
    // Without a list of its interrupts they are found by their names.
    built.remove(&format!("{above}/msi_irqs"));
    let machine = built.read(None).unwrap();
    assert_eq!(machine.nic.unwrap().interrupts.len(), 3);
    assert!(machine.notes[0].contains("by their names"), "{:?}", machine.notes);
}

#[test]
fn cpus_that_are_offline() {
    let built = ivy_bridge();
    built.file("sys/devices/system/cpu/online", "0-4,10-19");
    for cpu in 5..10 {
        built.remove(&format!("sys/devices/system/cpu/cpu{cpu}"));
    }
    for interrupt in 106..=110 {
        built.serve(interrupt, "");
    }
    let (cpus, why) = built.outcome("nic-llc");
    assert_eq!(cpus, "0-4");
    assert!(!why.contains("not used"), "what is offline is not excluded by the mask: {why}");
    let problem = built.choose("nic-llc:cpus=4-5").unwrap_err();
    assert!(problem.culprit.contains("5 may not be used"), "{problem}");
    assert!(problem.remedy.contains("0-4,10-19"), "{problem}");
}

#[test]
fn the_mask_excludes_the_cards_package() {
    let built = ivy_bridge().mask("12-15");
    for policy in ["nic-llc", "single-node", "cross-node", "per-node"] {
        assert_eq!(built.outcome(policy).0, "12-15", "{policy}");
    }
    let (_, why) = built.outcome("nic-llc");
    assert!(why.contains("not used: CPUs 0-11,16-19"), "{why}");
    assert!(
        why.contains("none that may be used is among them, and the nearest that may: CPUs 12-15"),
        "{why}"
    );
    assert_eq!(built.choose("auto").unwrap().mechanism, Mechanism::InPlace);
}

#[test]
fn control_groups() {
    let built = ivy_bridge().group("4-7,14", "max 100000");
    let limits = built.read(None).unwrap().limits;
    assert_eq!(limits.allowed.to_string(), "4-7,14");
    assert_eq!(limits.quota, Some(16.0), "of the group around it");
    assert_eq!(built.outcome("nic-llc").0, "4-7");
    let built = ivy_bridge().group("0-19", "250000 100000");
    let choice = built.choose("auto").unwrap();
    assert_eq!(choice.mechanism, Mechanism::InPlace);
    assert!(choice.reasons.iter().any(|why| why.contains("2.5 CPUs")), "{:?}", choice.reasons);

    // The older interface: a hierarchy for each controller, in a container that sees its own group
    // at the top.
    let built = ivy_bridge();
    built.file("proc/self/cgroup", "3:cpuset:/web\n2:cpu,cpuacct:/web\n0::/\n");
    built.file(
        "proc/self/mountinfo",
        "34 31 0:31 /web /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n\
         32 31 0:29 /web /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n\
         23 1 0:22 / /proc rw - proc proc rw",
    );
    built.file("sys/fs/cgroup/cpuset/cpuset.cpus", "10-13");
    built.file("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "600000");
    built.file("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000");
    let limits = built.read(None).unwrap().limits;
    assert_eq!((limits.allowed.to_string().as_str(), limits.quota), ("10-13", Some(6.0)));
}

#[test]
fn packets_that_software_hands_on() {
    let built = ivy_bridge();
    for queue in 0..16 {
        built.file(&format!("sys/class/net/eth2/queues/rx-{queue}/rps_cpus"), "000ffc00");
    }
    let (cpus, why) = built.outcome("nic-llc");
    assert_eq!(cpus, "10-19");
    assert!(why.contains("CPUs 10-19, which get the packets of RPS on eth2"), "{why}");
}

#[test]
fn interrupts_that_are_everywhere() {
    let all: Vec<usize> = (0..20).collect();
    let built = Built::new(&IVY_BRIDGE).card("eth2", 0, &all);
    assert_eq!(built.outcome("nic-llc").0, "0-19");
    let choice = built.choose("auto").unwrap();
    assert_eq!(choice.mechanism, Mechanism::InPlace);
    assert!(
        choice.reasons[0].contains("spread over all 2 last-level caches"),
        "{:?}",
        choice.reasons
    );
}

#[test]
fn devices_without_interrupts_and_those_on_others() {
    let built = ivy_bridge();
    let (cpus, why) = built.outcome("nic-llc:device=lo");
    assert_eq!(cpus, "0-9");
    assert!(why.contains("lo only leads back"), "{why}");
    built.file("sys/class/net/br0/type", "1");
    assert!(built.outcome("nic-llc:device=br0").1.contains("br0 is a device of software only"));
    // A VLAN on a bond on the card.
    for (device, lower) in [("bond0", "eth2"), ("bond0.5", "bond0")] {
        built.file(&format!("sys/class/net/{device}/type"), "1");
        built.file(&format!("sys/class/net/{device}/lower_{lower}/type"), "1");
    }
    let nic = built.read(Some("bond0.5")).unwrap().nic.unwrap();
    assert_eq!((nic.hardware, nic.node), (vec!["eth2".to_owned()], Some(0)));
    let problem = built.read(Some("eth7")).unwrap_err();
    assert!(problem.culprit.contains("'eth7'") && problem.remedy.contains("eth2, lo"), "{problem}");
    // What is in the directory of devices, and what is none.
    built.file("sys/class/net/bonding_masters", "bond0");
    for name in [".", "..", "../net/eth2", "bonding_masters"] {
        assert!(built.read(Some(name)).is_err(), "{name}");
    }
    // A container has a network of its own, and the machine's sysfs.
    built.route("veth5");
    let machine = built.read(None).unwrap();
    assert!(machine.nic.is_none() && machine.notes.join(" ").contains("'veth5'"));
    assert_eq!(built.choose("auto").unwrap().mechanism, Mechanism::InPlace);
    // Nor does a route that refuses lead anywhere.
    built.file(
        "proc/self/net/route",
        "Iface\tDestination\n*\t00000000\t00000000\t0201\t0\t0\t0\t00000000\t0\t0\t0",
    );
    assert!(built.read(None).unwrap().nic.is_none());

    // No route: no card.
    built.remove("proc/self/net/route");
    assert!(built.outcome("nic-llc").1.contains("no default route"));
    assert_eq!(built.choose("auto").unwrap().mechanism, Mechanism::InPlace);
    // IPv6 only.
    let zero = "0".repeat(32);
    built.file(
        "proc/self/net/ipv6_route",
        &format!("{zero} 00 {zero} 00 {zero} 00000400 1 0 00000003     eth2\n{zero} 00 {zero} 00 {zero} ffffffff 1 0 00200200       lo"),
    );
    assert_eq!(built.outcome("nic-llc").0, "0-9");
}

#[test]
fn what_kernels_do_not_tell_is_noted() {
    let built = ivy_bridge();
    built.remove("sys/devices/system/node");
    for cpu in 0..20 {
        built.remove(&format!("sys/devices/system/cpu/cpu{cpu}/cache"));
    }
    let machine = built.read(None).unwrap();
    let notes = machine.topology.notes.join("\n");
    assert!(
        notes.contains("no memory nodes") && notes.contains("shares a cache with CPUs 0-19"),
        "{notes}"
    );
    assert_eq!(built.outcome("nic-llc").0, "0-9", "those of the package");
}

#[test]
fn files_that_make_no_sense_are_named() {
    let cases = [
        ("sys/devices/system/cpu/online", "some", "no CPU"),
        ("sys/devices/system/cpu/online", "", "no CPU is online"),
        ("sys/devices/system/cpu/cpu3/cache/index3/shared_cpu_list", "10-19", "CPU 3"),
        ("sys/devices/system/cpu/cpu3/topology/core_cpus_list", "4-", "'4-'"),
        ("sys/devices/system/node/node1/distance", "21", "2 nodes"),
        ("sys/devices/system/node/node1/cpulist", "10-18", "CPUs 19"),
        ("proc/self/status", "Name: x", "Cpus_allowed_list"),
        ("proc/irq/101/effective_affinity_list", "x", "'x'"),
        ("proc/interrupts", "nothing", "begin with the CPUs"),
        ("sys/class/net/eth2/queues/rx-3/rps_cpus", "zz", "'zz'"),
        ("sys/fs/cgroup/system.slice/web.service/cpu.max", "often", "quota"),
    ];
    for (path, text, words) in cases {
        let built = ivy_bridge().group("0-19", "max 100000");
        built.file(path, text);
        let problem = built.read(None).unwrap_err();
        let directory = path.split('/').take(4).collect::<Vec<_>>().join("/");
        assert!(problem.culprit.contains(&directory), "{path}: {problem}");
        assert!(problem.culprit.contains(words), "{path}: {problem}");
    }
    for path in [
        "sys/devices/system/cpu/online",
        "proc/self/status",
        "sys/devices/system/node/node0/cpulist",
    ] {
        let built = ivy_bridge();
        built.remove(path);
        let problem = built.read(None).unwrap_err();
        assert!(problem.culprit.contains(path) && problem.culprit.contains("missing"), "{problem}");
    }
    let problem = ivy_bridge().mask("30-39").read(None).unwrap_err();
    assert!(
        problem.culprit.contains("no CPU is left") && problem.culprit.contains("30-39"),
        "{problem}"
    );
}

#[test]
fn this_machine() {
    let machine = Machine::read(&Tree::of_this_machine(), None).unwrap();
    let here = std::thread::available_parallelism().unwrap().get();
    assert!(machine.limits.allowed.len() >= here);
    for policy in Policy::ALL {
        let choice = manycore_placement::choose(&policy.name().parse().unwrap(), &machine).unwrap();
        assert!(choice.cpus().is_within(&machine.limits.allowed), "{policy}");
    }
}

#[test]
fn the_whole_model_is_described() {
    let built = ivy_bridge().group("0-19", "1000000 100000");
    let (machine, choice) = (built.read(None).unwrap(), built.choose("cross-node").unwrap());
    let text = include_str!("../../../../docs/src/json/placement.md");
    let mut open =
        vec![serde_json::to_value(machine).unwrap(), serde_json::to_value(choice).unwrap()];
    let mut missing = Vec::new();
    while let Some(value) = open.pop() {
        match value {
            serde_json::Value::Object(fields) => {
                missing.extend(
                    fields.keys().filter(|key| !text.contains(&format!("`{key}`"))).cloned(),
                );
                open.extend(fields.into_iter().map(|(_, value)| value));
            }
            serde_json::Value::Array(values) => open.extend(values),
            _ => {}
        }
    }
    missing.retain(|key| key != "spill");
    assert!(missing.is_empty(), "{missing:?}");
    assert!(text.contains("{\"spill\": N}"));
}
