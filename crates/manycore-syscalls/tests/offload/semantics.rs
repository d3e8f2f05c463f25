//! Answers are those of the kernel.

use std::thread;
use std::time::{Duration, Instant};

use crate::offload::{Kind, Mechanism};

use crate::rig::{MECHANISMS, Rig, a_while, socketpair};

fn error(errno: i32) -> isize {
    -(errno as isize)
}

#[test]
fn errors() {
    for mechanism in MECHANISMS {
        let rig = Rig::new(*mechanism);
        let [near, _far] = socketpair(libc::SOCK_STREAM | libc::SOCK_NONBLOCK);
        let route = rig.steer.open();
        assert_eq!(rig.read(route, near, &mut [0]), error(libc::EAGAIN));
        assert_eq!(rig.read(route, 1 << 20, &mut [0]), error(libc::EBADF));
        let nowhere = [near as usize, 8, 1];
        assert_eq!(rig.call(route, libc::SYS_write, &nowhere, Kind::Waits), error(libc::EFAULT));
        assert_eq!(rig.call(route, libc::SYS_writev, &nowhere, Kind::Waits), error(libc::EFAULT));
        assert_eq!(rig.call(route, libc::SYS_sendmsg, &nowhere, Kind::Waits), error(libc::EFAULT));
        assert_eq!(rig.call(route, 9999, &[], Kind::Quick), error(libc::ENOSYS));
        assert_eq!(rig.in_place(), 0, "{mechanism:?}");
    }
}

/// A read without data returns nothing, and does not mean the end of a message.
#[test]
fn empty_reads() {
    for mechanism in MECHANISMS {
        let rig = Rig::new(*mechanism);
        let [near, far] = socketpair(libc::SOCK_DGRAM);
        let route = rig.steer.open();
        assert_eq!(rig.write(route, far, b""), 0);
        assert_eq!(rig.write(route, far, b"message"), 7);
        assert_eq!(rig.read(route, near, &mut []), 0);
        let mut message = [0; 20];
        assert_eq!(rig.read(route, near, &mut message), 0, "the empty message");
        assert_eq!(rig.read(route, near, &mut message), 7, "{mechanism:?}");
    }
}

/// A thread that may block reads files that are not sockets.
#[test]
fn pipes_and_files() {
    for mechanism in MECHANISMS {
        let rig = Rig::new(*mechanism);
        let mut pipe = [0; 2];
        // SAFETY: writes two descriptors into the array.
        assert_eq!(unsafe { libc::pipe(pipe.as_mut_ptr()) }, 0);
        let route = rig.steer.open();
        thread::scope(|scope| {
            let reader = scope.spawn(move || rig.read(route, pipe[0], &mut [0; 8]));
            a_while();
            assert_eq!(rig.write(route, pipe[1], b"12345"), 5);
            assert_eq!(reader.join().unwrap(), 5);
        });
        let file = std::fs::File::open("/proc/self/status").unwrap();
        let mut buffer = [0; 5];
        assert_eq!(rig.read(route, std::os::fd::AsRawFd::as_raw_fd(&file), &mut buffer), 5);
        assert_eq!(&buffer, b"Name:");
        assert_eq!(rig.in_place(), 0, "{mechanism:?}");
    }
}

#[test]
fn polls() {
    for mechanism in MECHANISMS {
        let rig = Rig::new(*mechanism);
        let [near, far] = socketpair(libc::SOCK_STREAM);
        let route = rig.steer.open();
        let poll = |milliseconds: i32| {
            let mut polled = libc::pollfd { fd: near, events: libc::POLLIN, revents: 0 };
            let args = [&raw mut polled as usize, 1, milliseconds as usize];
            (rig.call(route, libc::SYS_poll, &args, Kind::Timed), polled.revents)
        };
        assert_eq!(poll(0), (0, 0));
        let start = Instant::now();
        assert_eq!(poll(20), (0, 0));
        assert!(start.elapsed() >= Duration::from_millis(20), "{mechanism:?}");
        thread::scope(|scope| {
            let polling = scope.spawn(|| poll(-1));
            a_while();
            assert_eq!(rig.write(route, far, b"1"), 1);
            assert_eq!(polling.join().unwrap(), (1, libc::POLLIN));
        });
        assert_eq!(poll(1000), (1, libc::POLLIN));
    }
}

#[test]
fn epolls() {
    for mechanism in MECHANISMS {
        let rig = Rig::new(*mechanism);
        let [near, far] = socketpair(libc::SOCK_STREAM);
        let route = rig.steer.open();
        let epoll = rig.call(route, libc::SYS_epoll_create1, &[0], Kind::Quick) as usize;
        let mut event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: 77 };
        let add = [epoll, libc::EPOLL_CTL_ADD as usize, near as usize, &raw mut event as usize];
        assert_eq!(rig.call(route, libc::SYS_epoll_ctl, &add, Kind::Quick), 0);
        let wait = |milliseconds: i32| {
            let mut event = libc::epoll_event { events: 0, u64: 0 };
            let args = [epoll, &raw mut event as usize, 1, milliseconds as usize];
            (rig.call(route, libc::SYS_epoll_wait, &args, Kind::Timed), { event.u64 })
        };
        assert_eq!(wait(10), (0, 0));
        thread::scope(|scope| {
            let waiting = scope.spawn(|| wait(-1));
            a_while();
            assert_eq!(rig.write(route, far, b"1"), 1);
            assert_eq!(waiting.join().unwrap(), (1, 77), "{mechanism:?}");
        });
    }
}

/// A call with a time limit of its own.
#[test]
fn receive_timeouts() {
    for mechanism in MECHANISMS {
        let rig = Rig::new(*mechanism);
        let [near, _far] = socketpair(libc::SOCK_STREAM);
        let limit = libc::timeval { tv_sec: 0, tv_usec: 20_000 };
        // SAFETY: structures of this function, as the manual page says.
        let set = unsafe {
            let size = size_of_val(&limit) as u32;
            libc::setsockopt(
                near,
                libc::SOL_SOCKET,
                libc::SO_RCVTIMEO,
                (&raw const limit).cast(),
                size,
            )
        };
        assert_eq!(set, 0);
        let mut byte = 0u8;
        let args = [near as usize, &raw mut byte as usize, 1, 0, 0, 0];
        let route = rig.steer.open();
        let start = Instant::now();
        assert_eq!(rig.call(route, libc::SYS_recvfrom, &args, Kind::Timed), error(libc::EAGAIN));
        assert!(start.elapsed() >= Duration::from_millis(20), "{mechanism:?}");
    }
}

#[test]
fn nothing_runs_in_place() {
    let rig = Rig::new(Mechanism::InPlace);
    assert_eq!(rig.steer.open(), crate::offload::Route::NONE);
    assert_eq!(rig.steer.threads(), 0);
}
