//! A journal's requirements on MV-RLU: all commits up to a time, and sessions that read at the last
//! such time.

use std::alloc::{Layout, alloc};
use std::ptr::NonNull;
use std::sync::Arc;

use loom::sync::atomic::{AtomicU64, Ordering};
use loom::thread;
use manycore::clock::{Clock, Counter};
use manycore::mvrlu::{Domain, Handle, Memory};
use manycore::session::{Link, RawSession, View};

use crate::check;
use crate::sessions::{few_segments, objects};

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

fn domain() -> Arc<Domain<Counter>> {
    Arc::new(Domain::with_memory(Counter::default(), few_segments(256), Box::new(Leaked), 0))
}

/// Adds one, and returns the stamp.
fn add(handle: &mut Handle<'_, Counter>, object: Link<u32>) -> u64 {
    // SAFETY: a session, from begin to end; the object is not freed.
    unsafe {
        handle.begin(View::Latest);
        *handle.try_lock(object).unwrap() += 1;
        let write = handle.writes().next().expect("one object is locked");
        let (after, before) = handle.written::<u32>(write);
        assert_eq!((*after, write.link()), (*before + 1, object));
        handle.commit_at().unwrap().expect("something was written")
    }
}

/// The value that a session at the floor reads, and the time of its read.
fn read_at_floor(handle: &mut Handle<'_, Counter>, object: Link<u32>) -> (u64, [u32; 2]) {
    // SAFETY: a session, from begin to end; the object is not freed.
    unsafe {
        let time = handle.begin_at_floor(0);
        let seen = [*handle.deref(object), *handle.deref(object)];
        handle.commit().unwrap();
        (time, seen)
    }
}

/// A version that is later than the floor is not written back, also if no session needs the one
/// before.
#[test]
fn what_is_read_at_the_floor_is_kept() {
    check(2, || {
        let domain = domain();
        let object = objects(&*domain)[0];
        let mut handle = domain.register();
        let first = add(&mut handle, object);
        domain.close(first);
        domain.raise_floor(first);
        let shared = domain.clone();
        let other = thread::spawn(move || {
            let mut handle = shared.register();
            add(&mut handle, object);
            handle.flush();
        });
        let (time, seen) = read_at_floor(&mut handle, object);
        assert_eq!((time, seen), (first, [1; 2]), "what is later than the floor");
        other.join().unwrap();
        assert_eq!(read_at_floor(&mut handle, object), (first, [1; 2]), "later than the floor");
    });
}

/// While the floor is raised, a session reads at the old floor or at the new one.
#[test]
fn the_floor_is_raised_beside_a_reader() {
    check(2, || {
        let domain = domain();
        let object = objects(&*domain)[0];
        let mut handle = domain.register();
        let first = add(&mut handle, object);
        domain.close(first);
        domain.raise_floor(first);
        let shared = domain.clone();
        let other = thread::spawn(move || {
            let mut handle = shared.register();
            let stamp = add(&mut handle, object);
            let time = shared.clock().present();
            shared.close(time);
            shared.raise_floor(time);
            handle.flush();
            stamp
        });
        let (time, seen) = read_at_floor(&mut handle, object);
        let second = other.join().unwrap();
        let right = if time >= second { 2 } else { 1 };
        assert_eq!(seen, [right; 2], "not what was there at the floor");
    });
}

/// A thread that closes a time has, of the transactions of another thread, those with a stamp up to
/// that time and no other.
#[test]
fn a_time_that_is_closed_has_all_its_commits() {
    check(3, || {
        let domain = domain();
        let object = objects(&*domain)[0];
        let note = Arc::new(AtomicU64::new(0));
        let mut handle = domain.register();
        let (member, shared) = (handle.member_id(), note.clone());
        let closing = domain.clone();
        let other = thread::spawn(move || {
            let time = closing.clock().present();
            closing.close(time);
            let collected = match note.load(Ordering::Acquire) {
                0 => false,
                1 => {
                    // SAFETY: the member is one of this domain's, which keeps its records.
                    let fate = unsafe { closing.fate(member, time) };
                    // It may have its stamp by now.
                    match note.load(Ordering::Acquire) {
                        1 => fate.is_some(),
                        stamp => stamp <= time,
                    }
                }
                stamp => stamp <= time,
            };
            (time, collected)
        });
        // SAFETY: a session, from begin to end; the object is not freed.
        let stamp = unsafe {
            handle.begin(View::Latest);
            *handle.try_lock(object).unwrap() += 1;
            shared.store(1, Ordering::Release);
            let stamp = handle.commit_at().unwrap().expect("something was written");
            shared.store(stamp, Ordering::Release);
            stamp
        };
        let (time, collected) = other.join().unwrap();
        assert_eq!(collected, stamp <= time, "a commit of {stamp} and a horizon of {time}");
    });
}
