//! Operations that wait in logs, and sections that other threads run: panics, also at their end,
//! and forgotten values.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread;

use manycore::delegate::FlatCombining;
use manycore::oplog::{Apply, OpLog};

use crate::live::{Live, live};

/// Keeps some values, forgets some, and panics for some.
struct Picky(Vec<Live>);

impl Apply<Live> for Picky {
    fn apply(&mut self, value: Live) {
        assert!(!value.number.is_multiple_of(10), "the operation");
        self.0.push(value);
    }
}

/// An operation that panics is lost together with those behind it, as documented. Each is dropped
/// once.
#[test]
fn operations_panic() {
    crate::quietly(|| {
        let leaked = live(|| {
            for reads in [true, false] {
                let log = OpLog::<Picky, Live>::new(Picky(Vec::new()));
                thread::scope(|s| {
                    for thread in 1..4 {
                        let log = &log;
                        s.spawn(move || {
                            crate::be_quiet();
                            for number in 0..crate::ROUNDS {
                                let number = thread * 1000 + number;
                                let one = || log.log(Live::new(number));
                                _ = catch_unwind(AssertUnwindSafe(one));
                                if reads && number % 7 == 0 {
                                    let look = || log.read(|kept| kept.0.len());
                                    _ = catch_unwind(AssertUnwindSafe(look));
                                }
                            }
                        });
                    }
                });
                _ = catch_unwind(AssertUnwindSafe(|| log.read(|_| panic!("the look"))));
                log.log(Live::new(10));
                log.log(Live::panicking(11));
                _ = catch_unwind(AssertUnwindSafe(|| drop(log)));
            }
        });
        assert_eq!(leaked, 0);
    });
}

/// The panic of a section reaches the thread that has requested it, whichever thread runs it. Its
/// captures, its result, and the data are dropped once.
#[test]
fn sections_panic() {
    crate::quietly(|| {
        let panics = AtomicU64::new(0);
        let leaked = live(|| {
            let data = FlatCombining::new(Vec::<Live>::new());
            thread::scope(|s| {
                for thread in 0..4 {
                    let (data, panics) = (&data, &panics);
                    s.spawn(move || {
                        crate::be_quiet();
                        for number in 0..crate::ROUNDS {
                            let (value, result) = (Live::new(thread), Live::new(number));
                            let section = || {
                                data.with(move |all| {
                                    all.push(value);
                                    assert!(!number.is_multiple_of(3), "the section");
                                    if all.len() > 3 {
                                        all.clear()
                                    }
                                    result
                                })
                            };
                            match catch_unwind(AssertUnwindSafe(section)) {
                                Ok(result) => assert_eq!(*result.number, number),
                                Err(_) => _ = panics.fetch_add(1, Relaxed),
                            }
                        }
                    });
                }
            });
            data.with(|all| all.push(Live::panicking(0)));
            data.with(|all| all.push(Live::new(1)));
            assert!(catch_unwind(AssertUnwindSafe(|| drop(data))).is_err());
        });
        assert_eq!(leaked, 0);
        assert_eq!(panics.into_inner(), 4 * crate::ROUNDS.div_ceil(3));
    });
}
