//! The same seed gives the same result, to the byte, whatever else the process does. And a large
//! machine does not take much memory.

use std::process::Command;

use manycore_sim::{Machine, Simulation, model};
use manycore_simulated::lock::{self, PlainLock};

use crate::workload::{Load, simulate};

/// A report of each lock.
fn reports() -> String {
    let mut text = String::new();
    macro_rules! report {
        ($($lock:ident),* $(,)?) => {
            $(
                let load = Load { inside: 100, outside: 400, length: 60_000 };
                let simulation = Simulation::new(&Machine::example()).cpus(12).seed(7);
                let report = simulate::<lock::$lock>(&simulation, 12, load);
                text += &format!("report of {}: {report:?}\n", <lock::$lock as PlainLock>::INFO.name);
            )*
        };
    }
    manycore_simulated::for_each_lock!(report);
    text
}

/// The output of a test of this program that runs in a process of its own.
fn output_of(test: &str, change: impl FnOnce(&mut Command)) -> String {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture"]);
    change(&mut command);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn in_one_process() {
    let reports = reports();
    // What the host allocates in between does not matter.
    let _spare = vec![0_u8; 12345];
    assert_eq!(reports, self::reports());
    println!("\n{reports}");
}

#[test]
fn in_any_environment() {
    let reports_of = |change: fn(&mut Command)| -> Vec<String> {
        let output = output_of("repeats::in_one_process", change);
        output.lines().filter(|line| line.starts_with("report of ")).map(str::to_owned).collect()
    };
    let here: Vec<_> = reports().lines().map(str::to_owned).collect();
    assert!(here.len() > 5);
    assert_eq!(here, reports_of(|_| ()));
    assert_eq!(
        here,
        reports_of(|command| {
            command.env_clear().env("A_LONG_NAME", "x".repeat(10_000)).current_dir("/");
        })
    );
}

#[test]
fn runs_448_threads() {
    let machine = model::find("xeon-8180-8x28x2").unwrap().machine();
    let load = Load { inside: 100, outside: 400, length: 200_000 };
    let report = simulate::<lock::Mcs>(&Simulation::new(&machine), 448, load);
    assert!(report.result.iter().all(|count| *count > 0), "a thread never got the lock");
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    println!("\n{}", status.lines().find(|line| line.starts_with("VmHWM")).unwrap());
}

#[test]
fn of_448_threads_fit_into_64_mib() {
    let output = output_of("repeats::runs_448_threads", |_| ());
    let peak = output.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let kib: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
    println!("{kib} KiB");
    assert!(kib < 64 << 10, "{kib} KiB");
}
