# Sourced by `run`: pairs of calls that commute, on two CPUs, and the lines of memory that both use.

# Says what is missing, if anything is.
lacks_plugins() {
    command -v cc >/dev/null || { echo 'no cc' && return; }
    cc -O2 -Wall -Wextra -shared -fPIC -o "$target/share.so" "$here/plugin/share.c" >&2 || fail 'the plugin is not built'
    echo quit | qemu-system-x86_64 -machine none -nodefaults -display none -monitor stdio \
        -plugin "$target/share.so,out=/dev/null" >"$target/plugin.log" 2>&1 ||
        { echo "a QEMU that loads no plugins of this version ($target/plugin.log)" && return; }
    return 1
}

# The program of the host that knows the cases, and their list.
list_pairs() {
    (cd "$here/pairs" && CARGO_TARGET_DIR=$target/pairs cargo build --locked --quiet)
    tool=$target/pairs/debug/khronos-pairs list=$target/pairs.list
    "$tool" cases "${MOST:-8}" >"$list"
}

counting() {
    echo -accel tcg,thread=single -plugin "$target/share.so,out=$1"
}

# pairs SYNC...: counts under each mechanism. Two of them have bars.
pairs() {
    local why tool list counts sync archive=$archive SMP=2 PATIENCE=1800
    if why=$(lacks_plugins); then
        echo "khronos: skipped: $why: lines that pairs of calls share"
        return
    fi
    list_pairs
    cp "$list" "$target/root/etc/pairs"
    archive=$target/pairs.cpio
    (cd "$target/root" && find . | busybox cpio -o -H newc 2>/dev/null >"$archive")
    for sync in "$@"; do
        counts=$target/pairs-$sync.counts
        # shellcheck disable=SC2046 # several words
        SYNC=$sync boot "pairs-$sync" run=pairs $(counting "$counts")
        "$tool" report "$list" "$counts" "$target/root/etc/kernel.symbols" >"$target/pairs-$sync.report"
        echo "khronos: pairs of calls, sync=$sync: $target/pairs-$sync.report"
        sed '/^$/,$d' "$target/pairs-$sync.report"
        case $sync in
        rcu | mvrlu) "$tool" check "$list" "$counts" ;;
        esac
    done
}

# The same on Linux: LINUX is its image, as Debian's package linux-image-6.1.0-*-cloud-amd64 has it.
pairs_on_linux() {
    local why tool list counts=$target/pairs-linux.counts log=$target/pairs-linux.log root=$target/root-linux
    ! why=$(lacks_plugins) || fail "$why"
    [ -r "${LINUX:-}" ] || fail "LINUX=IMAGE is missing: apt-get download linux-image-cloud-amd64's package, dpkg-deb -x it"
    list_pairs
    rm -rf "$root" && mkdir -p "$root/etc" "$root/tmp" "$root/dev"
    cp "$list" "$root/etc/pairs"
    cp "$target/user/x86_64-unknown-linux-gnu/release/pairs" "$root/init"
    (cd "$root" && find . | busybox cpio -o -H newc 2>/dev/null >"$root.cpio")
    # shellcheck disable=SC2046 # several words
    timeout 1800 qemu-system-x86_64 -kernel "$LINUX" -initrd "$root.cpio" -append 'console=ttyS0 nokaslr panic=-1 quiet' \
        -cpu max -smp 2 -m 512 -display none -no-reboot $(counting "$counts") -serial stdio -monitor none </dev/null >"$log" 2>&1 || true
    grep -aq 'cases done, as expected' "$log" || { tail -20 "$log"; fail "the pairs have not come to their end; log: $log"; }
    "$tool" report "$list" "$counts" >"$target/pairs-linux.report"
    echo "khronos: pairs of calls, Linux: $target/pairs-linux.report"
    sed '/^$/,$d' "$target/pairs-linux.report"
}
