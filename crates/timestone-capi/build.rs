//! Names the shared library. Programs that were linked with it search for it by this name: see
//! docs/src/capi.md, "Versions".

fn main() {
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libtimestone.so.0");
}
