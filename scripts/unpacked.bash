# To be sourced: Debian packages that are fetched and unpacked, and not installed.

# unpacked DIRECTORY PACKAGE: says where the package is unpacked, in that directory; fetches it once.
unpacked() {
    local directory=$1 package=$2 place=$1/${2//:/-}
    if [ ! -e "$place" ]; then
        rm -rf "$directory/fetched"
        mkdir -p "$directory/fetched"
        (cd "$directory/fetched" && apt-get -qq download "$package" && dpkg-deb -x ./*.deb . && rm ./*.deb) >&2 || return 1
        mv "$directory/fetched" "$place"
    fi
    echo "$place"
}

# kernel_of PACKAGE: which package has the kernel that this one, as linux-image-arm64:arm64, stands for.
kernel_of() {
    apt-cache depends "$1" 2>/dev/null | awk '/Depends: linux-image-/ { print $2; found = 1; exit } END { exit !found }'
}
