//! A journal that many write and few read: each core logs with the time, and a thread that reads
//! merges.
//!
//!     cargo run --release -p manycore --example oplog

use manycore::oplog::{Apply, OpLog, Stamp};

/// An entry: the thread's number, and the number of the entry in its thread.
struct Entry {
    thread: usize,
    number: u32,
}

/// The last number of each.
struct Journal([u32; 4]);

impl Apply<Entry> for Journal {
    fn apply(&mut self, entry: Entry) {
        let last = &mut self.0[entry.thread];
        assert_eq!(entry.number, *last + 1, "a thread's entries come in its order");
        *last = entry.number;
    }
}

/// Fewer in the interpreter, which takes a thousand times as long.
const ENTRIES: u32 = if cfg!(miri) { 50 } else { 1000 };

fn main() {
    let journal = OpLog::<Journal, Entry>::new(Journal([0; 4]));
    std::thread::scope(|s| {
        for thread in 0..4 {
            let journal = &journal;
            s.spawn(move || {
                let mut last = Stamp::default();
                for number in 1..=ENTRIES {
                    // The thread may be on another core by now, whose clock is behind: so it names
                    // the operation before this one.
                    last = journal.log_after(Entry { thread, number }, last);
                }
            });
        }
        let entries: u32 = journal.read(|journal| journal.0.iter().sum());
        println!("{entries} so far");
    });
    assert_eq!(journal.read(|journal| journal.0), [ENTRIES; 4]);
}

#[test]
fn runs() {
    main();
}
