//! Grace periods of liburcu: with membarrier, and with quiescent states.

use std::cell::Cell;
use std::marker::PhantomData;

use manycore_bench::set::peers::chain::{Domain, Node};

use crate::Header;

/// Frees what it is called with.
type Free = unsafe extern "C" fn(*mut Header);

/// A flavour of the library, whose domain is the whole process.
macro_rules! flavour {
    ($name:ident, $section:ident: $register:ident, $unregister:ident, $enter:ident, $leave:ident, $retire:ident, $barrier:ident) => {
        unsafe extern "C" {
            safe fn $register();
            safe fn $unregister();
            safe fn $enter();
            safe fn $leave();
            fn $retire(header: *mut Header, release: Free);
            safe fn $barrier();
        }

        /// The domain. A thread takes part once at a time.
        pub struct $name;

        // SAFETY: liburcu frees nothing that a registered thread may have found in its section.
        unsafe impl Domain for $name {
            type Header = Header;
            type Thread<'a> = Registered;
            type Section<'a> = $section<'a>;

            fn new() -> Self {
                Self
            }

            fn register(&self) -> Registered {
                Registered::new($register, $unregister)
            }

            #[inline]
            fn enter<'a>(_thread: &'a Registered) -> $section<'a> {
                $enter();
                $section(PhantomData)
            }

            unsafe fn retire(_section: &$section<'_>, node: *mut Node<Self>) {
                // SAFETY: a node begins with its header, and is freed by the call that it is given.
                unsafe { $retire(node.cast(), release::<Self>) };
            }
        }

        /// A section, until it is dropped.
        pub struct $section<'a>(PhantomData<&'a Registered>);

        impl Drop for $section<'_> {
            #[inline]
            fn drop(&mut self) {
                $leave();
            }
        }

        impl Drop for $name {
            fn drop(&mut self) {
                $barrier();
            }
        }
    };
}

flavour! {
    Memb, MembSection: peer_memb_register, peer_memb_unregister, peer_memb_enter, peer_memb_leave, peer_memb_retire, peer_memb_barrier
}
flavour! {
    Qsbr, QsbrSection: peer_qsbr_register, peer_qsbr_unregister, peer_qsbr_enter, peer_qsbr_leave, peer_qsbr_retire, peer_qsbr_barrier
}

/// # Safety
///
/// The header belongs to a node from `Box`, which no other code uses.
unsafe extern "C" fn release<D: Domain>(header: *mut Header) {
    // SAFETY: a node begins with its header, comes from a box, and no other code uses it (contract
    // of this function).
    drop(unsafe { Box::from_raw(header.cast::<Node<D>>()) });
}

thread_local! {
    static IS_REGISTERED: Cell<bool> = const { Cell::new(false) };
}

/// A thread's registration, until it is dropped.
pub struct Registered {
    unregister: extern "C" fn(),
    /// Stays with its thread.
    _thread: PhantomData<*mut ()>,
}

impl Registered {
    /// # Panics
    ///
    /// If the thread takes part already: the library counts no registrations.
    pub fn new(register: extern "C" fn(), unregister: extern "C" fn()) -> Self {
        assert!(!IS_REGISTERED.replace(true), "a thread has one handle at a time");
        register();
        Self { unregister, _thread: PhantomData }
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        (self.unregister)();
        IS_REGISTERED.set(false);
    }
}
