//! Exploration finds mistakes that are planted in the locks.

use std::process::Command;
use std::time::Instant;

/// Mistake, the test that has to find it, and the expected text.
const MUTATIONS: &[(&str, &str, &str)] = &[
    ("queue-hand-off", "mutex::Mcs", "deadlock"),
    ("futex-wake-up", "mutex::Futex", "deadlock"),
    ("rw-reader-beside-writer", "rw::PhaseRw", "with a writer inside"),
    ("bypass-forgets", "mutex::McsBypass", "deadlock"),
    ("cna-forgets", "mutex::Cna", "deadlock"),
    ("malthusian-forgets", "mutex::Malthusian", "deadlock"),
    ("ldu-second-test", "ldu::global", "inserted twice"),
    ("ldu-eager-blind", "ldu::at_once", "inserted twice"),
    ("chain-trusts", "collections::list_rcu", "not freed at the end"),
    ("growing-trusts", "collections::hash_growing", "not linearizable"),
    ("btree-trusts", "space::trees_of_mvrlu", "not linearizable|a key after its leaf"),
    ("btree-old-end", "space::trees_of_mvrlu", "not linearizable|leads past|border|its leaf"),
    ("art-trusts-way", "art::numbers_of_mvrlu", "not linearizable|another"),
    ("art-stays-linked", "art::numbers_of_mvrlu", "not linearizable|livelock"),
    ("art-new-depth", "art::ways_part_above", "lost|key below"),
    ("art-trusts-above", "art::ways_part_above", "lost|key below|not needed"),
    ("sessions-freed-changed", "mvrlu::what_is_freed_shows_what_it_was", "never there"),
    ("sessions-freed-changed", "rlu::what_is_freed_shows_what_it_was", "never there"),
    (
        "sessions-freed-changed",
        "art::nobody_sees_what_a_transaction_had_for_a_while",
        "never there",
    ),
    (
        "sessions-freed-changed",
        "space::nobody_sees_what_a_transaction_had_for_a_while",
        "never there",
    ),
    ("harris-unmarked", "collections::list_harris", "not linearizable"),
    ("lazy-unmarked", "collections::list_lazy", "not linearizable"),
    ("tree-trusts", "collections::bst_rcu_eager", "not linearizable|not freed"),
    ("ordered-one-look", "ordered::queue_by_a_counter", "not linearizable"),
    ("ordered-no-wait", "ordered::queue_by_clocks_that_differ", "not linearizable"),
    ("ordered-old-top", "ordered::stack_by_a_counter", "not linearizable"),
    ("ordered-trusts-look", "ordered::two_at_a_time", "the second item is between"),
    ("treiber-store", "collections::treiber", "not freed at the end"),
    (
        "mvrlu-early-free",
        "mvrlu::nobody_finds_what_was_freed",
        "a leaf that was freed|what a session reads has changed",
    ),
    ("mvrlu-early-free", "maps::of_mvrlu", "not linearizable"),
    ("mvrlu-early-free", "space::tables", "not linearizable"),
    (
        "mvrlu-early-switch",
        "mvrlu::no_commit_is_missed_that_began_before_the_switch",
        "a commit is missed",
    ),
    ("mvrlu-nobody-waits", "mvrlu::no_finished_commit_is_missed", "a commit is missed"),
    (
        "mvrlu-trusts-clocks",
        "mvrlu::nobody_finds_what_was_freed_under_a_wrong_clock",
        "what a session reads has changed",
    ),
    (
        "reclaim-too-soon",
        "reclaim::nothing_is_destroyed_too_soon",
        "destroyed while a reader is inside",
    ),
    (
        "rlu-unannounced",
        "rlu::nobody_finds_what_was_freed_under_a_wrong_clock",
        "what a session reads has changed",
    ),
    ("rlu-no-wait", "rlu::nobody_finds_what_was_freed", "a leaf that was freed"),
];

/// Runs a test of this program with a mistake; returns its output if it fails.
fn output_of(test: &str, mutation: &str, seed: Option<&str>) -> Option<String> {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture"]).env("MANYCORE_MUTATION", mutation);
    seed.map(|seed| command.env("MANYCORE_SEED", seed));
    let output = command.output().unwrap();
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    let all = text(&output.stdout) + &text(&output.stderr);
    assert!(all.contains("running 1 test"), "there is no test {test}");
    (!output.status.success()).then_some(all)
}

/// The seed that a failure names, and the failure itself.
fn found(output: &str) -> (&str, &str) {
    let at = output.find("schedule ").expect("a failure names its schedule");
    let failure = &output[at..];
    let (seed, _) = failure["schedule ".len()..].split_once([' ', ',']).expect("a number");
    let failure = failure.split_once(": ").expect("what happened").1;
    (seed, failure.lines().next().unwrap_or_default())
}

/// `explore` limits the time for that, in CPU time, so that a busy machine finds as much.
#[test]
fn every_mistake_is_found_and_repeated() {
    for (mutation, test, message) in MUTATIONS {
        let start = Instant::now();
        let output = output_of(test, mutation, None);
        let took = start.elapsed();
        let output = output.unwrap_or_else(|| panic!("{mutation} is not found in {took:?}"));
        assert!(message.split('|').any(|one| output.contains(one)), "{mutation}: {output}");

        let (seed, failure) = found(&output);
        println!("{mutation}: schedule {seed} after {took:?}: {failure}");
        let again = output_of(test, mutation, Some(seed)).expect("the seed repeats it");
        let (seed_again, failure_again) = found(&again);
        assert_eq!((seed, failure), (seed_again, failure_again), "repeated by its seed");
    }
}
