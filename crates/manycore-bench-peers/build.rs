//! Compiles the C side against liburcu and Concurrency Kit.

use std::path::Path;
use std::process::exit;

/// The requirements: a header that shows that the library is there, and its package.
const NEEDED: [(&str, &str); 3] = [
    ("urcu/urcu-memb.h", "liburcu-dev"),
    ("urcu/rculfhash.h", "liburcu-dev"),
    ("ck_epoch.h", "libck-dev"),
];

fn main() {
    println!("cargo::rerun-if-changed=c");
    if std::env::var_os("CARGO_FEATURE_C_LIBRARIES").is_none() {
        return;
    }
    for (header, package) in NEEDED {
        if !is_there(header) {
            eprintln!("{package} is missing: run `apt-get install liburcu-dev libck-dev`");
            exit(1);
        }
    }
    let build = |name: &str, file: &str, defines: &[&str]| {
        let mut build = cc::Build::new();
        build.file(file).flag("-std=gnu11");
        defines.iter().for_each(|define| _ = build.define(define, None));
        build.compile(name);
    };
    // The inlined forms of its functions, as a program under a suitable licence would have them.
    build("peer_memb", "c/urcu.c", &["_LGPL_SOURCE", "RCU_MEMB"]);
    build("peer_qsbr", "c/urcu.c", &["_LGPL_SOURCE", "RCU_QSBR"]);
    build("peer_lfht", "c/lfht.c", &["_LGPL_SOURCE", "RCU_MEMB"]);
    build("peer_ck", "c/ck.c", &[]);
    for library in ["urcu-memb", "urcu-qsbr", "urcu-cds", "urcu-common", "ck"] {
        println!("cargo::rustc-link-lib={library}");
    }
}

/// Whether the compiler finds a header.
fn is_there(header: &str) -> bool {
    let directory = std::env::var_os("OUT_DIR").expect("cargo says where to put things");
    let file = Path::new(&directory).join("probe.c");
    std::fs::write(&file, format!("#include <{header}>\n")).expect("a file in the build directory");
    cc::Build::new().file(file).cargo_metadata(false).cargo_warnings(false).try_expand().is_ok()
}
