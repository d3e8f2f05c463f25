//! Starts programs with the preloaded libraries, waits for them and stops them.
//!
//! | module | what is in it |
//! |---|---|
//! | [`spec`] | which lock |
//! | [`preload`], [`target`] | the environment for the libraries; whether they fit |
//! | [`child`], [`signals`] | a program that runs; what is to reach it, and what ends the command |
//! | [`failure`], [`terminal`] | how a command ends; what it says meanwhile |
//! | [`regular`], [`pattern`] | files that may change when opened; a user's expressions |
//!
//! ```
//! use manycore_launch::spec::Spec;
//!
//! let lock: Spec = "mcs".parse()?;
//! assert!(!lock.is_glibc());
//! let refused = "mcz".parse::<Spec>().unwrap_err();
//! assert!(refused.to_string().contains("mcs"), "a remedy: {refused}");
//! # Ok::<(), manycore_launch::failure::Failure>(())
//! ```

pub mod child;
pub mod failure;
pub mod pattern;
pub mod preload;
pub mod regular;
pub mod signals;
pub mod spec;
pub mod target;
pub mod terminal;
