//! Crates depend on each other in one direction only: lower crates do not know higher ones.

use cargo_metadata::{Metadata, MetadataCommand};

use crate::Finding;
use crate::source::root;

/// Each crate, and the crates of this workspace that it may use (in tests, too).
const ARROWS: &[(&str, &[&str])] = &[
    // Feeds readers of files, in their tests.
    ("manycore-fuzz", &[]),
    ("manycore-traits", &[]),
    // A runtime for simulated programs, which knows none of them.
    ("manycore-sim", &["manycore-fuzz"]),
    // Judges the results of collections, with real threads and under explored schedules; for tests.
    ("manycore-history", &["manycore-traits", "manycore-sim"]),
    ("manycore", &["manycore-traits", "manycore-history"]),
    // The sources of manycore on that runtime, compared in its tests with the native build.
    ("manycore-simulated", &["manycore-traits", "manycore-sim", "manycore", "manycore-history"]),
    ("manycore-measure", &["manycore-fuzz"]),
    // Starts programs with the preloaded libraries, and does not know the measurements.
    ("manycore-launch", &["manycore-fuzz", "manycore"]),
    // Reads what the kernel says of the machine, and chooses CPUs.
    ("manycore-placement", &["manycore-fuzz"]),
    // The mappings between preloaded libraries and their readers: neither allocates nor waits.
    ("manycore-stats", &[]),
    (
        "manycore-profile",
        &[
            "manycore-fuzz",
            "manycore-measure",
            "manycore-launch",
            "manycore-placement",
            "manycore-stats",
        ],
    ),
    // Reads the kernel's data, and writes the model of a profile.
    ("manycore-kernel-trace", &["manycore-fuzz", "manycore-profile"]),
    // Shows the locks of a program while it runs.
    (
        "manycore-top",
        &[
            "manycore-fuzz",
            "manycore-measure",
            "manycore-launch",
            "manycore-stats",
            "manycore-profile",
            "manycore-kernel-trace",
        ],
    ),
    // Runs programs under several locks in turn.
    ("manycore-compare", &["manycore-launch", "manycore-measure", "manycore-profile"]),
    // The common part of all libraries that are put under another program.
    ("manycore-interpose", &["manycore"]),
    ("manycore-preload", &["manycore", "manycore-interpose", "manycore-stats"]),
    // Carries system calls to other threads, and knows which descriptors' calls are carried.
    ("manycore-channel", &["manycore"]),
    // The same on the simulator's runtime.
    ("manycore-channel-simulated", &["manycore-simulated"]),
    // The file system of KhronOS: in the form for its kernel, and on the simulator's runtime.
    ("khronos-fs", &["manycore", "manycore-history"]),
    ("khronos-fs-simulated", &["manycore-simulated", "manycore-sim", "manycore-history"]),
    ("khronos-workloads", &["khronos-fs"]),
    (
        "khronos-workloads-simulated",
        &["khronos-fs-simulated", "manycore-sim", "manycore-simulated"],
    ),
    // Pairs of system calls, and the lines that they share.
    ("khronos-pairs", &[]),
    // What is kept of it on a disk.
    ("khronos-disk", &[]),
    // The one kept on the other.
    ("khronos-durable", &["khronos-disk", "khronos-fs"]),
    // Disks in files of the host.
    ("khronos-tools", &["khronos-disk"]),
    (
        "manycore-syscalls",
        &["manycore", "manycore-interpose", "manycore-stats", "manycore-channel"],
    ),
    // Durable transactions on the library's versions; histories of them are judged in its tests.
    ("timestone", &["manycore", "manycore-history"]),
    // The same on the simulator's runtime.
    ("timestone-simulated", &["manycore-simulated", "manycore-sim", "manycore-history"]),
    // Sets in simulated persistent memory, which TimeStone is compared with.
    ("manycore-durable-simulated", &["manycore-traits", "manycore-sim", "manycore-simulated"]),
    // Both are for C; the static library contains the second.
    ("manycore-capi-base", &["manycore"]),
    ("timestone-capi", &["manycore-capi-base", "timestone"]),
    ("manycore-capi", &["manycore-capi-base", "timestone-capi", "manycore"]),
    // Compares TimeStone with other stores, which are built only on request.
    ("timestone-peers", &["timestone", "manycore", "manycore-measure"]),
    (
        "manycore-bench",
        &[
            "manycore-traits",
            "manycore",
            "manycore-sim",
            "manycore-simulated",
            "manycore-channel-simulated",
            "manycore-durable-simulated",
            "khronos-fs",
            "khronos-fs-simulated",
            "khronos-workloads",
            "khronos-workloads-simulated",
            "manycore-measure",
            "manycore-placement",
            "manycore-launch",
            "manycore-profile",
            "manycore-compare",
            "manycore-kernel-trace",
        ],
    ),
    (
        "manycore-figures",
        &["manycore-fuzz", "manycore-sim", "manycore-measure", "manycore-launch", "manycore-bench"],
    ),
    // Sets of C libraries, for machines that have these: nothing else may need them.
    ("manycore-bench-peers", &["manycore-traits", "manycore", "manycore-bench"]),
    (
        "manycore-cli",
        &[
            "manycore-fuzz",
            "manycore-traits",
            "manycore",
            "manycore-sim",
            "manycore-measure",
            "manycore-bench",
            "manycore-compare",
            "manycore-figures",
            "manycore-stats",
            "manycore-profile",
            "manycore-kernel-trace",
            "manycore-launch",
            "manycore-placement",
            "manycore-top",
            "timestone",
            "timestone-peers",
        ],
    ),
    ("manycore-tidy", &[]),
    // Starts programs, under the library and together, and needs the list of locks.
    ("manycore-tests", &["manycore", "manycore-stats", "manycore-profile"]),
];

fn check(krate: &str, manifest: &str, uses: &[&str]) -> Vec<Finding> {
    let Some((_, allowed)) = ARROWS.iter().find(|(name, _)| *name == krate) else {
        let advice = "a new crate: say in manycore-tidy's list of arrows which crates it may use";
        return vec![Finding::new(manifest, 1, advice)];
    };
    // A crate may use itself: its tests, with features that it does not have by default.
    uses.iter()
        .filter(|used| **used != krate && !allowed.contains(used))
        .map(|used| {
            Finding::new(manifest, 1, format!("{krate} may not use {used}: arrows point one way"))
        })
        .collect()
}

fn workspace() -> Metadata {
    let manifest = root().join("Cargo.toml");
    MetadataCommand::new()
        .manifest_path(manifest)
        .no_deps()
        .exec()
        .expect("cargo knows this workspace")
}

#[test]
fn arrows_point_one_way() {
    let metadata = workspace();
    let packages = metadata.workspace_packages();
    let is_ours = |name: &str| packages.iter().any(|p| *p.name == name);
    crate::report(packages.iter().flat_map(|package| {
        let uses: Vec<_> =
            package.dependencies.iter().map(|d| d.name.as_str()).filter(|d| is_ours(d)).collect();
        check(&package.name, package.manifest_path.as_str(), &uses)
    }));
}

#[test]
fn the_list_has_no_circle() {
    for (index, (krate, allowed)) in ARROWS.iter().enumerate() {
        for used in *allowed {
            let at = ARROWS.iter().position(|(name, _)| name == used);
            assert!(at.is_some_and(|at| at < index), "{krate} -> {used}: list {used} first");
        }
    }
}

#[test]
fn notices_an_arrow_upwards() {
    assert_eq!(check("manycore", "Cargo.toml", &["manycore-traits"]).len(), 0);
    assert_eq!(check("manycore", "Cargo.toml", &["manycore-bench"]).len(), 1);
    assert_eq!(check("manycore-new", "Cargo.toml", &[]).len(), 1);
}
