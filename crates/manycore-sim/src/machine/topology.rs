//! Sockets, cores, hardware threads, and the distances between them.

/// The shape of a machine.
///
/// CPUs are hardware threads. They are numbered as in Linux: first one for each core, socket by
/// socket, then the siblings in the same order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    /// Groups of cores that share a last-level cache; at most 64.
    pub sockets: u32,
    /// The number of cores of a socket.
    pub cores_per_socket: u32,
    /// The number of hardware threads of a core.
    pub threads_per_core: u32,
    /// The number of sockets that share a memory node.
    pub sockets_per_node: u32,
    /// The class of distance for each pair of sockets: 0 on the diagonal and only there, and
    /// symmetric.
    pub distance: Vec<Vec<u8>>,
}

impl Topology {
    /// A machine whose sockets are equally far from each other. Each has a memory node.
    pub fn uniform(sockets: u32, cores_per_socket: u32, threads_per_core: u32) -> Self {
        let row = |from| (0..sockets).map(|to| u8::from(from != to)).collect();
        let distance = (0..sockets).map(row).collect();
        Self { sockets, cores_per_socket, threads_per_core, sockets_per_node: 1, distance }
    }

    /// The number of cores.
    pub fn cores(&self) -> u32 {
        self.sockets * self.cores_per_socket
    }

    /// The number of CPUs: hardware threads.
    pub fn cpus(&self) -> u32 {
        self.cores() * self.threads_per_core
    }

    /// The number of memory nodes.
    pub fn nodes(&self) -> u32 {
        self.sockets.div_ceil(self.sockets_per_node)
    }

    /// The number of classes of distance: each table of latencies has that number of entries.
    pub fn distances(&self) -> usize {
        self.distance.iter().flatten().max().map_or(0, |class| usize::from(*class) + 1)
    }

    /// The core of a CPU.
    pub fn core_of(&self, cpu: u32) -> u32 {
        cpu % self.cores()
    }

    /// The socket of a core.
    pub fn socket_of(&self, core: u32) -> u32 {
        core / self.cores_per_socket
    }

    /// The memory node of a socket.
    pub fn node_of(&self, socket: u32) -> u32 {
        socket / self.sockets_per_node
    }
}
