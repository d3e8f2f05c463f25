//! Points of a grid of locks, as the flags of `bench lock` and `sim lock` say.

use clap::Args;

use crate::front::parse_length;
use crate::mix::USUAL_DATA;
use crate::work::Length;

/// What threads do, and how many.
#[derive(Args, Debug)]
pub(super) struct PointOptions {
    /// Numbers of threads
    #[arg(long, value_name = "N,..", value_delimiter = ',', default_value = "1,2,4,8")]
    pub threads: Vec<u32>,
    /// Lengths of a section; about:TIME varies exponentially
    #[arg(long, value_name = "TIME,..", value_delimiter = ',', default_value = "1us", value_parser = parse_length)]
    pub section: Vec<Length>,
    /// Length of the time between two sections [default: about twice the section]
    #[arg(long, value_name = "TIME", value_parser = parse_length)]
    pub outside: Option<Length>,
    /// Number of locks that the threads share
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub locks: u32,
    /// Cache lines of data that each section reads and writes, one after the other
    #[arg(long, value_name = "N", default_value_t = USUAL_DATA)]
    pub data: u32,
    /// Share of sections that only read, in percent
    #[arg(long, value_name = "PERCENT", default_value_t = 0.0)]
    pub reads: f64,
}
