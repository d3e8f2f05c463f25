//! Processes that are killed at any moment: in a commit, in an image, in recovery.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use fastrand::Rng;
use timestone::{Durability, Map, Operation, Options, Stop, Store, Transaction};

use crate::threads::{ACCOUNTS, Bank, THREADS};

const DIRECTORY: &str = "TIMESTONE_KILLED_IN";
const DURABILITY: &str = "TIMESTONE_KILLED_WITH";

/// Each thread's acknowledged work: a file that outlives the process, but no power cut.
fn acknowledgements(directory: &Path) -> File {
    let path = directory.join("acknowledged");
    OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path).unwrap()
}

fn acknowledged(file: &File, thread: u64) -> u64 {
    let mut count = [0; 8];
    file.read_exact_at(&mut count, thread * 8).map_or(0, |()| u64::from_le_bytes(count))
}

/// Each second account gets something from the one before it: a call is shorter than that.
fn shift(tx: &mut Transaction<'_, '_>, most: &u64) -> Result<(), Stop> {
    let accounts: Map<u64, u64> = tx.map("accounts")?;
    for from in (0..ACCOUNTS).step_by(2) {
        let sum = accounts.get(tx, &from).expect("the account is there").min(*most);
        accounts.update(tx, &from, |balance| *balance -= sum)?;
        accounts.update(tx, &(from + 1), |balance| *balance += sum)?;
    }
    Ok(())
}

const SHIFT: Operation<u64> = Operation::new("shift", 1, shift);

fn options() -> Options {
    crate::store::options().with_operations(&[&SHIFT])
}

/// The process that is killed. It runs as a test only if the other process has started it.
#[test]
fn child() {
    let Ok(directory) = std::env::var(DIRECTORY) else { return };
    let directory = Path::new(&directory);
    let durability = match std::env::var(DURABILITY).unwrap().as_str() {
        "durable" => Durability::Durable,
        "buffered" => Durability::Buffered,
        _ => Durability::EVENTUAL,
    };
    let store = Store::open_with(directory.join("store"), options()).unwrap();
    let bank = Bank::open(&store);
    let file = acknowledgements(directory);
    let mut me = store.register().unwrap();
    let made = bank.check(&mut me).unwrap_or_else(|| {
        bank.fill(&mut me);
        vec![0; THREADS as usize]
    });
    std::thread::scope(|scope| {
        for (thread, made) in (0..THREADS).zip(made) {
            let (store, file) = (&store, &file);
            scope.spawn(move || {
                let mut me = store.register().unwrap();
                let mut rng = Rng::new();
                for count in made + 1.. {
                    bank.transfer(&mut me, thread, count, &mut rng, durability);
                    file.write_all_at(&count.to_le_bytes(), thread * 8).unwrap();
                    if count.is_multiple_of(8) {
                        me.call_with(durability, &SHIFT, &rng.u64(1..4)).unwrap();
                    }
                    if thread == 0 && count.is_multiple_of(64) {
                        store.checkpoint().unwrap();
                    }
                }
            });
        }
    });
}

/// Starts a child, kills it, and checks the remaining store, `rounds` times. It does so more often,
/// with children that live longer, if none has made a transfer by then, as on a machine with other
/// load. Returns the number of all transfers.
fn rounds(durability: &str, rounds: usize) -> u64 {
    let directory = tempfile::tempdir().unwrap();
    let mut rng = Rng::with_seed(rounds as u64);
    let mut all = 0;
    for round in 0.. {
        let is_enough = round >= rounds && all > 0;
        if is_enough || round > 10 * rounds + 1000 {
            break;
        }
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "kills::child"])
            .env(DIRECTORY, directory.path())
            .env(DURABILITY, durability)
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        std::thread::sleep(Duration::from_millis(rng.u64(1..80 + round as u64)));
        child.kill().unwrap();
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code().is_none(), "the child has ended by itself: {said}");
        // The next child recovers by itself in some rounds, and may be killed in that.
        if rng.bool() {
            continue;
        }
        let store = Store::open_with(directory.path().join("store"), options()).unwrap();
        let bank = Bank::open(&store);
        let file = acknowledgements(directory.path());
        let Some(made) = bank.check(&mut store.register().unwrap()) else {
            assert_eq!(acknowledged(&file, 0), 0, "the bank is lost");
            continue;
        };
        for (thread, made) in (0..THREADS).zip(&made) {
            let told = acknowledged(&file, thread);
            assert!(
                durability == "eventual" || *made >= told,
                "{made} are there, {told} were acknowledged"
            );
            // What was lost is done again, under the same numbers.
            file.write_all_at(&made.to_le_bytes(), thread * 8).unwrap();
        }
        all = made.iter().sum();
    }
    all
}

/// The number of rounds: 40, or what the environment says.
fn how_often() -> usize {
    std::env::var("TIMESTONE_KILLS")
        .map_or(40, |rounds| rounds.parse().expect("a number of rounds"))
}

#[test]
fn a_kill_loses_nothing_that_was_acknowledged() {
    assert!(rounds("durable", how_often()) > 0);
}

#[test]
fn a_kill_loses_nothing_that_the_operating_system_has() {
    assert!(rounds("buffered", how_often()) > 0);
}

#[test]
fn a_kill_leaves_whole_transfers_also_of_those_that_nobody_has_waited_for() {
    assert!(rounds("eventual", how_often()) > 0);
}
