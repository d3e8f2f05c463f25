//! The models notice every ordering that is weaker than it has to be.

use crate::caught::{self, DEADLOCK, RACE};

/// Mutation, the test that has to fail with it, and what that has to say.
const MUTATIONS: &[(&str, &str, &str)] = &[
    ("queue-push", "a_call_through_the_pool", RACE),
    ("queue-take", "a_call_through_the_pool", RACE),
    ("bell-ring", "two_callers_and_a_worker", DEADLOCK),
    ("bell-doze", "two_callers_and_a_worker", DEADLOCK),
    ("bell-rise", "a_worker_wakes_by_itself", DEADLOCK),
    ("slot-noted", "a_call_is_cancelled", RACE),
    ("slot-is-noted", "a_call_is_cancelled", RACE),
    ("stack-push", "numbers_change_hands", RACE),
    ("stack-look", "numbers_change_hands", "assertion `left == right` failed"),
    ("stack-pop", "numbers_change_hands", RACE),
    ("gate-open", "a_hand_has_one_call_after_the_other", RACE),
    ("hand-shut", "two_callers_and_a_hand", DEADLOCK),
    ("hand-put", "a_hand_has_one_call_after_the_other", "it is back before it has answered"),
    ("part-note", "a_caller_sleeps_otherwise_when_a_part_is_gone", DEADLOCK),
    ("part-look", "a_caller_sleeps_otherwise_when_a_part_is_gone", DEADLOCK),
    ("slot-released", "no_signal_comes_for_a_call_that_is_over", RACE),
    // The locks' gate, by which a call is answered.
    ("gate-open", "a_call_through_the_pool", RACE),
    ("gate-spin", "a_call_through_the_pool", RACE),
    ("gate-woken", "a_call_through_the_pool", RACE),
];

#[test]
fn every_mutation_is_caught() {
    caught::all(MUTATIONS);
}
