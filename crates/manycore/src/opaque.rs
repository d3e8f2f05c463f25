//! `Debug` for what can only be read in a session, or by other means of its own.

/// Gives a type a `Debug` that says its name: `opaque! { [parameters] Type<arguments>, "Type" }`.
macro_rules! opaque {
    ($([$($parameters:tt)*] $type:ty, $name:literal;)*) => {$(
        impl<$($parameters)*> core::fmt::Debug for $type {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.debug_struct($name).finish_non_exhaustive()
            }
        }
    )*};
}
