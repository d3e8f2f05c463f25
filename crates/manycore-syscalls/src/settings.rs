//! What the command hands over: `MANYCORE_SYSCALLS=MECHANISM[:KEY=VALUE]...`

use crate::offload::{Groups, Mechanism, Rule, Settings};
use manycore_interpose::message::{refuse, say};
use syscalls::{Errno, Sysno, raw_syscall};

use crate::{moved, worker_threads};

/// Everything that is in the variable.
pub struct Choice {
    /// How calls are moved.
    pub settings: Settings,
    /// Whether those on files are moved too.
    pub files: bool,
}

/// Reads the variable's value; ends the program if it makes no sense.
pub fn parse(text: &[u8]) -> Choice {
    let mut parts = text.split(|byte| *byte == b':');
    let name = parts.next().unwrap_or_default();
    let known = Mechanism::ALL.iter().find(|mechanism| mechanism.name().as_bytes() == name);
    let Some(mechanism) = known else {
        refuse(&[
            b"no mechanism is called '",
            name,
            b"' (MANYCORE_SYSCALLS); known are in-place, thread, pool and uring",
        ])
    };
    let mut choice = Choice {
        settings: Settings {
            mechanism: *mechanism,
            groups: Groups::new(),
            rule: Rule::First,
            bypass: false,
            may_create_thread: worker_threads::may_create,
            create_thread: worker_threads::create,
            sleep: moved::sleep,
            say,
        },
        files: false,
    };
    for part in parts {
        if set(&mut choice, part).is_none() {
            refuse(&[
                b"cannot understand '",
                part,
                b"' in MANYCORE_SYSCALLS; known are cpus=LIST/LIST.., rule=first|own|spill-N, files=yes|no, bypass=yes|no",
            ]);
        }
    }
    if *mechanism == Mechanism::InPlace {
        return choice;
    }
    if choice.settings.groups.is_empty() {
        refuse(&[b"MANYCORE_SYSCALLS names no CPU: add cpus=LIST, as in pool:cpus=0-3"]);
    }
    choice.settings.groups = allowed(&choice.settings.groups);
    if choice.settings.groups.is_empty() {
        say(&[b"system calls are executed in place: this process may use none of the CPUs that were chosen for them"]);
        choice.settings.mechanism = Mechanism::InPlace;
    }
    choice
}

/// Removes the CPUs outside of this process' affinity mask, which may be smaller than that of
/// `manycore run`.
fn allowed(groups: &Groups) -> Groups {
    let mut mask = [0_u64; 128];
    // SAFETY: the kernel writes no more bytes than the array has.
    let known =
        unsafe { raw_syscall!(Sysno::sched_getaffinity, 0, size_of_val(&mask), mask.as_mut_ptr()) };
    if Errno::from_ret(known).is_err() {
        return *groups;
    }
    let mut left = Groups::new();
    for group in 0..groups.groups() {
        let has = |cpu: u16| {
            mask.get(usize::from(cpu) / 64).is_some_and(|word| word >> (cpu % 64) & 1 != 0)
        };
        let cpus = || groups.cpus()[groups.range(group)].iter().filter(|cpu| has(**cpu));
        if cpus().next().is_some() && left.begin() {
            cpus().for_each(|cpu| _ = left.add(u32::from(*cpu)));
        }
    }
    left
}

fn set(choice: &mut Choice, part: &[u8]) -> Option<()> {
    let at = part.iter().position(|byte| *byte == b'=')?;
    let (key, value) = (&part[..at], &part[at + 1..]);
    match key {
        b"cpus" => {
            value
                .split(|byte| *byte == b'/')
                .try_for_each(|group| add_group(&mut choice.settings.groups, group))?;
        }
        b"rule" => {
            choice.settings.rule = match value {
                b"first" => Rule::First,
                b"own" => Rule::Own,
                other => Rule::Spill(number(other.strip_prefix(b"spill-")?)?),
            }
        }
        b"files" => choice.files = is_yes(value)?,
        b"bypass" => choice.settings.bypass = is_yes(value)?,
        _ => return None,
    }
    Some(())
}

/// A list such as `0-3,8`.
fn add_group(groups: &mut Groups, list: &[u8]) -> Option<()> {
    if !groups.begin() {
        return None;
    }
    list.split(|byte| *byte == b',').try_for_each(|range| {
        let mut ends = range.splitn(2, |byte| *byte == b'-');
        let first = number(ends.next()?)?;
        let last = ends.next().map_or(Some(first), number)?;
        if first > last {
            return None;
        }
        (first..=last).try_for_each(|cpu| groups.add(cpu).then_some(()))
    })
}

fn number(digits: &[u8]) -> Option<u32> {
    let are_digits = digits.iter().all(u8::is_ascii_digit);
    str::from_utf8(digits).ok().filter(|_| are_digits)?.parse().ok()
}

fn is_yes(value: &[u8]) -> Option<bool> {
    match value {
        b"yes" => Some(true),
        b"no" => Some(false),
        _ => None,
    }
}
