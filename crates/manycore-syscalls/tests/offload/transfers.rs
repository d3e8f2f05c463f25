//! Bytes arrive as they were sent, with more threads than cores.

use std::thread;

use crate::offload::{Kind, Mechanism};

use crate::rig::{MECHANISMS, Rig, socketpair};

/// The bytes of a stream, from an offset on.
fn fill(buffer: &mut [u8], offset: usize) {
    for (at, byte) in buffer.iter_mut().enumerate() {
        *byte = ((offset + at).wrapping_mul(0x9E37_79B9) >> 13) as u8;
    }
}

fn read_exactly(rig: &Rig, route: crate::offload::Route, fd: i32, buffer: &mut [u8]) {
    let mut have = 0;
    while have < buffer.len() {
        let got = rig.read(route, fd, &mut buffer[have..]);
        assert!(got > 0, "read: {got}");
        have += got as usize;
    }
}

/// Messages of many sizes there and back.
fn ping_pong(rig: &Rig, [near, far]: [i32; 2], rounds: usize) {
    let routes = [rig.steer.open(), rig.steer.open()];
    let size = |round: usize| {
        1 + round.wrapping_mul(7919) % if round.is_multiple_of(50) { 300_000 } else { 300 }
    };
    thread::scope(|scope| {
        for (end, route) in [near, far].into_iter().zip(routes) {
            scope.spawn(move || {
                let mut offset = 0;
                for round in 0..rounds {
                    let mut sent = vec![0; size(round)];
                    fill(&mut sent, offset);
                    offset += sent.len();
                    if end == near {
                        assert_eq!(rig.write(route, end, &sent), sent.len() as isize, "all of it");
                    }
                    let mut received = vec![0; sent.len()];
                    read_exactly(rig, route, end, &mut received);
                    assert!(sent == received, "round {round}");
                    if end == far {
                        assert_eq!(rig.write(route, end, &received), sent.len() as isize);
                    }
                }
            });
        }
    });
    routes.into_iter().zip([near, far]).for_each(|(route, fd)| {
        assert_eq!(rig.close(route, fd), 0);
        rig.steer.close(route);
    });
}

#[test]
fn socket_pairs() {
    for mechanism in MECHANISMS {
        let rig = Rig::ready(*mechanism);
        thread::scope(|scope| {
            for _ in 0..6 {
                scope.spawn(|| ping_pong(rig, socketpair(libc::SOCK_STREAM), 300));
            }
        });
        assert_eq!(rig.in_place(), 0, "{mechanism:?}");
        assert!(rig.moved() >= 6 * 4 * 300);
    }
}

/// A pair of TCP sockets over loopback whose calls are all moved.
fn tcp_pair(rig: &'static Rig) -> [i32; 2] {
    let route = rig.steer.open();
    let quick = |number, args: &[usize]| {
        let answer = rig.call(route, number, args, Kind::Quick);
        assert!(answer >= 0, "{number}: {answer}");
        answer as usize
    };
    let stream = [libc::AF_INET as usize, libc::SOCK_STREAM as usize, 0];
    let listener = quick(libc::SYS_socket, &stream);
    quick(libc::SYS_listen, &[listener, 1]);
    let (mut address, mut size) = ([0u8; 16], 16u32);
    let name = [listener, address.as_mut_ptr() as usize, &raw mut size as usize];
    quick(libc::SYS_getsockname, &name);
    address[4..8].copy_from_slice(&[127, 0, 0, 1]);
    let near = quick(libc::SYS_socket, &stream);
    let accepted = thread::spawn(move || {
        rig.call(route, libc::SYS_accept4, &[listener, 0, 0, 0], Kind::Waits)
    });
    crate::rig::a_while();
    let connect = [near, address.as_ptr() as usize, 16];
    assert_eq!(rig.call(rig.steer.open(), libc::SYS_connect, &connect, Kind::Waits), 0);
    let far = accepted.join().unwrap();
    assert!(far > 0, "{far}");
    quick(libc::SYS_close, &[listener]);
    [near as i32, far as i32]
}

#[test]
fn tcp() {
    for mechanism in MECHANISMS {
        let rig = Rig::ready(*mechanism);
        // One after the other: each takes two threads for calls that may block, and the pool has
        // four.
        let pairs = [(); 3].map(|()| tcp_pair(rig));
        thread::scope(|scope| {
            for pair in pairs {
                scope.spawn(move || ping_pong(rig, pair, 200));
            }
        });
        assert_eq!(rig.in_place(), 0, "{mechanism:?}");
    }
}

/// A blocking send returns when all bytes were taken, however small the buffers are, as one piece
/// and in many.
#[test]
fn sends_that_are_longer_than_the_buffers() {
    for mechanism in MECHANISMS {
        let rig = Rig::new(*mechanism);
        let [near, far] = socketpair(libc::SOCK_STREAM);
        let mut bytes = vec![0; 3 << 20];
        fill(&mut bytes, 0);
        let routes = [rig.steer.open(), rig.steer.open()];
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut received = vec![0; bytes.len()];
                for _ in 0..3 {
                    read_exactly(rig, routes[1], far, &mut received);
                    assert!(received == bytes);
                }
            });
            assert_eq!(rig.write(routes[0], near, &bytes), bytes.len() as isize);
            let pieces: Vec<_> = bytes
                .chunks(5_000)
                .map(|piece| libc::iovec {
                    iov_base: piece.as_ptr() as *mut _,
                    iov_len: piece.len(),
                })
                .collect();
            let args = [near as usize, pieces.as_ptr() as usize, pieces.len()];
            assert_eq!(
                rig.call(routes[0], libc::SYS_writev, &args, Kind::Waits),
                bytes.len() as isize
            );
            // SAFETY: zero is a value of the structure.
            let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
            (message.msg_iov, message.msg_iovlen) = (pieces.as_ptr().cast_mut(), pieces.len());
            let args = [near as usize, &raw const message as usize, 0];
            assert_eq!(
                rig.call(routes[0], libc::SYS_sendmsg, &args, Kind::Waits),
                bytes.len() as isize
            );
        });
    }
}

/// Several callers receive from one descriptor: each message arrives once.
#[test]
fn many_receive_from_one() {
    const MESSAGES: u32 = 2_000;
    for mechanism in MECHANISMS {
        let rig = Rig::ready(*mechanism);
        let [near, far] = socketpair(libc::SOCK_DGRAM);
        let (route, sender) = (rig.steer.open(), rig.steer.open());
        let mut seen: Vec<u32> = thread::scope(|scope| {
            let receivers: Vec<_> = (0..5)
                .map(|_| {
                    scope.spawn(move || {
                        let mut seen = Vec::new();
                        loop {
                            let mut message = [0; 4];
                            assert_eq!(rig.read(route, near, &mut message), 4);
                            match u32::from_ne_bytes(message) {
                                u32::MAX => return seen,
                                number => seen.push(number),
                            }
                        }
                    })
                })
                .collect();
            for number in (0..MESSAGES).chain([u32::MAX; 5]) {
                assert_eq!(rig.write(sender, far, &number.to_ne_bytes()), 4);
            }
            receivers.into_iter().flat_map(|r| r.join().unwrap()).collect()
        });
        seen.sort_unstable();
        assert!(seen.into_iter().eq(0..MESSAGES), "{mechanism:?}");
        if *mechanism != Mechanism::Thread {
            assert_eq!(rig.in_place(), 0);
        }
    }
}
