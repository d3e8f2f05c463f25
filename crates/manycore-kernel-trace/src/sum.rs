//! Waits of one kind, added up: in the kernel for some means, whose sums are read here, and in this
//! module for the others.

use manycore_profile::analyze::futex::FutexWaits;
use manycore_profile::profile::Times;

/// The number of classes of duration, which are half octaves of nanoseconds. As in `bpf/sum.h`.
pub const BUCKETS: usize = 56;
const FIRST_OCTAVE: u32 = 7;
/// Words of 64 bits that distinguish objects. As there.
pub const SKETCH: usize = 4;

/// The number of waits, their duration, and an estimate of the number of objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sum {
    /// Waits.
    pub waits: u64,
    /// Their time.
    pub total_ns: u64,
    /// The longest.
    pub max_ns: u64,
    /// The time of them that was spent spinning.
    pub spun_ns: u64,
    /// A bit for each class of addresses that occurred.
    pub objects: [u64; SKETCH],
    /// Waits by their duration.
    pub times: [u32; BUCKETS],
}

impl Default for Sum {
    fn default() -> Self {
        Self {
            waits: 0,
            total_ns: 0,
            max_ns: 0,
            spun_ns: 0,
            objects: [0; SKETCH],
            times: [0; BUCKETS],
        }
    }
}

impl Sum {
    /// Adds one wait for the object at an address.
    pub fn count(&mut self, object: u64, ns: u64, spun_ns: u64) {
        let bit = class_of(object);
        self.waits += 1;
        self.total_ns += ns;
        self.max_ns = self.max_ns.max(ns);
        self.spun_ns += spun_ns;
        self.objects[bit / 64] |= 1 << (bit % 64);
        self.times[bucket(ns)] += 1;
    }

    /// Adds another sum.
    pub fn add(&mut self, other: &Self) {
        self.waits += other.waits;
        self.total_ns += other.total_ns;
        self.max_ns = self.max_ns.max(other.max_ns);
        self.spun_ns += other.spun_ns;
        for (mine, more) in self.objects.iter_mut().zip(other.objects) {
            *mine |= more;
        }
        for (mine, more) in self.times.iter_mut().zip(other.times) {
            *mine = mine.saturating_add(more);
        }
    }

    /// An estimate of the number of objects, from the share of empty classes: the number of random
    /// choices that would leave as many of the 256 classes empty. It is right to a tenth up to some
    /// 500 objects; above 1400 it cannot distinguish numbers.
    pub fn objects(&self) -> u64 {
        let classes = (64 * SKETCH) as f64;
        let empty = self.objects.iter().map(|word| word.count_zeros()).sum::<u32>();
        let guess = classes * (classes / f64::from(empty.max(1))).ln();
        // At least the number that was seen, and at most the number of waits.
        let seen = (64 * SKETCH) as u64 - u64::from(empty);
        (guess.round() as u64).clamp(seen, self.waits.max(seen))
    }

    /// As a profile has it.
    pub fn times(&self) -> Times {
        let known = |ns: u64| (self.waits > 0).then_some(ns);
        Times {
            count: self.waits,
            total_ns: self.total_ns,
            mean_ns: known(self.total_ns / self.waits.max(1)),
            p99_ns: self.quantile(0.99).map(|ns| ns.min(self.max_ns)),
            max_ns: known(self.max_ns),
        }
    }

    /// The same as waits of a process' threads for a word, added to a given place.
    pub fn of_futex(&self, place: FutexWaits) -> FutexWaits {
        let Self { waits, total_ns, max_ns, .. } = *self;
        FutexWaits { waits, total_ns, max_ns, times: self.durations(), ..place }
    }

    /// Durations in nanoseconds, each with the number of waits of about that duration.
    fn durations(&self) -> Vec<(u64, u32)> {
        let all = self.times.iter().enumerate().filter(|(_, count)| **count > 0);
        all.map(|(bucket, count)| (middle(bucket).min(self.max_ns), *count)).collect()
    }

    fn quantile(&self, quantile: f64) -> Option<u64> {
        let all: u64 = self.times.iter().map(|count| u64::from(*count)).sum();
        let mut left = (all as f64 * quantile).ceil().max(1.0) as u64;
        for (bucket, count) in self.times.iter().enumerate() {
            if u64::from(*count) >= left {
                return Some(middle(bucket));
            }
            left -= u64::from(*count);
        }
        None
    }
}

/// The class of an address, as on the kernel's side. Mixed twice, because one multiplication
/// spreads neighbouring addresses too evenly.
fn class_of(object: u64) -> usize {
    let mixed = object.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    ((mixed ^ (mixed >> 32)).wrapping_mul(0xd6e8_feb8_6659_fd93) >> 56) as usize
}

/// The class of a duration, as on the kernel's side.
fn bucket(ns: u64) -> usize {
    let Some(octave) = (ns >> FIRST_OCTAVE).checked_ilog2() else { return 0 };
    // 181/128 is the square root of two.
    let upper = (ns >> octave) * 128 >= 181 << FIRST_OCTAVE;
    (2 * octave as usize + usize::from(upper)).min(BUCKETS - 1)
}

/// The geometric middle of a half octave: a quarter of an octave above its start.
fn middle(bucket: usize) -> u64 {
    let start = 2_f64.powf(bucket as f64 / 2.0 + f64::from(FIRST_OCTAVE));
    (start * 2_f64.powf(0.25)).round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_near() {
        let mut sum = Sum::default();
        for ns in 1..=1000 {
            sum.count(0, ns * 1000, 0);
        }
        let times = sum.times();
        assert_eq!(
            (times.count, times.mean_ns, times.max_ns),
            (1000, Some(500_500), Some(1_000_000))
        );
        assert!((790_000..=1_000_000).contains(&times.p99_ns.unwrap()), "{times:?}");
        let middle = sum.quantile(0.5).unwrap();
        assert!((400_000..620_000).contains(&middle), "{middle}");
    }

    #[test]
    fn short_and_long_waits_have_a_class() {
        assert_eq!([0, 127, 128, 180, 182, 256].map(bucket), [0, 0, 0, 0, 1, 2]);
        assert_eq!(bucket(u64::MAX), BUCKETS - 1);
        assert_eq!(Sum::default().times(), Times::default());
    }

    #[test]
    fn objects_are_counted_nearly() {
        for n in [1, 2, 10, 100, 400] {
            let mut sum = Sum::default();
            // Addresses as an allocator gives them; each is waited for twice.
            (0..2 * n).for_each(|i| sum.count(0xffff_8880_0420_0000 + (i % n) * 0x1c0, 1, 0));
            let found = sum.objects() as f64;
            assert!((found - n as f64).abs() <= 2.0 + n as f64 * 0.2, "{n}: {found}");
        }
    }
}
