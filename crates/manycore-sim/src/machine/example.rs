//! A machine for examples and tests.

use super::{
    Bandwidth, Caches, Capacity, Combining, Core, Directory, Latencies, Machine, Misses, Os,
    Persist, Topology,
};

impl Machine {
    /// A made-up machine of two sockets, each with four cores of two hardware threads, for examples
    /// and tests. Its numbers are round, and not those of a real machine.
    pub fn example() -> Self {
        Self::example_with(Topology::uniform(2, 4, 2))
    }

    /// [`example`](Self::example) with another shape, of at most three classes of distance.
    pub fn example_with(topology: Topology) -> Self {
        let classes = topology.distances();
        let misses = |modified: [u64; 3], shared: [u64; 3], uncached: [u64; 3]| {
            let by_distance = |costs: [u64; 3]| costs[..classes].to_vec();
            Misses {
                modified: by_distance(modified),
                shared: by_distance(shared),
                uncached: by_distance(uncached),
            }
        };
        let mut machine = Self {
            name: "example".to_owned(),
            latency: Latencies {
                load: misses([100, 300, 400], [40, 200, 300], [300, 450, 600]),
                store: misses([110, 310, 410], [100, 300, 400], [300, 450, 600]),
                rmw: misses([120, 320, 420], [100, 300, 400], [300, 450, 600]),
                store_hit: 1,
                rmw_hit: 20,
            },
            directory: Directory {
                hold: 50,
                combining: Combining::Socket,
                migratory: false,
                shared_read_occupancy: 20,
                read_occupancy: Directory::AS_LONG_AS_ITS_WAY,
                contention: 0,
                rmw_at_home: 0,
            },
            caches: Caches {
                l1: Capacity { bytes: 32 << 10, ways: 8 },
                l1_hit: 4,
                same_line: 1,
                l2: Capacity { bytes: 256 << 10, ways: 8 },
                l2_hit: 12,
                llc: Capacity { bytes: 8 << 20, ways: 16 },
            },
            bandwidth: Bandwidth { memory_occupancy: 10, link_occupancy: 10 },
            persist: Persist { flush: 10, latency: 200, occupancy: 30 },
            core: Core {
                ghz: 2.0,
                counter_ghz: None,
                store_buffer: 32,
                fence: 20,
                prefetches: 10,
                branch_miss: 16,
                pause: 40,
                clock_read: 20,
                smt_slowdown: 1.5,
                tsc_skew: Vec::new(),
                clock_boundary: 0,
            },
            os: Os {
                time_slice: 6_000_000,
                context_switch: 3_000,
                migration: 2_000,
                futex_wait: 1_500,
                futex_wake: 500,
                wake_thread: 1_500,
                wake_path: 1_000,
                idle_exit: 2_000,
                yield_call: 500,
                timer_slack: 100_000,
            },
            topology,
        };
        machine.core.clock_boundary = machine.derived_clock_boundary();
        machine
    }
}
