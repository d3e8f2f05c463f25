//! Folded stacks: a line for each stack, as flamegraph.pl, inferno and speedscope read them.
//!
//! `outermost;...;innermost;[lock] NANOSECONDS`. The number is the time waited there.

use std::fmt::Write;

use crate::profile::{Frame, Profile};

use crate::render::stacks::stacks;

/// All waits of a profile. Those for the kernel's locks come last.
pub fn folded(profile: &Profile) -> String {
    let mut text = String::new();
    for one in stacks(profile) {
        line(&mut text, one.frames.iter().rev(), &profile.locks[one.lock].title(), one.ns);
    }
    for lock in &profile.kernel_locks {
        for stack in &lock.stacks {
            line(&mut text, stack.frames.iter().rev(), &lock.name, stack.wait_ns);
        }
    }
    text
}

fn line<'a>(text: &mut String, calls: impl Iterator<Item = &'a Frame>, lock: &str, ns: u64) {
    for call in calls {
        text.push_str(&plain(&call.label()));
        text.push(';');
    }
    let _ = writeln!(text, "[{}] {ns}", plain(lock));
}

/// A name without what means something between names.
fn plain(name: &str) -> String {
    name.replace(';', ":").replace(char::is_control, " ")
}
