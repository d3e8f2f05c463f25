//! The callers: the return addresses of a lock function's callers.

mod frame;
mod memory;
mod rule;
#[cfg(target_arch = "aarch64")]
mod signal;
mod tables;

use manycore_stats::{FRAMES, FRAMES_OF_LOCK};

use frame::{Frame, without_signature};
use memory::Memory;

/// Return addresses, innermost first, 0 behind the last.
pub type Frames = [u64; FRAMES];

/// A stack, and where it is.
pub struct Stack {
    /// The return addresses.
    pub frames: Frames,
    /// The addresses of the first return addresses on the stack; 0 if they are not known.
    pub places: [usize; FRAMES_OF_LOCK],
    /// How many of them were found there.
    pub found: usize,
}

/// Calls of this library's, at most, between a lock function and this.
const OWN: usize = 32;

/// The return addresses from `caller` outwards, at most `depth`. Some 0.1 us a call.
pub fn backtrace(caller: usize, depth: usize) -> Stack {
    let mut stack = Stack { frames: [0; FRAMES], places: [0; FRAMES_OF_LOCK], found: 0 };
    let mut frame = Frame::here();
    let mut memory = Memory::around(frame.stack);
    let depth = depth.min(FRAMES);
    for _ in 0..OWN + depth {
        let Some(outer) = caller_of(&frame, &mut memory) else { break };
        frame = outer;
        if stack.found == 0 && frame.next != caller {
            continue;
        }
        stack.add(&frame);
        if stack.found == depth {
            break;
        }
    }
    // Whatever the tables do not say, the caller is known.
    stack.frames[0] = caller as u64;
    stack
}

/// The caller's frame; `None` if this is the outermost, or if the tables do not say.
fn caller_of(frame: &Frame, memory: &mut Memory) -> Option<Frame> {
    let caller = match rule::of(frame) {
        Some(rule) => rule.caller(frame, memory),
        None => tables::caller(frame, memory),
    };
    #[cfg(target_arch = "aarch64")]
    let caller = caller.or_else(|| signal::interrupted(frame, memory));
    let caller = caller?;
    let next = without_signature(caller.next);
    // A caller's frame has higher addresses, unless a signal's handler has a stack of its own.
    let is_further = caller.is_interrupted || caller.stack > frame.stack;
    (next != 0 && is_further).then_some(Frame { next, ..caller })
}

impl Stack {
    fn add(&mut self, frame: &Frame) {
        self.frames[self.found] = frame.next as u64;
        if let Some(place) = self.places.get_mut(self.found) {
            // On x86-64 a call leaves its return address right below the frame to which it returns.
            // On AArch64 the called function keeps it anywhere.
            let place_of_call = frame.stack - size_of::<usize>();
            *place = if cfg!(target_arch = "x86_64") { place_of_call } else { 0 };
        }
        self.found += 1;
    }
}
