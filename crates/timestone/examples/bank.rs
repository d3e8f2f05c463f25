//! A bank that survives: four threads make transfers until the process is killed, and a restarted
//! process prints the balance.
//!
//! `cargo run --release -p timestone --example bank -- DIRECTORY`, end it with Ctrl-C or `kill -9`,
//! and run it again.

use timestone::{Map, Stop, Store};

const ACCOUNTS: u64 = 100;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let directory = std::env::args().nth(1).ok_or("which directory?")?;
    let store = Store::open(&directory)?;
    let accounts: Map<u64, i64> = store.map("accounts")?;
    let mut me = store.register()?;
    if me.read(|now| accounts.is_empty(now)) {
        me.run(|tx| {
            (0..ACCOUNTS).try_for_each(|account| accounts.insert(tx, account, 100).map(|_| ()))
        })?;
    }
    let sum = me.read(|now| {
        let mut sum = 0;
        accounts.for_each(now, |_, balance| sum += balance);
        sum
    });
    println!("{sum} in all accounts; {:?}", store.stats());

    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut me = store.register().expect("the journal is large enough");
                loop {
                    let (from, to) = (fastrand::u64(0..ACCOUNTS), fastrand::u64(0..ACCOUNTS));
                    let moved = me.run(|tx| {
                        if accounts.get(tx, &from).unwrap_or(0) < 10 {
                            return Err(Stop::Cancel);
                        }
                        accounts.update(tx, &from, |balance| *balance -= 10)?;
                        accounts.update(tx, &to, |balance| *balance += 10)
                    });
                    match moved {
                        Ok(_) | Err(timestone::Error::Cancelled) => {}
                        Err(error) => return eprintln!("{error}"),
                    }
                }
            });
        }
    });
    Ok(())
}
