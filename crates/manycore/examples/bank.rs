//! A bank: transfers between accounts that are found by name, each recorded in a book, and an
//! auditor who sees everything as of one moment and delays no transfer.
//!
//!     cargo run --release -p manycore --example bank

use std::sync::atomic::{AtomicBool, Ordering};

use manycore::collections::space::{BTreeMap, HashMap, Space};

const ACCOUNTS: u64 = 20;
const EACH: i64 = 1_000;
const TELLERS: u64 = 3;
/// Fewer in the interpreter, which takes a thousand times as long.
const TRANSFERS: u64 = if cfg!(miri) { 10 } else { 5_000 };

fn name(number: u64) -> String {
    format!("account {}", number % ACCOUNTS)
}

fn main() {
    // Two maps that share a space: an operation on both is one transaction.
    let space = <Space>::default();
    let accounts = HashMap::<String, i64>::new_in(&space);
    let book = BTreeMap::<u64, String>::new_in(&space);
    (0..ACCOUNTS).for_each(|number| _ = accounts.set(name(number), EACH));

    let is_over = AtomicBool::new(false);
    let audits = std::thread::scope(|scope| {
        let tellers = (0..TELLERS).map(|teller| {
            let (space, accounts, book) = (&space, &accounts, &book);
            scope.spawn(move || {
                let mut me = space.handle();
                for turn in 0..TRANSFERS {
                    let (from, to) = (name(turn * 7 + teller), name(turn * 11 + 5));
                    // Again from the start, as long as another transaction is in the way.
                    me.transact(|tx| {
                        let left = *tx.get(accounts, &from).expect("it is there") - 30;
                        if left < 0 || from == to {
                            return Ok(());
                        }
                        let more = *tx.get(accounts, &to).expect("it is there") + 30;
                        tx.set(accounts, from.clone(), left)?;
                        tx.set(accounts, to.clone(), more)?;
                        tx.set(book, turn * TELLERS + teller, format!("{from} -> {to}"))?;
                        Ok(())
                    });
                }
            })
        });
        let tellers: Vec<_> = tellers.collect();
        let auditor = scope.spawn(|| {
            let (mut me, mut audits) = (space.handle(), 0);
            // Relaxed: only says when to stop.
            while !is_over.load(Ordering::Relaxed) {
                me.snapshot(|now| {
                    let mut sum = 0;
                    now.for_each(&accounts, |_, balance| {
                        assert!(*balance >= 0, "more was taken than there was");
                        sum += balance;
                        true
                    });
                    assert_eq!(sum, ACCOUNTS as i64 * EACH, "money was made or lost");
                });
                audits += 1;
            }
            audits
        });
        tellers.into_iter().for_each(|teller| teller.join().unwrap());
        is_over.store(true, Ordering::Relaxed); // Relaxed: as above
        auditor.join().unwrap()
    });
    let last: Vec<_> = space.snapshot(|now| {
        now.iter(&book).rev().take(2).map(|(number, line)| format!("{number}: {line}")).collect()
    });
    println!("{} transfers, {audits} audits; the last: {}", book.len(), last.join(", "));
}

#[test]
fn runs() {
    main();
}
