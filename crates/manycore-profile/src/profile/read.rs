//! Reading a profile from a file that any user may have written, cut or edited.
//!
//! Required fields have to be there and to make sense; unknown fields are ignored. Names may be any
//! text: control characters are removed, because names are shown on terminals.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use super::{Cpu, CpuSamples, Profile, SCHEMA, Waited};
use manycore_launch::failure::{self, Failure};
use serde::Deserialize;
use serde_json::error::Category;

/// The largest size of a profile. One of 100,000 locks and all their stacks has a tenth of it.
const BYTES_MAX: u64 = 1 << 30;
/// No run takes longer than a century.
const SECONDS_MAX: f64 = 3.2e9;

/// The error for a faulty file that the user should make again.
fn again(culprit: String) -> Failure {
    Failure::bad_input(culprit, "make another with `manycore profile --json FILE`")
}

/// Reads a file.
///
/// # Errors
///
/// [`Failure`], if it cannot be read or is no profile of this schema.
pub fn from_file(path: &Path) -> failure::Result<Profile> {
    let name = path.display().to_string();
    let text = text_of(path).map_err(|error| {
        Failure::bad_input(
            format!("cannot read '{name}': {error}"),
            "name a file that `manycore profile --json FILE` has written",
        )
    })?;
    from_text(&name, &text)
}

fn text_of(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(BYTES_MAX + 1).read_to_string(&mut text)?;
    match text.len() as u64 {
        ..=BYTES_MAX => Ok(text),
        _ => Err(io::Error::other("it has more than 1 GiB, as no profile has")),
    }
}

/// Reads a text, of the file with this name.
///
/// # Errors
///
/// [`Failure`], if it is no profile of this schema.
pub fn from_text(name: &str, text: &str) -> failure::Result<Profile> {
    #[derive(Deserialize)]
    struct Version {
        schema: u64,
    }
    let wrong = |error: serde_json::Error| match error.classify() {
        Category::Eof => again(format!("'{name}' is cut short: {error}")),
        Category::Syntax if is_at_end(&error, text) => {
            again(format!("'{name}' is cut short: {error}"))
        }
        Category::Syntax | Category::Io => again(format!("'{name}' is no JSON: {error}")),
        Category::Data => again(format!("'{name}' is no profile: {error}")),
    };
    let version: Version = serde_json::from_str(text).map_err(wrong)?;
    if version.schema != u64::from(SCHEMA) {
        return Err(Failure::bad_input(
            format!("'{name}' has schema {}, and this command reads {SCHEMA}", version.schema),
            "read it with the version of `manycore` that wrote it, or profile again",
        ));
    }
    let profile: Profile = serde_json::from_str(&tame(text)).map_err(wrong)?;
    check(&profile).map_err(|what| again(format!("'{name}' is no profile: {what}")))?;
    Ok(profile)
}

/// Whether the error is at the end of the text, for example in the middle of a number, so that the
/// file is cut.
fn is_at_end(error: &serde_json::Error, text: &str) -> bool {
    let (line, length) =
        text.split('\n').enumerate().last().map_or((0, 0), |(n, l)| (n + 1, l.len()));
    (error.line(), error.column()) == (line, length)
}

/// The same JSON, complete, but without characters in its strings that would control a terminal or
/// reverse the direction of writing.
fn tame(text: &str) -> String {
    let mut tamed = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(|c: char| c == '\\' || is_wild(c)) {
        let (plain, found) = rest.split_at(at);
        tamed.push_str(plain);
        let length = match found.as_bytes() {
            // Outside of strings JSON has no backslashes.
            [b'\\', b'u', ..] => 6,
            [b'\\', ..] => 2,
            _ => found.chars().next().map_or(1, char::len_utf8),
        };
        let (character, after) = found.split_at(length);
        let escaped =
            character.strip_prefix("\\u").and_then(|hex| u32::from_str_radix(hex, 16).ok());
        tamed.push_str(match character {
            r"\n" | r"\r" | r"\t" | r"\b" | r"\f" => " ",
            // Escaped line ends are replaced, too: a name has none. Line ends between the parts of
            // JSON are not escaped.
            _ if escaped.and_then(char::from_u32).is_some_and(|c| is_wild(c) || c.is_control()) => {
                "\u{fffd}"
            }
            _ if !character.starts_with('\\') => "\u{fffd}",
            _ => character,
        });
        rest = after;
    }
    tamed + rest
}

/// Whether a character would control the terminal or the layout instead of being printed. Line ends
/// between the parts of JSON do not count: those in strings are escaped.
fn is_wild(c: char) -> bool {
    let directs =
        matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    directs || (c.is_control() && !matches!(c, '\n' | '\r' | '\t'))
}

/// Whether numbers have possible values, and places in lists are within the lists.
fn check(profile: &Profile) -> Result<(), String> {
    time("wall", profile.wall)?;
    cpu("cpu", &profile.cpu)?;
    shares(profile)?;
    let locks = profile.locks.len();
    let lock = |what: &str, lock: usize| match lock < locks {
        true => Ok(()),
        false => Err(format!("{what} names lock {lock}, and there are {locks}")),
    };
    let waits =
        |what: &str, waits: &[Waited]| waits.iter().try_for_each(|one| lock(what, one.lock));
    profile.stacks.iter().try_for_each(|stack| lock("stacks", stack.lock))?;
    profile.blocking.iter().try_for_each(|pair| lock("blocking", pair.lock))?;
    for convoy in &profile.convoys {
        lock("convoys", convoy.lock)?;
        time("convoys.start", convoy.start)?;
    }
    profile.notes.iter().filter_map(|note| note.lock).try_for_each(|of| lock("notes", of))?;
    for order in &profile.orders {
        lock("orders", order.held)?;
        lock("orders", order.wanted)?;
    }
    for place in profile.cycles.iter().flat_map(|cycle| &cycle.orders) {
        if *place >= profile.orders.len() {
            return Err(format!(
                "cycles names order {place}, and there are {}",
                profile.orders.len()
            ));
        }
    }
    for thread in &profile.threads {
        cpu("threads.cpu", &thread.cpu)?;
        waits("threads", &thread.waits)?;
    }
    if let Some(timeline) = &profile.timeline {
        time("timeline.interval", timeline.interval)?;
        for interval in &timeline.intervals {
            cpu("timeline.cpu", &interval.cpu)?;
            waits("timeline", &interval.waits)?;
        }
    }
    profile.kernel.as_ref().map_or(Ok(()), |kernel| time("kernel.seconds", kernel.seconds))
}

fn shares(profile: &Profile) -> Result<(), String> {
    profile.cpu_samples.as_ref().map_or(Ok(()), samples)?;
    let of_processes = profile.processes.iter().flat_map(|process| &process.locks);
    for lock in profile.locks.iter().chain(of_processes) {
        share("contended_share", lock.contended_share)?;
        share("hottest_share", lock.hottest_share)?;
        lock.waits_in.iter().try_for_each(|site| share("waits_in.share", site.share))?;
    }
    for process in &profile.processes {
        time("processes.lock_spin", process.lock_spin)?;
        time("processes.lock_wait", process.lock_wait)?;
    }
    Ok(())
}

fn samples(samples: &CpuSamples) -> Result<(), String> {
    let of_threads = samples.threads.iter().map(|thread| &thread.shares);
    for of in of_threads.chain(&samples.intervals).chain([&samples.shares]) {
        let parts = [Some(of.program), of.kernel, Some(of.spin_program), Some(of.spin_library)];
        let known = parts.into_iter().flatten().chain(of.spin_kernel);
        known.into_iter().try_for_each(|part| share("cpu_samples.shares", part))?;
    }
    let functions = samples.functions.iter().map(|function| function.share);
    let mut all = functions.chain(samples.stacks.iter().map(|stack| stack.share));
    all.try_for_each(|part| share("cpu_samples.share", part))
}

fn share(what: &str, value: f64) -> Result<(), String> {
    // A sum of shares may be one and a rounding error.
    match (0.0..=1.000_001).contains(&value) {
        true => Ok(()),
        false => Err(format!("{what} is {value}, and has to be from 0 to 1")),
    }
}

fn time(what: &str, seconds: f64) -> Result<(), String> {
    match (0.0..=SECONDS_MAX).contains(&seconds) {
        true => Ok(()),
        false => Err(format!("{what} is {seconds}, which is no time in seconds")),
    }
}

fn cpu(what: &str, cpu: &Cpu) -> Result<(), String> {
    let parts = [cpu.kernel, cpu.program, cpu.lock_spin, cpu.lock_wait];
    parts.into_iter().try_for_each(|part| time(what, part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_do_not_drive_a_terminal() {
        let tamed =
            tame("{\n\"a\": \"\\u001b[2J\\n\u{9b}x\\u202e \\\\u001b \\\" caf\u{e9}\u{7f}\"}");
        let value: serde_json::Value = serde_json::from_str(&tamed).unwrap();
        assert_eq!(value["a"], "\u{fffd}[2J \u{fffd}x\u{fffd} \\u001b \" caf\u{e9}\u{fffd}");
    }
}
