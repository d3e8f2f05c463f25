//! The part of a profile for which the page has room: each call once, long names cut, and a list of
//! the omissions.

use std::collections::HashMap;

use crate::profile::{Frame, Profile};

/// Sentences may be this many times as long as names.
const NAMES_OF_SENTENCE: usize = 4;

/// How much of each part is kept.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    pub(super) rows: usize,
    pub(super) stacks: usize,
    pub(super) frames: usize,
    pub(super) intervals: usize,
    pub(super) characters: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { rows: 4000, stacks: 8000, frames: 64, intervals: 600, characters: 400 }
    }
}

impl Limits {
    /// Half of each limit, except for the indispensable parts.
    pub fn halved(self) -> Self {
        Self {
            rows: self.rows / 2,
            stacks: self.stacks / 2,
            frames: (self.frames / 2).max(8),
            intervals: (self.intervals / 2).max(50),
            characters: (self.characters / 2).max(80),
        }
    }

    /// Whether there is nothing left to halve.
    pub fn are_least(self) -> bool {
        self.rows <= 1
    }
}

/// What is kept, and what was cut.
pub struct Cut {
    pub(super) limits: Limits,
    /// The index on the page of each lock of the profile.
    pub(super) places: HashMap<usize, usize>,
    /// The locks of the profile that are kept, the longest waits first.
    pub(super) kept: Vec<usize>,
    pub(super) frames: Vec<(String, String)>,
    known: HashMap<(String, String), usize>,
    pub(super) left_out: Vec<String>,
}

impl Cut {
    pub(super) fn new(profile: &Profile, limits: &Limits) -> Self {
        let mut kept: Vec<usize> = (0..profile.locks.len()).collect();
        kept.sort_by_key(|at| std::cmp::Reverse(profile.locks[*at].wait.total_ns));
        let mut left_out = Vec::new();
        if kept.len() > limits.rows {
            let waited = |locks: &[usize]| -> f64 {
                locks.iter().map(|at| profile.locks[*at].wait.total_ns as f64).sum()
            };
            let share = 100.0 * waited(&kept[limits.rows..]) / waited(&kept).max(1.0);
            let (cut, all) = (kept.len() - limits.rows, kept.len());
            left_out.push(format!("{cut} of {all} locks, with {share:.2} % of the time waited"));
            kept.truncate(limits.rows);
        }
        let places = kept.iter().enumerate().map(|(place, at)| (*at, place)).collect();
        let (frames, known) = (Vec::new(), HashMap::new());
        Self { limits: *limits, places, kept, frames, known, left_out }
    }

    /// As much of a list as has room.
    pub fn part<'p, T>(&mut self, what: &str, all: &'p [T]) -> &'p [T] {
        if all.len() > self.limits.rows {
            self.left_out.push(format!("{} of {} {what}", all.len() - self.limits.rows, all.len()));
        }
        &all[..all.len().min(self.limits.rows)]
    }

    pub(super) fn place(&self, lock: usize) -> Option<usize> {
        self.places.get(&lock).copied()
    }

    /// A name, with its middle cut if it is too long.
    pub fn text(&self, text: &str) -> String {
        shortened(text, self.limits.characters)
    }

    /// A sentence, which may have several names in it.
    pub(super) fn sentence(&self, text: &str) -> String {
        shortened(text, self.limits.characters * NAMES_OF_SENTENCE)
    }

    /// The numbers of calls.
    pub fn calls(&mut self, frames: &[Frame]) -> Vec<usize> {
        frames.iter().take(self.limits.frames).map(|frame| self.call(frame)).collect()
    }

    pub(super) fn call(&mut self, frame: &Frame) -> usize {
        let line = frame.file.as_deref().zip(frame.line);
        let place = line.map(|(file, line)| format!(" {file}:{line}")).unwrap_or_default();
        let key = (self.text(&frame.label()), self.text(&format!("{}{place}", frame.module)));
        let next = self.frames.len();
        let number = *self.known.entry(key.clone()).or_insert(next);
        if number == next {
            self.frames.push(key);
        }
        number
    }
}

/// A text, with its middle cut if it is too long.
fn shortened(text: &str, most: usize) -> String {
    let length = text.chars().count();
    if length <= most {
        return text.to_owned();
    }
    let half = most / 2;
    let first: String = text.chars().take(half).collect();
    let last: String = text.chars().skip(length - half).collect();
    format!("{first}..{last}")
}
