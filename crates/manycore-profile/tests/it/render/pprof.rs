//! The form for pprof, as Go's own program reads it, and the one for Firefox's profiler.

use std::io::Read;
use std::path::Path;
use std::process::Command;

use super::made_up::{HOSTILE, frame, profile};
use flate2::read::GzDecoder;
use manycore_profile::profile::Profile;
use manycore_profile::render::{firefox, pprof};

/// The output of `go tool pprof` for a profile; `None` if Go is not installed.
fn go(profile: &Profile, options: &[&str]) -> Option<String> {
    if Command::new("go").arg("version").output().is_err() {
        eprintln!("skipped in part: there is no Go; apt-get install golang-go");
        return None;
    }
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("prof.pb.gz");
    std::fs::write(&file, pprof::pprof(profile)).unwrap();
    Some(run_go(&file, directory.path(), options))
}

fn run_go(file: &Path, home: &Path, options: &[&str]) -> String {
    let output = Command::new("go")
        .args(["tool", "pprof"])
        .args(options)
        .arg(file)
        // It keeps nothing, and looks nowhere else.
        .env("PPROF_TMPDIR", home)
        .env("GOTOOLCHAIN", "local")
        .output()
        .unwrap();
    let (said, complained) = [&output.stdout, &output.stderr]
        .map(|text| String::from_utf8_lossy(text).into_owned())
        .into();
    assert!(output.status.success(), "{complained}");
    said
}

#[test]
fn go_lists_locks_by_the_time_waited() {
    let profile = profile(3, 1);
    let Some(top) = go(&profile, &["-top", "-unit=ns"]) else { return };
    let row = |what: &str| {
        let line = top.lines().find(|line| line.trim_end().ends_with(what));
        line.unwrap_or_else(|| panic!("no {what} in {top}")).to_owned()
    };
    assert!(top.contains("Type: delay"), "{top}");
    let waited = profile.locks[0].wait.total_ns;
    let flat = row("[lock_0]").split_whitespace().next().unwrap().to_owned();
    assert_eq!(flat, format!("{waited}ns"), "{top}");
    row("[mmap_lock]");
    assert!(!top.contains('\u{1b}'));
}

#[test]
fn go_sees_counts_calls_files_and_labels() {
    let profile = profile(3, 1);
    let Some(counts) = go(&profile, &["-top", "-sample_index=contentions"]) else { return };
    let contended = profile.locks[0].contended.to_string();
    assert!(
        counts.lines().any(|line| line.contains(&contended) && line.ends_with("[lock_0]")),
        "{counts}"
    );
    let cpu = go(&profile, &["-top", "-sample_index=cpu"]).unwrap();
    assert!(cpu.contains("ut_delay"), "{cpu}");
    let raw = go(&profile, &["-raw"]).unwrap();
    assert!(raw.contains("server.c:42") && raw.contains("lock:[lock_0 (server)]"), "{raw}");
    assert!(raw.contains("task:[server]") && raw.contains("cgroup:[/web.slice]"), "{raw}");
    let calls = go(&profile, &["-peek", "work_0$"]).unwrap();
    assert!(calls.contains("serve"), "{calls}");
}

#[test]
fn names_keep_no_control_characters_and_nothing_is_a_profile() {
    let mut hostile = profile(1, 1);
    hostile.stacks[0].frames[0].function = Some("a\u{1b}[31mb".into());
    let mut bytes = Vec::new();
    GzDecoder::new(&pprof::pprof(&hostile)[..]).read_to_end(&mut bytes).unwrap();
    assert!(!bytes.windows(2).any(|two| two == b"\x1b["));
    let empty =
        Profile { stacks: vec![], cpu_samples: None, kernel_locks: vec![], ..profile(0, 0) };
    let Some(raw) = go(&empty, &["-raw"]) else { return };
    assert!(raw.contains("delay/nanoseconds"), "{raw}");
}

#[test]
fn two_forms_of_one_profile_are_the_same_bytes() {
    assert_eq!(pprof::pprof(&profile(20, 3)), pprof::pprof(&profile(20, 3)));
}

#[test]
fn firefox_has_tracks_of_stacks_and_convoys() {
    let profile = profile(3, 1);
    let json = firefox::firefox(&profile);
    let threads = json["threads"].as_array().unwrap();
    let names: Vec<_> = threads.iter().map(|one| one["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["On the CPU", "Waits for locks", "Waits for the kernel's locks"]);
    let weights = |number: usize| -> f64 {
        let weights = threads[number]["samples"]["weight"].as_array().unwrap();
        weights.iter().map(|weight| weight.as_f64().unwrap()).sum()
    };
    let waited: u64 = profile.locks.iter().map(|lock| lock.wait.total_ns).sum();
    assert!((weights(1) - waited as f64 / 1e6).abs() < 0.01, "milliseconds: {}", weights(1));
    assert_eq!((weights(0), weights(2)), (200.0, 3000.0));
    assert_eq!(threads[1]["markers"]["length"], profile.convoys.len());
    let text = json.to_string();
    assert!(text.contains("[lock_0]") && text.contains("ut_delay"));
}

#[test]
fn a_wait_of_a_year_has_a_weight() {
    let mut profile = profile(2, 1);
    profile.stacks.truncate(1);
    profile.cpu_samples = None;
    profile.stacks[0].wait_ns = 365 * 86_400 * 1_000_000_000;
    profile.stacks[0].frames = vec![frame(HOSTILE)];
    let json = firefox::firefox(&profile);
    let weights = json["threads"][0]["samples"]["weight"].as_array().unwrap().iter();
    let all: f64 = weights.map(|weight| weight.as_f64().unwrap()).sum();
    assert!((all - 365.0 * 86_400.0 * 1000.0).abs() < 1.0, "{all}");
}
