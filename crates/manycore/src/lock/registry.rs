//! The list of all locks. To add one, write its file and name it here.

/// Calls a macro with the list of all locks: `callback! { Type, Type, ... }`.
///
/// The types are those of [`lock`](crate::lock); each is a [`PlainLock`](crate::lock::PlainLock).
#[macro_export]
macro_rules! for_each_lock {
    ($callback:ident $(, $argument:tt)*) => {
        // First those that are inline, then those that are library-only.
        $crate::for_each_inline_lock! {
            $callback $(, $argument)* ;
            Anderson, Hmcs, CBoMcs
        }
    };
}

/// Calls a macro with the list of the locks that fit into a pthread mutex: `callback! { Type, Type, ... }`.
///
/// Each is an [`InlineLock`](crate::lock::InlineLock).
#[macro_export]
macro_rules! for_each_inline_lock {
    ($callback:ident $(, $argument:tt)*) => {
        $crate::for_each_inline_lock! { $callback $(, $argument)* ; }
    };
    ($callback:ident $(, $argument:tt)* ; $($library_only:ident),*) => {
        $callback! {
            $($argument)*
            Tas, Ttas, Ticket, Mcs, McsBypass, Clh, Cna, Futex, Innodb, DoubleDelay, Exponential, Proportional, Sleep, HalfSpin, Hybrid, Adaptive,
            $($library_only),*
        }
    };
}

macro_rules! inline {
    ($($lock:ident),* $(,)?) => {
        $(impl super::InlineLock for super::$lock {})*

        // The model checker's atomics are larger.
        #[cfg(not(loom))]
        const _: () = {
            $(
                assert!(size_of::<super::$lock>() <= super::INLINE_SIZE, "an inline lock is too large");
                assert!(align_of::<super::$lock>() <= super::INLINE_SIZE / 2, "an inline lock is aligned too strictly");
            )*
        };
    };
}
for_each_inline_lock!(inline);
