//! Compiles the BPF programs.
//!
//! By a call of clang and not by libbpf-cargo, because that adds a generated interface, for which
//! it builds libbpf a second time.

use std::env;
use std::path::PathBuf;
use std::process::{Command, exit};

const SOURCE: &str = "src/bpf/contention.bpf.c";
const HEADERS: [&str; 3] = ["src/bpf/kernel.h", "src/bpf/sum.h", "src/bpf/futex.h"];

fn main() {
    for file in HEADERS.into_iter().chain([SOURCE]) {
        println!("cargo::rerun-if-changed={file}");
    }
    println!("cargo::rerun-if-env-changed=CLANG");
    if env::var_os("CARGO_FEATURE_BPF").is_none() {
        return;
    }
    let arch = env::var("CARGO_CFG_TARGET_ARCH").expect("cargo sets it");
    let registers = match arch.as_str() {
        "x86_64" => "-D__TARGET_ARCH_x86",
        "aarch64" => "-D__TARGET_ARCH_arm64",
        _ => {
            println!(
                "cargo::error=the BPF programs are for x86-64 and AArch64: build without the feature `bpf` (`make BPF=no`)"
            );
            exit(1);
        }
    };
    let clang = env::var("CLANG").unwrap_or_else(|_| "clang".to_owned());
    let object = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it")).join("contention.o");
    // Debian has headers of the architecture (asm/types.h) in directories that the target `bpf`
    // does not know: its own, and that for cross-building.
    let headers =
        [format!("-I/usr/include/{arch}-linux-gnu"), format!("-I/usr/{arch}-linux-gnu/include")];
    // The object is part of the command, which is the same wherever its sources lie.
    let here = env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    let done = Command::new(&clang)
        .args(["-O2", "-g", "-target", "bpf", "-mcpu=v3", "-Wall", "-Werror"])
        .args(headers)
        .args([registers, &format!("-ffile-prefix-map={here}=."), "-c", SOURCE, "-o"])
        .arg(&object)
        .status();
    match done {
        Ok(status) if status.success() => {}
        Ok(status) => fail(&format!("{clang} failed ({status}) on {SOURCE}, see above")),
        Err(error) => {
            fail(&format!("cannot run {clang}, which compiles the BPF programs: {error}"))
        }
    }
}

/// Ends the build with the remedy.
fn fail(what: &str) -> ! {
    println!("cargo::error={what}");
    println!(
        "cargo::error=run scripts/setup build (Debian: apt-get install clang libelf-dev zlib1g-dev pkg-config), name \
         clang in CLANG, or build without the feature `bpf` (`make BPF=no`): perf events are left then"
    );
    exit(1)
}
