//! Allocators, whose locks are taken before everything else is ready: real ones, preloaded and
//! linked.

use std::env;
use std::path::PathBuf;

use manycore_tests::preload::Beneath;
use manycore_tests::{LIMIT, cases};

use crate::programs::{self, WORKSHOP, program};

/// Debian's names for the libraries, and their packages.
const ALLOCATORS: [(&str, &str, &str); 3] = [
    ("jemalloc", "libjemalloc.so.2", "libjemalloc2"),
    ("tcmalloc", "libtcmalloc_minimal.so.4", "libtcmalloc-minimal4"),
    ("mimalloc", "libmimalloc.so.2", "libmimalloc2.0"),
];

fn found(library: &str, package: &str) -> PathBuf {
    let path = PathBuf::from(format!("/usr/lib/{}-linux-gnu/{library}", env::consts::ARCH));
    assert!(path.exists(), "{library} is not installed: apt-get install {package}");
    path
}

fn all_beneath() -> impl Iterator<Item = (String, Beneath)> {
    let locks = ["futex", "adaptive", "hybrid", "mcs", "cna"];
    let locks = locks.map(|lock| (format!("under {lock}"), Beneath::lock(lock)));
    let calls = ["pool", "uring"];
    let calls = calls.map(|by| (format!("with calls moved by {by}"), Beneath::syscalls(by)));
    locks.into_iter().chain(calls)
}

const PROGRAMS: [&str; 4] = ["early", "mutex_contended", "loading", "fork"];

#[test]
fn preloaded() {
    programs::report(
        ALLOCATORS
            .iter()
            .flat_map(|(name, library, package)| {
                let allocator = found(library, package);
                all_beneath().flat_map(move |(how, beneath)| {
                    let orders = [
                        ("ahead", beneath.clone().library_first(&allocator)),
                        ("behind", beneath.library(&allocator)),
                    ];
                    orders.map(|(order, both)| {
                        let heading = format!("{how}, {name} {order}");
                        PROGRAMS.map(|name| program(name).check(&heading, &both))
                    })
                })
            })
            .flatten()
            .flatten(),
    );
}

#[test]
fn linked() {
    programs::report(ALLOCATORS.iter().flat_map(|(name, library, package)| {
        let allocator = found(library, package);
        let flags = ["-Wl,--no-as-needed", allocator.to_str().expect("an ASCII path")];
        let executable = WORKSHOP.c_as("early", &format!("early_{name}"), &flags);
        let expected = programs::run(&executable, &Beneath::glibc(), LIMIT);
        assert_eq!(cases::defects(&expected), [""; 0]);
        all_beneath().filter_map(move |(how, beneath)| {
            let got = programs::run(&executable, &beneath, LIMIT);
            let differences = cases::differences(&expected, &got);
            let heading = format!("{how}, {name} linked");
            (!differences.is_empty()).then(|| cases::account(&heading, &got, &differences))
        })
    }));
}

/// An allocator of the program's own, which initialises everything at its first call.
#[test]
fn of_the_program() {
    let program = program("eager_malloc");
    programs::report(all_beneath().filter_map(|(how, beneath)| program.check(&how, &beneath)));
}
