//! The models notice every ordering that is weaker than it has to be.

use std::process::Command;

/// Mutation and the test that has to fail with it.
const MUTATIONS: &[(&str, &str)] = &[
    ("queue-push", "a_call_through_the_pool"),
    ("queue-take", "a_call_through_the_pool"),
    ("bell-ring", "two_callers_and_a_worker"),
    ("bell-doze", "two_callers_and_a_worker"),
    ("bell-rise", "a_worker_wakes_by_itself"),
    ("slot-noted", "a_call_is_cancelled"),
    ("slot-is-noted", "a_call_is_cancelled"),
    ("stack-push", "numbers_change_hands"),
    ("stack-look", "numbers_change_hands"),
    ("stack-pop", "numbers_change_hands"),
    ("gate-open", "a_hand_has_one_call_after_the_other"),
    ("hand-shut", "two_callers_and_a_hand"),
    ("hand-put", "a_hand_has_one_call_after_the_other"),
    ("part-note", "a_caller_sleeps_otherwise_when_a_part_is_gone"),
    ("part-look", "a_caller_sleeps_otherwise_when_a_part_is_gone"),
    ("slot-released", "no_signal_comes_for_a_call_that_is_over"),
    // The locks' gate, by which a call is answered.
    ("gate-open", "a_call_through_the_pool"),
    ("gate-spin", "a_call_through_the_pool"),
    ("gate-woken", "a_call_through_the_pool"),
];

#[test]
fn every_mutation_is_caught() {
    let this = std::env::current_exe().unwrap();
    let missed: Vec<_> = MUTATIONS
        .iter()
        .filter(|(mutation, test)| {
            let run = Command::new(&this)
                .args(["--exact", test])
                .env("MANYCORE_MUTATION", mutation)
                .output()
                .unwrap();
            let ran = String::from_utf8_lossy(&run.stdout).contains("running 1 test");
            assert!(ran, "there is no test {test}");
            run.status.success()
        })
        .collect();
    assert!(missed.is_empty(), "the models do not notice {missed:?}");
}
