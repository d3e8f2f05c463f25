//! `pthread_create`: a new thread begins with the data that locks need, so it makes no system call
//! for them later, when a filter may forbid it. Also warns if a strict FIFO lock has more threads
//! than CPUs.

use core::arch::naked_asm;
use core::ffi::{c_int, c_void};
use core::ptr::NonNull;
use core::sync::atomic::{AtomicBool, Ordering};

use manycore::lock::InlineLock;
use manycore::sync::{cpu, node, thread};
use manycore_interpose::message;
use manycore_interpose::next::Function;
use manycore_interpose::threads::count;

/// What a thread runs.
type Run = extern "C-unwind" fn(*mut c_void) -> *mut c_void;

/// The next library's `pthread_create`: the library for system calls counts threads, and may follow
/// this one.
static NEXT: Function = Function::of_any_library(c"pthread_create");

/// `pthread_create`.
///
/// # Safety
///
/// As POSIX says.
pub unsafe extern "C-unwind" fn create<L: InlineLock>(
    thread: *mut libc::pthread_t,
    attr: *const libc::pthread_attr_t,
    run: Run,
    argument: *mut c_void,
) -> c_int {
    if const { L::INFO.order.hands_over() } {
        warn::<L>();
    }
    type Create = unsafe extern "C-unwind" fn(
        *mut libc::pthread_t,
        *const libc::pthread_attr_t,
        extern "C" fn(),
        *mut c_void,
    ) -> c_int;
    // SAFETY: `NEXT` has the address of the next function of this name. That has this signature,
    // except for the thread's function, and `first` is called like that function.
    let create: Create = unsafe { core::mem::transmute(NEXT.address()) };
    let task = node::take::<Task>();
    // SAFETY: `take` has just made the node, and no other thread knows it. If the program passes a
    // null pointer as the function, that is its own responsibility.
    unsafe { task.write(Task { run: Some(run), argument }) };
    // SAFETY: the program's arguments are those of `pthread_create` (contract of this function);
    // `first` takes the task as its argument.
    let result = unsafe { create(thread, attr, first, task.as_ptr().cast()) };
    if result != 0 {
        // SAFETY: no thread was made, so that none has the task.
        unsafe { node::give_back(task) };
    }
    result
}

/// The start of a thread, passed to the thread.
#[derive(Default)]
#[repr(C)]
struct Task {
    run: Option<Run>,
    argument: *mut c_void,
}

/// A thread's first function. It leaves no frame: the program's function returns to the C library,
/// and a debugger shows it as the outermost function.
#[unsafe(naked)]
extern "C" fn first() {
    // SAFETY: it is called as a thread's function, with the stack in that state; the subtraction
    // aligns the stack for the call, and the program's function then gets the same state with its
    // argument.
    #[cfg(target_arch = "x86_64")]
    naked_asm!(
        "sub rsp, 8",
        "call {begin}",
        "add rsp, 8",
        "mov rdi, rdx",
        "jmp rax",
        begin = sym begin,
    );
    #[cfg(target_arch = "aarch64")]
    // SAFETY: a thread begins here, with the stack pointer a multiple of 16, which the store keeps;
    // it goes on so with the program's function and argument.
    naked_asm!(
        "stp x29, x30, [sp, #-16]!",
        "bl {begin}",
        "ldp x29, x30, [sp], #16",
        "mov x16, x0",
        "mov x0, x1",
        "br x16",
        begin = sym begin,
    )
}

/// Takes the task, and prepares the data that locks need. Returns the task in two registers.
///
/// # Safety
///
/// `create` has made the task for this thread, which calls this once.
unsafe extern "C" fn begin(task: NonNull<Task>) -> Task {
    // SAFETY: `create` has made the task for this thread, which calls this once.
    let taken = unsafe { task.read() };
    // SAFETY: `create` has taken the node, and it is not touched again.
    unsafe { node::give_back(task) };
    thread::prepare();
    taken
}

/// Warns once that each hand-off waits for the scheduler when there is one more thread than CPUs.
#[cold]
fn warn<L: InlineLock>() {
    static WARNED: AtomicBool = AtomicBool::new(false);
    // Relaxed, both: at worst two threads warn.
    if WARNED.load(Ordering::Relaxed) || count() < cpu::count() {
        return;
    }
    if !WARNED.swap(true, Ordering::Relaxed) {
        message::say(&[
            b"the program has more threads than CPUs: '",
            L::INFO.name.as_bytes(),
            b"' passes the lock on to one thread at a time, and may have to wait for one that does not run",
        ]);
    }
}
