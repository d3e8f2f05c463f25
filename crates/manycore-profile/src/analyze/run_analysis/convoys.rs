//! The longest queues.

use crate::analyze::process::ProcessStats;
use crate::clock::Rate;
use crate::profile::Convoy;

use crate::analyze::groups::Rows;

/// This many are kept.
const KEPT: usize = 100;

/// The longest queue of each lock, longest first.
pub fn of(stats: &[ProcessStats], rows: &Rows, rate: &Rate) -> Vec<Convoy> {
    let mut convoys: Vec<Convoy> = Vec::new();
    for (process, one) in stats.iter().enumerate() {
        for queue in &one.noted.queues {
            let Some(lock) = rows.get(&(process, queue.record)) else { continue };
            convoys.push(Convoy {
                lock: *lock,
                start: rate.seconds_since_start(queue.end.saturating_sub(queue.lasted)),
                length_ns: rate.ns(queue.lasted).round() as u64,
                waiters_max: queue.most as u32,
            });
        }
    }
    convoys.sort_by(|a, b| {
        (b.length_ns, a.lock).cmp(&(a.length_ns, b.lock)).then(a.start.total_cmp(&b.start))
    });
    convoys.truncate(KEPT);
    convoys
}
