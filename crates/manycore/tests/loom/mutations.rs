//! The models notice every ordering that is weaker than it has to be.

use std::process::Command;

/// Mutation and the test that has to fail with it.
const MUTATIONS: &[(&str, &str)] = &[
    ("futex-cas-acquire", "mutex::Futex"),
    ("futex-swap-acquire", "mutex::Futex"),
    ("futex-release", "mutex::Futex"),
    ("adaptive-acquire", "mutex::Adaptive"),
    ("adaptive-take-acquire", "mutex::Adaptive"),
    ("adaptive-release", "mutex::Adaptive"),
    ("adaptive-wake-release", "mutex::Adaptive"),
    ("tas-acquire", "mutex::Tas"),
    ("tas-release", "mutex::Tas"),
    ("ticket-try-acquire", "mutex::Ticket"),
    ("ticket-wait-acquire", "mutex::Ticket"),
    ("ticket-release", "mutex::Ticket"),
    ("mcs-try", "mutex::Mcs"),
    ("mcs-swap", "mutex::Mcs"),
    ("mcs-link", "mutex::Mcs"),
    ("mcs-grant", "mutex::Mcs"),
    ("mcs-spin", "mutex::Mcs"),
    ("mcs-sleep", "mutex::Mcs"),
    ("mcs-abandon", "mutex::Mcs"),
    ("mcs-woken", "mutex::Mcs"),
    ("mcs-next", "mutex::Mcs"),
    ("mcs-empty", "mutex::Mcs"),
    ("gate-spin", "mutex::Clh"),
    ("gate-sleep", "mutex::Clh"),
    ("gate-woken", "mutex::Clh"),
    ("gate-open", "mutex::Clh"),
    ("clh-swap", "mutex::Clh"),
    ("clh-try", "mutex::Clh"),
    ("clh-empty", "mutex::Clh"),
    ("anderson-spin", "mutex::Anderson"),
    ("anderson-woken", "mutex::Anderson"),
    ("anderson-try", "mutex::Anderson"),
    ("anderson-grant", "mutex::Anderson"),
    ("queue-swap", "mutex::Hmcs"),
    ("queue-try", "mutex::Hmcs"),
    ("queue-link", "mutex::Hmcs"),
    ("queue-next", "mutex::Hmcs"),
    ("queue-empty", "mutex::Hmcs"),
    ("bypass-swap", "mutex::McsBypass"),
    ("bypass-link", "mutex::McsBypass"),
    ("bypass-head-acquire", "mutex::McsBypass"),
    ("bypass-next", "mutex::McsBypass"),
    ("bypass-marked-release", "mutex::McsBypass"),
    ("bypass-acquire", "mutex::McsBypass"),
    ("bypass-release", "mutex::McsBypass"),
    ("shfl-swap", "mutex::Shfl"),
    ("shfl-link", "mutex::Shfl"),
    ("shfl-next", "mutex::Shfl"),
    ("shfl-spin", "mutex::neighbours_sort_their_queue"),
    ("shfl-sleep", "mutex::neighbours_sort_their_queue"),
    ("shfl-woken", "mutex::neighbours_sort_their_queue"),
    ("shfl-head", "mutex::neighbours_sort_their_queue"),
    ("shfl-role", "mutex::neighbours_sort_their_queue"),
    ("shfl-lead", "mutex::neighbours_sort_their_queue"),
    ("waiter-park-acquire", "wait_queue::a_signal_after_the_mutex_is_not_lost"),
    ("waiter-mark-release", "wait_queue::a_signal_after_the_mutex_is_not_lost"),
    ("queue-lock-acquire", "wait_queue::two_signals_wake_two"),
    ("queue-unlock-release", "wait_queue::two_signals_wake_two"),
    ("rw-read-acquire", "phase_rw::a_writer_beside_a_reader"),
    ("rw-write-acquire", "phase_rw::a_writer_beside_a_reader"),
    ("rw-read-release", "phase_rw::a_writer_beside_a_reader"),
    ("rw-write-release", "phase_rw::a_writer_beside_a_reader"),
    ("rw-enlist-acqrel", "phase_rw::a_writer_beside_a_reader"),
    ("rw-pass-acqrel", "phase_rw::a_writer_beside_a_reader"),
    ("rw-chain-acquire", "phase_rw::a_writer_beside_a_reader"),
    ("rw-chain-release", "phase_rw::a_writer_beside_a_reader"),
    ("door-enter", "rw::PerCpuRw"),
    ("door-admit", "rw::PerCpuRw"),
    ("door-leave", "rw::PerCpuRw"),
    ("door-open", "rw::PerCpuRw"),
    ("door-shut", "rw::PerCpuRw"),
    ("door-sleep", "rw::a_reader_that_moves"),
    ("per-cpu-rw-sum", "rw::PerCpuRw"),
    ("per-cpu-rw-leave", "rw::PerCpuRw"),
    ("combining-claim", "flat_combining::records_change_hands"),
    ("combining-give-back", "flat_combining::records_change_hands"),
    ("combining-publish", "flat_combining::two_threads"),
    ("combining-serve", "flat_combining::two_threads"),
    ("combining-done", "flat_combining::two_threads"),
    ("combining-spin", "flat_combining::two_threads"),
    ("combining-push", "flat_combining::three_threads"),
    ("combining-walk", "flat_combining::three_threads"),
    ("combining-lock", "flat_combining::two_threads"),
    ("combining-release", "flat_combining::two_threads"),
    ("combining-seen", "flat_combining::two_threads"),
    ("combining-look", "flat_combining::two_threads"),
    ("combining-sleep", "flat_combining::two_threads"),
    ("ldu-use", "ldu::insert_and_remove"),
    ("ldu-clear", "ldu::insert_and_remove"),
    ("ldu-retire", "ldu::an_object_is_released_after_its_owner"),
    ("ldu-push", "ldu::push_against_take"),
    ("ldu-take", "ldu::push_against_take"),
    ("ldu-reading", "ldu::owners_wait_for_reads"),
    ("ldu-look-for-reads", "ldu::owners_wait_for_reads"),
    ("ldu-read-end", "ldu::owners_wait_for_reads"),
    ("ldu-no-reads", "ldu::owners_wait_for_reads"),
    ("bravo-leave", "rw::Bravo"),
    ("bravo-scan", "rw::Bravo"),
    ("reclaim-add-record", "reclaim::synchronize"),
    ("reclaim-records", "reclaim::synchronize"),
    ("reclaim-leave", "reclaim::synchronize"),
    ("reclaim-now", "reclaim::synchronize"),
    ("reclaim-reader-fence", "reclaim::synchronize"),
    ("reclaim-synchronize", "reclaim::synchronize"),
    ("reclaim-advance-fence", "reclaim::pin_against_advance"),
    ("reclaim-pile-push", "reclaim::garbage_of_one_who_is_gone"),
    ("reclaim-pile-take", "reclaim::garbage_of_one_who_is_gone"),
    ("reclaim-state", "reclaim::another_thread_advances"),
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
