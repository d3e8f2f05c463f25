//! Machines as the kernel shows them, and the CPUs that are chosen.

mod fuzz;
mod machines;
mod support;
mod within_the_mask;
