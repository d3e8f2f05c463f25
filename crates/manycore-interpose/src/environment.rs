//! The process' variables, for code that runs before libc is ready.

use core::ffi::{CStr, c_char};

unsafe extern "C" {
    static environ: *const *const c_char;
    /// The initial stack of the process: the number of arguments, the arguments, null, the
    /// variables, null.
    static __libc_stack_end: *const usize;
}

/// The process' variables. libc points to them from its constructor on. A program's
/// `.preinit_array` runs before that, and may lock; then the variables are where the kernel put
/// them.
fn variables() -> *const *const c_char {
    // SAFETY: `environ` is libc's. `__libc_stack_end` is the dynamic linker's, which sets it before
    // it runs any other code. It points to the place where the kernel has left the number of
    // arguments, that many arguments, a null, and the variables.
    unsafe {
        if environ.is_null() { __libc_stack_end.add(*__libc_stack_end + 2).cast() } else { environ }
    }
}

/// A variable's value. It calls no libc function, because it is too early for some of them.
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
