//! Names the linker script.

fn main() {
    let here = std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    println!("cargo::rustc-link-arg-bins=-T{here}/src/arch/link.ld");
    println!("cargo::rerun-if-changed=src/arch/link.ld");
}
