//! Names the shared library, by which programs that were linked with it look for it: see
//! docs/src/capi.md, "Versions".

fn main() {
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libmanycore.so.0");
}
