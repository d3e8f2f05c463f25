//! Two copies of all words; at any time one of them is complete.
//!
//! A transaction changes the words of the first copy, and notes which ones. When these are safe,
//! the state says that the first copy counts; then the noted words are copied to the second. After
//! a crash before that moment the second copy is complete, and after a later crash the first.

use std::sync::{Mutex, MutexGuard, PoisonError};

use manycore_simulated::sync::atomic::{AtomicU64, Ordering};

use crate::persistence::{Line, Persistence, WORDS};

/// The copies are the same.
const IDLE: u64 = 0;
/// The first copy is being changed.
const MUTATING: u64 = 1;
/// The second copy is being changed to what the first has.
const COPYING: u64 = 2;

/// Words in persistent memory.
pub struct Copies<P> {
    /// The state, the first copy, the second.
    lines: Box<[Line]>,
    /// Lines of a copy.
    length: usize,
    noted: Mutex<Noted>,
    /// What makes lines safe.
    pub persistence: P,
}

/// Which words a transaction has changed. It is in no persistent memory.
#[derive(Default)]
struct Noted {
    words: Vec<usize>,
    lines: Vec<usize>,
    /// For each word and each line, whether it is noted.
    has_word: Vec<bool>,
    has_line: Vec<bool>,
}

impl Noted {
    fn note(&mut self, word: usize) {
        let line = word / WORDS;
        if !std::mem::replace(&mut self.has_word[word], true) {
            self.words.push(word);
        }
        if !std::mem::replace(&mut self.has_line[line], true) {
            self.lines.push(line);
        }
    }

    fn clear(&mut self) {
        let Self { words, lines, has_word, has_line } = self;
        words.drain(..).for_each(|word| has_word[word] = false);
        lines.drain(..).for_each(|line| has_line[line] = false);
    }
}

impl<P: Persistence> Copies<P> {
    /// At least this many words, all 0.
    pub fn new(words: usize, persistence: P) -> Self {
        let length = words.div_ceil(WORDS);
        Self::of_lines(Line::zeros(1 + 2 * length), persistence)
    }

    /// What a crash has left, in order: see [`lines`](Self::lines).
    pub fn recover(lines: Box<[Line]>, persistence: P) -> Self {
        let copies = Self::of_lines(lines, persistence);
        // Relaxed: no other thread has it yet.
        let (from, to) = match copies.state().load(Ordering::Relaxed) {
            MUTATING => (1 + copies.length, 1),
            COPYING => (1, 1 + copies.length),
            _ => return copies,
        };
        for line in 0..copies.length {
            let (from, to) = (&copies.lines[from + line], &copies.lines[to + line]);
            for (word, value) in from.words().into_iter().enumerate() {
                // Relaxed: no other thread has them yet.
                to.0[word].store(value, Ordering::Relaxed);
            }
            copies.persistence.write_back(to);
        }
        copies.persistence.wait();
        copies.set_state(IDLE);
        copies
    }

    fn of_lines(lines: Box<[Line]>, persistence: P) -> Self {
        let length = (lines.len() - 1) / 2;
        let noted = Noted {
            has_word: vec![false; length * WORDS],
            has_line: vec![false; length],
            ..Noted::default()
        };
        Self { lines, length, noted: Mutex::new(noted), persistence }
    }

    /// All that is in persistent memory.
    pub fn lines(&self) -> &[Line] {
        &self.lines
    }

    fn state(&self) -> &AtomicU64 {
        &self.lines[0].0[0]
    }

    fn set_state(&self, state: u64) {
        // Relaxed: only the owner of the writers' lock reads it, or recovery.
        self.state().store(state, Ordering::Relaxed);
        self.persistence.write_back(&self.lines[0]);
        self.persistence.wait();
    }

    /// A word of the first copy. Relaxed: readers and the writer exclude each other by a lock,
    /// which orders the accesses.
    #[inline]
    pub fn load(&self, word: usize) -> u64 {
        self.lines[1 + word / WORDS].0[word % WORDS].load(Ordering::Relaxed)
    }

    /// Begins a transaction. The caller has a lock that excludes other writers.
    pub fn begin(&self) -> Changes<'_, P> {
        self.set_state(MUTATING);
        Changes { copies: self, noted: self.noted.lock().unwrap_or_else(PoisonError::into_inner) }
    }
}

/// A transaction, which has changed a few words of the first copy.
pub struct Changes<'a, P> {
    copies: &'a Copies<P>,
    noted: MutexGuard<'a, Noted>,
}

impl<P: Persistence> Changes<'_, P> {
    /// As the transaction has changed it.
    #[inline]
    pub fn load(&self, word: usize) -> u64 {
        self.copies.load(word)
    }

    /// Changes a word.
    #[inline]
    pub fn store(&mut self, word: usize, value: u64) {
        // Relaxed: see `Copies::load`.
        self.copies.lines[1 + word / WORDS].0[word % WORDS].store(value, Ordering::Relaxed);
        self.noted.note(word);
    }

    /// Commits: the changes are safe when `committed` is called, and are then copied. Returns the
    /// number of lines written back.
    pub fn commit(mut self, committed: impl FnOnce()) -> u64 {
        let Copies { lines, length, persistence, .. } = self.copies;
        self.noted.lines.iter().for_each(|line| persistence.write_back(&lines[1 + line]));
        persistence.wait();
        self.copies.set_state(COPYING);
        committed();
        for word in &self.noted.words {
            let (line, place) = (1 + word / WORDS, word % WORDS);
            // Relaxed: only the owner of the writers' lock reads the second copy.
            let value = lines[line].0[place].load(Ordering::Relaxed);
            lines[line + length].0[place].store(value, Ordering::Relaxed);
        }
        self.noted.lines.iter().for_each(|line| persistence.write_back(&lines[1 + length + line]));
        persistence.wait();
        // Not written back: after a crash with the earlier state, recovery copies words that are
        // already equal.
        self.copies.state().store(IDLE, Ordering::Relaxed);
        // And twice the state.
        let count = 2 * self.noted.lines.len() as u64 + 2;
        self.noted.clear();
        count
    }
}
