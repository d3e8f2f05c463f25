//! Models that are made from measurements: hand-overs of a word between cores, and bursts of
//! accesses to a line.
//!
//! | module | what is in it |
//! |---|---|
//! | `observed` | the file that says what was measured of a machine |
//! | `matrix` | from a time for each pair of CPUs to groups of cores and distances |
//! | `bursts` | what bursts of accesses tell |
//! | `spread` | a number with the range that was seen |
//! | `constants` | from all of it to the constants of a model |
//!
//! Constants that neither source gives come from the model of a similar machine, which the file
//! names, and are marked as assumed.
//!
//! ```
//! use manycore_sim::model::derive::Observed;
//!
//! let text = "\
//! schema = 1
//! name = 'mine'
//! summary = 'two sockets of four cores'
//! like = 'xeon-e5-2699v4-2x22'
//!
//! [sources]
//! here = 'measured on the machine itself'
//!
//! [topology]
//! packages = 2
//! groups = 1
//! cores = 4
//! threads = 1
//! from = 'here'
//!
//! [[hand_over]]
//! ns = 50.0
//! low = 45.0
//! high = 60.0
//! from = 'here'
//!
//! [[hand_over]]
//! ns = 130.0
//! low = 120.0
//! high = 150.0
//! from = 'here'
//! ";
//! let model = Observed::parse("mine.toml", text)?.model(&[])?;
//! assert_eq!(model.machine().topology.cpus(), 8);
//! let far = model.constant("latency.rmw.modified", 1).unwrap();
//! assert_eq!(far.from.as_deref(), Some("here"));
//! # Ok::<(), manycore_sim::model::Problem>(())
//! ```

mod bursts;
mod constants;
mod matrix;
mod observed;
mod spread;

pub use bursts::Burst;
pub use observed::{HandOver, Observed, Shape};
pub use spread::Spread;

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::model;

    /// Built-in derived models are those that today's measurements give. With `MANYCORE_WRITE` set,
    /// this writes them anew instead.
    #[test]
    fn derived_models_follow_from_the_measurements() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let files = root.join("../../figures/measured/machines");
        let mut count = 0;
        for entry in std::fs::read_dir(files).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|ending| ending != "toml") {
                continue;
            }
            let file = path.display().to_string();
            let text = std::fs::read_to_string(&path).unwrap();
            let bursts = match std::fs::read_to_string(path.with_extension("csv")) {
                Ok(text) => Burst::table(&file, &text).unwrap(),
                Err(_) => Vec::new(),
            };
            let derived = Observed::parse(&file, &text).unwrap().model(&bursts).unwrap();
            let kept = root.join("machines").join(format!("{}.toml", derived.name));
            if std::env::var_os("MANYCORE_WRITE").is_some() {
                std::fs::write(&kept, derived.to_toml()).unwrap();
            } else {
                assert_eq!(model::find(&derived.name).unwrap(), derived, "{file}");
            }
            count += 1;
        }
        assert!(count >= 10);
    }
}
