//! Objects of a size that is known at run time: the addresses of their data, sizes, and the
//! promises of `flush`.

use std::ptr::NonNull;

use manycore::mvrlu::{Config, Domain, Handle, object_of};
use manycore::session::{Conflict, RawSession, View};
use manycore_history::run::unless_interpreted;

const OBJECTS: usize = unless_interpreted(100, 3);
const MORE: [usize; 6] = [1000, 1008, 1009, 5000, 16_369, 32_752];

fn domain(segment_bytes: usize) -> Domain {
    Domain::new(Default::default(), Config::default().with_segment_bytes(segment_bytes))
}

fn in_session<R>(handle: &mut Handle, f: impl FnOnce(&mut Handle) -> R) -> R {
    // SAFETY: one at a time, and ended below.
    unsafe { handle.begin(View::Snapshot) };
    let result = f(handle);
    // SAFETY: the session has begun above, and has not ended.
    unsafe { handle.commit().unwrap() };
    result
}

/// # Safety
///
/// `size` bytes may be read there.
unsafe fn bytes<'a>(data: NonNull<u8>, size: usize) -> &'a [u8] {
    // SAFETY: `size` bytes may be read there (contract of this function).
    unsafe { std::slice::from_raw_parts(data.as_ptr(), size) }
}

#[test]
fn every_size_is_copied_whole_and_written_back() {
    let domain = domain(64 << 10);
    let mut handle = domain.register();
    for size in
        (0..unless_interpreted(600, 20)).chain(MORE.into_iter().take(unless_interpreted(6, 3)))
    {
        let object = handle.create_bytes(size).expect("there is room");
        assert!(object.addr().get().is_multiple_of(16), "{size}");
        // SAFETY: this thread's own object of that size, in sessions where it is read and locked.
        unsafe {
            assert!(bytes(object, size).iter().all(|byte| *byte == 0), "{size}");
            in_session(&mut handle, |handle| {
                let copy = handle.try_lock_bytes(object).expect("no other thread has it");
                assert_ne!(copy, object);
                assert!(copy.addr().get().is_multiple_of(16), "{size}");
                assert_eq!(object_of(copy), object);
                assert_eq!(handle.deref_bytes(object), copy);
                assert_eq!(handle.deref_bytes(copy), copy);
                assert_eq!(handle.try_lock_bytes(copy), Ok(copy));
                copy.as_ptr().write_bytes(7, size);
            });
            in_session(&mut handle, |handle| {
                let seen = handle.deref_bytes(object);
                assert!(bytes(seen, size).iter().all(|byte| *byte == 7), "{size}");
            });
            handle.flush();
            assert!(bytes(object, size).iter().all(|byte| *byte == 7), "{size}");
            in_session(&mut handle, |handle| assert_eq!(handle.deref_bytes(object), object));
            in_session(&mut handle, |handle| handle.free_bytes(object))
                .expect("no other thread has it");
        }
    }
    handle.flush();
    assert_eq!(domain.stats().freed, domain.stats().commits / 2);
}

#[test]
fn an_object_has_to_fit_into_a_segment() {
    let (small, large) = (domain(16 << 10), domain(64 << 10));
    let (mut small, mut large) = (small.register(), large.register());
    assert!(small.create_bytes(8_176).is_some() && small.create_bytes(8_177).is_none());
    assert!(large.create_bytes(32_752).is_some() && large.create_bytes(32_753).is_none());
    assert!(large.create_bytes(usize::MAX).is_none());
    // SAFETY: this thread's own object, in a session.
    unsafe {
        let object = small.create_bytes(8_176).expect("there is room");
        in_session(&mut small, |small| small.try_lock_bytes(object).expect("there is room"));
    }
}

#[test]
fn conflicts_are_those_of_sessions() {
    let domain = domain(16 << 10);
    let (mut one, mut other) = (domain.register(), domain.register());
    let object = one.create_bytes(24).expect("there is room");
    // SAFETY: an object of this domain, in sessions of either handle.
    unsafe {
        one.begin(View::Snapshot);
        other.begin(View::Snapshot);
        one.try_lock_bytes(object).expect("no other thread has it").write(1);
        assert_eq!(other.try_lock_bytes(object), Err(Conflict::Locked));
        assert_eq!(other.try_lock_const_bytes(object), Err(Conflict::Locked));
        assert_eq!(other.deref_bytes(object), object);
        one.commit().unwrap();
        assert_eq!(other.deref_bytes(object), object, "a snapshot");
        assert_eq!(other.free_bytes(object), Err(Conflict::Changed));
        assert_eq!(other.commit(), Err(Conflict::Locked), "the first one that it has met");
        in_session(&mut other, |other| {
            let seen = other.deref_bytes(object);
            assert_eq!(seen.read(), 1);
            assert_eq!(other.try_lock_const_bytes(seen), Ok(()));
            assert_eq!(other.deref_bytes(object), seen, "locked only");
            other.free_bytes(object).expect("locked");
            assert_eq!(other.try_lock_bytes(object), Err(Conflict::Freed));
        });
    }
}

#[test]
fn the_last_to_flush_brings_all_objects_up_to_date() {
    let domain = &domain(16 << 10);
    let objects: Vec<_> = {
        let mut handle = domain.register();
        (0..OBJECTS)
            .map(|_| handle.create_bytes(8).expect("there is room").as_ptr().expose_provenance())
            .collect()
    };
    let objects = &objects;
    let data = |object| std::ptr::with_exposed_provenance_mut::<u64>(object);
    std::thread::scope(|s| {
        for _ in 0..4 {
            s.spawn(move || {
                let mut handle = domain.register();
                for object in objects.iter().cycle().take(10 * OBJECTS) {
                    let object = NonNull::new(data(*object).cast()).expect("an object");
                    loop {
                        // SAFETY: an object of this domain, in a session.
                        unsafe {
                            handle.begin(View::Snapshot);
                            if let Ok(copy) = handle.try_lock_bytes(object) {
                                *copy.cast::<u64>().as_mut() += 1;
                                handle.commit().unwrap();
                                break;
                            }
                            handle.abort();
                        }
                    }
                }
            });
        }
    });
    domain.register().flush();
    for object in objects {
        // SAFETY: the other threads have ended, and no session is open.
        assert_eq!(unsafe { *data(*object) }, 40);
    }
}

#[test]
#[should_panic(expected = "a flush in a session")]
fn a_flush_in_a_session_is_refused() {
    let domain = &domain(16 << 10);
    let mut handle = domain.register();
    // SAFETY: the handle was in no session; it aborts this one when it is dropped.
    unsafe { handle.begin(View::Snapshot) };
    handle.flush();
}
