//! The models notice every ordering that is too weak, and every omitted step.

use crate::caught;

/// Mutation, the test that has to fail with it, and the expected text of the failure.
const MUTATIONS: &[(&str, &str, &str)] = &[
    ("ring-stage", "rings::records_come_whole_and_in_order", "a record of"),
    ("ring-tail", "rings::records_come_whole_and_in_order", "a record of"),
    ("ring-looks-once", "rings::records_come_whole_and_in_order", "a record of"),
    (
        "commit-stages-late",
        "commits::frames_have_all_commits_up_to_their_horizons",
        "commits up to",
    ),
    (
        "collect-late-horizon",
        "commits::frames_have_all_commits_up_to_their_horizons",
        "commits up to",
    ),
    ("floor-before-flush", "commits::what_is_read_is_on_the_disk", "and the disk has"),
    ("horizon-load", "commits::what_is_read_is_on_the_disk", "and the disk has"),
    ("horizon-store", "commits::what_is_read_is_on_the_disk", "and the disk has"),
];

#[test]
fn every_mutation_is_caught() {
    caught::all(MUTATIONS);
}
