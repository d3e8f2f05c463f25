//! Profiles from handwritten statistics, and their output. One binary: linking one costs less than
//! linking eight.

mod counts;
mod fuzz;
mod live;
mod names;
mod render;
mod schema;
mod shape;
mod support;
mod whole;
