//! Exploration finds mistakes that are planted in the file system.

use std::process::Command;

/// Mistake, the test that has to find it, and the expected text.
const MUTATIONS: &[(&str, &str, &str)] = &[
    ("khronos-no-meeting", "trees::moves_of_mvrlu", "a cycle"),
    ("khronos-roots-stay", "trees::made_beside_removed_of_mvrlu", "what was made is lost"),
    ("khronos-open-gate", "batches::beside_calls_of_mvrlu", "a batch of no moment"),
    ("khronos-trusts", "names_of_rcu", "not linearizable"),
    ("khronos-one-look", "trees::never_both_of_rcu", "both names at no moment"),
    ("khronos-one-look", "trees::never_both_of_mvrlu", "both names at no moment"),
    ("khronos-unknown-chains", "trees::made_beside_removed_of_mvrlu", "what was made is lost"),
    ("khronos-late-chains", "trees::missed_beside_made_of_mvrlu", "a position without a chain"),
];

#[test]
fn every_mistake_is_found() {
    for (mutation, test, message) in MUTATIONS {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", test, "--nocapture"]).env("MANYCORE_MUTATION", mutation);
        let output = command.output().unwrap();
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        let all = text(&output.stdout) + &text(&output.stderr);
        assert!(all.contains("running 1 test"), "there is no test {test}");
        assert!(!output.status.success(), "{mutation} is not found");
        assert!(all.contains(message), "{mutation}: {all}");
    }
}
