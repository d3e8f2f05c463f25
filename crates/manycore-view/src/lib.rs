//! Profiles of locks for other eyes: read back from a file, drawn as a page, handed to other programs, and compared.
//!
//! | module | what is in it |
//! |---|---|
//! | [`mod@read`] | a profile from a file that anybody may have written |
//! | [`page`] | one HTML file that shows everything and loads nothing |
//! | [`folded`] | stacks in lines, as flame graph programs read them |
//! | [`mod@diff`] | two profiles, lock by lock |
//! | [`trace`] | the run over time, as Chrome's and Perfetto's viewers read it |
//!
//! ```
//! use manycore_view::{page, read};
//!
//! let text = std::fs::read_to_string("../manycore-profile/schema.md")?;
//! let example = text.split("```json").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
//! let profile = read::from_text("schema.md", example)?;
//! assert!(page::html(&profile).starts_with("<!doctype html>"));
//!
//! let cut = read::from_text("a.json", &example[..300]).unwrap_err();
//! assert!(cut.to_string().starts_with("'a.json' is cut short"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod diff;
pub mod folded;
mod frame;
pub mod page;
pub mod read;
pub mod trace;
