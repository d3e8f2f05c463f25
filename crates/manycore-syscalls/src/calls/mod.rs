//! The functions that programs call, by subject. Each has the signature of libc's function, and its
//! manual page.

pub mod descriptors;
pub mod files;
pub mod jumps;
pub mod processes;
pub mod signals;
pub mod sockets;
pub mod stat;
pub mod streams;
pub mod threads;
pub mod ties;
pub mod transfer;
pub mod waiting;

/// An argument as it goes into a register.
pub trait Register {
    /// The register.
    fn register(self) -> usize;
}

macro_rules! registers {
    ($($ty:ty),*) => {
        $(impl Register for $ty {
            fn register(self) -> usize {
                self as usize
            }
        })*
    };
}
registers!(i32, u32, i64, usize);

impl<T> Register for *const T {
    fn register(self) -> usize {
        self as usize
    }
}

impl<T> Register for *mut T {
    fn register(self) -> usize {
        self as usize
    }
}

/// Functions whose first argument is the descriptor, and whose arguments are those of the system
/// call: `name(descriptor, arguments) -> result = number, shape;`, or `shape => note;` with a
/// closure that gets the result.
macro_rules! moved_as_they_are {
    ($($name:ident($fd:ident $(, $arg:ident: $ty:ty)*) -> $out:ty = $number:path, $shape:expr $(=> $note:expr)?;)*) => {
        $(
            #[doc = concat!("`", stringify!($name), "`.")]
            ///
            /// # Safety
            ///
            /// As its manual page says.
            pub unsafe extern "C-unwind" fn $name($fd: core::ffi::c_int $(, $arg: $ty)*) -> $out {
                let given = [$crate::calls::Register::register($fd) $(, $crate::calls::Register::register($arg))*];
                let mut args = [0; 6];
                args[..given.len()].copy_from_slice(&given);
                // SAFETY: the system call takes the function's arguments, which are right for it
                // (contract of this function).
                let result = match unsafe { $crate::moved::on($fd, $shape, $number, args) } {
                    $crate::moved::Verdict::Done(answer) => $crate::moved::result(answer) as $out,
                    $crate::moved::Verdict::InPlace(measured) => {
                        // SAFETY: the arguments are valid for libc's function of this name
                        // (contract of this function).
                        let result = unsafe { $crate::real::$name($fd $(, $arg)*) };
                        measured.end();
                        result
                    }
                };
                $(($note)(result);)?
                result
            }
        )*
    };
}
pub(crate) use moved_as_they_are;
