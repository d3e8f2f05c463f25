# To be sourced: the nightly toolchain, and what can be done with it.

nightly=${MANYCORE_NIGHTLY:-nightly}

# Tree Borrows: what may be done by which pointer.
miri_flags='-Zmiri-tree-borrows -Zmiri-backtrace=full'

# Says what is missing; fails if nothing is.
lacks_miri() {
    if cargo "+$nightly" miri --version >/dev/null 2>&1; then
        lacks_sources
    else
        echo "no Miri; try: rustup toolchain install $nightly --component miri,rust-src"
    fi
}

lacks_sources() {
    local root
    root=$(rustc "+$nightly" --print sysroot 2>/dev/null) &&
        [ -e "$root/lib/rustlib/src/rust/library/Cargo.lock" ] && return 1
    echo "no sources of the standard library; try: rustup toolchain install $nightly --component miri,rust-src"
}

# The tests of the library for C in the interpreter.
the_c_interface() {
    MIRIFLAGS="$miri_flags" cargo "+$nightly" miri test --locked -p manycore-capi
}

# interpreted ARGUMENT...: tests of the library in the interpreter.
interpreted() {
    MIRIFLAGS="$miri_flags" cargo "+$nightly" miri test --locked -p manycore "$@"
}
