//! Writes the list of cases, and tells what was counted.

use std::process::ExitCode;
use std::{env, fs};

use khronos_pairs::case::{Case, Place};
use khronos_pairs::generate::{self, MOST};
use khronos_pairs::report;
use khronos_pairs::symbols::Symbols;

const USAGE: &str = "\
khronos-pairs cases [MOST]                     pairs of calls that commute, at most MOST of two calls
khronos-pairs report CASES COUNTS [SYMBOLS]    what the plugin has counted; with symbols, where lines are shared
";

fn read(path: &str) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))
}

fn report(cases: &str, counts: &str, symbols: Option<&str>) -> Result<(), String> {
    let cases = read(cases)?.lines().map(str::parse).collect::<Result<Vec<Case>, _>>();
    let cases = cases.map_err(|mistake| mistake.to_string())?;
    let text = read(counts)?;
    let counted = report::read(&cases, &text).map_err(|mistake| format!("{counts}: {mistake}"))?;
    print!("{}", report::summary(&counted));
    println!("\nshared lines of different names in one directory, at most:");
    for ([one, two], lines) in report::different_names(&counted) {
        println!("{one} {two}: {lines}");
    }
    for place in Place::ALL {
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
