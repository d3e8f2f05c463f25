//! The process' variables, for code that runs before libc is ready.

use core::ffi::{CStr, c_char};

unsafe extern "C" {
    static environ: *const *const c_char;
    /// Where the kernel left the stack: the number of arguments, the arguments, null, the
    /// variables, null.
    static __libc_stack_end: *const usize;
}

/// The process' variables. libc points to them from its constructor on, ahead of which a program's
/// `.preinit_array` may lock; then they are where the kernel left them.
fn variables() -> *const *const c_char {
    // SAFETY: `environ` is libc's and `__libc_stack_end` the dynamic linker's, which sets it before
    // it runs any code of others, to where the kernel has left the number of arguments, this many,
    // a null, and the variables.
    unsafe {
        if environ.is_null() { __libc_stack_end.add(*__libc_stack_end + 2).cast() } else { environ }
    }
}

/// A variable's value. No libc function: those may be called too early here.
pub fn environment(name: &CStr) -> Option<&'static CStr> {
    let name = name.to_bytes();
    // SAFETY: a list of strings, ended by null; this is called when the library starts, and no
    // thread changes the environment then.
    unsafe {
        let mut variable = variables();
        while !variable.is_null() && !(*variable).is_null() {
            let entry = CStr::from_ptr(*variable).to_bytes_with_nul();
            if entry.len() > name.len() && entry.starts_with(name) && entry[name.len()] == b'=' {
                return CStr::from_bytes_with_nul(&entry[name.len() + 1..]).ok();
            }
            variable = variable.add(1);
        }
    }
    None
}
