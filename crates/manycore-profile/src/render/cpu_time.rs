//! The division of time, in lines: by parts, by samples, and the cache misses.

use std::fmt::Write;

use manycore_measure::quantity;

use super::view::shortened;
use crate::profile::{CacheMisses, CpuSamples, OtherNodes, Part, Profile, Sampling};
use crate::text::{percent, seconds};

/// Less than this is not worth a line.
const SHARE_MIN: f64 = 0.01;
/// The number of functions that are named for a part, and the room for each.
const FUNCTIONS: usize = 2;
const NAME: usize = 32;

/// CPU time and time off the CPU, and how both were determined.
pub fn lines(profile: &Profile) -> String {
    let cpu = &profile.cpu;
    let all = cpu.program + cpu.kernel + cpu.lock_spin;
    let part =
        |part: f64| format!("{} ({})", seconds(part), percent(part / all.max(f64::MIN_POSITIVE)));
    let mut text = format!(
        "CPU time {}: program {}, kernel {}, waits for locks {}\n\
         Off the CPU in waits for locks: {}\n",
        seconds(all),
        part(cpu.program),
        part(cpu.kernel),
        part(cpu.lock_spin),
        seconds(cpu.lock_wait)
    );
    text += &profile.cpu_samples.as_ref().map(sampled).unwrap_or_default();
    if let Some(misses) = &profile.cache_misses {
        text += &cache_misses(misses, profile.wall);
    }
    if profile.sampling.hold_period > 0 {
        let _ = writeln!(
            text,
            "Counts are exact, waits all timed; sampled: 1 hold in {}, CPU time and place of 1 wait in {}.",
            profile.sampling.hold_period, profile.sampling.spin_period
        );
    }
    text += &left_out(profile.sampling);
    text.push('\n');
    text
}

/// A line about data that was not kept because there was too much of it; empty if all was kept.
fn left_out(sampling: Sampling) -> String {
    let Sampling { cut, dropped, blocked_dropped, orders_dropped, .. } = sampling;
    let parts = [
        (dropped, "sampled waits are without their place"),
        (cut, "stacks have one call only"),
        (blocked_dropped, "sampled waits are without who had the lock"),
        (orders_dropped, "times two locks were taken in an order that is not kept"),
    ];
    let parts = parts.iter().filter(|(number, _)| *number > 0);
    let parts: Vec<_> = parts.map(|(number, what)| format!("{number} {what}")).collect();
    if parts.is_empty() { String::new() } else { format!("Too many: {}.\n", parts.join(", ")) }
}

/// The samples' contribution to the division of time: spinning that the library's clocks do not
/// cover, and unknown time.
fn sampled(samples: &CpuSamples) -> String {
    if let Some(why) = &samples.refused {
        return format!("Sampled stacks of the CPU time: {why}\n");
    }
    let shares = &samples.shares;
    let mut parts = Vec::new();
    let spinning = [
        (shares.spin_program, Part::SpinProgram, "locks of the program's own"),
        (shares.spin_kernel.unwrap_or_default(), Part::SpinKernel, "the kernel's"),
    ];
    for (share, part, whose) in spinning.into_iter().filter(|(share, ..)| *share >= SHARE_MIN) {
        parts.push(format!("{} for {whose} ({})", percent(share), functions(samples, part)));
    }
    let mut text = String::new();
    if !parts.is_empty() {
        let of = if samples.kernel_permitted { "" } else { " outside of the kernel" };
        let parts = parts.join(", ");
        let _ =
            writeln!(text, "Spinning, of the CPU time{of} by {} samples: {parts}", samples.taken);
    }
    if samples.lost > 0 {
        let _ = writeln!(text, "Of the samples {} were lost.", samples.lost);
    }
    text
}

/// The functions that do most of it.
fn functions(samples: &CpuSamples, part: Part) -> String {
    let of = samples.functions.iter().filter(|function| function.part == part);
    let names: Vec<_> = of.take(FUNCTIONS).map(|one| shortened(&one.name, NAME)).collect();
    names.join(", ")
}

/// In two lines: how many, or why that is not known.
fn cache_misses(misses: &CacheMisses, wall: f64) -> String {
    let CacheMisses { reads, counted, refused, other_nodes } = misses;
    let mut text =
        counted_line("Reads that no cache had", *reads, *counted, refused.as_deref(), wall);
    if let Some(others @ OtherNodes { lines, counted, refused, .. }) = other_nodes {
        // Where there is nothing to read, the event's name would only make the line long.
        let event = others.event.as_deref().filter(|_| refused.is_none());
        text +=
            &counted_line(&out_of_other_nodes(event), *lines, *counted, refused.as_deref(), wall);
    }
    text
}

/// The meaning of a processor's event, which differs between manufacturers.
fn out_of_other_nodes(event: Option<&str>) -> String {
    match event {
        Some(event) if event.ends_with("HITM") => {
            format!("Loads of lines that another node had modified ({event})")
        }
        Some(event) => format!("Demand fills from another node's cache ({event})"),
        None => "Lines out of another node's cache".to_owned(),
    }
}

fn counted_line(
    what: &str,
    count: Option<u64>,
    counted: Option<f64>,
    refused: Option<&str>,
    wall: f64,
) -> String {
    match (count, refused) {
        (Some(count), _) => {
            let a_second =
                quantity(count as f64 / wall.max(f64::MIN_POSITIVE), "op/s").replace("op/s", "/s");
            let share = match counted {
                Some(share) if share < 0.995 => {
                    format!("; worked out from {} of the time", percent(share))
                }
                _ => String::new(),
            };
            format!("{what}: {count}, {a_second}{share}\n")
        }
        (None, Some(why)) => format!("{what}: {why}\n"),
        (None, None) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::{SampleSource, SampledFunction, Shares};

    #[test]
    fn misses_are_counted_worked_out_or_explained() {
        let shown = |reads, counted, refused: Option<&str>| {
            let refused = refused.map(str::to_owned);
            cache_misses(&CacheMisses { reads, counted, refused, other_nodes: None }, 2.0)
        };
        let all = shown(Some(5_000_000), Some(1.0), None);
        assert_eq!(all, "Reads that no cache had: 5000000, 2.50 M/s\n");
        assert!(shown(Some(8), Some(0.5), None).ends_with("; worked out from 50 % of the time\n"));
        let why = shown(None, None, Some("not supported"));
        assert_eq!(why, "Reads that no cache had: not supported\n");
        let event = Some("FAR".to_owned());
        let other_nodes = OtherNodes { event, lines: Some(8), counted: Some(1.0), refused: None };
        let other_nodes = Some(other_nodes);
        let both = CacheMisses { reads: Some(9), counted: Some(1.0), refused: None, other_nodes };
        let fills = "\nDemand fills from another node's cache (FAR): 8, 4.00 /s\n";
        assert!(cache_misses(&both, 2.0).ends_with(fills));
        assert!(out_of_other_nodes(Some("REMOTE_HITM")).contains("modified (REMOTE_HITM)"));
    }

    #[test]
    fn what_spins_is_named_and_what_does_not_is_no_news() {
        let function = |name: &str, part| SampledFunction {
            name: name.to_owned(),
            module: "mysqld".to_owned(),
            part,
            samples: 5,
            share: 0.1,
        };
        let quiet = CpuSamples {
            source: Some(SampleSource::CpuClock),
            taken: 400,
            kernel_permitted: true,
            shares: Shares { program: 0.999, spin_kernel: Some(0.001), ..Shares::default() },
            functions: vec![
                function("work", Part::Program),
                function("ut_delay", Part::SpinProgram),
                function("osq_lock", Part::SpinKernel),
            ],
            ..CpuSamples::default()
        };
        assert_eq!(sampled(&quiet), "");
        let shares = Shares { spin_program: 0.23, spin_kernel: Some(0.05), ..quiet.shares };
        let loud = CpuSamples { shares, lost: 3, ..quiet };
        assert_eq!(
            sampled(&loud),
            "Spinning, of the CPU time by 400 samples: 23 % for locks of the program's own (ut_delay), 5.0 % for the kernel's \
             (osq_lock)\n\
             Of the samples 3 were lost.\n"
        );
        let outside = sampled(&CpuSamples { kernel_permitted: false, ..loud });
        assert!(
            outside.starts_with("Spinning, of the CPU time outside of the kernel by "),
            "{outside}"
        );
        let refused = CpuSamples { refused: Some("not permitted".into()), ..CpuSamples::default() };
        assert_eq!(sampled(&refused), "Sampled stacks of the CPU time: not permitted\n");
    }
}
