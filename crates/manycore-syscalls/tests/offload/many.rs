//! Ten thousand routes.

use crate::offload::{Mechanism, Route};

use crate::rig::{Rig, cpus, socketpair};

const ROUTES: usize = 10_000;

/// Private memory of this process, in bytes.
fn own_memory() -> usize {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap();
    let mut fields = text.split(' ').skip(1).map(|field| field.parse::<usize>().unwrap());
    let (resident, shared) = (fields.next().unwrap(), fields.next().unwrap());
    (resident - shared) * 4096
}

/// In a process of its own, because other tests take memory as well.
#[test]
fn idle_routes_cost_little() {
    let inner = std::env::var_os("MANYCORE_TEST_ALONE").is_some();
    if !inner {
        let this = std::env::current_exe().unwrap();
        let run = std::process::Command::new(this)
            .args(["--exact", "many::idle_routes_cost_little", "--nocapture"])
            .env("MANYCORE_TEST_ALONE", "1")
            .output()
            .unwrap();
        assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stdout));
        return;
    }
    for mechanism in [Mechanism::Pool, Mechanism::Uring] {
        let rig = Rig::new(mechanism);
        let pair = socketpair(libc::SOCK_DGRAM);
        let mut routes: Vec<Route> = Vec::with_capacity(ROUTES);
        let ping = |route| {
            assert_eq!(rig.write(route, pair[0], b"ping"), 4);
            assert_eq!(rig.read(route, pair[1], &mut [0; 8]), 4);
        };
        (0..100).for_each(|_| ping(rig.steer.open()));
        let before = own_memory();
        for _ in 0..ROUTES {
            let route = rig.steer.open();
            ping(route);
            routes.push(route);
        }
        let each = (own_memory() - before).div_ceil(ROUTES);
        println!("{mechanism:?}: {each} bytes a route, {} threads", rig.steer.threads());
        assert!(each < 200, "{mechanism:?}: {each} bytes a route");
        assert!(rig.steer.threads() as usize <= cpus().len() + 4);
        assert_eq!(rig.in_place(), 0);
    }
}
