//! The tests find mistakes that are planted in the store.

use std::process::Command;
use std::time::Instant;

/// A mistake, the test that has to find it, and the text that the test has to print.
const MUTATIONS: &[(&str, &str, &str)] = &[
    // I2: frames in flight, and those that were flushed.
    ("frame-claims-flushed", "volume::a_cut_loses_nothing", "a cut is no damage"),
    ("scan-trusts-tail", "volume::damage_is_no_cut", "is taken for a cut"),
    // I5: what the heap knows of objects follows the flush.
    ("objects-before-flush", "images::objects_come_and_go", "not recovered"),
    // I6: the image, the superblock, and only then the journal's room.
    ("image-unflushed", "volume::a_cut_loses_nothing", "a cut is no damage"),
    ("journal-early-release", "images::the_journal_is_used_again", "not recovered|lost"),
    // I7: stamps and lives go on.
    ("life-goes-on", "volume::a_cut_loses_nothing", "the disk is sound"),
    ("clock-restarts", "histories::snapshots", "has failed"),
    // I8: no calls beside an image.
    ("image-beside-calls", "operations::beside_images", "not recovered"),
    // I9: calls are of transactions that are valid at their stamps.
    ("commit-unvalidated", "operations::beside_each_other", "not recovered"),
    ("commit-unlocks-early", "operations::beside_each_other", "not recovered"),
    // I10: after a flush that failed.
    ("flush-forgives", "volume::a_flush_that_failed_is_the_last", "goes on"),
];

/// Runs the tests of this program whose names begin with this text, with a mistake planted; returns
/// their output if one fails.
fn output_of(test: &str, mutation: &str) -> Option<String> {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args([test, "--nocapture"]).env("MANYCORE_MUTATION", mutation);
    let output = command.output().unwrap();
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    let all = text(&output.stdout) + &text(&output.stderr);
    assert!(all.contains("running 1 test"), "there is no test {test}, or several");
    (!output.status.success()).then_some(all)
}

/// `explore` limits the time in CPU time, so a busy machine finds as much.
#[test]
fn every_mistake_is_found() {
    let mut missed = Vec::new();
    for (mutation, test, message) in MUTATIONS {
        let start = Instant::now();
        let output = output_of(test, mutation);
        let took = start.elapsed();
        match output {
            None => missed.push(format!("{mutation}: {test} passes, after {took:?}")),
            Some(text) if message.split('|').any(|one| text.contains(one)) => {
                println!("{mutation}: {test}, after {took:?}");
            }
            Some(text) => missed.push(format!("{mutation}: {test} says something else: {text}")),
        }
    }
    assert!(missed.is_empty(), "not noticed:\n{}", missed.join("\n"));
}
