//! Every exported function of both libraries works before their constructors have run.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::sync::LazyLock;

use manycore_tests::preload::{self, Beneath};
use manycore_tests::toolchain::Executable;
use manycore_tests::{LIMIT, cases};

use crate::programs::{self, WORKSHOP};

/// A program that does nothing, and needs a library whose constructor calls everything.
static PROGRAM: LazyLock<Executable> = LazyLock::new(|| {
    let library = WORKSHOP.shared_library("first_calls", "first_calls", &[]);
    let library = library.to_str().expect("a path of ASCII characters");
    WORKSHOP.c_as("nothing", "first_calls", &["-Wl,--no-as-needed", library])
});

/// The names that a library exports, except for the marker by which its copies know each other.
fn exports(library: &Path) -> BTreeSet<String> {
    let listing = Command::new("nm").args(["-D", "--defined-only"]).arg(library).output();
    let listing = String::from_utf8(listing.expect("nm, of a C compiler's").stdout);
    let listing = listing.expect("names are ASCII");
    let names = listing.lines().filter_map(|line| line.split(' ').nth(2));
    names.filter(|name| !name.ends_with("_copy")).map(str::to_owned).collect()
}

#[test]
fn each_export_has_a_case() {
    let printed = programs::run(&PROGRAM, &Beneath::glibc(), LIMIT);
    assert_eq!(cases::defects(&printed), [""; 0]);
    let called = cases::parse(&printed.stdout).into_iter();
    let called: BTreeSet<_> =
        called.filter_map(|(name, _)| name.strip_prefix("first.")).map(str::to_owned).collect();
    for library in [preload::library(), preload::syscalls_library()] {
        let exported = exports(library);
        assert!(exported.len() > 50, "{}: {exported:?}", library.display());
        let missing: Vec<_> = exported.difference(&called).collect();
        assert!(missing.is_empty(), "first_calls.c does not call {missing:?}");
    }
}

#[test]
fn each_export_works_first() {
    let expected = programs::run(&PROGRAM, &Beneath::glibc(), LIMIT);
    let scratch = tempfile::tempdir().expect("a directory for statistics");
    let counted = |beneath: Beneath, variable| beneath.variable(variable, scratch.path());
    let (locks, calls) = ("MANYCORE_STATS", "MANYCORE_SYSCALLS_STATS");
    let ways = ["in-place", "thread", "pool", "uring"];
    let beneath = [Beneath::lock("futex"), Beneath::lock("mcs")].into_iter();
    let beneath = beneath.chain([counted(Beneath::lock("adaptive"), locks)]);
    let beneath = beneath.chain(ways.map(Beneath::syscalls));
    let beneath = beneath.chain(ways.map(|way| counted(Beneath::syscalls(way), calls)));
    let both = |way| Beneath::syscalls(way).library_first(preload::library());
    programs::report(beneath.chain(ways.map(both)).filter_map(|beneath| {
        let got = programs::run(&PROGRAM, &beneath, LIMIT);
        let differences = cases::differences(&expected, &got);
        let heading = format!("first calls beneath {beneath:?}");
        (!differences.is_empty()).then(|| cases::account(&heading, &got, &differences))
    }));
}
