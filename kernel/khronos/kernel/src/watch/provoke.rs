//! Mistakes on purpose: `provoke=` on the boot line makes one, which has to end in a panic.

use alloc::sync::Arc;

use crate::println;
use crate::sync::order::Rank;
use crate::sync::pin::pin;
use crate::sync::sleep::Sleep;
use crate::sync::spin::Spin;

/// Makes the mistake with this name; returns only if the kernel has not noticed it.
pub fn run(name: &str) -> bool {
    let (first, second) = (Arc::new(Spin::new(Rank::Small, ())), Spin::new(Rank::Pipe, ()));
    match name {
        "sleep" => {
            let _pin = pin();
            let lock = Sleep::new(Rank::Process, ());
            drop(lock.lock());
        }
        "sleep-locked" => {
            let _held = first.lock();
            let lock = Sleep::new(Rank::Process, ());
            drop(lock.lock());
        }
        "order" => {
            let _second = second.lock();
            let _first = first.lock();
        }
        "twice" => {
            let _first = first.lock();
            let _again = first.lock();
        }
        "fault" => crate::mm::fault::provoke(),
        _ => println!("provoke={name}: there is no such mistake"),
    }
    println!("provoke={name}: the kernel has not noticed");
    false
}
