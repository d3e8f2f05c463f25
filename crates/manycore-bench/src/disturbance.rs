//! How busy other programs kept the machine during a run.

use std::fs;
use std::mem::MaybeUninit;

/// Watches from its creation on.
pub(crate) struct Watch {
    start: Option<Usage>,
}

/// CPU time so far, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Usage {
    /// Time of all CPUs, busy and idle.
    all: f64,
    /// The busy part of `all`, including the hypervisor's other guests.
    busy: f64,
    /// The part of `busy` spent by this process and its children that have ended.
    own: f64,
}

impl Watch {
    pub fn new() -> Self {
        Self { start: Usage::now() }
    }

    /// The share of the CPUs' time that other programs have used, in percent; `None` if the kernel
    /// does not tell.
    pub fn others(&self) -> Option<f64> {
        let (start, end) = (self.start?, Usage::now()?);
        let all = end.all - start.all;
        let others = (end.busy - start.busy) - (end.own - start.own);
        (all > 0.0).then(|| (100.0 * others / all).clamp(0.0, 100.0))
    }
}

impl Usage {
    fn now() -> Option<Self> {
        let (all, busy) = of_cpus(&fs::read_to_string("/proc/stat").ok()?)?;
        Some(Self { all, busy, own: own(libc::RUSAGE_SELF) + own(libc::RUSAGE_CHILDREN) })
    }
}

/// All CPUs' time and their busy time, in seconds, from `/proc/stat`.
fn of_cpus(stat: &str) -> Option<(f64, f64)> {
    let fields = stat.lines().next()?.strip_prefix("cpu ")?.split_whitespace();
    // user, nice, system, idle, iowait, irq, softirq, steal; the later columns are contained in
    // user and nice.
    let ticks: Vec<f64> = fields.take(8).map_while(|field| field.parse().ok()).collect();
    // SAFETY: `sysconf` takes a number and returns one.
    let ticks_per_second = unsafe { libc::sysconf(libc::_SC_CLK_TCK) } as f64;
    let all: f64 = ticks.iter().sum();
    let idle = ticks.get(3)? + ticks.get(4)?;
    Some((all / ticks_per_second, (all - idle) / ticks_per_second))
}

fn own(who: libc::c_int) -> f64 {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the kernel writes one record, here.
    unsafe { libc::getrusage(who, usage.as_mut_ptr()) };
    // SAFETY: zeroed, which is a valid value of a record of numbers, or written.
    let usage = unsafe { usage.assume_init() };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    seconds(usage.ru_utime) + seconds(usage.ru_stime)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_is_what_is_not_idle() {
        let (all, busy) = of_cpus("cpu  100 0 50 800 50 0 0 100 7 0\ncpu0 1 2 3\n").unwrap();
        assert!((busy / all - 250.0 / 1100.0).abs() < 1e-9);
        assert_eq!(of_cpus("cpu  1 2\n"), None);
        assert_eq!(of_cpus(""), None);
    }

    #[test]
    fn own_time_is_not_that_of_others() {
        let before = own(libc::RUSAGE_SELF);
        std::hint::black_box(crate::work::work(1, 20_000_000));
        assert!(own(libc::RUSAGE_SELF) > before);
        assert!((0.0..=100.0).contains(&Watch::new().others().unwrap_or(0.0)));
    }
}
