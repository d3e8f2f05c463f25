//! The measurements of threads that use a structure, such as a set or an index, and their output.
//!
//! | module | what is in it |
//! |---|---|
//! | `point` | what threads do at a point of a grid |
//! | `slice` | one short run: operations, latencies, memory |
//! | `native` | mechanisms at points of a grid on this host |
//! | `program` | the same in a simulated program |
//! | `records` | from slices, and from simulations, to records |
//! | `table` | records as a table |
//! | `campaign`, `flags` | mechanisms at points of a grid on a simulated machine, and its options |

mod campaign;
mod flags;
mod native;
mod point;
mod program;
mod records;
mod slice;
mod table;

pub use campaign::SimulatedOptions;
pub(crate) use campaign::{Grid, run};
pub(crate) use flags::{MachineFlags, RunFlags};
pub use native::NativeOptions;
pub(crate) use native::{NativeGrid, NativeSamples, NativeTask, Settings, contest, measure};
pub(crate) use point::{GridPoint, Load};
pub(crate) use program::{Simulated, SimulatedActor, SimulatedUse, simulate};
pub(crate) use records::simulated;
pub(crate) use slice::StructureSlice;
pub(crate) use table::{render, runs, zipf};
