//! How manycore measures, and how it reports the results, in one vocabulary.
//!
//! A native benchmark, a simulated one and a figure of a paper all yield [`Measurement`]s: the
//! candidate, the machine, the number of threads, the value and its uncertainty. [`Results`] is the
//! envelope in which they are written as JSON and read back. [`Table`] and [`quantity`] draw them
//! for a reader, and so does a [`Figure`], as SVG. A [`Claim`] is a bound that measurements may
//! satisfy or not. The protocol that compares candidates on a noisy machine is [`paired`].
//!
//! ```
//! use manycore_measure::{Measurement, Mechanism, Results, Table, Column, quantity};
//!
//! let futex = Mechanism::Lock("futex".into());
//! let mut measurement = Measurement::new("lock", futex, "op/s", 1_834_211.0);
//! measurement.threads = 8;
//! let results = Results::new(vec![measurement]);
//!
//! let again = Results::from_json(&results.to_json()?)?;
//! assert_eq!(again.measurements[0].threads, 8);
//!
//! let columns = [Column::words("lock"), Column::number("threads"), Column::number("sections")];
//! let mut table = Table::new(columns);
//! for m in &again.measurements {
//!     let (threads, value) = (m.threads.to_string(), quantity(m.value, &m.unit));
//!     table.row([m.mechanism.name().into(), threads.into(), value.into()]);
//! }
//! assert!(table.to_string().contains("1.83 Mop/s"));
//! # Ok::<(), manycore_measure::BadResults>(())
//! ```
//!
//! The JSON is a contract, which [`schema`] describes field by field.

mod claim;
mod figure;
mod host;
mod measurement;
mod number;
pub mod paired;
mod results;
mod table;

pub use claim::{Bound, Claim, Judgement};
pub use figure::{Axis, Bars, Figure, Line, Lines, Map, Panel, Value, escaped};
pub use host::Host;
pub use measurement::{Measurement, Mechanism, Metric, Parameter, Provenance};
pub use number::{count, duration, interval, quantity, ratio, significant};
pub use results::{BadResults, Results, SCHEMA};
pub use table::{Cell, Column, Table, Tone};

#[doc = include_str!("../schema.md")]
pub mod schema {}
