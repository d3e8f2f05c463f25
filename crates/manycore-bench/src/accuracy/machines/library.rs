//! The published sets that come with manycore: the files in `figures/measured`.

use std::path::Path;

use super::set::PublishedSet;
use crate::failure::Failure;

macro_rules! embedded {
    ($($name:literal),* $(,)?) => {
        /// Names, descriptions and tables, in the order of the output.
        const EMBEDDED: &[(&str, &str, &str)] = &[$((
            $name,
            include_str!(concat!("../../../../../figures/measured/", $name, ".toml")),
            include_str!(concat!("../../../../../figures/measured/", $name, ".csv")),
        )),*];
    };
}

embedded!(
    "hand-over",
    "bursts",
    "counters-graviton",
    "locks-folly",
    "locks-cna",
    "locks-litl",
    "rwlocks-folly",
    "lists-optik",
    "tables-optik",
    "tables-parlay",
    "reclaim-ibr",
    "reclaim-hyaline",
    "reclaim-wfe",
    "kernel-80",
    "kernel-80-files",
    "kernel-80-mappings",
    "kernel-commits",
);

/// The sets' names.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    EMBEDDED.iter().map(|(name, ..)| *name)
}

/// Reads sets: all of them if there are no names. A name with a slash, or with the ending `.toml`,
/// is the path of a description; the table is in the same directory.
pub(super) fn sets(names: &[String]) -> Result<Vec<PublishedSet>, Failure> {
    let of_file = |name: &&String| name.contains('/') || name.ends_with(".toml");
    let own = names.iter().filter(of_file).map(|path| read(Path::new(path)));
    let embedded = EMBEDDED.iter().map(|(name, description, table)| {
        PublishedSet::parse(name, &format!("figures/measured/{name}"), description, table)
    });
    embedded.chain(own).collect()
}

fn read(path: &Path) -> Result<PublishedSet, Failure> {
    let text = |path: &Path| {
        std::fs::read_to_string(path).map_err(|error| {
            Failure::Usage(format!("'{}' cannot be read: {error}", path.display()))
        })
    };
    let table = text(&path.with_extension("csv"))?;
    let name = path.display().to_string();
    PublishedSet::parse(&name, &name, &text(path)?, &table)
}

#[cfg(test)]
mod tests {
    use manycore_sim::model;

    use super::*;

    #[test]
    fn every_set_parses_and_has_models() {
        for set in sets(&[]).unwrap() {
            for machine in &set.machines {
                let model = model::find(&machine.model).unwrap();
                let cpus = model.machine().topology.cpus();
                let most = *machine.threads.last().unwrap();
                assert!(most <= cpus, "{}, {}: {most} of {cpus}", set.name, machine.name);
            }
            assert!(set.subjects.iter().any(|subject| subject.ours.is_some()), "{}", set.name);
            assert!(set.points().count() > 1, "{}", set.name);
        }
    }
}
