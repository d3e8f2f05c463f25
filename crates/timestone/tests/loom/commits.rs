//! Threads commit, a leader collects and flushes, and others read the state on the disk.

use std::alloc::{Layout, alloc};
use std::ptr::NonNull;
use std::sync::Arc;

use loom::sync::atomic::{AtomicU64, Ordering};
use loom::thread;
use manycore::clock::{Clock, Counter};
use manycore::mvrlu::{Config, Domain, Handle, Memory};
use manycore::session::{Link, RawSession, View};
use timestone::protocol::{Horizons, Rings, commit};
use timestone::ring::{Writer, ring};

/// Memory that is never given back.
struct Leaked;

// SAFETY: each place is of an allocation of its own, as large and as aligned as it has to be.
unsafe impl Memory for Leaked {
    fn places(&self, size: usize, _most: usize, give: &mut dyn FnMut(NonNull<u8>)) {
        let layout = Layout::from_size_align(size, 64).unwrap();
        // SAFETY: objects have bytes, so that the layout is not of size 0.
        give(NonNull::new(unsafe { alloc(layout) }).unwrap());
    }
}

type Shared = Arc<Domain<Counter>>;

fn domain() -> Shared {
    let config = Config::default()
        .with_segment_bytes(256)
        .with_segments(2)
        .with_segments_max(4)
        .with_low_percent(0)
        .with_hops_max(u32::MAX);
    Arc::new(Domain::with_memory(Counter::default(), config, Box::new(Leaked), 0))
}

fn check(preemptions: usize, model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(model);
}

/// A new object, which is there before all else.
fn object(domain: &Domain<Counter>) -> Link<u32> {
    let mut handle = domain.register();
    // SAFETY: the session ends in this block, and what it has found stays until then.
    unsafe {
        handle.begin(View::Latest);
        let object = handle.alloc(0);
        handle.commit().unwrap();
        object
    }
}

/// Adds one to an object; the record has its new value. The stamp, if no other thread was faster.
fn add(handle: &mut Handle<'_, Counter>, writer: &mut Writer, object: Link<u32>) -> Option<u64> {
    // SAFETY: a session, from begin to end; the object is not freed.
    unsafe {
        handle.begin_at_floor(handle.domain().clock().present());
        let Ok(value) = handle.try_lock(object) else {
            handle.abort();
            return None;
        };
        *value += 1;
        let record = [u64::from(*value)];
        Some(commit(handle, writer, &record, |_| ()).expect("no conflict"))
    }
}

/// What a session at the floor reads, and when that is.
fn read_at_floor(handle: &mut Handle<'_, Counter>, object: Link<u32>) -> (u64, u32) {
    // SAFETY: a session, from begin to end; the object is not freed.
    unsafe {
        let time = handle.begin_at_floor(0);
        let seen = *handle.deref(object);
        handle.commit().unwrap();
        (time, seen)
    }
}

/// A frame has exactly the records between the previous horizon and its own. If one thread commits
/// after it has seen another's commit, its commit is in no earlier frame than the other's.
#[test]
fn frames_have_all_commits_up_to_their_horizons() {
    check(2, || {
        let domain = domain();
        let object = object(&domain);
        let mut rings = Rings::new(0);
        let mut handle = domain.register();
        let (mut writer, reader) = ring(16);
        rings.add(handle.member_id(), reader);
        // Its decision was made once: the model checker does not order the first one, which is not
        // made by an exchange, with a simultaneous read by another thread.
        let first = add(&mut handle, &mut writer, object).expect("no other");
        let leading = domain.clone();
        let leader = thread::spawn(move || {
            let mut frames = Vec::new();
            for _ in 0..2 {
                let before = rings.horizon();
                let mut frame = Vec::new();
                // Time goes on, also if no thread commits.
                let now = leading.clock().stamp();
                // SAFETY: the thread has registered with this domain.
                unsafe {
                    rings.collect(&leading, now, |stamp, words| frame.push((stamp, words.count())));
                }
                let is_inside = |(stamp, words): &(u64, usize)| {
                    *words == 1 && (before + 1..=rings.horizon()).contains(stamp)
                };
                assert!(frame.iter().all(is_inside), "{frame:?} in a frame after {before}");
                frames.push((rings.horizon(), frame));
            }
            frames
        });
        let [second, third] =
            [(); 2].map(|()| add(&mut handle, &mut writer, object).expect("no other"));
        let frames = leader.join().unwrap();
        let last = frames.last().unwrap().0;
        let collected: Vec<u64> = frames.iter().flat_map(|(_, f)| f).map(|(s, _)| *s).collect();
        let due: Vec<u64> =
            [first, second, third].into_iter().filter(|stamp| *stamp <= last).collect();
        assert_eq!(collected, due, "commits up to the horizon {last}");
    });
}

/// The state that a session at the floor sees is on the disk, and so is every commit with a stamp
/// up to D.
#[test]
fn what_is_read_is_on_the_disk() {
    check(2, || {
        let domain = domain();
        let object = object(&domain);
        let (disk, horizons) = (Arc::new(AtomicU64::new(0)), Arc::new(Horizons::new(0)));
        let mut rings = Rings::new(0);
        let (mut writer, reader) = ring(16);
        let (shared, done) = (domain.clone(), horizons.clone());
        let flushed = disk.clone();
        let leader = thread::spawn(move || {
            let mut handle = shared.register();
            rings.add(handle.member_id(), reader);
            let stamp = add(&mut handle, &mut writer, object).expect("no other thread writes");
            // SAFETY: the thread has registered with this domain.
            unsafe { rings.collect(&shared, stamp, |_, _| ()) };
            done.note_written(rings.horizon());
            let flush = || {
                flushed.store(rings.horizon(), Ordering::Relaxed);
                Ok::<(), ()>(())
            };
            done.flush(&shared, flush).unwrap();
            stamp
        });
        // Relaxed: ordered by D or by the floor, which is the subject of this model.
        let durable = horizons.durable();
        let there = disk.load(Ordering::Relaxed);
        assert!(there >= durable, "{durable} is durable, and the disk has {there}");
        let mut handle = domain.register();
        let (time, seen) = read_at_floor(&mut handle, object);
        let there = disk.load(Ordering::Relaxed);
        assert!(there >= time, "a session reads at {time}, and the disk has {there}");
        let stamp = leader.join().unwrap();
        assert_eq!(seen, u32::from(stamp <= time), "a commit of {stamp}, seen at {time}");
    });
}

/// A flush that fails changes neither D nor the view of sessions at the floor.
#[test]
fn a_flush_that_fails_shows_nothing() {
    check(2, || {
        let (domain, horizons) = (domain(), Horizons::new(0));
        let object = object(&domain);
        let mut handle = domain.register();
        let (mut writer, reader) = ring(16);
        let mut rings = Rings::new(0);
        rings.add(handle.member_id(), reader);
        let stamp = add(&mut handle, &mut writer, object).expect("no other thread writes");
        // SAFETY: the thread has registered with this domain.
        unsafe { rings.collect(&domain, stamp, |_, _| ()) };
        horizons.note_written(rings.horizon());
        assert_eq!(horizons.flush(&domain, || Err("a disk")), Err("a disk"));
        assert_eq!((horizons.durable(), domain.floor()), (0, 0));
        let mut other = domain.register();
        assert_eq!(read_at_floor(&mut other, object), (0, 0));
    });
}
