//! With the feature `embedded`: builds the preload libraries, which are carried in the command
//! then.
//!
//! cargo cannot make the shared libraries of one package part of another package. So it is called
//! again, into a directory of this build's own. `MANYCORE_LIBRARIES` names a directory that has the
//! libraries already.

use std::env;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-env-changed=MANYCORE_LIBRARIES");
    println!("cargo::rerun-if-changed=build.rs");
    if env::var_os("CARGO_FEATURE_EMBEDDED").is_none() {
        return;
    }
    let libraries = match env::var_os("MANYCORE_LIBRARIES") {
        Some(directory) => PathBuf::from(directory),
        None => build(),
    };
    for name in ["libmanycore_preload.so", "libmanycore_syscalls.so"] {
        let library = libraries.join(name);
        assert!(library.is_file(), "there is no {}", library.display());
        println!("cargo::rerun-if-changed={}", library.display());
    }
    println!("cargo::rustc-env=MANYCORE_LIBRARIES={}", libraries.display());
}

/// Builds them, and says where they are.
fn build() -> PathBuf {
    let crates = Path::new(&variable("CARGO_MANIFEST_DIR")).join("..");
    println!("cargo::rerun-if-changed={}", crates.display());
    let into = Path::new(&variable("OUT_DIR")).join("libraries");
    let target = variable("TARGET");
    let status = Command::new(variable("CARGO"))
        .args([
            "build",
            "--locked",
            "--release",
            "-p",
            "manycore-preload",
            "-p",
            "manycore-syscalls",
        ])
        .arg("--manifest-path")
        .arg(crates.join("../Cargo.toml"))
        .arg("--target-dir")
        .arg(&into)
        .arg("--target")
        .arg(&target)
        .env("CARGO_PROFILE_RELEASE_STRIP", "symbols")
        .status();
    assert!(
        status.as_ref().is_ok_and(|status| status.success()),
        "cannot build the preload libraries: {status:?}"
    );
    into.join(target).join("release")
}

fn variable(name: &str) -> OsString {
    env::var_os(name).unwrap_or_else(|| panic!("cargo sets {name}"))
}
