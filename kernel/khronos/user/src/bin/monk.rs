//! Runs a program and prints which of the kernel's counters have changed meanwhile.

use std::process::{Command, ExitCode};
use std::time::Instant;
use std::{env, fs};

/// The counters, in the kernel's order.
fn counters() -> Vec<(String, u64)> {
    let text = fs::read_to_string("/proc/counters").unwrap_or_else(|error| {
        eprintln!("monk: /proc/counters: {error}: this is not KhronOS");
        std::process::exit(2);
    });
    let line = |line: &str| {
        let (name, count) = line.split_once(' ')?;
        Some((name.to_owned(), count.parse().ok()?))
    };
    text.lines().filter_map(line).collect()
}

fn main() -> ExitCode {
    let mut arguments = env::args_os().skip(1);
    let Some(program) = arguments.next() else {
        eprintln!("usage: monk PROGRAM [ARGUMENT]...");
        return ExitCode::from(2);
    };
    let before = counters();
    let start = Instant::now();
    let ended = match Command::new(&program).args(arguments).status() {
        Ok(ended) => ended,
        Err(error) => {
            eprintln!("monk: {}: {error}", program.display());
            return ExitCode::from(127);
        }
    };
    let elapsed = start.elapsed();
    for ((name, after), (_, before)) in counters().into_iter().zip(before) {
        if after > before {
            eprintln!("{:>12} {name}", after - before);
        }
    }
    eprintln!("{:>12.3} seconds", elapsed.as_secs_f64());
    ExitCode::from(u8::try_from(ended.code().unwrap_or(128)).unwrap_or(255))
}
