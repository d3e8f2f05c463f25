//! The checks that every index, of the library or of others, must pass before it is measured.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use super::any_index::{Abilities, AnyIndex, Contender, IndexHandle};
use super::data::{KeyKind, Scan, Seen, ValueSize};
use super::operations::{Actor, Inserted, Operations, Tally};
use super::task::{Mix, Records, Task, key_of};
use super::verify::{Verdict, verify};
use super::{own, peers};

const INITIAL: u64 = 500;

fn tasks(contender: &Contender, mix: Mix) -> Vec<Task> {
    let mut tasks = Vec::new();
    for key in [KeyKind::U64, KeyKind::String] {
        for value in [ValueSize::Word, ValueSize::Field] {
            tasks.push(Task {
                structure: contender.structure.to_owned(),
                sync: contender.name.to_owned(),
                mix,
                threads: 4,
                records: Records { key, value, ..Records::of(INITIAL) },
            });
        }
    }
    tasks.retain(|task| contender.refusal(task).is_none());
    tasks
}

fn all() -> impl Iterator<Item = &'static Contender> {
    own::native::CONTENDERS.iter().chain(peers::CONTENDERS)
}

/// Checks that with one thread, its answers are those of the standard library's map.
fn alone(contender: &Contender, task: &Task) {
    let (index, mut model) = ((contender.make)(task), BTreeMap::new());
    let mut handle = index.handle();
    let mut random = fastrand::Rng::with_seed(7);
    for count in 0..5_000 {
        let key = key_of(random.u64(..INITIAL));
        match random.u8(..4) {
            0 => {
                handle.put(key, count);
                model.insert(key, count);
            }
            1 => {
                let known = model.get_mut(&key).map(|count| *count += 1);
                assert_eq!(handle.modify(key), known.is_some(), "{task:?}: {key}");
            }
            2 if contender.abilities.scans => {
                let Scan { entries, wrong, .. } = handle.scan(key, 20);
                let known = model.range(key..).take(20).count();
                assert_eq!((entries as usize, wrong), (known, 0), "{task:?}: from {key}");
            }
            _ => {
                let known = model.get(&key).map_or(Seen::Nothing, |count| Seen::Count(*count));
                assert_eq!(handle.get(key), known, "{task:?}: {key}");
            }
        }
    }
    drop(handle);
    index.check();
}

/// What threads do together is there in the end.
fn together(contender: &Contender, task: &Task) {
    let index: Box<dyn AnyIndex> = (contender.make)(task);
    let mut handle = index.handle();
    task.records.first().into_iter().for_each(|number| handle.put(key_of(number), 0));
    drop(handle);
    let inserted = Arc::new(Inserted::new(INITIAL, INITIAL, task.threads));
    let ranks = task.records.ranks();
    let work = |thread| {
        let mut operations = Operations::new(task, thread, &ranks, &inserted);
        let mut actor = Actor::new(index.handle(), thread, &inserted);
        (0..3_000).for_each(|_| actor.act(operations.draw()));
        actor.tally
    };
    let tallies: Vec<Tally> = std::thread::scope(|scope| {
        let start = |thread| scope.spawn(move || work(thread));
        let threads: Vec<_> = (0..task.threads).map(start).collect();
        threads.into_iter().map(|thread| thread.join().expect("no index panics")).collect()
    });
    let tally = Tally::sum(tallies);
    let verdict = verify(&*index, contender.abilities, task, &inserted, &tally, || {});
    let verdict = verdict.unwrap_or_else(|wrong| panic!("{task:?}: {wrong}"));
    let may_lose = task.mix.modifies() && !contender.abilities.modifies;
    assert_eq!(verdict.lost.is_some(), may_lose);
    assert_eq!(inserted.count() > 0, matches!(task.mix, Mix::YcsbD | Mix::YcsbE), "{task:?}");
}

#[test]
fn every_index_answers_as_a_map_does() {
    for contender in all() {
        let tasks = tasks(contender, Mix::YcsbA);
        assert!(!tasks.is_empty(), "{contender:?}");
        tasks.iter().for_each(|task| alone(contender, task));
    }
}

#[test]
fn every_index_has_what_threads_put_in() {
    for contender in all() {
        for mix in [Mix::YcsbA, Mix::YcsbD, Mix::YcsbE, Mix::YcsbF] {
            tasks(contender, mix).iter().for_each(|task| together(contender, task));
        }
    }
}

/// What an index does wrong.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    None,
    /// The index loses a record.
    Record,
    /// The index mixes up two values.
    Value,
    /// The index reports an update that it does not do.
    Update,
}

/// An index that does it, with one record.
struct Faulty(Mutex<BTreeMap<u64, u32>>, Fault);

/// The key of the record that is treated wrongly.
fn victim() -> u64 {
    key_of(3)
}

impl AnyIndex for Faulty {
    fn handle(&self) -> Box<dyn IndexHandle + '_> {
        Box::new(self)
    }
}

impl IndexHandle for &Faulty {
    fn get(&mut self, key: u64) -> Seen {
        let seen = self.0.lock().unwrap().get(&key).map_or(Seen::Nothing, |c| Seen::Count(*c));
        if self.1 == Fault::Value && key == victim() { Seen::Wrong } else { seen }
    }

    fn put(&mut self, key: u64, count: u32) {
        if self.1 != Fault::Record || key != victim() {
            self.0.lock().unwrap().insert(key, count);
        }
    }

    fn modify(&mut self, key: u64) -> bool {
        if self.1 != Fault::Update || key != victim() {
            *self.0.lock().unwrap().get_mut(&key).unwrap() += 1;
        }
        true
    }
}

#[test]
fn what_an_index_does_wrong_is_found() {
    let found = |fault, abilities| {
        let task = Task {
            structure: "hash".to_owned(),
            sync: "faulty".to_owned(),
            mix: Mix::YcsbF,
            threads: 1,
            records: Records::of(10),
        };
        let index = Faulty(Mutex::default(), fault);
        let mut handle = index.handle();
        (0..10).for_each(|number| handle.put(key_of(number), 0));
        let modified = (0..20).filter(|n| handle.modify(key_of(n % 10))).count() as u64;
        let tally = Tally { modified, ..Tally::default() };
        verify(&index, abilities, &task, &Inserted::new(10, 10, 1), &tally, || {})
    };
    let of = |fault| found(fault, Abilities::UNORDERED);
    assert_eq!(of(Fault::None), Ok(Verdict { lost: None }));
    assert_eq!(of(Fault::Value), Err("record 3 has a value of another key".to_owned()));
    assert!(of(Fault::Update).unwrap_err().contains("of 20 updates"));
    // Which one that does it in two steps may lose.
    let in_two_steps = found(Fault::Update, Abilities::UNORDERED.in_two_steps());
    assert_eq!(in_two_steps, Ok(Verdict { lost: Some(2) }));
    let without = |mix, missed, wrong| {
        let task = Task { mix, ..tasks(&own::native::CONTENDERS[0], mix)[0].clone() };
        let (index, tally) =
            (Faulty(Mutex::default(), Fault::Record), Tally { missed, wrong, ..Tally::default() });
        let mut handle = index.handle();
        (0..INITIAL).for_each(|number| handle.put(key_of(number), 0));
        verify(&index, Abilities::ALL, &task, &Inserted::new(INITIAL, INITIAL, 1), &tally, || {})
    };
    assert_eq!(without(Mix::YcsbA, 0, 0), Err("record 3 is not there at the end".to_owned()));
    assert!(without(Mix::YcsbA, 1, 0).unwrap_err().contains("found nothing"));
    assert!(without(Mix::YcsbA, 0, 1).unwrap_err().contains("none of their keys"));
}
