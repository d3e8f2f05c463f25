//! Cases: what is there, and the two calls.

use std::fmt;
use std::str::FromStr;

use crate::call::{Call, Mistake, Path};

/// The callers of the two calls, which are always on two CPUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Callers {
    /// By two processes.
    Processes,
    /// By two threads of one process, with common descriptors and memory.
    Threads,
}

impl Callers {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Processes, Self::Threads];

    /// As it is written.
    pub fn name(self) -> &'static str {
        match self {
            Self::Processes => "processes",
            Self::Threads => "threads",
        }
    }
}

/// The agent of a step: 0 or 1. The agent that makes a call has also made the objects that it uses.
/// Otherwise a line could be shared because a third agent has put two objects into it.
pub type Side = usize;

/// Two calls that commute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// By which the report knows it.
    pub number: u32,
    /// Two processes or two threads.
    pub place: Callers,
    /// What is done before.
    pub setup: Vec<(Side, Call)>,
    /// The two calls.
    pub calls: [Call; 2],
    /// Whether each succeeds. In either order.
    pub succeeds: [bool; 2],
}

impl Case {
    /// The names of the two calls, in the order of the alphabet.
    pub fn names(&self) -> [&'static str; 2] {
        let mut names = self.calls.map(|call| call.name());
        names.sort_unstable();
        names
    }

    /// The paths of a side: those of its call, without those of the first side's call.
    pub fn paths(&self, side: Side) -> Vec<Path> {
        let of = |side: Side| {
            let setup = self.setup.iter().filter(move |step| step.0 == side).map(|step| step.1);
            setup.chain([self.calls[side]]).flat_map(Call::paths)
        };
        let mut paths: Vec<_> =
            of(side).filter(|path| side == 0 || of(0).all(|other| other != *path)).collect();
        paths.sort_unstable();
        paths.dedup();
        paths
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} ", self.number, self.place.name())?;
        for (call, succeeds) in self.calls.iter().zip(self.succeeds) {
            write!(f, "{call} {} ", if succeeds { "succeeds" } else { "fails" })?;
        }
        f.write_str("after")?;
        self.setup.iter().try_for_each(|(side, call)| write!(f, " {side}:{call}"))
    }
}

impl FromStr for Case {
    type Err = Mistake;

    fn from_str(text: &str) -> Result<Self, Mistake> {
        let mistake = |what: &str| Mistake(format!("{text}: {what}"));
        let mut words = text.split(' ');
        let mut next = |what| words.next().ok_or_else(|| mistake(what));
        let number = next("no number")?.parse().map_err(|_| mistake("no number"))?;
        let place = next("no place")?;
        let place = Callers::ALL.into_iter().find(|one| one.name() == place);
        let place = place.ok_or_else(|| mistake("neither processes nor threads"))?;
        let mut call = || -> Result<(Call, bool), Mistake> {
            Ok((next("no call")?.parse()?, next("no result")? == "succeeds"))
        };
        let [one, two] = [call()?, call()?];
        if next("no setup")? != "after" {
            return Err(mistake("no setup"));
        }
        let step = |word: &str| {
            let (side, call) = word.split_once(':').ok_or_else(|| mistake("a step of nobody"))?;
            let side = ["0", "1"].iter().position(|&one| one == side);
            Ok((side.ok_or_else(|| mistake("a step of nobody"))?, call.parse()?))
        };
        let setup = words.map(step).collect::<Result<_, _>>()?;
        Ok(Self { number, place, setup, calls: [one.0, two.0], succeeds: [one.1, two.1] })
    }
}
