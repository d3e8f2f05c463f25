//! A thread commits, and another collects.

use std::sync::Arc;

use loom::sync::atomic::{AtomicU64, Ordering};
use loom::thread;
use timestone::ring::{Reader, Writer, ring};

fn check(model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(model);
}

/// A transaction's decision: 0 while it is open.
type Decision = Arc<AtomicU64>;

/// Commits with this stamp, and the same number in the record.
fn commit(writer: &mut Writer, decision: &Decision, stamp: u64) {
    decision.store(0, Ordering::Release);
    let staged = writer.stage(&[stamp, 10 * stamp]);
    decision.store(stamp, Ordering::Release);
    writer.stamp(staged, stamp);
}

/// Takes the records up to a horizon, and checks that they are the next commits.
fn take(reader: &mut Reader, decision: &Decision, horizon: u64, last: &mut u64) {
    let fate =
        || Some(decision.load(Ordering::Acquire)).filter(|stamp| (1..=horizon).contains(stamp));
    reader.take(horizon, fate, |stamp, words| {
        let words: Vec<_> = words.collect();
        assert!(
            stamp == *last + 1 && words == [stamp, 10 * stamp],
            "a record of {stamp} after {last}: {words:?}"
        );
        *last = stamp;
    });
}

#[test]
fn records_come_whole_and_in_order() {
    check(|| {
        let (mut writer, mut reader) = ring(16);
        let decision = Decision::default();
        let shared = decision.clone();
        let committer = thread::spawn(move || {
            (1..=2).for_each(|stamp| commit(&mut writer, &shared, stamp));
        });
        let mut last = 0;
        take(&mut reader, &decision, 2, &mut last);
        committer.join().unwrap();
        take(&mut reader, &decision, 1, &mut last);
        assert!(last >= 1);
        take(&mut reader, &decision, 2, &mut last);
        assert_eq!(last, 2, "all that was committed");
    });
}

#[test]
fn room_is_used_again_when_it_was_read() {
    check(|| {
        let (mut writer, mut reader) = ring(8);
        let decision = Decision::default();
        commit(&mut writer, &decision, 1);
        commit(&mut writer, &decision, 2);
        let shared = decision.clone();
        let committer = thread::spawn(move || {
            let has_room = writer.has_room();
            if has_room {
                commit(&mut writer, &shared, 3);
            }
            has_room
        });
        let mut last = 0;
        take(&mut reader, &decision, 2, &mut last);
        let committed = committer.join().unwrap();
        take(&mut reader, &decision, 3, &mut last);
        assert_eq!(last, if committed { 3 } else { 2 });
    });
}
