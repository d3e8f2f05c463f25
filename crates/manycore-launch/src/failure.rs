//! A reason to end the command early: one line that names the culprit and the remedy, and an exit
//! status.

use std::fmt::{self, Display};

use rustix::process::{Resource, Rlimit, setrlimit};

/// Why the command failed.
#[derive(Debug)]
pub enum Failure {
    /// The user's input cannot be used: exit status 2.
    BadInput(String),
    /// The measured program failed: exit status 1. The second and further lines are the program's
    /// output.
    Failed {
        /// The line that says what happened.
        message: String,
        /// The end of what the failed program wrote.
        said: String,
    },
    /// A signal requested the end of the command. The command cleans up and then dies of that
    /// signal, as its caller expects.
    Interrupted(i32),
}

/// The usual outcome of a step.
pub type Result<T> = std::result::Result<T, Failure>;

impl Failure {
    /// Bad input: its fault, and the remedy.
    pub fn bad_input(culprit: impl Display, remedy: impl Display) -> Self {
        Self::BadInput(one_line(&format!("{culprit}; {remedy}")))
    }

    /// Something that was started failed.
    pub fn failed(message: impl Display) -> Self {
        Self::Failed { message: one_line(&message.to_string()), said: String::new() }
    }

    /// The same failure, with what the program said last.
    pub fn with_output(self, tail: &str) -> Self {
        match self {
            Self::Failed { message, .. } => Self::Failed { message, said: tail.to_owned() },
            other => other,
        }
    }

    /// The same failure, with the name of the step that failed in front.
    pub fn during(self, what: impl Display) -> Self {
        match self {
            Self::Failed { message, said } => {
                Self::Failed { message: format!("{what}: {message}"), said }
            }
            Self::BadInput(message) => Self::BadInput(format!("{what}: {message}")),
            Self::Interrupted(signal) => Self::Interrupted(signal),
        }
    }

    /// Prints the failure to stderr; returns the exit status. Does not return for a signal.
    pub fn report(self) -> u8 {
        match self {
            Self::BadInput(message) => {
                eprintln!("manycore: {message}");
                2
            }
            Self::Failed { message, said } => {
                eprintln!("manycore: {message}");
                for line in said.lines() {
                    eprintln!("    {line}");
                }
                1
            }
            Self::Interrupted(signal) => die_of(signal),
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BadInput(message) | Self::Failed { message, .. } => f.write_str(message),
            Self::Interrupted(signal) => write!(f, "ended by signal {signal}"),
        }
    }
}

impl std::error::Error for Failure {}

/// Dies of a signal; if that is impossible, returns the exit status that a shell would show.
pub fn die_of(signal: i32) -> u8 {
    // A program has left its memory image, if it was to; ours would take its place.
    let none = Rlimit { current: Some(0), maximum: Some(0) };
    let _ = setrlimit(Resource::Core, none);
    // SAFETY: sets the disposition of a signal for which nothing in this process waits any more,
    // and then sends the signal, alone in a set that is initialised first.
    unsafe {
        let mut alone = std::mem::zeroed();
        libc::sigemptyset(&raw mut alone);
        libc::sigaddset(&raw mut alone, signal);
        libc::signal(signal, libc::SIG_DFL);
        libc::pthread_sigmask(libc::SIG_UNBLOCK, &raw const alone, std::ptr::null_mut());
        libc::raise(signal);
    }
    // It is none that kills.
    128_u8.saturating_add(signal as u8)
}

fn one_line(text: &str) -> String {
    text.split('\n').map(str::trim).filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
}
