//! The list of all locks.

/// Calls a macro with the list of all locks that have an inline form: `callback! { Type, Type, ... }`.
///
/// The types are those of [`lock`](crate::lock). To add a lock, write its file and name it here.
#[macro_export]
macro_rules! for_each_lock {
    ($callback:ident $(, $argument:tt)*) => {
        $callback! {
            $($argument)*
            Tas, Ttas, Ticket, Mcs, McsBypass, Futex, Innodb, DoubleDelay, Exponential, Proportional, Sleep, HalfSpin, Hybrid, Adaptive
        }
    };
}
