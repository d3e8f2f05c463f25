//! Macros for public types: an opaque `Debug`, and methods that set fields.

/// Gives a type a `Debug` that prints its name: `opaque! { [parameters] Type<arguments>, "Type" }`.
macro_rules! opaque {
    ($([$($parameters:tt)*] $type:ty, $name:literal;)*) => {$(
        impl<$($parameters)*> core::fmt::Debug for $type {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.debug_struct($name).finish_non_exhaustive()
            }
        }
    )*};
}

/// Methods that replace a field of a configuration and return it, for one to be written in a line:
/// outside this crate a `#[non_exhaustive]` type cannot be.
macro_rules! setters {
    ($($(#[$doc:meta])* $setter:ident: $field:ident: $type:ty,)*) => {$(
        $(#[$doc])*
        #[must_use]
        pub fn $setter(mut self, $field: $type) -> Self {
            self.$field = $field;
            self
        }
    )*};
}
