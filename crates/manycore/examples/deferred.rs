//! A list of logged-in users: every log-in and log-out updates an index, which an administrator
//! reads now and then. Updates take no lock, and most cancel before a read.
//!
//!     cargo run --release -p manycore --example deferred

use std::collections::{BTreeMap, BTreeSet};

use manycore::ldu::{Deferred, Item, PerCore, Structure};

struct Login {
    machine: u32,
    user: u32,
}

/// Users by machine.
#[derive(Default)]
struct Index(BTreeMap<u32, BTreeSet<u32>>);

impl Structure<Login> for Index {
    fn insert(&mut self, login: Item<'_, Login>) {
        assert!(self.0.entry(login.machine).or_default().insert(login.user));
    }

    fn remove(&mut self, login: Item<'_, Login>) {
        let users = self.0.get_mut(&login.machine).expect("somebody is logged in there");
        assert!(users.remove(&login.user));
    }
}

/// Fewer in the interpreter, which takes a thousand times as long.
const USERS: u32 = if cfg!(miri) { 100 } else { 1000 };

fn main() {
    let index = Deferred::<Index, Login, PerCore>::default();
    std::thread::scope(|s| {
        for thread in 0..4 {
            let index = &index;
            s.spawn(move || {
                for user in 0..USERS {
                    // The handle shows that the item is in the index; dropping it removes the item.
                    let login = index.item(Login { machine: user % 10, user: 4 * user + thread });
                    let login = login.insert();
                    if user % 100 == 0 {
                        login.keep();
                    }
                }
            });
        }
    });
    let users: usize = index.read(|index| index.0.values().map(BTreeSet::len).sum());
    let statistics = index.statistics();
    println!("{users} users; {} of {} updates were applied", statistics.applied, 8 * USERS);
    assert_eq!(users, 4 * USERS as usize / 100);
}

#[test]
fn runs() {
    main();
}
