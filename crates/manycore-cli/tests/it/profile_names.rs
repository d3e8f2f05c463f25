//! `manycore profile` names the contents of any file that any linker made, in any path, wherever
//! the file is and however long it exists.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::real::{Profiled, profile};
use crate::support::watched::{profiled, sees_futexes};
use crate::support::{compile, directory, manycore, skipped_in_part, stdout};
use serde_json::Value;

const PLACED: &str = include_str!("programs/placed.c");
const PLUGINS: &str = include_str!("programs/plugins.c");
const MADE: &str = include_str!("programs/made.c");
const OWN_FUTEX: &str = include_str!("programs/own_futex.c");

const PLUGIN: &str = r#"
#include <pthread.h>
#include <unistd.h>
#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
pthread_mutex_t JOIN(NAME, _lock) = PTHREAD_MUTEX_INITIALIZER;
__attribute__((noinline)) void JOIN(NAME, _work)(void) {
    pthread_mutex_lock(&JOIN(NAME, _lock));
    usleep(50);
    pthread_mutex_unlock(&JOIN(NAME, _lock));
}
void *run(void *unused) { for (int i = 0; i < 300; i++) JOIN(NAME, _work)(); return unused; }
"#;

const CALLER: &str = "void use_all(void); int main(void) { use_all(); return 0; }";

/// Whether the names of the locks of `placed` are there, of this module.
fn assert_placed(profiled: &Profiled, module: &str, how: &str) {
    let names = profiled.names();
    for name in ["in_zeros", "in_data+0x8"] {
        let full = format!("{name} ({module})");
        assert!(names.contains(&full.as_str()), "{how}: no {full:?} in {names:?}");
    }
    let end = format!("({module})");
    let of_heap = |name: &&str| name.starts_with("take_from_heap") && name.ends_with(&end);
    assert!(names.iter().any(of_heap), "{how}: {names:?}");
}

/// Compiles the program, and a library from the same source that another program uses, and profiles
/// both.
fn link_and_profile(compiler: &str, flags: &[&str], both: bool) {
    let directory = directory();
    let here = directory.path();
    let build = |words: &[&str]| {
        let done =
            Command::new(compiler).args(flags).args(words).current_dir(here).output().unwrap();
        assert!(done.status.success(), "{compiler} {flags:?} {words:?}: {done:?}");
    };
    fs::write(here.join("placed.c"), PLACED).unwrap();
    fs::write(here.join("caller.c"), CALLER).unwrap();
    build(&["-O1", "-o", "placed", "placed.c", "-pthread"]);
    assert_placed(&profile(&[here.join("placed")]), "placed", &format!("{compiler} {flags:?}"));
    if both {
        build(&[
            "-O1",
            "-shared",
            "-fPIC",
            "-DLIBRARY",
            "-o",
            "libplaced.so",
            "placed.c",
            "-pthread",
        ]);
        let run_path = format!("-Wl,-rpath,{}", here.display());
        let done = Command::new("cc")
            .args(["-o", "caller", "caller.c", "libplaced.so", &run_path])
            .current_dir(here)
            .status();
        assert!(done.unwrap().success());
        let how = format!("a library of {compiler} {flags:?}");
        assert_placed(&profile(&[here.join("caller")]), "libplaced.so", &how);
    }
}

#[test]
fn whatever_the_distance_between_addresses_and_offsets() {
    // Several segments in a page; linked to be elsewhere, as a library that was prelinked; code and
    // data far from each other, as linker scripts place them.
    link_and_profile("cc", &["-Wl,-z,noseparate-code"], true);
    link_and_profile("cc", &["-Wl,-Ttext-segment=0x7000000"], true);
    link_and_profile("cc", &["-Wl,--section-start=.text=0x5000000"], true);
    link_and_profile("cc", &["-no-pie", "-Wl,-Ttext-segment=0x30000000"], false);
    link_and_profile("cc", &["-Wl,-z,max-page-size=65536"], false);
}

#[test]
fn whoever_links() {
    for linker in ["lld", "mold"] {
        let flag = format!("-fuse-ld={linker}");
        let directory = directory();
        let trial = directory.path().join("trial.c");
        fs::write(&trial, "int main(void) { return 0; }").unwrap();
        let done = Command::new("clang")
            .args(["-o", "trial", "trial.c", &flag])
            .current_dir(&directory)
            .output();
        if !done.is_ok_and(|done| done.status.success()) {
            skipped_in_part(format!(
                "there is no clang with {linker}; apt-get install clang {linker}"
            ));
            continue;
        }
        link_and_profile("clang", &[&flag], true);
        link_and_profile("clang", &[&flag, "-g"], false);
        let source = directory.path().join("own_futex.c");
        fs::write(&source, OWN_FUTEX).unwrap();
        let own = directory.path().join("own_futex");
        let done = Command::new("clang")
            .args(["-O1", "-g", "-fno-omit-frame-pointer", "-pthread", &flag, "-o"])
            .args([&own, &source])
            .status();
        assert!(done.unwrap().success());
        let (output, json) = profiled("--kernel", &[], &[own.to_str().unwrap(), "3", "20"]);
        if sees_futexes(&output, &json) {
            let text = json["locks"].to_string();
            assert!(text.contains("own_lock"), "{linker}: {text}");
        }
    }
}

fn plugin(directory: &Path, file: &str, name: &str) -> PathBuf {
    let define = format!("-DNAME={name}");
    compile(directory, file, PLUGIN, &["-O1", "-g", "-shared", "-fPIC", &define])
}

/// Checks the plug-ins' own locks, each with the place where threads waited for it, and whether all
/// had the same address.
fn assert_plugins(profiled: &Profiled, names: &[&str]) {
    for name in names {
        let lock = profiled.lock(&format!("{name}_lock"));
        assert_eq!(lock["acquired"], 900, "{lock:#}");
        let places = lock["waits_in"].as_array().unwrap();
        let is_its =
            |place: &Value| place["name"].as_str().unwrap().starts_with(&format!("{name}_work"));
        assert!(places.iter().all(is_its), "{lock:#}");
    }
    let places = stdout(&profiled.output);
    let mut places: Vec<&str> = places.lines().collect();
    places.dedup();
    if places.len() != 1 {
        skipped_in_part("the loader has not put the libraries at one address");
    }
}

#[test]
fn plugins_at_one_address_have_their_own_names() {
    let directory = directory();
    let program = compile(directory.path(), "plugins", PLUGINS, &["-O1", "-pthread"]);
    let alpha = plugin(directory.path(), "alpha.so", "alpha");
    let gamma = plugin(directory.path(), "gamma.so", "gamma");
    // The first one comes back, and is the same.
    let profiled = profile(&[&program, &alpha, &gamma]);
    assert_plugins(&profiled, &["alpha", "gamma"]);
    let again = profile(&[&program, &alpha, &gamma, &alpha]);
    let acquired = |name: &str| -> u64 {
        let locks = again.json["locks"].as_array().unwrap().iter();
        let its = locks.filter(|lock| lock["name"].as_str().unwrap().starts_with(name));
        its.map(|lock| lock["acquired"].as_u64().unwrap()).sum()
    };
    assert_eq!((acquired("alpha_lock"), acquired("gamma_lock")), (1800, 900));
}

#[test]
fn a_plugin_that_is_replaced_while_the_program_runs_has_both_names() {
    let directory = directory();
    let program = compile(directory.path(), "plugins", PLUGINS, &["-O1", "-pthread"]);
    let first = plugin(directory.path(), "plugin.so", "first");
    let next = plugin(directory.path(), "next.so", "later");
    let mut rename = next.into_os_string();
    rename.push(">");
    rename.push(&first);
    let [first, program] = [&first, &program].map(|path| path.as_os_str());
    let words = [program, OsStr::new("1500"), first, rename.as_os_str(), first];
    assert_plugins(&profile(&words), &["first", "later"]);
}

#[test]
fn a_path_may_hold_anything() {
    let directory = directory();
    let program = compile(directory.path(), "placed", PLACED, &["-O1", "-pthread"]);
    let names: [(&[u8], &str); 6] = [
        (b"my  program", "my  program"),
        (b"line\nfeed", "line\u{fffd}feed"),
        (b"back\\012slash", "back\\012slash"),
        (b"here (deleted)", "here (deleted)"),
        (b"\xe4\xff", "\u{fffd}\u{fffd}"),
        (&[b'x'; 250], std::str::from_utf8(&[b'x'; 250]).unwrap()),
    ];
    for (name, shown) in names {
        let below = directory.path().join(OsStr::from_bytes(name));
        fs::create_dir(&below).unwrap();
        let path = below.join(OsStr::from_bytes(name));
        fs::copy(&program, &path).unwrap();
        assert_placed(&profile(&[&path]), shown, shown);
    }
}

#[test]
fn a_program_that_is_removed_while_it_runs_has_names() {
    let directory = directory();
    let program = compile(directory.path(), "placed", PLACED, &["-O1", "-pthread"]);
    assert_placed(&profile(&[program.as_os_str(), "unlink".as_ref()]), "placed", "removed");
    assert!(!program.exists());
}

/// A directory that is not below `/tmp`.
fn directory_elsewhere() -> tempfile::TempDir {
    tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap()
}

/// Whether this can be done here: `unshare` with these options.
fn can_unshare(options: &[&str]) -> bool {
    let done = Command::new("unshare").args(options).arg("true").output();
    let can = done.as_ref().is_ok_and(|done| done.status.success());
    if !can {
        skipped_in_part(format!("unshare {options:?} is not permitted here: {done:?}"));
    }
    can
}

/// Profiles a script in a mount namespace of its own, with the directory and a program as its
/// arguments.
fn profile_in_namespace(script: &str, here: &Path, program: &Path) -> Profiled {
    let unshare = ["unshare", "--mount", "sh", "-ec"].map(OsString::from);
    let words = [script.into(), "sh".into(), here.into(), program.into()];
    profile(&[&unshare[..], &words].concat())
}

#[test]
fn a_program_that_only_its_own_mount_namespace_has() {
    if !can_unshare(&["--mount"]) {
        return;
    }
    let directory = directory_elsewhere();
    let program = compile(directory.path(), "placed", PLACED, &["-O1", "-pthread"]);
    fs::create_dir(directory.path().join("inner")).unwrap();
    let script = "mount --make-rprivate /; mount -t tmpfs none $1/inner; cp $2 $1/inner/x; exec $1/inner/x unlink";
    assert_placed(&profile_in_namespace(script, directory.path(), &program), "x", "hidden");
}

/// Another root, with nothing of `/proc` below it.
#[test]
fn a_program_in_another_root_without_proc() {
    if !can_unshare(&["--mount"]) {
        return;
    }
    let directory = directory_elsewhere();
    let program = compile(directory.path(), "placed", PLACED, &["-O1", "-pthread"]);
    fs::create_dir(directory.path().join("root")).unwrap();
    let script = "mount --make-rprivate /; mount --rbind / $1/root; umount -R $1/root/proc; \
                  cp $2 $1/other; exec chroot $1/root $1/other unlink";
    let profiled = profile_in_namespace(script, directory.path(), &program);
    assert_placed(&profiled, "other", "without /proc");
}

/// The file for a number that a program printed as its own process number. Files with that number
/// are removed at the end.
struct Map(String);

impl Drop for Map {
    fn drop(&mut self) {
        let _ = fs::remove_file(format!("/tmp/perf-{}.map", self.0));
    }
}

fn assert_made(profiled: &Profiled) {
    let names = profiled.names();
    let made = "code made at run time";
    for (name, acquired) in
        [("LazyCompile:*fetchRow lib/a b.js:12", 10), ("Lorg/example/Store;::putRow", 20)]
    {
        let lock = profiled.lock(name);
        assert_eq!(lock["name"], format!("{name} ({made})"), "{names:?}");
        assert_eq!(
            (&lock["acquired"], &lock["module"]),
            (&acquired.into(), &made.into()),
            "{lock:#}"
        );
    }
}

#[test]
fn code_that_is_made_at_run_time_has_the_names_that_its_maker_tells() {
    let directory = directory();
    let program = compile(directory.path(), "made", MADE, &["-O1", "-w", "-pthread"]);
    let here = directory.path().as_os_str();
    let mapped = profile(&[program.as_os_str(), "map".as_ref()]);
    let _map = Map(stdout(&mapped.output).trim().to_owned());
    assert_made(&mapped);
    let dumped = profile(&[program.as_os_str(), "dump".as_ref(), here]);
    assert_made(&dumped);
}

/// Puts a map of code into the program's own `/tmp`, which is an overlay, under the process number
/// that the program itself has there.
#[test]
fn code_that_is_made_in_another_namespace() {
    let directory = directory_elsewhere();
    let program = compile(directory.path(), "made", MADE, &["-O1", "-w", "-pthread"]);
    fs::create_dir(directory.path().join("inner")).unwrap();
    let mounts = "mount --make-rprivate /; mount -t tmpfs none $1/inner; mkdir $1/inner/upper $1/inner/work; \
                  mount -t overlay none -o lowerdir=/tmp,upperdir=$1/inner/upper,workdir=$1/inner/work /tmp";
    let mut probe = Command::new("unshare");
    probe.args(["--mount", "--pid", "--fork", "sh", "-ec", mounts, "sh"]).arg(directory.path());
    let probe = probe.output();
    if !probe.as_ref().is_ok_and(|done| done.status.success()) {
        return skipped_in_part(format!(
            "namespaces and overlays are not permitted here: {probe:?}"
        ));
    }
    let run = "exec unshare --pid --fork sh -c '\"$0\" map /tmp && true' $2";
    let script = format!("{mounts}; {run}");
    let profiled = profile_in_namespace(&script, directory.path(), &program);
    assert!(stdout(&profiled.output).trim().len() < 3, "{:?}", profiled.output);
    assert_made(&profiled);
}

#[test]
fn the_same_locks_of_two_runs_are_told_to_be_the_same() {
    let directory = directory();
    let placed = compile(directory.path(), "placed", PLACED, &["-O1", "-pthread"]);
    let made = compile(directory.path(), "made", MADE, &["-O1", "-w", "-pthread"]);
    for words in [
        vec![placed.as_os_str()],
        vec![made.as_os_str(), "silent".as_ref()],
        vec![made.as_os_str(), "map".as_ref()],
    ] {
        let mut maps = Vec::new();
        let files = ["before.json", "after.json"].map(|name| {
            let run = profile(&words);
            maps.push(Map(stdout(&run.output).trim().to_owned()));
            let file = directory.path().join(name);
            fs::write(&file, run.json.to_string()).unwrap();
            file
        });
        let output = manycore(&["diff", "--json"]).args(&files).output().unwrap();
        let diff: Value = serde_json::from_str(&stdout(&output)).unwrap();
        let locks = diff["locks"].as_array().unwrap();
        let acquired = |lock: &Value, side: &str| lock[side]["acquired"].is_number();
        assert!(locks.len() >= 2, "{diff:#}");
        assert!(
            locks.iter().all(|lock| acquired(lock, "before") && acquired(lock, "after")),
            "{diff:#}"
        );
    }
}
