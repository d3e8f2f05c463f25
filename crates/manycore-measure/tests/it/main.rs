//! Records of results, and the paired protocol.

mod fuzz;
mod paired;
mod schema;
