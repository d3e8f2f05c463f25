//! Orderings and steps that a test can take away by name, to see whether the model notices.

/// A memory ordering that `MANYCORE_MUTATION=name` makes `Relaxed` under the model checker.
macro_rules! order {
    ($order:ident, $mutation:literal) => {{
        #[cfg(not(loom))]
        let order = manycore::sync::atomic::Ordering::$order;
        #[cfg(loom)]
        let order = $crate::mutation::weaken($mutation, manycore::sync::atomic::Ordering::$order);
        order
    }};
}
pub(crate) use order;

/// Whether the mistake with this name is planted: never, but under the model checker.
macro_rules! mutation {
    ($mutation:literal) => {{
        #[cfg(not(loom))]
        let is_mutated = false;
        #[cfg(loom)]
        let is_mutated = $crate::mutation::is_mutated($mutation);
        is_mutated
    }};
}
pub(crate) use mutation;

#[cfg(loom)]
pub(crate) fn weaken(
    mutation: &str,
    order: manycore::sync::atomic::Ordering,
) -> manycore::sync::atomic::Ordering {
    // Relaxed: what the mutation makes of any ordering.
    if is_mutated(mutation) { manycore::sync::atomic::Ordering::Relaxed } else { order }
}

#[cfg(loom)]
pub(crate) fn is_mutated(mutation: &str) -> bool {
    use std::string::String;
    static CHOSEN: std::sync::OnceLock<Option<String>> = std::sync::OnceLock::new();
    let chosen = CHOSEN.get_or_init(|| std::env::var("MANYCORE_MUTATION").ok());
    chosen.as_deref() == Some(mutation)
}
