//! sysbench, which keeps the server busy.

use std::process::Command;
use std::time::Duration;

use super::{Database, complete};
use crate::soak::drive::Shift;
use crate::soak::process::Process;
use crate::soak::{Failure, Result, STANDSTILL, ensure, installed};

const TABLES: &[&str] = &["sbtest1", "sbtest2"];
const ROWS: u32 = 4_000;

fn sysbench(database: &Database) -> Result<Command> {
    let mut command = Command::new(installed("sysbench", "sysbench")?);
    let mut socket = std::ffi::OsString::from("--mysql-socket=");
    socket.push(database.socket());
    command.arg(socket).args(["--db-driver=mysql", "--mysql-user=root", "--mysql-db=soak"]);
    command.arg(format!("--tables={}", TABLES.len())).arg(format!("--table-size={ROWS}"));
    Ok(command)
}

/// Makes its tables.
pub fn prepare(database: &Database) -> Result<()> {
    let mut command = sysbench(database)?;
    command.args(["oltp_read_write", "prepare"]);
    complete(Process::start("prepare", &mut command, database.place())?)
}

/// Runs one of sysbench's tests for this long. The result is the number of transactions.
pub fn run(
    database: &Database,
    test: &str,
    threads: usize,
    length: Duration,
    shift: &Shift,
) -> Result<()> {
    let mut command = sysbench(database)?;
    command.arg(format!("--threads={threads}")).arg(format!("--time={}", seconds(length)));
    command.args(["--report-interval=1", test, "run"]);
    let process = Process::start(test, &mut command, database.place())?;
    let mut reported = 0;
    let mut report = || {
        let so_far = reports(&process.stdout());
        shift.did(so_far - reported);
        reported = so_far;
    };
    while !process.ends_within(Duration::from_millis(500))? {
        report();
    }
    // The last lines of the output, whose count is more exact than that of the reports.
    let said = process.said();
    let ended = transactions(&said);
    let status = process.finish(STANDSTILL)?;
    let failed =
        || Failure::new(format!("{status}")).with("it said", &crate::soak::process::tail(&said));
    if !status.success() || said.contains("FATAL") {
        return Err(failed());
    }
    shift.did(ended.ok_or_else(failed)?.saturating_sub(reported));
    Ok(())
}

fn seconds(length: Duration) -> u64 {
    length.as_secs().max(1)
}

/// Transactions in the lines that it prints each second: `[ 1s ] thds: 8 tps: 579.40 qps: ...`.
fn reports(output: &str) -> u64 {
    let rate = |line: &str| line.split_once(" tps: ")?.1.split(' ').next()?.parse::<f64>().ok();
    output.lines().filter_map(rate).sum::<f64>() as u64
}

/// Transactions in the last lines of the output: `transactions: 95156 (18772.95 per sec.)`.
fn transactions(output: &str) -> Option<u64> {
    let (_, rest) = output.split_once(" transactions: ")?;
    rest.split_ascii_whitespace().next()?.parse().ok()
}

/// Fails unless sysbench's tables have their old size, and are intact.
pub fn check(database: &Database) -> Result<()> {
    for table in TABLES {
        let count = database.query("soak", &format!("SELECT COUNT(*) FROM {table}"))?;
        ensure(count == ROWS.to_string(), || format!("{table} has {count} rows, not {ROWS}"))?;
        let sound = database.query("soak", &format!("CHECK TABLE {table} EXTENDED"))?;
        ensure(sound.ends_with("\tOK"), || sound)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_it_reports() {
        let report = "[ 1s ] thds: 8 tps: 579.40 qps: 11684.94 (r/w/o: 1/2/3)\n[ 2s ] thds: 8 tps: 20.70 qps: 3\n";
        assert_eq!(reports(report), 600);
        assert_eq!(reports("Threads started!\n"), 0);
        let end = "SQL statistics:\n    transactions:                        95156  (18772.95 per sec.)\n";
        assert_eq!(transactions(end), Some(95156));
        assert_eq!(transactions(report), None);
    }
}
