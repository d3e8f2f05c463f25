//! Transfers between accounts. No update is lost if the sum stays the same, and if counters have
//! counted each transfer.
//!
//! A transfer reads two balances under row locks, writes both back, and counts itself. If a server
//! lets two transactions hold one row, it loses one of two updates, and the sum of all balances
//! changes. Rows are locked in the order of their numbers, so that no transfer can be part of a
//! deadlock, and every error is a failure.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use super::Database;
use crate::soak::drive::Shift;
use crate::soak::process::spawn;
use crate::soak::{Failure, Result, ensure};

const ACCOUNTS: u32 = 50;
const BALANCE: u32 = 1_000;
const COUNTERS: u64 = 4;
/// Transfers between two answers of the server.
const BATCH: u64 = 50;
/// The number of batches in a session. Sessions begin and end, and so do the server's threads that
/// serve them.
const BATCHES: u64 = 20;

/// Makes the tables, and the procedure that makes a transfer.
pub fn prepare(database: &Database) -> Result<()> {
    let sql = format!(
        "CREATE TABLE account (id INT PRIMARY KEY, balance BIGINT NOT NULL)//
         INSERT INTO account SELECT seq, {BALANCE} FROM seq_1_to_{ACCOUNTS}//
         CREATE TABLE counter (id INT PRIMARY KEY, value BIGINT NOT NULL)//
         INSERT INTO counter SELECT seq - 1, 0 FROM seq_1_to_{COUNTERS}//
         CREATE PROCEDURE transfer (low INT, high INT, amount BIGINT, counter_id INT)
         BEGIN
             DECLARE a, b BIGINT;
             START TRANSACTION;
             SELECT balance INTO a FROM account WHERE id = low FOR UPDATE;
             SELECT balance INTO b FROM account WHERE id = high FOR UPDATE;
             UPDATE account SET balance = a - amount WHERE id = low;
             UPDATE account SET balance = b + amount WHERE id = high;
             UPDATE counter SET value = value + 1 WHERE id = counter_id;
             COMMIT;
         END//"
    );
    let mut client = database.client("soak")?;
    let output = client.args(["--delimiter=//", "--execute", &sql]).output();
    let output = output.map_err(Failure::because("cannot start mariadb"))?;
    let complaint = String::from_utf8_lossy(&output.stderr);
    ensure(output.status.success(), || format!("the accounts cannot be made: {complaint}"))
}

/// The accounts of a database.
#[derive(Debug)]
pub struct Transfers<'a> {
    database: &'a Database,
}

impl<'a> Transfers<'a> {
    /// Those that [`prepare`] has made.
    pub fn new(database: &'a Database) -> Self {
        Self { database }
    }

    /// Makes transfers until the shift is over; work done is those that the server has
    /// acknowledged.
    pub fn make(&self, shift: &Shift) -> Result<()> {
        while !shift.is_over() {
            let mut session = Session::open(self.database)?;
            for _ in 0..BATCHES {
                let mut sql: String = (0..BATCH).map(transfer).collect();
                sql.push_str("SELECT 'done';");
                let answer = session.ask(&sql)?;
                ensure(answer == "done", || format!("a batch answers {answer}"))?;
                shift.did(BATCH);
                if shift.is_over() {
                    break;
                }
            }
            session.close()?;
        }
        Ok(())
    }

    /// Checks that the sum is right at every moment, not only in the end.
    pub fn audit(&self, shift: &Shift) -> Result<()> {
        let mut session = Session::open(self.database)?;
        while !shift.is_over() {
            let sum = session.ask("SELECT SUM(balance) FROM account;")?;
            ensure(sum == (ACCOUNTS * BALANCE).to_string(), || format!("the sum is {sum}"))?;
            shift.did(1);
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        session.close()
    }

    /// Fails unless the sum is unchanged, and the counters have counted this many transfers.
    pub fn check(&self, made: u64) -> Result<()> {
        ensure(made > 0, || "no transfer was made".to_owned())?;
        let sum = self.database.query("soak", "SELECT SUM(balance) FROM account")?;
        let expected = ACCOUNTS * BALANCE;
        ensure(sum == expected.to_string(), || {
            format!(
                "lost updates: the balances sum to {sum}, not {expected}, after {made} transfers"
            )
        })?;
        let counted = self.database.query("soak", "SELECT SUM(value) FROM counter")?;
        ensure(counted == made.to_string(), || {
            format!("lost updates: {counted} transfers are counted, {made} were acknowledged")
        })
    }
}

/// The SQL of the nth transfer of a batch.
fn transfer(n: u64) -> String {
    let amount = fastrand::i32(-20..=20);
    let low = fastrand::u32(1..ACCOUNTS);
    let high = fastrand::u32(low + 1..=ACCOUNTS);
    let counter = n % COUNTERS;
    format!("CALL transfer({low}, {high}, {amount}, {counter}); ")
}

/// A command line client that stays connected, and ends at the first error.
struct Session {
    client: Child,
    /// Closed to end the session.
    sql: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    complaints: File,
}

impl Session {
    fn open(database: &Database) -> Result<Self> {
        let complaints =
            tempfile::tempfile().map_err(Failure::because("a file for what mariadb says"))?;
        let mut command = database.client("soak")?;
        command.arg("--unbuffered").stdin(Stdio::piped()).stdout(Stdio::piped());
        command.stderr(complaints.try_clone().map_err(Failure::because("a descriptor"))?);
        let mut client = spawn(&mut command)?;
        let answers = BufReader::new(client.stdout.take().expect("piped above"));
        Ok(Self { sql: client.stdin.take(), client, answers, complaints })
    }

    /// The one line that some SQL prints.
    fn ask(&mut self, sql: &str) -> Result<String> {
        let mut answer = String::new();
        let input = self.sql.as_mut().expect("open until the session is closed");
        let asked = writeln!(input, "{sql}").and_then(|()| self.answers.read_line(&mut answer));
        match asked {
            Ok(1..) => Ok(answer.trim_end().to_owned()),
            Ok(0) => Err(self.failure("the session has ended")),
            Err(error) => Err(self.failure(&error.to_string())),
        }
    }

    /// Ends it in order.
    fn close(mut self) -> Result<()> {
        drop(self.sql.take());
        let status = self.client.wait().map_err(Failure::because("cannot wait for mariadb"))?;
        ensure(status.success(), || {
            format!("mariadb: {status}: {}", contents(&mut self.complaints))
        })
    }

    fn failure(&mut self, what: &str) -> Failure {
        // The client has closed its end, so that all of its output is there.
        Failure::new(format!("{what}: {}", contents(&mut self.complaints)))
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // Neither call affects a client that has been waited for.
        _ = self.client.kill();
        _ = self.client.wait();
    }
}

fn contents(file: &mut File) -> String {
    let mut text = String::new();
    match file.rewind().and_then(|()| file.read_to_string(&mut text)) {
        Ok(_) => text.trim().to_owned(),
        Err(error) => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_locked_in_order() {
        for n in 0..1_000 {
            let sql = transfer(n);
            let (_, numbers) = sql.split_once('(').unwrap();
            let mut numbers = numbers.split(", ").map(|number| number.parse::<u32>());
            let (low, high) = (numbers.next().unwrap().unwrap(), numbers.next().unwrap().unwrap());
            assert!((1..high).contains(&low) && high <= ACCOUNTS, "{sql}");
        }
    }
}
