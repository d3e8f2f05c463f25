//! A call that blocks delays no other call.

use std::thread;

use crate::offload::Kind;

use crate::rig::{MECHANISMS, Rig, a_while, socketpair};

/// One thread receives, another sends, both on one descriptor.
#[test]
fn full_duplex() {
    for mechanism in MECHANISMS {
        let rig = Rig::new(*mechanism);
        let [near, far] = socketpair(libc::SOCK_STREAM);
        let (route, other) = (rig.steer.open(), rig.steer.open());
        thread::scope(|scope| {
            let received = scope.spawn(move || {
                let mut byte = [0];
                assert_eq!(rig.read(route, near, &mut byte), 1);
                byte[0]
            });
            a_while();
            let mut bytes = [0; 100];
            for _ in 0..100 {
                assert_eq!(rig.write(route, near, b"x"), 1);
                assert_eq!(rig.read(other, far, &mut bytes), 1);
            }
            assert_eq!(rig.write(other, far, b"y"), 1);
            assert_eq!(received.join().unwrap(), b'y');
        });
        assert_eq!(rig.in_place(), 0, "{mechanism:?}");
    }
}

/// The call continues with the file with which it began, as in the kernel.
#[test]
fn closed_while_blocked() {
    for mechanism in MECHANISMS {
        let rig = Rig::new(*mechanism);
        let [near, far] = socketpair(libc::SOCK_STREAM);
        let route = rig.steer.open();
        thread::scope(|scope| {
            let received = scope.spawn(move || {
                let mut byte = [0];
                (rig.read(route, near, &mut byte), byte[0])
            });
            a_while();
            assert!(!rig.steer.owns(near) && !rig.steer.owns(far));
            assert_eq!(rig.close(route, near), 0);
            // Another file gets the number.
            let other = socketpair(libc::SOCK_STREAM);
            a_while();
            assert_eq!(rig.write(rig.steer.open(), far, b"z"), 1);
            assert_eq!(received.join().unwrap(), (1, b'z'), "{mechanism:?}");
            // SAFETY: a descriptor of this test, closed once.
            other.iter().for_each(|fd| unsafe { assert_eq!(libc::close(*fd), 0) });
        });
    }
}

#[test]
fn shut_down_while_blocked() {
    for mechanism in MECHANISMS {
        let rig = Rig::new(*mechanism);
        let [near, _far] = socketpair(libc::SOCK_STREAM);
        let route = rig.steer.open();
        thread::scope(|scope| {
            let received = scope.spawn(move || rig.read(route, near, &mut [0]));
            a_while();
            let both = [near as usize, libc::SHUT_RDWR as usize];
            assert_eq!(rig.call(route, libc::SYS_shutdown, &both, Kind::Quick), 0);
            assert_eq!(received.join().unwrap(), 0, "{mechanism:?}");
        });
    }
}

/// More calls block than the pool has threads for: sockets need no threads.
#[test]
fn many_block_at_once() {
    for mechanism in MECHANISMS {
        let rig = Rig::ready(*mechanism);
        let pairs: Vec<_> = (0..40).map(|_| socketpair(libc::SOCK_STREAM)).collect();
        thread::scope(|scope| {
            let readers: Vec<_> = pairs
                .iter()
                .map(|[near, _]| {
                    let route = rig.steer.open();
                    scope.spawn(move || rig.read(route, *near, &mut [0; 8]))
                })
                .collect();
            a_while();
            for [_, far] in &pairs {
                assert_eq!(rig.write(rig.steer.open(), *far, b"four"), 4);
            }
            for reader in readers {
                assert_eq!(reader.join().unwrap(), 4);
            }
        });
        assert_eq!(rig.in_place(), 0, "{mechanism:?}");
    }
}
