//! Profiles from statistics that are written by hand, and what is drawn of them. One binary: to
//! link one costs less than to link eight.

mod counts;
mod fuzz;
mod live;
mod names;
mod render;
mod schema;
mod shape;
mod support;
mod whole;
