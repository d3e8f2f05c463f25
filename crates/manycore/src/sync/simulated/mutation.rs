//! Mistakes that a test can plant by name, to see whether exploration finds them.

extern crate std;

/// Whether the environment asks for this mistake (`MANYCORE_MUTATION`).
pub fn is_mutated(mutation: &str) -> bool {
    static CHOSEN: std::sync::OnceLock<Option<std::string::String>> = std::sync::OnceLock::new();
    // It is set before `main`, and reading it is not part of the simulated program: on the host,
    // once.
    let chosen = CHOSEN
        .get_or_init(|| manycore_sim::backend::on_host(|| std::env::var("MANYCORE_MUTATION").ok()));
    chosen.as_deref() == Some(mutation)
}
