"""Tools: archivers, networks, debuggers, virtual machines; and allocators, which are preloaded into other programs."""
import platform
import re

from .languages import PYTHON
from .servers import behind, pages
from .trial import command, program

KIND = "tools"


def words(trial):
    """A few megabytes that can be compressed."""
    return trial.file("in", "".join(f"{n * 7919 % 100003} words and {n % 97} more\n" for n in range(150000)))


def archiver(name, packages, pack, unpack):
    """Compresses under manycore, and expands again: the same bytes, packed and unpacked."""
    def tried(trial):
        words(trial)
        trial.program("sh", "-c", f"{pack} <in >packed")
        trial.program("sh", "-c", f"{unpack} <packed >out")
        return trial.digest("in", "packed", "out")
    program(name, packages, KIND)(tried)


archiver("xz", "xz-utils", "xz -T4 -1 --block-size=500KiB", "xz -d -T4")
archiver("zstd", "zstd", "zstd -q -T4 -3", "zstd -q -d")
archiver("pigz", "pigz", "pigz -n -p 6", "pigz -d")
archiver("pbzip2", "pbzip2", "pbzip2 -p4 -b2", "pbzip2 -d -p4")
archiver("lz4", "lz4", "lz4 -q", "lz4 -q -d")


@program("7z", "p7zip-full", KIND)
def sevenzip(trial):
    words(trial)
    trial.program("7z", "a", "-mmt4", "-mx3", "-bd", "out.7z", "in")
    trial.program("7z", "x", "-bd", "-mmt4", "-oout", "out.7z")
    return trial.digest("in", "out/in")


@program("git", "git", KIND)
def git(trial):
    when = {f"GIT_{who}_{what}": value for who in ("AUTHOR", "COMMITTER")
            for what, value in (("NAME", "n"), ("EMAIL", "e@example"), ("DATE", "2020-01-01T00:00:00Z"))}
    script = "git init -q r && cd r && for i in 1 2 3; do cp ../in f$i; echo $i >>f$i; git add . && " \
        "git commit -q -m $i; done; git -c pack.threads=4 repack -adfq && " \
        "git -c grep.threads=4 grep -c 'words and 7 ' && cd .. && git clone -q --no-local r s && " \
        "git -C s fsck --strict && git -C s log --format=%H"
    words(trial)
    return trial.program("sh", "-c", script, env=when)


@program("rsync", "rsync", KIND)
def rsync(trial):
    for n in range(40):
        trial.file(f"from/{n % 5}/{n}", f"{n}\n" * 3000)
    trial.program("rsync", "-a", "-z", "from/", "to/")
    trial.file("from/1/1", "changed\n")
    trial.program("rsync", "-a", "--delete", "--checksum", "from/", "to/")
    return trial.tool("diff", "-r", "from", "to") + trial.digest("to/1/1")


@program("curl", "curl lighttpd", KIND)
def curl(trial):
    return pages(trial, f"http://localhost:{behind(trial)}/index.html", 60, under=True)


@program("wget", "wget lighttpd", KIND)
def wget(trial):
    trial.program("wget", "-q", "-O", "out", f"http://localhost:{behind(trial)}/index.html")
    return trial.digest("out")


command("openssl", "openssl", KIND, "sh", "-c", "openssl speed -seconds 1 -multi 2 sha256 >/dev/null 2>&1 "
        "&& echo text | openssl dgst -sha3-256 && openssl genrsa 2048 | openssl rsa -check -noout")


@program("gdb", "gdb gcc", KIND)
def gdb(trial):
    trial.file("a.c", "int f(int n) { return n < 2 ? n : f(n - 1) + f(n - 2); }\nint main(void) { return f(9); }\n")
    trial.tool("gcc", "-g", "-O0", "-o", "main", "a.c")
    said = trial.program("gdb", "-nx", "-batch", "-ex", "break f if n == 1", "-ex", "run", "-ex", "bt 3",
                         "-ex", "delete", "-ex", "continue", "main", merge=True)
    stable = re.sub(r"0x[0-9a-f]+|process \d+", "", said)
    return "\n".join(line for line in stable.splitlines() if line.startswith(("#", "[Inferior")))


@program("valgrind", "valgrind gcc", KIND)
def valgrind(trial):
    trial.file("a.c", "#include <stdlib.h>\n#include <stdio.h>\nint main(void) { char *p = malloc(10); int s = 0;\n"
               "for (int i = 0; i < 10; i++) { p[i] = i; s += p[i]; } printf(\"%d\\n\", s); free(p); return 0; }\n")
    trial.tool("gcc", "-g", "-o", "main", "a.c")
    return trial.program("valgrind", "-q", "--leak-check=full", "--error-exitcode=9", "./main")


STRESSORS = [word for what in ("cpu", "matrix", "mutex", "malloc", "pipe", "timer") for word in (f"--{what}", 2)]
command("stress-ng", "stress-ng", KIND, "stress-ng", *STRESSORS, "--timeout", 2, "--verify", "--quiet")


@program("qemu-img", "qemu-utils", KIND)
def qemu_img(trial):
    words(trial)
    trial.program("qemu-img", "convert", "-f", "raw", "-O", "qcow2", "-c", "-m", 4, "-W", "in", "out.qcow2")
    trial.program("qemu-img", "convert", "-f", "qcow2", "-O", "raw", "out.qcow2", "out")
    return trial.program("qemu-img", "compare", "-f", "raw", "-F", "raw", "in", "out")


@program("qemu-system", "qemu-system-x86 seabios", KIND)
def qemu_system(trial):
    # A boot sector that prints through the serial line, then leaves by the debug exit.
    code = bytes.fromhex("31c08ed8be1d7cba f803 ac84c07403 ee ebf8 baf400 b010 ee f4 ebfd".replace(" ", ""))
    code = code.ljust(0x1d, b"\x90") + b"locks\n\0"
    trial.file("disk").write_bytes(code.ljust(510, b"\0") + b"\x55\xaa")
    return trial.program("qemu-system-x86_64", "-accel", "tcg,thread=multi", "-smp", 2, "-m", 32,
                         "-display", "none", "-serial", "stdio", "-net", "none", "-monitor", "none",
                         "-drive", "file=disk,format=raw,if=ide", "-device", "isa-debug-exit,iobase=0xf4,iosize=1",
                         statuses=(0x21,))


@program("hugo", "hugo", KIND)
def hugo(trial):
    trial.file("site/config.toml", 'baseURL = "http://example/"\ntitle = "t"\n')
    trial.file("site/layouts/_default/single.html", "<h1>{{ .Title }}</h1>{{ .Content }}")
    trial.file("site/layouts/index.html", "{{ range .Site.RegularPages }}{{ .Title }} {{ end }}")
    for n in range(60):
        trial.file(f"site/content/p{n}.md", f'---\ntitle: "p{n}"\ndate: 2020-01-01\n---\n' + "# a\n\n*text*\n" * 50)
    trial.program("hugo", "--source", "site", "--cacheDir", trial.place / "cache")
    return trial.digest("site/public/index.html", "site/public/p7/index.html")


command("pandoc", "pandoc", KIND, "sh", "-c",
        "yes '# A *heading*' | head -300 | pandoc +RTS -N2 -RTS -f markdown -t latex")

ALLOCATORS = "allocators"


def allocator(name, package, library):
    """An allocator that is preloaded into Python, a compressor with threads, and a lock bench in C++."""
    def tried(trial):
        env = {"LD_PRELOAD": f"/usr/lib/{platform.machine()}-linux-gnu/{library}"}
        # The loader only warns of a library that is not there.
        trial.program("grep", "-q", library, "/proc/self/maps", env=env)
        words(trial)
        said = trial.program("python3", trial.file("main.py", PYTHON), env=env)
        trial.program("pbzip2", "-k", "-p4", "-b2", "in", env=env)
        trial.tool("bzip2", "-d", "-k", "-c", "in.bz2")
        said += trial.program("sqlite3", ":memory:", "select hex(zeroblob(9))", env=env)
        trial.program("kccachetest", "order", "-th", 8, "-rnd", 5000, env=env)
        return said + trial.digest("in.bz2")
    program(name, f"{package} python3 pbzip2 sqlite3 kyotocabinet-utils bzip2", ALLOCATORS)(tried)


allocator("jemalloc", "libjemalloc2", "libjemalloc.so.2")
allocator("tcmalloc", "libtcmalloc-minimal4", "libtcmalloc_minimal.so.4")
allocator("mimalloc", "libmimalloc2.0", "libmimalloc.so.2.0")
