//! Running operations again, when a store is opened.
//!
//! No other thread has the heap then. So a transaction works on copies. These are written into the
//! heap if the operation has done the same as before the crash.

use std::panic::{AssertUnwindSafe, catch_unwind};

use zerocopy::IntoBytes;

use super::calling::Known;
use super::operation::{Operations, position};
use super::registry;
use super::replayed::Replayed;
use super::transaction::Transaction;
use super::transaction::sealed::Objects;
use crate::error::{Error, Result};
use crate::heap::{Filling, Heap};
use crate::journal::operation::Operation;
use crate::journal::record::{Entry, RECORD_BYTES, Record, digest, take};
use crate::volume::{Source, Target};

/// Fills a heap from files, and runs operations that are in the journal.
pub struct Replay<'a> {
    heap: &'a Heap,
    operations: Operations,
    /// Why the rest is not read.
    failure: Option<Error>,
}

impl<'a> Replay<'a> {
    /// The program has registered these operations.
    pub fn new(heap: &'a Heap, operations: Operations) -> Self {
        Self { heap, operations, failure: None }
    }

    fn run(&self, known: &Known, (record, call): (&Record<'_>, Operation<'_>), seed: u64) -> Step {
        let Some(at) = position(self.operations, &known.name, known.version) else {
            let Known { name, version, .. } = known.clone();
            return Err(Failure::Open(Error::UnknownOperation { name, version, records: 1 }));
        };
        let differs = |what: &str| {
            let (name, what) = (known.name.clone(), what.to_owned());
            Err(Failure::Open(Error::ReplayDiffers { name, stamp: record.stamp, what }))
        };
        let mut again = Replayed::new(self.heap, call, seed);
        let run = catch_unwind(AssertUnwindSafe(|| {
            let mut tx = Transaction::replayed(&mut again);
            self.operations[at].replay(&mut tx, call.arguments).is_ok()
        }));
        match (run, again.differs()) {
            (Ok(true), None) => {}
            (Ok(_), Some(what)) => return differs(what),
            (Ok(false), None) => return differs("it stops before its end"),
            (Err(_), _) => return differs("it panics"),
        }
        let words = again.record();
        if digest(&words[RECORD_BYTES / 8..]) != call.digest {
            return differs("it writes something else");
        }
        let mut bytes = words.as_bytes();
        let written = take(&mut bytes)?;
        let source = Source::Journal { record, is_sharp: true };
        for entry in written.entries() {
            Filling(self.heap).apply(source, entry?).map_err(Failure::Damage)?;
        }
        Ok(())
    }

    /// Counts further calls of an operation that the program does not know.
    fn count(&mut self, known: &Known) {
        if let Some(Error::UnknownOperation { name, version, records }) = &mut self.failure
            && (&*name, *version) == (&known.name, known.version)
        {
            *records += 1;
        }
    }
}

/// What has come of an attempt.
type Step = Result<(), Failure>;

enum Failure {
    /// The files are undamaged, but this program cannot use them.
    Open(Error),
    Damage(String),
}

impl From<&str> for Failure {
    fn from(what: &str) -> Self {
        Self::Damage(what.to_owned())
    }
}

impl Target for Replay<'_> {
    fn apply(&mut self, source: Source<'_>, entry: Entry<'_>) -> Result<(), String> {
        if self.failure.is_some() { Ok(()) } else { Filling(self.heap).apply(source, entry) }
    }

    fn replay(
        &mut self,
        record: &Record<'_>,
        call: Operation<'_>,
        seed: u64,
    ) -> Result<(), String> {
        let known = registry::all(&Loaded(self.heap));
        let known = known.into_iter().find(|known| known.number == call.operation);
        if self.failure.is_some() {
            known.inspect(|known| self.count(known));
            return Ok(());
        }
        let known = known.ok_or("a call of an operation that the store does not know")?;
        match self.run(&known, (record, call), seed) {
            Ok(()) => Ok(()),
            Err(Failure::Open(error)) => {
                self.failure = Some(error);
                Ok(())
            }
            Err(Failure::Damage(what)) => Err(what),
        }
    }

    fn finish(&mut self) -> Result<()> {
        self.failure.take().map_or(Ok(()), Err)
    }
}

/// A heap that no domain has.
struct Loaded<'a>(&'a Heap);

impl Objects for Loaded<'_> {
    fn object(&self, place: u64, words: usize) -> &[u64] {
        // SAFETY: no domain has the heap, and `Replay` fills it only when no thread reads it.
        unsafe { self.0.read(place, words) }
    }

    fn note(&self, _: u64, _: usize) {}

    fn heap(&self) -> &Heap {
        self.0
    }
}
