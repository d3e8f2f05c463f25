//! Scripts: the `#!` line, and `env` on it. And the dynamic linker as a command.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The command that a `#!` line names: the interpreter and at most one argument, as the kernel
/// splits it.
pub fn interpreter(start: &[u8]) -> Option<Vec<OsString>> {
    let line = start.strip_prefix(b"#!")?;
    let line = line.split(|&byte| byte == b'\n').next()?.trim_ascii();
    let (program, argument) = match line.iter().position(u8::is_ascii_whitespace) {
        Some(end) => (&line[..end], line[end..].trim_ascii()),
        None => (line, &[][..]),
    };
    let parts = [program, argument].into_iter().filter(|part| !part.is_empty());
    Some(parts.map(|part| OsStr::from_bytes(part).to_owned()).collect())
}

/// The command that `env` will run, if `command` is one of `env`.
pub fn command_of_env(command: &[OsString]) -> Option<Vec<OsString>> {
    let (program, arguments) = command.split_first()?;
    if Path::new(program).file_name()? != "env" {
        return None;
    }
    let mut words = arguments.to_vec();
    let mut at = 0;
    while at < words.len() {
        let word = words[at].as_bytes();
        if let Some(text) = split_string(&words[at..]) {
            // The rest is one word with blanks in it, which has to be split: the reason for -S.
            let parts = shlex::bytes::split(text.as_bytes())?;
            let taken = if word == b"-S" || word == b"--split-string" { 2 } else { 1 };
            let parts = parts.into_iter().map(|part| OsStr::from_bytes(&part).to_owned());
            words.splice(at..(at + taken).min(words.len()), parts);
        } else if takes_value(word) {
            at += 2;
        } else if word.starts_with(b"-") || word.contains(&b'=') {
            at += 1;
        } else {
            return Some(words.split_off(at));
        }
    }
    None
}

/// The command that glibc's dynamic linker will run, if `command` begins with it; `None` if it will
/// do something else.
pub fn command_of_loader(command: &[OsString]) -> Option<Vec<OsString>> {
    const WITH_VALUE: [&[u8]; 7] = [
        b"--library-path",
        b"--inhibit-rpath",
        b"--audit",
        b"--preload",
        b"--argv0",
        b"--glibc-hwcaps-prepend",
        b"--glibc-hwcaps-mask",
    ];
    let mut at = 1;
    loop {
        match command.get(at)?.as_bytes() {
            option if WITH_VALUE.contains(&option) => at += 2,
            b"--inhibit-cache" => at += 1,
            // It lists, verifies or explains something.
            option if option.starts_with(b"--") => return None,
            _ => return Some(command[at..].to_vec()),
        }
    }
}

fn takes_value(word: &[u8]) -> bool {
    [&b"-u"[..], b"--unset", b"-C", b"--chdir"].contains(&word)
}

/// The operand of `-S` in its three spellings.
fn split_string(words: &[OsString]) -> Option<&OsStr> {
    let word = words[0].as_bytes();
    if word == b"-S" || word == b"--split-string" {
        return words.get(1).map(OsString::as_os_str);
    }
    let rest = word.strip_prefix(b"--split-string=").or_else(|| word.strip_prefix(b"-S"))?;
    Some(OsStr::from_bytes(rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[&str]) -> Vec<OsString> {
        words.iter().map(OsString::from).collect()
    }

    #[test]
    fn the_line_is_split_as_the_kernel_does() {
        assert_eq!(interpreter(b"#!/bin/sh\necho"), Some(words(&["/bin/sh"])));
        assert_eq!(
            interpreter(b"#! /usr/bin/env  -S a b \n"),
            Some(words(&["/usr/bin/env", "-S a b"]))
        );
        assert_eq!(interpreter(b"\x7fELF"), None);
    }

    #[test]
    fn the_dynamic_linker_leads_to_what_it_runs() {
        let cases: [(&[&str], Option<&[&str]>); 5] = [
            (&["ld.so", "./prog", "--list"], Some(&["./prog", "--list"])),
            (&["ld.so", "--library-path", "/lib", "--argv0", "x", "a/b"], Some(&["a/b"])),
            (&["ld.so", "--inhibit-cache", "--preload", "x.so", "./p"], Some(&["./p"])),
            (&["ld.so", "--list", "./prog"], None),
            (&["ld.so"], None),
        ];
        for (command, expected) in cases {
            assert_eq!(command_of_loader(&words(command)), expected.map(words), "{command:?}");
        }
    }

    #[test]
    fn env_leads_to_its_command() {
        let cases: [(&[&str], Option<&[&str]>); 7] = [
            (&["/usr/bin/env", "python3"], Some(&["python3"])),
            (&["env", "A=1", "-u", "B", "-i", "prog", "-S", "x"], Some(&["prog", "-S", "x"])),
            (&["env", "-S python3 -u", "script"], Some(&["python3", "-u", "script"])),
            (&["env", "-S", "A=1 'my prog' x"], Some(&["my prog", "x"])),
            (&["env", "--split-string=python3 -u"], Some(&["python3", "-u"])),
            (&["env"], None),
            (&["python3", "env"], None),
        ];
        for (command, expected) in cases {
            assert_eq!(command_of_env(&words(command)), expected.map(words), "{command:?}");
        }
    }
}
