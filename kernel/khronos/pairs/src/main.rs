//! Writes the list of cases, and tells what was counted.

use std::process::ExitCode;
use std::{env, fs};

use khronos_pairs::call::Mistake;
use khronos_pairs::case::{Callers, Case};
use khronos_pairs::generate::{self, MOST};
use khronos_pairs::report::{self, Counted};
use khronos_pairs::symbols::Symbols;

const USAGE: &str = "\
khronos-pairs cases [MOST]                     pairs of calls that commute, at most MOST of two calls
khronos-pairs check CASES COUNTS               whether the bars of KhronOS are met
khronos-pairs report CASES COUNTS [SYMBOLS]    what the plugin has counted; with symbols, where lines are shared
";

fn read(path: &str) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))
}

fn read_cases(path: &str) -> Result<Vec<Case>, String> {
    let cases = read(path)?.lines().map(str::parse).collect::<Result<_, _>>();
    cases.map_err(|mistake: Mistake| format!("{path}: {mistake}"))
}

fn read_counts<'a>(cases: &'a [Case], path: &str) -> Result<Vec<Counted<'a>>, String> {
    report::read(cases, &read(path)?).map_err(|mistake| format!("{path}: {mistake}"))
}

/// At least this many of a thousand cases must share no line. The book lists the conflicts of the
/// others.
const LEAST: usize = 950;

fn check(cases: &str, counts: &str) -> Result<(), String> {
    let cases = read_cases(cases)?;
    let counted = read_counts(&cases, counts)?;
    if let Some(([one, two], lines)) =
        report::different_names(&counted).into_iter().find(|(_, lines)| *lines > 0)
    {
        return Err(format!("{one} and {two} of different names share {lines} lines"));
    }
    let free = counted.iter().filter(|one| one.lines.is_empty()).count();
    if free * 1000 < LEAST * counted.len() {
        let all = counted.len();
        return Err(format!("{free} of {all} pairs share no line: less than {LEAST} of 1000"));
    }
    Ok(())
}

fn report(cases: &str, counts: &str, symbols: Option<&str>) -> Result<(), String> {
    let cases = read_cases(cases)?;
    let counted = read_counts(&cases, counts)?;
    print!("{}", report::summary(&counted));
    println!("\nshared lines of different names in one directory, at most:");
    for ([one, two], lines) in report::different_names(&counted) {
        println!("{one} {two}: {lines}");
    }
    for place in Callers::ALL {
        println!("\n{}", report::table(&counted, place));
    }
    if let Some(symbols) = symbols {
        let symbols = Symbols::read(&read(symbols)?);
        println!("where:\n{}", report::causes(&counted, &symbols));
    }
    Ok(())
}

fn run(arguments: &[&str]) -> Result<(), String> {
    match arguments {
        ["cases", most @ ..] if most.len() < 2 => {
            let most = most.first().map_or(Ok(MOST), |most| most.parse());
            let most =
                most.map_err(|_| "MOST is a number: how many cases of two calls".to_owned())?;
            generate::cases(most).iter().for_each(|case| println!("{case}"));
            Ok(())
        }
        ["check", cases, counts] => check(cases, counts),
        ["report", cases, counts, symbols @ ..] if symbols.len() < 2 => {
            report(cases, counts, symbols.first().copied())
        }
        _ => Err(USAGE.to_owned()),
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match run(&arguments.iter().map(String::as_str).collect::<Vec<_>>()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("khronos-pairs: {error}");
            ExitCode::from(2)
        }
    }
}
