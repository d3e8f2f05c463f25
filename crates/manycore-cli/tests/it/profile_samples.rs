//! `manycore profile` and samples of the CPU time: known shares, and one clear line where samples
//! are not permitted.

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::support::real::profiling;
use crate::support::{bare_manycore, compile, copy, directory, skipped, stderr, stdout};
use serde_json::Value;

const SAMPLED: &str = include_str!("programs/sampled.c");
/// Nobody.
const NOBODY: u32 = 65534;

/// Profiles a command; its output, and the JSON.
fn profiled(options: &[&str], command: &[&str]) -> (Output, Value) {
    let directory = directory();
    let file = directory.path().join("profile.json");
    let options = [&["--json", file.to_str().unwrap()], options].concat();
    let output = profiling(&options, command).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let json = std::fs::read_to_string(&file).unwrap();
    (output, serde_json::from_str(&json).unwrap())
}

/// Whether there are samples, including the kernel's if requested; if not, the test's log has the
/// reason.
fn are_there(samples: &Value, of_kernel: bool) -> bool {
    let is_whole = samples["kernel_permitted"] == true && samples["shares"]["spin_kernel"].is_f64();
    if samples["refused"].is_null() && (is_whole || !of_kernel) {
        return true;
    }
    skipped(format!("{} {}", samples["refused"], samples["limits"]));
    false
}

/// Checks that a share is the expected one, within four standard errors, and three points for the
/// program's other work. A share of 0 or 1 also has an error: it may be off by those points, and 3
/// of 98 samples are not many.
fn assert_share(what: &str, shares: &Value, part: &str, expected: f64) {
    let (share, samples) = (shares[part].as_f64().unwrap(), shares["samples"].as_f64().unwrap());
    let likely = expected.clamp(0.03, 0.97);
    let error = 4.0 * (likely * (1.0 - likely) / samples).sqrt() + 0.03;
    assert!(
        (share - expected).abs() < error,
        "{what}: {part} {share}, expected {expected} +- {error}"
    );
}

#[test]
fn shares_are_those_of_the_cpu_time() {
    let place = directory();
    let program = compile(place.path(), "sampled", SAMPLED, &["-O1", "-pthread"]);
    let page = place.path().join("page.html");
    let options = ["--samples", "997", "--html", page.to_str().unwrap()];
    let (output, json) = profiled(&options, &[program.to_str().unwrap()]);
    let samples = &json["cpu_samples"];
    if !are_there(samples, true) {
        return;
    }
    let printed: Vec<f64> =
        stdout(&output).split_whitespace().map(|word| word.parse().unwrap()).collect();
    let [spun, computed, called, in_child, child] = printed[..] else { panic!("{printed:?}") };
    let all = spun + computed + called + in_child;
    let shares = &samples["shares"];
    assert_share("all", shares, "spin_program", spun / all);
    assert_share("all", shares, "kernel", called / all);
    assert_share("all", shares, "program", (computed + in_child) / all);
    let parts = ["program", "kernel", "spin_program", "spin_library", "spin_kernel"];
    let sum: f64 = parts.iter().map(|part| shares[part].as_f64().unwrap()).sum();
    assert!((sum - 1.0).abs() < 1e-9, "{shares}");
    // As many as there was CPU time, and each at its time.
    let (taken, lost) = (samples["taken"].as_f64().unwrap(), samples["lost"].as_f64().unwrap());
    let expected = 997.0 * all / 1e9;
    // A busy host takes the CPU away, and makes one of several ticks.
    let found = (taken + lost) / expected;
    assert!((0.5..1.1).contains(&found), "{taken} and {lost} of {expected}");
    let intervals = samples["intervals"].as_array().unwrap();
    assert_eq!(intervals.len(), json["timeline"]["intervals"].as_array().unwrap().len());
    let in_intervals: f64 = intervals.iter().map(|one| one["samples"].as_f64().unwrap()).sum();
    assert_eq!(in_intervals, shares["samples"].as_f64().unwrap());
    let used = intervals.iter().filter(|one| one["samples"].as_f64().unwrap() > 0.0).count();
    assert!(used > 5, "{intervals:?}");

    let threads = samples["threads"].as_array().unwrap();
    let thread = |key: &str, value: Value| {
        let found = threads.iter().find(|thread| thread[key] == value);
        &found.unwrap_or_else(|| panic!("no {key} {value} in {threads:#?}"))["shares"]
    };
    assert_share(
        "spinner",
        thread("name", "spinner".into()),
        "spin_program",
        spun / (spun + computed),
    );
    assert_share("caller", thread("name", "caller".into()), "kernel", 1.0);
    assert_share("child", thread("pid", (child as u64).into()), "program", 1.0);

    let of_part = |list: &str, part: &str| {
        let all = samples[list].as_array().unwrap().iter();
        all.filter(|one| one["part"] == part).cloned().collect::<Vec<_>>()
    };
    let functions = of_part("functions", "spin-program");
    assert_eq!(functions[0]["name"], "spin_until_free", "{functions:?}");
    assert_eq!(functions[0]["module"], "sampled");
    assert!(of_part("functions", "program").iter().any(|one| one["name"] == "compute"));
    let stacks = of_part("stacks", "spin-program");
    assert_eq!(stacks[0]["frames"][0]["function"], "spin_until_free", "{stacks:?}");
    let said = stderr(&output);
    assert!(said.contains("for locks of the program's own (spin_until_free)"), "{said}");
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains("\"cpu_samples\":{") && page.contains("spin_until_free"));
}

/// Makes the system call fail, as where no program may use it.
fn forbid_perf(command: &mut Command) {
    const RETURN: u16 = 0x06;
    let instruction = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    let mut filter = [
        instruction(0x20, 0, 0, 0),
        instruction(0x15, 0, 1, libc::SYS_perf_event_open as u32),
        instruction(RETURN, 0, 0, libc::SECCOMP_RET_ERRNO | libc::EACCES as u32),
        instruction(RETURN, 0, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let forbid = move || {
        let program = libc::sock_fprog { len: filter.len() as u16, filter: filter.as_mut_ptr() };
        // SAFETY: system calls in the child; the kernel copies the filter, which lives until then.
        let failed = unsafe {
            libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0
                || libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program)
                    != 0
        };
        if failed { Err(io::Error::last_os_error()) } else { Ok(()) }
    };
    // SAFETY: between fork and exec `forbid` makes system calls only.
    unsafe { command.pre_exec(forbid) };
}

/// A program that takes a lock for a few milliseconds.
const LOCKS: &str = "#include <pthread.h>\n\
    static pthread_mutex_t hot = PTHREAD_MUTEX_INITIALIZER;\n\
    int main(void) { for (int i = 0; i < 100000; i++) { pthread_mutex_lock(&hot); pthread_mutex_unlock(&hot); } }\n";

#[test]
fn without_permission_the_rest_is_there() {
    let place = directory();
    let program = compile(place.path(), "locks", LOCKS, &["-pthread"]);
    let mut command = profiling(&["--json", "-"], &[program.to_str().unwrap()]);
    forbid_perf(&mut command);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(crate::support::real::named(&json, "hot (")["acquired"], 100_000);
    let samples = &json["cpu_samples"];
    assert!(samples["refused"].as_str().unwrap().contains("CAP_PERFMON"), "{samples}");
    assert_eq!((&samples["source"], &samples["taken"]), (&Value::Null, &0.into()));

    let mut command = profiling(&[], &[program.to_str().unwrap()]);
    forbid_perf(&mut command);
    let said = stderr(&command.output().unwrap());
    assert!(said.contains("Sampled stacks of the CPU time: not permitted"), "{said}");
}

#[test]
fn nobody_is_told_what_the_samples_lack() {
    let place = directory();
    std::fs::set_permissions(place.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let manycore = place.path().join("manycore");
    copy(Path::new(env!("CARGO_BIN_EXE_manycore")), &manycore);
    let program = compile(place.path(), "sampled", SAMPLED, &["-O1", "-pthread"]);
    let mut command = Command::new(manycore);
    command.args(["profile", "--kernel", "--lock", "glibc", "--json", "-", "--"]).arg(program);
    // SAFETY: a system call without side effects. Another user than root has no rights to lose.
    if unsafe { libc::geteuid() } == 0 {
        command.uid(NOBODY).gid(NOBODY);
    }
    let output = command.current_dir("/").stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    // The program's own line comes first.
    let text = stdout(&output);
    let json: Value = serde_json::from_str(&text[text.find('{').unwrap()..]).unwrap();
    let samples = &json["cpu_samples"];
    if !are_there(samples, false) {
        assert!(samples["refused"].as_str().unwrap().contains("not permitted"), "{samples}");
        return;
    }
    let paranoid = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap();
    let permitted = paranoid.trim().parse::<i32>().unwrap() < 2;
    assert_eq!(samples["kernel_permitted"], permitted, "{samples}");
    if !permitted {
        assert!(samples["shares"]["kernel"].is_null(), "{samples}");
        assert!(samples["limits"].to_string().contains("perf_event_paranoid"), "{samples}");
        assert!(samples["shares"]["spin_program"].as_f64().unwrap() > 0.1, "{samples}");
    }
}

#[test]
fn a_process_that_runs_already_is_sampled() {
    let place = directory();
    let program = compile(place.path(), "sampled", SAMPLED, &["-O1", "-pthread"]);
    let mut child = Command::new(program).arg("forever").spawn().unwrap();
    let pid = child.id().to_string();
    let watched = bare_manycore()
        .args(["profile", "--kernel=perf", "--json", "-", "--duration", "1s", "--pid", &pid])
        .output()
        .unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    if watched.status.code() == Some(2) {
        skipped(stderr(&watched));
        return;
    }
    let json: Value = serde_json::from_slice(&watched.stdout).unwrap();
    let samples = &json["cpu_samples"];
    if are_there(samples, true) {
        let names: Vec<_> =
            samples["threads"].as_array().unwrap().iter().map(|one| one["name"].clone()).collect();
        assert!(names.contains(&"spinner".into()) && names.contains(&"caller".into()), "{names:?}");
        assert_eq!(samples["threads"][0]["pid"].to_string(), pid);
        assert!(samples["shares"]["spin_program"].as_f64().unwrap() > 0.0, "{samples}");
    }
}

#[test]
fn none_are_taken_where_they_are_not_wanted() {
    let (output, json) = profiled(&["--samples", "no"], &["true"]);
    assert!(json.get("cpu_samples").is_none(), "{json}");
    assert!(!stderr(&output).contains("ampled stacks"), "{}", stderr(&output));
    let said =
        bare_manycore().args(["profile", "--samples", "5000", "--", "true"]).output().unwrap();
    assert_eq!(said.status.code(), Some(2));
    assert!(stderr(&said).contains("1 to 4000"), "{}", stderr(&said));
}
