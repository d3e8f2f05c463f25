//! Published figures, side by side with ours.
//!
//! A figure is a file: the content of the published figure, the workload and the simulated machine
//! of our repetition, each free parameter, and the publication's claims, as bounds that a program
//! can check. [`library`] has the built-in figures; any other file can be read with
//! [`Figure::parse`].
//!
//! ```
//! use manycore_figures::{Extent, library};
//!
//! let figure = library::find("innodb-locks", Extent::Whole)?;
//! assert_eq!(figure.machine, "xeon-4x6-like");
//! let hybrid = figure.claims.iter().find(|claim| claim.id == "hybrid-holds").unwrap();
//! assert_eq!(hybrid.place, "4.2, figure 9");
//! # Ok::<(), manycore_figures::Problem>(())
//! ```
//!
//! [`run()`] simulates a figure, and judges its claims; [`render()`] draws the results for a
//! terminal, [`write()`] as a page, as pictures and as tables.
//!
//! | module | what is in it |
//! |---|---|
//! | `figure` | the file format |
//! | [`library`] | the files that come with manycore |
//! | `field`, `selector` | one of many measurements |
//! | `statement` | a claim, and what measurements say of it |
//! | `workload` | what is simulated |
//! | `run` | a figure on a machine, and on its variants |
//! | `render`, `page`, `picture`, `write` | the result for people and for programs |

pub mod command;
mod field;
mod figure;
pub mod library;
mod page;
mod picture;
mod render;
mod run;
mod selector;
mod statement;
mod workload;
mod write;

pub use field::Field;
pub use figure::{Extent, Figure, Parameter, Problem};
pub use render::render;
pub use run::{Reproduction, plan, run};
pub use selector::{Extreme, Selector};
pub use statement::Statement;
pub use workload::Workload;
pub use write::write;
