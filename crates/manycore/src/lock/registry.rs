//! The lists of all locks. To add a lock, write its file and add it to a list here.

/// Calls a macro with the list of all locks: `callback! { Type, Type, ... }`.
///
/// The types are those of [`lock`](crate::lock); each is a [`PlainLock`](crate::lock::PlainLock).
#[doc(hidden)]
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

/// Calls a macro with the list of the locks that fit into a pthread mutex:
/// `callback! { Type, Type, ... }`.
///
/// Each is an [`InlineLock`](crate::lock::InlineLock).
#[doc(hidden)]
#[macro_export]
macro_rules! for_each_inline_lock {
    ($callback:ident $(, $argument:tt)*) => {
        $crate::for_each_inline_lock! { $callback $(, $argument)* ; }
    };
    ($callback:ident $(, $argument:tt)* ; $($library_only:ident),*) => {
        $callback! {
            $($argument)*
            Tas, Ttas, Ticket, Mcs, McsBypass, Clh, Cna, Malthusian, Shfl, Futex, RustStd, DepthGated, ParkingLot, Innodb, DoubleDelay, Exponential, Proportional, Sleep, HalfSpin, Hybrid, Adaptive,
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

/// Calls a macro with the list of all reader-writer locks: `callback! { Type, Type, ... }`.
///
/// The types are those of [`lock`](crate::lock); each is a [`RawRwLock`](crate::RawRwLock).
#[doc(hidden)]
#[macro_export]
macro_rules! for_each_rw_lock {
    ($callback:ident $(, $argument:tt)*) => {
        $callback! { $($argument)* AdaptiveRw, PhaseRw, PerCpuRw, Bravo }
    };
}

/// Implements the interface of `lock_api` for reader-writer locks. Loom's atomics have no
/// constants.
#[cfg(all(feature = "lock_api", not(loom)))]
macro_rules! lock_api_forms {
    ($($lock:ident),* $(,)?) => {$(
        // SAFETY: `RawRwLock` excludes and orders as `lock_api` requires.
        unsafe impl lock_api::RawRwLock for super::$lock {
            #[allow(clippy::declare_interior_mutable_const, reason = "lock_api has it so")]
            const INIT: Self = Self::new();

            // The thread that acquires for reading releases.
            type GuardMarker = lock_api::GuardNoSend;

            #[inline]
            fn lock_shared(&self) {
                crate::RawRwLock::acquire_read(self);
            }

            #[inline]
            fn try_lock_shared(&self) -> bool {
                crate::RawRwLock::try_acquire_read(self)
            }

            #[inline]
            unsafe fn unlock_shared(&self) {
                // SAFETY: the lock is held for reading in the current context (contract of
                // `unlock_shared`), and `GuardNoSend` keeps that in the thread that acquired it.
                unsafe { crate::RawRwLock::release_read(self) }
            }

            #[inline]
            fn lock_exclusive(&self) {
                crate::RawRwLock::acquire_write(self);
            }

            #[inline]
            fn try_lock_exclusive(&self) -> bool {
                crate::RawRwLock::try_acquire_write(self)
            }

            #[inline]
            unsafe fn unlock_exclusive(&self) {
                // SAFETY: the lock is held for writing in the current context (contract of
                // `unlock_exclusive`), and `GuardNoSend` keeps that in the thread that acquired it.
                unsafe { crate::RawRwLock::release_write(self) }
            }
        }
    )*};
}
#[cfg(all(feature = "lock_api", not(loom)))]
for_each_rw_lock!(lock_api_forms);
