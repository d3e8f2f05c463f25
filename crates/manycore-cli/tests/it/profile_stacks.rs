//! `manycore profile` finds the callers of lock functions on any stack, and harms no program that
//! has another one than the compiler's tables say.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::real::{Profiled, profile, profile_by};
use crate::support::{compile, directory, library, stdout};

const FLAGS: [&str; 3] = ["-O2", "-g", "-pthread"];

#[test]
fn callers_are_found_in_frames_of_every_form() {
    let directory = directory();
    finds_callers(&profile(&[frames_of_every_form(directory.path())]));
}

/// Before version 2.35 glibc had no function that finds an object without a lock. The library asks
/// for it by name, so one with another name finds as much.
#[test]
fn callers_are_found_with_an_older_glibc() {
    let directory = directory();
    let mut changed = fs::read(library()).unwrap();
    let name = b"_dl_find_object\0";
    let place = changed.windows(name.len()).position(|bytes| bytes == name);
    changed[place.expect("the function's name is in the library")] = b'-';
    let older = directory.path().join("libmanycore_preload.so");
    fs::write(&older, changed).unwrap();
    finds_callers(&profile_by(&older, &[frames_of_every_form(directory.path())]));
}

fn frames_of_every_form(directory: &Path) -> PathBuf {
    compile(directory, "stacks", include_str!("programs/stacks.c"), &FLAGS)
}

fn finds_callers(profiled: &Profiled) {
    for calls in [
        &["make_in_variable", "variable", "main"][..],
        &["make_in_aligned", "aligned", "main"],
        &["make_in_handler", "handler"],
    ] {
        let frames = profiled.lock(calls[0])["frames"].as_array().unwrap();
        let functions: Vec<_> =
            frames.iter().map(|frame| frame["function"].as_str().unwrap_or_default()).collect();
        assert_eq!(functions[..calls.len()], *calls, "{functions:?}");
        let is_interrupted = functions.contains(&"interrupted");
        assert_eq!(is_interrupted, calls[1] == "handler", "{functions:?}");
        assert!(functions.contains(&"main"), "{functions:?}");
    }
}

/// What is beyond a coroutine's first call is not followed to where nothing is mapped.
#[test]
fn a_stack_may_end_in_anything() {
    let directory = directory();
    let source = include_str!("programs/broken_stack.c");
    let program = compile(directory.path(), "broken_stack", source, &FLAGS);
    let profiled = profile(&[program]);
    assert!(profiled.output.status.success());
    assert_eq!(stdout(&profiled.output), "back\n");
    let lock = profiled.lock("coroutine");
    assert_eq!((&lock["acquired"], &lock["frames"][1]["function"]), (&100.into(), &"start".into()));
}

/// The unwinder's own lock is one like others: nothing waits for it in order to count it.
#[test]
fn a_program_may_register_code_that_it_makes() {
    let directory = directory();
    let source = include_str!("programs/registered_code.c");
    let program = compile(directory.path(), "registered_code", source, &FLAGS);
    let profiled = profile(&[program]);
    assert!(profiled.output.status.success());
    assert_eq!(stdout(&profiled.output), "unwound\n");
    assert_eq!(profiled.lock("mutex")["acquired"], 60_000);
}
