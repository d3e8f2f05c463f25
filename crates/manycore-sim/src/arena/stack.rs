//! Stacks of simulated threads, in the arena. The stack of a thread's number is always at the same
//! address.

use corosensei::stack::StackPointer;

use super::{PAGE, STACKS};

/// Address space for a stack. The part that a simulated thread does not use takes no memory.
pub(super) const SIZE: usize = 256 << 10;
/// The distance between the tops of neighbouring stacks, in addition to `SIZE`, and the number of
/// different tops. At multiples of `SIZE`, the lines of all stacks would compete for the same few
/// sets of the host's caches.
const COLOUR: usize = 17 * 64;
const COLOURS: usize = 64;
/// The number of stacks, and so of threads that a simulation can have.
pub(crate) const STACKS_MAX: usize = 4096;

/// A stack with a page below it that cannot be touched.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stack {
    limit: StackPointer,
    base: StackPointer,
}

impl Stack {
    /// The stack with this number. `guarded` stacks before it have their guard page already.
    pub(super) fn new(number: usize, guarded: &mut usize) -> Self {
        assert!(number < STACKS_MAX, "a simulation has at most {STACKS_MAX} threads");
        while *guarded <= number {
            protect(STACKS + *guarded * SIZE);
            *guarded += 1;
        }
        let pointer = |address| StackPointer::new(address).expect("the arena is not at 0");
        let limit = STACKS + number * SIZE;
        let base = limit + SIZE - number % COLOURS * COLOUR;
        Self { limit: pointer(limit), base: pointer(base) }
    }
}

fn protect(page: usize) {
    let page = std::ptr::with_exposed_provenance_mut::<libc::c_void>(page);
    // SAFETY: a page of the arena that no code uses.
    let result = unsafe { libc::mprotect(page, PAGE, libc::PROT_NONE) };
    assert_eq!(result, 0, "no guard page for a simulated stack: too many mappings?");
}

// SAFETY: the lowest page cannot be accessed, which catches overflows, and the rest is large
// enough.
unsafe impl corosensei::stack::Stack for Stack {
    fn base(&self) -> StackPointer {
        self.base
    }

    fn limit(&self) -> StackPointer {
        self.limit
    }
}
