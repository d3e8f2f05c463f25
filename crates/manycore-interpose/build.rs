//! Compiles the cancellation shim.

fn main() {
    println!("cargo::rerun-if-changed=src/cancel.c");
    cc::Build::new()
        .file("src/cancel.c")
        // The cleanup has to run when a cancelled thread unwinds, from any instruction of the wait.
        .flag("-fexceptions")
        .flag("-fasynchronous-unwind-tables")
        // The stubs through which a library calls others have no unwind tables with every linker:
        // rustc's own makes none.
        .flag("-fno-plt")
        .warnings_into_errors(true)
        .compile("manycore_cancel");
}
