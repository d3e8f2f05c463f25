//! A mask that a program gives itself while its calls are moved. By itself in its process: the mask is everybody's there.

#![cfg(all(target_os = "linux", not(loom)))]

#[path = "../native/rig.rs"]
#[allow(dead_code, reason = "a part is used")]
mod rig;

use std::time::Duration;

use manycore_steer::Kind;
use rig::{MECHANISMS, Rig, cpus};

const CPUS_MAX: usize = 1024;

/// The CPUs that may be used by whoever executes a call on a lane.
fn executed_within(rig: &Rig, lane: manycore_steer::Lane) -> Vec<u32> {
    let mut mask = [0_u8; CPUS_MAX / 8];
    let args = [0, mask.len(), mask.as_mut_ptr() as usize];
    let length = rig.call(lane, libc::SYS_sched_getaffinity, &args, Kind::Quick);
    assert!(length > 0, "{length}");
    (0..CPUS_MAX as u32).filter(|cpu| mask[*cpu as usize / 8] >> (cpu % 8) & 1 != 0).collect()
}

/// Gives the process' first thread a mask, as `taskset -p` does.
fn give(cpus: &[u32]) {
    // SAFETY: zero is a value of the structure, and the kernel reads it.
    let failed = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        cpus.iter().for_each(|cpu| libc::CPU_SET(*cpu as usize, &mut set));
        libc::sched_setaffinity(libc::getpid(), size_of_val(&set), &set)
    };
    assert_eq!(failed, 0);
}

#[test]
fn calls_follow_the_mask_of_the_process() {
    let all = cpus();
    let [first, second, ..] = all[..] else {
        return eprintln!("one CPU: there is no other to go to");
    };
    for mechanism in MECHANISMS {
        let rig = Rig::new(*mechanism);
        let lanes = [rig.steer.open(), rig.steer.open()];
        // A second after the mask was changed by the round before.
        std::thread::sleep(Duration::from_millis(1500));
        assert_eq!(lanes.map(|lane| executed_within(rig, lane)), [[first], [second]]);
        for narrow in [first, second] {
            give(&[narrow]);
            std::thread::sleep(Duration::from_millis(1500));
            for lane in lanes {
                assert_eq!(executed_within(rig, lane), [narrow], "{mechanism:?}");
            }
        }
        give(&all);
        assert_eq!(rig.in_place(), 0, "{mechanism:?}");
    }
}
