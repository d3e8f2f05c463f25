//! Builds the part for libpmemobj, a C library of the system.

fn main() {
    println!("cargo::rustc-check-cfg=cfg(has_pmemobj)");
    println!("cargo::rerun-if-changed=src/pmemobj.c");
    #[cfg(feature = "pmemobj")]
    pmemobj();
}

/// Where the package is missing, the engine is left out, by name.
#[cfg(feature = "pmemobj")]
fn pmemobj() {
    let source = "#include <libpmemobj.h>\n";
    let probe =
        std::path::Path::new(&std::env::var_os("OUT_DIR").expect("cargo sets it")).join("probe.c");
    std::fs::write(&probe, source).expect("the directory is this build's");
    let found = cc::Build::new()
        .file(&probe)
        .cargo_output(false)
        .cargo_warnings(false)
        .try_compile("probe");
    if found.is_err() {
        println!(
            "cargo::warning=pmemobj is left out: there is no libpmemobj.h; try: apt-get install libpmemobj-dev"
        );
        return;
    }
    cc::Build::new().file("src/pmemobj.c").std("gnu11").warnings(true).compile("numbers");
    println!("cargo::rustc-link-lib=pmemobj");
    println!("cargo::rustc-cfg=has_pmemobj");
}
