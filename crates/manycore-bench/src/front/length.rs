//! Lengths of sections on the command line: `50ns`, `1us`, `about 20us`.

use crate::work::Length;

use manycore_launch::failure::{Failure, Result};

/// Reads a fixed length, or the mean of exponential ones after `about`.
pub fn parse(text: &str) -> Result<Length> {
    let (time, make): (&str, fn(f64) -> Length) = match text.strip_prefix("about") {
        Some(mean) => (mean.trim_start_matches([' ', ':']), Length::exponential),
        None => (text, Length::fixed),
    };
    match humantime::parse_duration(time) {
        Ok(duration) => Ok(make(duration.as_nanos() as f64)),
        Err(_) => Err(Failure::bad_input(
            format!("'{text}' is no length of time"),
            "write 50ns, 1us, or about:1us for lengths that vary around it",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fixed_and_varying() {
        assert_eq!(parse("50ns").unwrap(), Length::fixed(50.0));
        assert_eq!(parse("0s").unwrap(), Length::fixed(0.0));
        for text in ["about:20us", "about 20us", "about20us"] {
            assert_eq!(parse(text).unwrap(), Length::exponential(20e3));
        }
        assert!(parse("50").is_err() && parse("about").is_err() && parse("-1us").is_err());
    }
}
