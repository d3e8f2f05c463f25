//! Compiles the server of `manycore demo`, which the command carries.

use std::env;
use std::path::Path;

fn main() {
    println!("cargo::rerun-if-changed=demo/server.c");
    let output = Path::new(&env::var_os("OUT_DIR").expect("cargo sets OUT_DIR")).join("server");
    // Always optimised, whatever this build is: users profile it, and do not debug it. With
    // symbols, as programs should have.
    let mut compiler = cc::Build::new().opt_level(2).debug(true).get_compiler().to_command();
    let status = compiler.args(["-pthread", "-o"]).arg(&output).arg("demo/server.c").status();
    assert!(
        status.as_ref().is_ok_and(|status| status.success()),
        "cannot compile demo/server.c: {status:?}"
    );
}
