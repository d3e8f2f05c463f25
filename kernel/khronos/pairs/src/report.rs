//! What was counted: which cases share lines, by calls.

use std::collections::BTreeMap;
use std::fmt::Write;

use crate::call::{Mistake, NAMES};
use crate::case::{Callers, Case};
use crate::generate::is_of_different_names;
use crate::symbols::Symbols;

/// How often a case is run: half of the runs have each order.
pub const RUNS: u32 = 8;

/// A line that both calls use, and one writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Its address.
    pub address: u64,
    /// The plugin's notation: `w` or `r` for each side, and `=` if not only the line is common.
    pub how: String,
    /// An instruction of each.
    pub by: [u64; 2],
}

impl Line {
    fn parse(text: &str) -> Option<Self> {
        let mut words = text.split(':');
        let mut hexadecimal = || u64::from_str_radix(words.next()?, 16).ok();
        let address = hexadecimal()?;
        let how = words.next()?.to_owned();
        let mut hexadecimal = || u64::from_str_radix(words.next()?, 16).ok();
        Some(Self { address, how, by: [hexadecimal()?, hexadecimal()?] })
    }
}

/// A case, and the lines that it shares: those of the worse order, and of each order the run with
/// the fewest. A run may share more by accident: a timer interrupts it, names fall into one chain,
/// or memory comes from a store of all CPUs. The worse order counts, because either may occur.
#[derive(Clone, Debug)]
pub struct Counted<'a> {
    /// The case.
    pub case: &'a Case,
    /// The lines of that run.
    pub lines: Vec<Line>,
}

/// Reads what the plugin has written.
///
/// # Errors
///
/// Returns an error with the fault if the share is less, or if a case was not run as often as
/// required.
pub fn read<'a>(cases: &'a [Case], text: &str) -> Result<Vec<Counted<'a>>, Mistake> {
    let mut runs: BTreeMap<(u32, u32), Vec<Vec<Line>>> = BTreeMap::new();
    for line in text.lines() {
        let mistake = |what: &str| Mistake(format!("{what}: {line}"));
        let mut words = line.split(' ');
        let number: u32 =
            words.next().and_then(|word| word.parse().ok()).ok_or_else(|| mistake("no number"))?;
        let count = words.next().unwrap_or_default();
        let count: usize =
            count.parse().map_err(|_| mistake("a call was not seen, or had too many lines"))?;
        let lines =
            words.map(Line::parse).collect::<Option<Vec<_>>>().ok_or_else(|| mistake("no line"))?;
        if lines.len() != count {
            return Err(mistake("another number of lines"));
        }
        runs.entry((number / 16, number % 2)).or_default().push(lines);
    }
    let count = |case: &'a Case| {
        let fewest = |order| {
            let runs =
                runs.get(&(case.number, order)).filter(|runs| runs.len() == RUNS as usize / 2)?;
            runs.iter().min_by_key(|lines| lines.len())
        };
        let lines = fewest(0)
            .zip(fewest(1))
            .map(|(one, two)| if one.len() < two.len() { two } else { one });
        let lines = lines.ok_or_else(|| Mistake(format!("was not run {RUNS} times: {case}")))?;
        Ok(Counted { case, lines: lines.clone() })
    };
    cases.iter().map(count).collect()
}

/// A share in percent with one digit, rounded down.
fn percent(part: usize, all: usize) -> String {
    let tenths = part * 1000 / all.max(1);
    format!("{}.{}", tenths / 10, tenths % 10)
}

/// The number of cases that share no line, for each kind of callers and in total.
pub fn summary(counted: &[Counted<'_>]) -> String {
    let mut text = String::new();
    let mut line = |name: &str, of: &dyn Fn(&Counted<'_>) -> bool| {
        let all = counted.iter().filter(|one| of(one)).count();
        let free = counted.iter().filter(|one| of(one) && one.lines.is_empty()).count();
        let _ = writeln!(text, "{name}: {free} of {all} share no line: {} %", percent(free, all));
    };
    line("all", &|_| true);
    for place in Callers::ALL {
        line(place.name(), &|one| one.case.place == place);
    }
    text
}

/// The cases that share lines, and all cases: a row and a column for each call.
pub fn table(counted: &[Counted<'_>], place: Callers) -> String {
    let mut cells: BTreeMap<[&str; 2], (usize, usize)> = BTreeMap::new();
    for one in counted.iter().filter(|one| one.case.place == place) {
        let cell = cells.entry(one.case.names()).or_default();
        *cell = (cell.0 + usize::from(!one.lines.is_empty()), cell.1 + 1);
    }
    let mut text = format!("{:9}", place.name());
    NAMES.iter().for_each(|name| _ = write!(text, "{name:>9}"));
    for (number, one) in NAMES.iter().enumerate() {
        let _ = write!(text, "\n{one:9}");
        for two in &NAMES[..=number] {
            let mut names = [*one, *two];
            names.sort_unstable();
            let cell = match cells.get(&names) {
                None => "-".to_owned(),
                Some((0, _)) => ".".to_owned(),
                Some((shared, all)) => format!("{shared}/{all}"),
            };
            let _ = write!(text, "{cell:>9}");
        }
    }
    text + "\n"
}

/// The lines that calls on different names of one directory share: the maximum of each pair of
/// calls.
pub fn different_names(counted: &[Counted<'_>]) -> BTreeMap<[&'static str; 2], usize> {
    let mut most = BTreeMap::new();
    for one in counted.iter().filter(|one| is_of_different_names(one.case)) {
        let lines = most.entry(one.case.names()).or_default();
        *lines = one.lines.len().max(*lines);
    }
    most
}

/// The places where lines are shared: the functions, the number of cases at each, and one of the
/// cases.
pub fn causes(counted: &[Counted<'_>], symbols: &Symbols) -> String {
    let mut all: BTreeMap<String, Vec<&Case>> = BTreeMap::new();
    for one in counted {
        let mut causes: Vec<_> = one.lines.iter().map(|line| cause(line, symbols)).collect();
        causes.sort_unstable();
        causes.dedup();
        for cause in causes {
            all.entry(cause).or_default().push(one.case);
        }
    }
    let mut all: Vec<_> = all.into_iter().collect();
    all.sort_by_key(|(_, cases)| std::cmp::Reverse(cases.len()));
    let mut text = String::new();
    for (cause, cases) in all {
        let _ = writeln!(text, "{:5} {cause}\n      as in {}", cases.len(), cases[0]);
    }
    text
}

fn cause(line: &Line, symbols: &Symbols) -> String {
    let mut by = line.by.map(|address| symbols.name(address));
    by.sort_unstable();
    let data = symbols.data(line.address).map(|name| format!(", in {name}")).unwrap_or_default();
    let how = if line.how.contains('=') { "" } else { ", other bytes of the line" };
    if by[0] == by[1] {
        format!("{}{data}{how}", by[0])
    } else {
        format!("{} and {}{data}{how}", by[0], by[1])
    }
}
