//! Accounts among which threads move money: a transfer changes two at once, and an audit sees all
//! of them at one moment, without making other threads wait.
//!
//!     cargo run --release -p manycore --example transactions

use manycore::mvrlu::Domain;
use manycore::session;

const ACCOUNTS: usize = 16;
const EACH: i64 = 100;
/// Fewer in the interpreter, which takes a thousand times as long.
const TURNS: usize = if cfg!(miri) { 20 } else { 2000 };

fn main() {
    let domain = <Domain>::default();
    session::scope(&domain, |bank| {
        let mut member = bank.register();
        let accounts: Vec<_> = (0..ACCOUNTS).map(|_| member.create(EACH)).collect();
        std::thread::scope(|s| {
            for thread in 0..4 {
                let accounts = &accounts;
                s.spawn(move || {
                    let mut member = bank.register();
                    for turn in 0..TURNS {
                        let (from, to) = (turn * 7 + thread, turn * 11 + 5);
                        let (from, to) = (accounts[from % ACCOUNTS], accounts[to % ACCOUNTS]);
                        // Again from the start, as long as another transaction is in the way.
                        member.run(|tx| {
                            *tx.try_lock(from)? -= 1;
                            *tx.try_lock(to)? += 1;
                            Ok(())
                        });
                        let sum: i64 = member
                            .read(|snapshot| accounts.iter().map(|a| *snapshot.deref(*a)).sum());
                        assert_eq!(sum, ACCOUNTS as i64 * EACH, "money was made or lost");
                    }
                });
            }
        });
    });
    println!("{:?}", domain.stats());
}

#[test]
fn runs() {
    main();
}
