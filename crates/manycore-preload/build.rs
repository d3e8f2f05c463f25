//! Compiles the cancellation shim.

fn main() {
    println!("cargo::rerun-if-changed=src/cancel.c");
    cc::Build::new()
        .file("src/cancel.c")
        // The cleanup has to run when a cancelled thread unwinds, from any instruction of the wait.
        .flag("-fexceptions")
        .flag("-fasynchronous-unwind-tables")
        .warnings_into_errors(true)
        .compile("manycore_cancel");
}
