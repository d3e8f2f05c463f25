"""One trial: a program that runs as a user would run it, in a directory of its own, with or without manycore.

A program is a function that takes a `Trial`, starts what it needs through it, and returns what came out. It is right
under manycore if it returns the same as without.
"""
import hashlib
import json
import os
import pwd
import random
import resource
import shutil
import signal
import socket
import subprocess
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

# All programs that can be tried, by name, in the order of the table.
PROGRAMS = {}
# As Debian has it; not what stands in /usr/local.
PATH = "/usr/sbin:/usr/bin:/sbin:/bin:/usr/games"
# What a core file may take. A larger one is cut off: gdb reads what there is.
CORE_BYTES_MAX = 4 << 30


class Fault(Exception):
    """The program does not do under manycore what it does without."""


class Refusal(Exception):
    """manycore does not run the program, and its one line says why."""


def program(name, packages, kind):
    """Registers a function as a program that can be tried, with the Debian packages that it needs."""
    def register(function):
        assert name not in PROGRAMS, f"{name} is there twice"
        PROGRAMS[name] = (function, packages.split(), kind)
        return function
    return register


def command(name, packages, kind, *argv, **options):
    """Registers a program that is one command; its result is what it prints."""
    program(name, packages, kind)(lambda trial: trial.program(*argv, **options))


def descendants(pid):
    """All processes below one, the nearest first. The command of `field` adopts those whose parents have ended."""
    found = []
    for task in Path(f"/proc/{pid}/task").glob("*"):
        try:
            children = (task / "children").read_text().split()
        except OSError:
            continue # it has ended
        for child in map(int, children):
            found += [child, *descendants(child)]
    return found


class Trial:
    """A run of one program. `prefix(n)` stands before its n-th command line; without one it runs as it is."""

    def __init__(self, place, limit, prefix):
        self.place, self.prefix = place, prefix
        self.deadline = time.monotonic() + limit
        self.limit = limit
        self.commands = 0
        self.servers = []
        self.log = []
        self.user = "nobody" if os.geteuid() == 0 else pwd.getpwuid(os.geteuid()).pw_name
        self.environment = {
            "PATH": PATH, "HOME": str(place), "TMPDIR": str(place), "XDG_RUNTIME_DIR": str(place),
            "LANG": "C.UTF-8", "USER": self.user, "LOGNAME": self.user, "TERM": "dumb",
        }

    # What programs call.

    def program(self, *argv, **options):
        """Runs the program that is tried to its end, and returns what it printed."""
        return self._finish(self._start(argv, under=True, **options), **options)

    def tool(self, *argv, **options):
        """Likewise, a program that is not tried: a client, a converter."""
        return self._finish(self._start(argv, under=False, **options), **options)

    def serve(self, *argv, ready, under=True, **options):
        """Starts a server and waits for it: for a port that accepts, a path, or a function of the server."""
        server = self._start(argv, under, **options)
        self.servers.append(server)
        server.told = lambda: server.said.read_text(errors="replace") + server.complained.read_text(errors="replace")
        while not self._is_ready(server, ready):
            if server.poll() is not None:
                self._judge(server, (0,))
                raise Fault("ends at start with status 0" + self._last_words(server))
            self._check_time(f"{argv[0]} does not come up")
            time.sleep(0.02)
        return server

    def stop(self, server, how=signal.SIGTERM):
        """Ends a server; how it ends is part of the result."""
        self.servers.remove(server)
        if server.poll() is None: # else it has ended by itself, which its status tells of
            server.send_signal(how)
        self._await(server, "does not end")
        self._refused(server)
        return f"\nends with {server.returncode}"

    def end_of(self, client):
        """Waits until what was started beside others has ended by itself; what it printed."""
        self.servers.remove(client)
        return self._finish(client)

    def file(self, name, text="", mode=0o644):
        """Writes a file that the program may read and change."""
        path = self.place / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(mode)
        self._give_away(path)
        return path

    def directory(self, name):
        path = self.place / name
        path.mkdir(parents=True)
        self._give_away(path)
        return path

    def digest(self, *names):
        """What files have in them. All have to be there, and not empty."""
        sums = []
        for name in names:
            path = self.place / name
            if not path.exists() or path.stat().st_size == 0:
                raise Fault(f"does not write {name}")
            sums.append(hashlib.sha256(path.read_bytes()).hexdigest())
        return " ".join(sums)

    def port(self):
        """A port of the loopback interface that is free at this moment.

        Not one of those that clients get: a client that shares addresses, as dig does, may get the server's.
        """
        clients_from = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
        while True:
            port = random.randrange(10000, max(clients_from, 11000))
            with socket.socket() as stream, socket.socket(type=socket.SOCK_DGRAM) as datagrams:
                try:
                    stream.bind(("127.0.0.1", port))
                    datagrams.bind(("127.0.0.1", port))
                    return port
                except OSError:
                    continue

    def fetch(self, url, times=200, threads=8):
        """Loads a page again and again from several threads; all answers have to be one."""
        def once(_):
            with urllib.request.urlopen(url, timeout=max(1, self.deadline - time.monotonic())) as answer:
                return answer.read()
        with ThreadPoolExecutor(threads) as crowd:
            bodies = set(crowd.map(once, range(times)))
        return f"{times} times " + " and ".join(sorted(hashlib.sha256(body).hexdigest() for body in bodies))

    def bench(self, url, requests=4000, clients=24):
        """Load by Apache's bench; what counts is that all are answered."""
        said = self.tool("ab", "-q", "-n", str(requests), "-c", str(clients), url)
        kept = ("Complete requests", "Failed requests", "Non-2xx responses", "HTML transferred")
        return "\n".join(line for line in said.splitlines() if line.startswith(kept))

    # How processes are started and judged.

    def _start(self, argv, under, env=None, cwd=None, stdin=None, **_):
        self.commands += 1
        argv = [str(word) for word in argv]
        # Looked up here, so that what is missing is missing without manycore, too.
        if not shutil.which(argv[0], path=PATH) and "/" not in argv[0]:
            raise Fault(f"{argv[0]} is not there")
        prefix = self.prefix(self.commands) if under else []
        out, err = (self.place / f".{self.commands}.{name}" for name in ("out", "err"))
        self.log.append(" ".join(prefix + argv))
        user = {}
        if os.geteuid() == 0:
            nobody = pwd.getpwnam("nobody")
            user = {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}
        with open(out, "wb") as stdout, open(err, "wb") as stderr:
            process = subprocess.Popen(
                prefix + argv, stdout=stdout, stderr=stderr, cwd=cwd or self.place,
                stdin=open(stdin, "rb") if stdin else subprocess.DEVNULL,
                env={**self.environment, **{k: str(v) for k, v in (env or {}).items()}},
                start_new_session=True, preexec_fn=leave_cores, **user)
        process.said, process.complained, process.under = out, err, under
        return process

    def _finish(self, process, statuses=(0,), merge=False, **_):
        self._await(process, "does not end")
        self._judge(process, statuses)
        said = process.said.read_text(errors="replace")
        return said + process.complained.read_text(errors="replace") if merge else said

    def _await(self, process, what):
        try:
            process.wait(max(0.1, self.deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            raise Fault(f"hangs: {what} within {self.limit:.0f} s") from None

    def _refused(self, process):
        lines = process.complained.read_text(errors="replace").splitlines()
        own = [line for line in lines if line.startswith("manycore: ")]
        if process.under and process.returncode == 2 and own:
            raise Refusal(own[-1])

    def _judge(self, process, statuses):
        self._refused(process)
        if process.returncode not in statuses:
            code = process.returncode
            end = f"dies of {signal.Signals(-code).name}" if code < 0 else f"ends with status {code}"
            raise Fault(end + self._last_words(process))

    def _last_words(self, process):
        lines = [line for path in (process.complained, process.said)
                 for line in path.read_text(errors="replace").splitlines()
                 if line.strip() and not line.startswith('{"schema":')] # that is manycore's
        return f"; it says: {lines[-1].strip()[:160]}" if lines else ""

    def _is_ready(self, server, ready):
        if isinstance(ready, Path):
            return ready.exists()
        if not isinstance(ready, int):
            return ready(server)
        try:
            socket.create_connection(("127.0.0.1", ready), 1).close()
            return True
        except OSError:
            return False

    def _check_time(self, what):
        if time.monotonic() > self.deadline:
            raise Fault(f"hangs: {what} within {self.limit:.0f} s")

    def _give_away(self, path):
        if os.geteuid() == 0:
            nobody = pwd.getpwnam("nobody")
            while path != self.place:
                os.chown(path, nobody.pw_uid, nobody.pw_gid)
                path = path.parent

    # What `field` calls.

    def end(self):
        """Kills what is still there of it: all that descends from this process."""
        deadline = time.monotonic() + 20
        while (left := descendants(os.getpid())) and time.monotonic() < deadline:
            for pid in left:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            while True:
                try:
                    if os.waitpid(-1, os.WNOHANG)[0] == 0:
                        break
                except ChildProcessError:
                    break
            time.sleep(0.02)

    def account(self):
        """What was run, what it wrote, and the stacks of what still runs or has crashed: for a log."""
        text = "\n".join(self.log) + "\n\n"
        stacks = self.stacks()
        for path in sorted(self.place.glob(".*.out")) + sorted(self.place.glob(".*.err")):
            text += f"--- {path.name}\n{path.read_text(errors='replace')[-4000:]}\n"
        return text + stacks

    def stacks(self):
        """Of all processes that run, and of those that have left a core file."""
        if not shutil.which("gdb"):
            return "no stacks: gdb is not installed\n"
        which = [["-p", str(pid)] for pid in descendants(os.getpid())[:12]]
        which += [[generator(core), str(core)] for core in self.cores()[:3]]
        return "".join(f"--- gdb {' '.join(one)}\n{gdb(*one)}\n" for one in which)

    def cores(self):
        return sorted(path for path in self.place.rglob("core*")
                      if path.name == "core" or path.name.startswith("core.") if path.is_file()
                      if path.open("rb").read(4) == b"\x7fELF")

    def profiles(self):
        """How many acquisitions the profiles of this run have counted; none if there is no profile."""
        total = None
        for path in self.place.glob(".profile-*.json"):
            try:
                locks = json.loads(path.read_text())["locks"]
            except (ValueError, KeyError) as error:
                raise Fault(f"writes a profile that cannot be read: {error}") from None
            total = (total or 0) + sum(lock["acquired"] for lock in locks)
        return total

    def moved(self):
        """How many calls were moved, as the statistics on standard error say."""
        total = None
        for path in self.place.glob(".*.err"):
            for line in path.read_text(errors="replace").splitlines():
                if line.startswith('{"schema":') and '"moved":' in line:
                    total = (total or 0) + json.loads(line)["moved"]
        return total


def gdb(*which):
    """The stacks of all threads of a process, or in a core file."""
    command = ["timeout", "60", "gdb", "-nx", "-batch", "-iex", "set debuginfod enabled off", *which]
    told = subprocess.run([*command, "-ex", "thread apply all bt 20"], capture_output=True, text=True,
                          errors="replace", stdin=subprocess.DEVNULL)
    return told.stdout


def generator(core):
    """The executable whose core file it is."""
    words = gdb("-c", str(core)).partition("Core was generated by `")[2].split("'")[0].split()
    return shutil.which(words[0], path=PATH) or words[0] if words else "-n"


def leave_cores():
    """Lets a program that crashes leave a core file, for its stacks."""
    _, most = resource.getrlimit(resource.RLIMIT_CORE)
    wanted = CORE_BYTES_MAX if most == resource.RLIM_INFINITY else min(CORE_BYTES_MAX, most)
    resource.setrlimit(resource.RLIMIT_CORE, (wanted, most))
