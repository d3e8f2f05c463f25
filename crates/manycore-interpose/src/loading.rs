//! `dlopen`, without `RTLD_DEEPBIND`.
//!
//! A library that is loaded with that flag binds to its own dependencies first: to glibc's lock functions, past this
//! library, while the objects that it shares with the rest of the program are ours. PHP loads its modules so. The flag
//! is taken away, as sanitizers do it too.

use core::arch::naked_asm;
use core::sync::atomic::{AtomicUsize, Ordering};

use crate::next::Function;

static DLOPEN: Function = Function::new(c"dlopen");
static ADDRESS: AtomicUsize = AtomicUsize::new(0);

/// Finds glibc's function: before [`dlopen`] can be called.
pub fn prepare() {
    // Relaxed: stored before the table leads here.
    ADDRESS.store(DLOPEN.address(), Ordering::Relaxed);
}

/// `dlopen`. A jump and not a call: glibc looks at the return address to know whose search path to use.
#[unsafe(naked)]
pub extern "C" fn dlopen() {
    // SAFETY: changes the flags, which are the second argument, and goes on to glibc's function, which was looked up
    // before the table led here.
    naked_asm!(
        "and esi, {others}",
        "jmp qword ptr [rip + {address}]",
        others = const !libc::RTLD_DEEPBIND,
        address = sym ADDRESS,
    )
}
