//! What is drawn of a profile, and what is read back.

mod diff;
mod forms;
mod reading;
mod support;
