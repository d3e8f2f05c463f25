//! Atomics whose accesses are charged.
//!
//! Values are sequentially consistent whatever the ordering, because one host thread does
//! everything. The cost of an ordering is charged as on x86: a sequentially consistent store or
//! fence waits until all stores are done.

use core::sync::atomic as real;
pub use core::sync::atomic::Ordering;

use manycore_sim::backend;

/// An atomic fence.
pub fn fence(order: Ordering) {
    // SeqCst: the only fence that x86 has an instruction for.
    if order == Ordering::SeqCst {
        backend::fence();
    }
    real::fence(order);
}

macro_rules! atomic {
    ($name:ident$(<$parameter:ident>)?, $value:ty, [$($arithmetic:ident),*]) => {
        /// An atomic whose accesses are charged.
        #[derive(Debug, Default)]
        #[repr(transparent)]
        pub struct $name$(<$parameter>)?(real::$name$(<$parameter>)?);

        impl$(<$parameter>)? $name$(<$parameter>)? {
            /// Creates one with this value.
            pub const fn new(value: $value) -> Self {
                Self(real::$name::new(value))
            }

            #[inline]
            fn address(&self) -> usize {
                core::ptr::from_ref(self).addr()
            }

            /// Loads the value.
            #[inline]
            pub fn load(&self, order: Ordering) -> $value {
                backend::load(self.address());
                self.0.load(order)
            }

            /// Stores a value.
            #[inline]
            pub fn store(&self, value: $value, order: Ordering) {
                backend::store(self.address());
                self.0.store(value, order);
                // SeqCst: such a store is followed by a fence.
                if order == Ordering::SeqCst {
                    backend::fence();
                }
            }

            /// Stores a value, and returns the one before.
            #[inline]
            pub fn swap(&self, value: $value, order: Ordering) -> $value {
                backend::rmw(self.address());
                self.0.swap(value, order)
            }

            /// Stores `new` if the value is `current`; returns the value before, as an error if it
            /// was another.
            #[inline]
            pub fn compare_exchange(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                backend::compare_and_swap(self.address());
                self.0.compare_exchange(current, new, success, failure)
            }

            /// As [`compare_exchange`](Self::compare_exchange): on a simulated machine it does not
            /// fail without cause.
            #[inline]
            pub fn compare_exchange_weak(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                self.compare_exchange(current, new, success, failure)
            }

            /// The value, of an atomic that no other thread has.
            pub fn get_mut(&mut self) -> &mut $value {
                self.0.get_mut()
            }

            /// The value, at the end of the atomic.
            pub fn into_inner(self) -> $value {
                self.0.into_inner()
            }

            $(
                /// The operation of this name, which returns the value before.
                #[inline]
                pub fn $arithmetic(&self, value: $value, order: Ordering) -> $value {
                    backend::rmw(self.address());
                    self.0.$arithmetic(value, order)
                }
            )*
        }
    };
}

macro_rules! integers {
    ($($name:ident, $value:ty);*) => {
        $(atomic!($name, $value, [
            fetch_add, fetch_sub, fetch_and, fetch_nand, fetch_or, fetch_xor, fetch_max, fetch_min
        ]);)*
    };
}

integers!(AtomicU8, u8; AtomicU16, u16; AtomicU32, u32; AtomicU64, u64; AtomicUsize, usize);
atomic!(AtomicBool, bool, [fetch_and, fetch_nand, fetch_or, fetch_xor]);
atomic!(AtomicPtr<T>, *mut T, []);
