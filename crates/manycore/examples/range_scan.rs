//! Measurements in the order of their times: sensors write, old ones are taken out, and a reader
//! sums up the last ones, all of one moment.
//!
//!     cargo run --release -p manycore --example range_scan

use std::sync::atomic::{AtomicU64, Ordering};

use manycore::collections::space::{BTreeMap, Space};

const SENSORS: u32 = 3;
/// Fewer in the interpreter, which takes a thousand times as long.
const EACH: u64 = if cfg!(miri) { 30 } else { 20_000 };
/// How many times are kept.
const KEPT: u64 = 1_000;

/// A time and the sensor: keys of structs and tuples compare by their fields, one after the other.
type At = (u64, u32);

fn main() {
    let space = <Space>::default();
    // A sensor writes its value and that with the sign turned, as two entries of one transaction.
    let measured = BTreeMap::<At, i64>::new_in(&space);
    let clock = AtomicU64::new(0);
    let scans = std::thread::scope(|scope| {
        let sensors = (0..SENSORS).map(|sensor| {
            let (space, measured, clock) = (&space, &measured, &clock);
            scope.spawn(move || {
                let mut me = space.handle();
                for value in 0..EACH as i64 {
                    let time = clock.fetch_add(1, Ordering::Relaxed); // Relaxed: a number
                    me.transact(|tx| {
                        tx.set(measured, (time, 2 * sensor), value)?;
                        tx.set(measured, (time, 2 * sensor + 1), -value)?;
                        Ok(())
                    });
                }
            })
        });
        let sensors: Vec<_> = sensors.collect();
        let (mut me, mut scans) = (space.handle(), 0);
        while sensors.iter().any(|sensor| !sensor.is_finished()) {
            let until = clock.load(Ordering::Relaxed).saturating_sub(KEPT); // Relaxed: a number
            let old: Vec<At> = me.snapshot(|now| {
                let recent: i64 = now.range(&measured, (until, 0)..).map(|(_, value)| value).sum();
                assert_eq!(recent, 0, "half of a measurement");
                now.range(&measured, ..(until, 0)).map(|(at, _)| *at).take(500).collect()
            });
            old.iter().for_each(|at| _ = measured.by(&mut me).delete(at));
            scans += 1;
        }
        scans
    });
    let first = measured.first().map(|((time, _), _)| time);
    println!("{scans} scans, {} entries left, from time {first:?} on", measured.len());
}

#[test]
fn runs() {
    main();
}
