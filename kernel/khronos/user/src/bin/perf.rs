//! Runs a program and prints in which functions of the kernel the CPUs were meanwhile, a hundred
//! times a second each.

use std::collections::HashMap;
use std::process::{Command, ExitCode};
use std::{env, fs};

/// Addresses of the kernel begin here.
const KERNEL: u64 = 0xffff_8000_0000_0000;
/// Rows of the table.
const ROWS: usize = 20;

fn samples() -> Vec<u64> {
    let text = fs::read_to_string("/proc/samples").unwrap_or_else(|error| {
        eprintln!("perf: /proc/samples: {error}: this is not KhronOS");
        std::process::exit(2);
    });
    let address = |line: &str| u64::from_str_radix(line.split_once(' ')?.1, 16).ok();
    text.lines().filter_map(address).collect()
}

/// The kernel's functions, by their addresses.
fn symbols() -> Vec<(u64, String)> {
    let text = fs::read_to_string("/etc/kernel.symbols").unwrap_or_default();
    let symbol = |line: &str| {
        let (address, rest) = line.split_once(' ')?;
        Some((u64::from_str_radix(address, 16).ok()?, rest.get(2..)?.to_owned()))
    };
    text.lines().filter_map(symbol).collect()
}

fn name(symbols: &[(u64, String)], address: u64) -> String {
    if address < KERNEL {
        return String::from("(user mode)");
    }
    let behind = symbols.partition_point(|(start, _)| *start <= address);
    let found = behind.checked_sub(1).map(|place| symbols[place].1.clone());
    found.unwrap_or_else(|| format!("{address:#x}"))
}

fn main() -> ExitCode {
    let mut arguments = env::args_os().skip(1);
    let Some(program) = arguments.next() else {
        eprintln!("usage: perf PROGRAM [ARGUMENT]...");
        return ExitCode::from(2);
    };
    let symbols = symbols();
    samples(); // what was before is not the program's
    let ended = match Command::new(&program).args(arguments).status() {
        Ok(ended) => ended,
        Err(error) => {
            eprintln!("perf: {}: {error}", program.display());
            return ExitCode::from(127);
        }
    };
    let samples = samples();
    let mut counts: HashMap<String, usize> = HashMap::new();
    for &address in &samples {
        *counts.entry(name(&symbols, address)).or_default() += 1;
    }
    let mut rows: Vec<_> = counts.into_iter().collect();
    rows.sort_by(|(a, more), (b, less)| less.cmp(more).then_with(|| a.cmp(b)));
    for (name, count) in rows.iter().take(ROWS) {
        eprintln!("{:>5.1} % {name}", 100.0 * *count as f64 / samples.len() as f64);
    }
    eprintln!("{} samples on all CPUs", samples.len());
    ExitCode::from(u8::try_from(ended.code().unwrap_or(128)).unwrap_or(255))
}
