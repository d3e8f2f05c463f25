//! The standard library's requirements on a kernel: threads, locks, time, files, processes, panics.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier, Condvar, Mutex, mpsc};
use std::time::{Duration, Instant};
use std::{env, fs, thread};

fn main() {
    if env::args().nth(1).as_deref() == Some("child") {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).expect("the parent writes");
        println!("child got {text}");
        std::process::exit(7);
    }
    if env::args().nth(1).as_deref() == Some("spin") {
        end_while_threads_spin();
    }
    let tests: [(&str, fn()); 10] = [
        ("maps and floats", maps_and_floats),
        ("threads and a lock", threads_and_a_lock),
        ("condition variables", condition_variables),
        ("channels", channels),
        ("waits with time", waits_with_time),
        ("files", files),
        ("a child", a_child),
        ("threads that end together", threads_that_end_together),
        ("a panic in a thread", a_panic_in_a_thread),
        ("memory", memory),
    ];
    for (name, test) in tests {
        test();
        println!("{name}: ok");
    }
}

fn maps_and_floats() {
    let map: HashMap<u32, f64> = (0..1000).map(|key| (key, f64::from(key).sqrt())).collect();
    let mut roots: Vec<f64> = map.into_values().collect();
    roots.sort_by(f64::total_cmp);
    assert!((roots[144] - 12.0).abs() < 1e-12, "a root is wrong");
}

fn threads_and_a_lock() {
    let count = Arc::new(Mutex::new(0));
    let threads: Vec<_> = (0..8)
        .map(|_| {
            let count = count.clone();
            thread::spawn(move || (0..2_000).for_each(|_| *count.lock().expect("no panics") += 1))
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().expect("no panics"));
    assert_eq!(*count.lock().expect("no panics"), 16_000);
}

fn condition_variables() {
    let turns = Arc::new((Mutex::new(0), Condvar::new()));
    let play = |me: u32| {
        let turns = turns.clone();
        thread::spawn(move || {
            for round in 0..200 {
                let turn = turns.0.lock().expect("no panics");
                let mut turn =
                    turns.1.wait_while(turn, |turn| *turn != 2 * round + me).expect("no panics");
                *turn += 1;
                turns.1.notify_all();
            }
        })
    };
    let (first, second) = (play(0), play(1));
    first.join().expect("no panics");
    second.join().expect("no panics");
}

fn channels() {
    let (sender, receiver) = mpsc::sync_channel::<u64>(4);
    let sum = Arc::new(AtomicU64::new(0));
    let start = Arc::new(Barrier::new(3));
    thread::scope(|scope| {
        for from in 0..2 {
            let (sender, start) = (sender.clone(), start.clone());
            scope.spawn(move || {
                start.wait();
                (0..500).for_each(|n| sender.send(from * 500 + n).expect("it is received"));
            });
        }
        drop(sender);
        start.wait();
        receiver.iter().for_each(|n| {
            sum.fetch_add(n, Ordering::Relaxed); // Relaxed: joined below
        });
    });
    assert_eq!(sum.load(Ordering::Relaxed), 999 * 1000 / 2); // Relaxed: the threads have ended
}

fn waits_with_time() {
    let start = Instant::now();
    thread::sleep(Duration::from_millis(30));
    let (lock, never) = (Mutex::new(()), Condvar::new());
    let held = lock.lock().expect("no panics");
    let (_held, ended) =
        never.wait_timeout_while(held, Duration::from_millis(30), |()| true).expect("no panics");
    assert!(ended.timed_out());
    assert!(start.elapsed() >= Duration::from_millis(60), "a wait was too short");
}

fn files() {
    let directory = env::temp_dir().join(format!("stdtest.{}", std::process::id()));
    fs::create_dir_all(&directory).expect("it can be made");
    for name in 0..20 {
        fs::write(directory.join(format!("file{name}")), vec![name; 10_000]).expect("room");
    }
    fs::rename(directory.join("file3"), directory.join("moved")).expect("it can be renamed");
    let bytes = fs::read(directory.join("moved")).expect("it is there");
    assert!(bytes.len() == 10_000 && bytes.iter().all(|&byte| byte == 3));
    assert_eq!(fs::read_dir(&directory).expect("a directory").count(), 20);
    assert!(fs::metadata(directory.join("file3")).is_err(), "the old name is there");
    fs::remove_dir_all(&directory).expect("it can be removed");
}

fn a_child() {
    let this = env::current_exe().expect("the program has a path");
    let mut child = Command::new(this)
        .arg("child")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("it can be run");
    let mut stdin = child.stdin.take().expect("it is a pipe");
    stdin.write_all(b"words").expect("the child reads");
    drop(stdin);
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.stdout, b"child got words\n");
    assert_eq!(output.status.code(), Some(7));
    let missing = Command::new("/no/such/program").spawn();
    assert!(missing.is_err(), "a program runs that is not there");
}

/// The last thread frees the address space, of which the others' CPUs must have let go.
fn threads_that_end_together() {
    let this = env::current_exe().expect("the program has a path");
    for _ in 0..100 {
        let ended = Command::new(&this).arg("spin").status().expect("it can be run");
        assert_eq!(ended.code(), Some(3));
    }
}

fn end_while_threads_spin() -> ! {
    let spinning = Arc::new(Barrier::new(4));
    for _ in 0..3 {
        let spinning = spinning.clone();
        thread::spawn(move || {
            spinning.wait();
            loop {
                std::hint::spin_loop();
            }
        });
    }
    spinning.wait();
    std::process::exit(3)
}

fn a_panic_in_a_thread() {
    std::panic::set_hook(Box::new(|_| {}));
    let ended = thread::spawn(|| panic!("on purpose")).join();
    drop(std::panic::take_hook());
    assert!(ended.is_err(), "a panic is lost");
}

fn memory() {
    let mut blocks: Vec<Vec<u8>> = (1..64).map(|kb| vec![kb as u8; kb * 4096]).collect();
    for (block, kb) in blocks.iter_mut().zip(1..) {
        block.extend_from_slice(&[kb as u8; 100_000]);
        assert!(block.iter().all(|&byte| byte == kb as u8), "memory was changed");
    }
}
