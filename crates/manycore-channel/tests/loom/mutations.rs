//! The models notice every ordering that is too weak.

use crate::caught::{self, DEADLOCK, ENDLESS, RACE};

/// Mutation, the test that has to fail with it, and the expected text of the failure.
const MUTATIONS: &[(&str, &str, &str)] = &[
    ("queue-push", "calls::a_call_through_the_pool", RACE),
    ("queue-take", "calls::a_call_through_the_pool", RACE),
    ("bell-ring", "calls::two_callers_and_a_worker", DEADLOCK),
    ("bell-doze", "calls::two_callers_and_a_worker", DEADLOCK),
    ("bell-rise", "calls::a_worker_wakes_by_itself", DEADLOCK),
    ("slot-noted", "calls::a_call_is_cancelled", RACE),
    ("slot-is-noted", "calls::a_call_is_cancelled", RACE),
    ("stack-push", "calls::numbers_change_hands", RACE),
    ("stack-look", "calls::numbers_change_hands", "assertion `left == right` failed"),
    ("stack-pop", "calls::numbers_change_hands", RACE),
    ("gate-open", "calls::a_worker_has_one_call_after_the_other", RACE),
    ("worker-shut", "calls::two_callers_and_a_blocking_worker", DEADLOCK),
    (
        "worker-put",
        "calls::a_worker_has_one_call_after_the_other",
        "it is back before it has answered",
    ),
    ("part-note", "calls::a_caller_sleeps_otherwise_when_a_part_is_gone", DEADLOCK),
    ("part-look", "calls::a_caller_sleeps_otherwise_when_a_part_is_gone", DEADLOCK),
    ("slot-released", "calls::no_signal_comes_for_a_call_that_is_over", RACE),
    // The locks' gate, by which a call is answered.
    ("gate-open", "calls::a_call_through_the_pool", RACE),
    ("gate-spin", "calls::a_call_through_the_pool", RACE),
    ("gate-woken", "calls::a_call_through_the_pool", RACE),
    // The table of descriptors.
    ("adopt-blind", "descriptors::what_is_closed_leaves_no_entry", "a pipe is steered"),
    ("closing-unmarked", "descriptors::what_is_closed_leaves_no_entry", "a pipe is steered"),
    ("entry-adopt", "descriptors::what_is_closed_leaves_no_entry", "a pipe is steered"),
    ("entry-closed", "descriptors::what_is_closed_leaves_no_entry", "a pipe is steered"),
    ("entry-find", "descriptors::closing_while_a_call_is_in_flight", ENDLESS),
    ("entry-replace", "descriptors::closing_while_a_call_is_in_flight", ENDLESS),
    ("entry-trusted", "descriptors::a_slot_changes_descriptors", "is not one of descriptor"),
    ("free-put", "descriptors::a_slot_comes_back_to_the_list", RACE),
    ("free-take", "descriptors::a_slot_comes_back_to_the_list", RACE),
    ("free-uncounted", "descriptors::a_slot_comes_back_to_the_list", "is not one of descriptor"),
    ("slot-free", "descriptors::a_slot_changes_descriptors", ENDLESS),
    ("slot-join", "descriptors::a_slot_changes_descriptors", RACE),
    ("slot-leave", "descriptors::duplicates_share_a_route", RACE),
    ("slot-publish", "descriptors::a_slot_changes_descriptors", RACE),
];

#[test]
fn every_mutation_is_caught() {
    caught::all(MUTATIONS);
}
