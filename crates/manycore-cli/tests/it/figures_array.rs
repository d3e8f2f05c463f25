//! `manycore figures --export`: tasks that an engine runs, whose results are those of a run on one
//! machine.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::{directory, failure, manycore, printed, skipped};

/// A figure of eight simulations.
const FIGURE: &str = r#"
title = "One lock"
source = "a test"
published = "nothing"
model = "a list"
machine = "xeon-4x6-like"
x = "threads"

[workload.set]
structure = "list"
sync = ["lock:mcs", "harris"]
threads = [1, 2, 4, 8]
update = [50]
initial = 50
duration = "20us"

[quick]
threads = [1]

[[claim]]
id = "holds"
text = "eight threads under a lock do not do twice as much"
place = "here"
expected = "pass"
of = { series = "lock:mcs", take = "most" }
over = { series = "lock:mcs", threads = 1 }
at_most = 2
"#;

/// A directory with a figure whose name a shell has to quote.
struct Room {
    directory: tempfile::TempDir,
}

impl Room {
    fn new() -> Self {
        let room = Self { directory: directory() };
        fs::create_dir(room.path()).unwrap();
        fs::write(room.figure(), FIGURE).unwrap();
        room
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("my room")
    }

    fn figure(&self) -> PathBuf {
        self.path().join("one-lock.toml")
    }

    fn array(&self) -> PathBuf {
        self.path().join("array")
    }

    fn figures(&self, more: &[&str]) -> Command {
        let mut command = manycore(&["figures", self.figure().to_str().unwrap()]);
        command.args(more).env("XDG_CACHE_HOME", self.path().join("cache"));
        command
    }

    /// Exports the figure in three tasks; returns the output.
    fn export(&self, engine: &str) -> String {
        let array = self.array();
        let out = ["--export", engine, "--tasks", "3", "--out", array.to_str().unwrap()];
        printed(&mut self.figures(&out))
    }

    /// Checks that the results of the tasks are all that the figure needs, and that the output is
    /// the same as without tasks.
    fn check(&self) {
        let array = self.array();
        let results = array.join("results");
        let alone = printed(&mut self.figures(&["--json", "--no-cache"]));
        let merge = ["--json", "--merge", results.to_str().unwrap()];
        let output = self.figures(&merge).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains("8 results added, 0 known"), "{said}");
        assert_eq!(String::from_utf8(output.stdout).unwrap(), alone);
        let output = self.figures(&merge).output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains("0 results added, 8 known"), "{said}");
    }
}

#[test]
fn tasks_do_all_of_it_in_whatever_order() {
    let room = Room::new();
    let said = room.export("slurm");
    assert!(said.contains("8 simulations in 3 tasks") && said.contains("sbatch"), "{said}");
    let array = room.array();
    let tasks = fs::read_to_string(array.join("tasks")).unwrap();
    assert_eq!(tasks.lines().count(), 3, "{tasks}");
    // One of them twice.
    for task in tasks.lines().rev().chain(tasks.lines().take(1)) {
        let output = Command::new("sh").args(["-c", task]).output().unwrap();
        assert!(output.status.success() && output.stdout.is_empty(), "{task}: {output:?}");
    }
    room.check();
}

#[test]
fn what_cannot_be_merged_is_counted() {
    let room = Room::new();
    printed(&mut room.figures(&["--cache", room.array().join("results").to_str().unwrap()]));
    let results = room.array().join("results");
    let own = fs::read_dir(&results).unwrap().next().unwrap().unwrap().path();
    let mut entries = fs::read_dir(&own).unwrap().map(|entry| entry.unwrap().path());
    let entry = entries.find(|path| path.extension().is_some_and(|e| e == "json")).unwrap();
    fs::create_dir(results.join("another")).unwrap();
    fs::copy(&entry, results.join("another/0.json")).unwrap();
    // Under a name that is not its own, and cut off.
    fs::copy(&entry, own.join("0.json")).unwrap();
    fs::write(&entry, "{").unwrap();
    let merge = ["--merge", results.to_str().unwrap()];
    let output = room.figures(&merge).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8(output.stderr).unwrap();
    for words in ["7 results added", "1 of another build", "2 files left that cannot be read"] {
        assert!(said.contains(words), "{words}: {said}");
    }
}

#[test]
fn bad_questions_are_named() {
    let room = Room::new();
    for (arguments, word) in [
        (&["--export", "slurm"][..], "--out"),
        (&["--export", "cron", "--out", "x"], "dask"),
        (&["--piece", "4/3"], "3/64"),
        (&["--piece", "1/3"], "--cache"),
        (&["--merge", "/nonexistent"], "/nonexistent"),
        (&["--tasks", "3"], "--export"),
    ] {
        let said = failure(2, &mut room.figures(arguments));
        assert!(said.contains(word), "{word}: {said}");
    }
}

#[test]
fn dask_runs_it_on_a_local_cluster() {
    let room = Room::new();
    room.export("dask");
    let venv = room.path().join("venv");
    let python = venv.join("bin/python");
    let succeeds = |command: &mut Command| {
        command.stdin(Stdio::null()).output().is_ok_and(|output| output.status.success())
    };
    if !succeeds(Command::new("python3").args(["-m", "venv"]).arg(&venv)) {
        return skipped("python3 makes no venv here; apt-get install python3-venv");
    }
    let install = ["-m", "pip", "install", "--quiet", "--retries", "1", "distributed"];
    if !succeeds(Command::new(&python).args(install)) {
        return skipped("pip cannot install the package `distributed` here");
    }
    let said = printed(Command::new(&python).arg(room.array().join("run.py")));
    assert_eq!(said, "3 of 3 tasks done\n");
    room.check();

    // A task that fails is named, and the others are run.
    let tasks = room.array().join("tasks");
    let text = fs::read_to_string(&tasks).unwrap();
    fs::write(&tasks, format!("echo broken >&2; exit 3\n{text}")).unwrap();
    let output = Command::new(&python).arg(room.array().join("run.py")).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("task 1: exit status 3: broken"), "{said}");
}

/// Daemons of a private Slurm. Dropped, they are stopped.
struct Slurm {
    daemons: Vec<Child>,
    conf: PathBuf,
    spool: PathBuf,
}

impl Drop for Slurm {
    fn drop(&mut self) {
        for daemon in self.daemons.iter_mut().rev() {
            // By its own choice, so that it ends its children.
            drop(Command::new("kill").arg(daemon.id().to_string()).status());
            let begin = Instant::now();
            while matches!(daemon.try_wait(), Ok(None)) && begin.elapsed() < Duration::from_secs(10)
            {
                std::thread::sleep(Duration::from_millis(50));
            }
            drop(daemon.kill());
            drop(daemon.wait());
        }
    }
}

fn installed(name: &str) -> Option<PathBuf> {
    ["/usr/sbin", "/usr/bin"].iter().map(|path| Path::new(path).join(name)).find(|p| p.exists())
}

/// A port that is free at the moment.
fn port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

impl Slurm {
    /// Starts munged, slurmctld and slurmd, with one node, which is this machine. The error names
    /// the missing part.
    fn start(room: &Path) -> Result<Self, String> {
        let find = |name| installed(name).ok_or_else(|| format!("there is no {name}"));
        let (munged, ctld, slurmd) = (find("munged")?, find("slurmctld")?, find("slurmd")?);
        find("sbatch")?;
        let path = |name: &str| room.join(name);
        let show = |name: &str| path(name).display().to_string();
        fs::write(path("key"), [7; 128]).unwrap();
        fs::set_permissions(path("key"), std::os::unix::fs::PermissionsExt::from_mode(0o600))
            .unwrap();
        let host =
            String::from_utf8(Command::new("uname").arg("-n").output().unwrap().stdout).unwrap();
        let host = host.trim().split('.').next().unwrap().to_owned();
        let user =
            String::from_utf8(Command::new("id").arg("-un").output().unwrap().stdout).unwrap();
        let conf = format!(
            "ClusterName=test\nSlurmctldHost={host}(127.0.0.1)\nSlurmctldPort={}\nSlurmdPort={}\n\
             AuthType=auth/munge\nAuthInfo=socket={}\nSlurmUser={user}SlurmdUser={user}\
             StateSaveLocation={}\nSlurmdSpoolDir={}\nSlurmctldPidFile={}\nSlurmdPidFile={}\n\
             SlurmctldLogFile={}\nSlurmdLogFile={}\n\
             ProctrackType=proctrack/pgid\nTaskPlugin=task/none\nSwitchType=switch/none\nMpiDefault=none\n\
             SelectType=select/cons_tres\nSelectTypeParameters=CR_CPU\n\
             AccountingStorageType=accounting_storage/none\nJobAcctGatherType=jobacct_gather/none\n\
             SchedulerParameters=sched_interval=1,batch_sched_delay=0,sched_min_interval=0\n\
             ReturnToService=2\nNodeName={host} NodeAddr=127.0.0.1 CPUs=2 State=UNKNOWN\n\
             PartitionName=all Nodes=ALL Default=YES State=UP\n",
            port(),
            port(),
            show("munge"),
            show("state"),
            show("spool"),
            show("ctld.pid"),
            show("slurmd.pid"),
            show("ctld.log"),
            show("slurmd.log"),
        );
        fs::write(path("slurm.conf"), conf).unwrap();
        fs::create_dir(path("state")).unwrap();
        fs::create_dir(path("spool")).unwrap();
        let mut slurm =
            Self { daemons: Vec::new(), conf: path("slurm.conf"), spool: room.to_owned() };
        let munge = [
            "--foreground".to_owned(),
            "--force".to_owned(),
            format!("--socket={}", show("munge")),
            format!("--key-file={}", show("key")),
            format!("--pid-file={}", show("munge.pid")),
            format!("--log-file={}", show("munge.log")),
            format!("--seed-file={}", show("munge.seed")),
        ];
        slurm.daemon(Command::new(munged).args(munge));
        slurm.wait("munge", || path("munge").exists());
        for daemon in [ctld, slurmd] {
            slurm.daemon(Command::new(daemon).arg("-D").arg("-f").arg(path("slurm.conf")));
        }
        let idle = |slurm: &Self| {
            let output = slurm.client("sinfo").args(["-h", "-o", "%t"]).output().unwrap();
            output.stdout.starts_with(b"idle\n")
        };
        slurm.wait("the node", || idle(&slurm));
        Ok(slurm)
    }

    fn daemon(&mut self, command: &mut Command) {
        let command = command.env("SLURM_CONF", &self.conf).stdin(Stdio::null());
        let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
        self.daemons.push(child.expect("the daemon is there"));
    }

    fn client(&self, name: &str) -> Command {
        let mut command = Command::new(name);
        command.env("SLURM_CONF", &self.conf).current_dir(&self.spool);
        command
    }

    fn wait(&self, what: &str, is_there: impl Fn() -> bool) {
        let begin = Instant::now();
        while !is_there() {
            let log = || fs::read_to_string(self.spool.join("slurmd.log")).unwrap_or_default();
            assert!(begin.elapsed() < Duration::from_secs(60), "{what} does not come: {}", log());
            std::thread::sleep(Duration::from_millis(100));
        }
    }
}

#[test]
fn slurm_runs_it() {
    let room = Room::new();
    room.export("slurm");
    let script = room.array().join("array.sbatch");
    assert!(Command::new("sh").arg("-n").arg(&script).status().unwrap().success());
    // As on a machine without Slurm, whose `scontrol` says nothing: a task that there is not is no
    // success.
    let output = Command::new("sh").arg(&script).env("SLURM_ARRAY_TASK_ID", "4").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && said.contains("there is no line 4 in"), "{said}");
    // Its files are in a directory without spaces, because its configuration file cannot have any.
    let own = directory();
    let slurm = match Slurm::start(own.path()) {
        Ok(slurm) => slurm,
        Err(why) => {
            return skipped(format!(
                "{why}; apt-get install --no-install-recommends slurmctld slurmd slurm-client munge"
            ));
        }
    };
    let output = slurm.client("sbatch").arg("--wait").arg(&script).output().unwrap();
    let logs = fs::read_dir(own.path()).unwrap().map(|entry| entry.unwrap().path());
    let logs: Vec<String> = logs
        .filter(|path| path.extension().is_some_and(|extension| extension == "out"))
        .map(|path| fs::read_to_string(path).unwrap())
        .collect();
    assert!(output.status.success(), "{output:?} {logs:?}");
    assert_eq!(logs.len(), 3, "{logs:?}");
    room.check();
}
