//! The processor's own event that counts lines from another NUMA node's cache.
//!
//! Each processor model has its own numbers for these events, and the kernel lists none of them in
//! sysfs. The table has the numbers of server processors with several sockets, as their makers
//! publish them: Intel's in github.com/intel/perfmon (`mapfile.csv` names the models; event 0xd3,
//! unit mask 0x04 in the core events of SKX, CLX, ICX, SPR and EMR), AMD's in Linux'
//! `tools/perf/pmu-events/arch/x86/amdzen2` to `amdzen5` (event 0x43, unit mask 0x10). Intel's
//! event counts loads that found the line modified there (HITM). AMD has no event for that state:
//! its event counts demand fills of the data cache from a cache of another node, without prefetches
//! and without instructions.

/// An event that only processors of some models have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ModelEvent {
    /// As its maker calls it.
    pub name: &'static str,
    /// The event in the lowest byte, the unit mask in the next.
    pub config: u64,
}

const INTEL: ModelEvent =
    ModelEvent { name: "MEM_LOAD_L3_MISS_RETIRED.REMOTE_HITM", config: 0x04d3 };
const ZEN_2: ModelEvent =
    ModelEvent { name: "ls_refills_from_sys.ls_mabresp_rmt_cache", config: 0x1043 };
const ZEN_3: ModelEvent =
    ModelEvent { name: "ls_dmnd_fills_from_sys.ext_cache_remote", config: 0x1043 };
const ZEN_4: ModelEvent = ModelEvent { name: "ls_dmnd_fills_from_sys.far_cache", config: 0x1043 };

/// The event of the processor that `/proc/cpuinfo` describes, or why there is none.
pub fn event(cpuinfo: &str) -> Result<ModelEvent, String> {
    let field = |name: &str| {
        let mut pairs = cpuinfo.lines().filter_map(|line| line.split_once(':'));
        pairs.find(|(key, _)| key.trim() == name).map_or("", |(_, value)| value.trim())
    };
    let vendor = field("vendor_id");
    let number = |name: &str| field(name).parse::<u32>().unwrap_or(0);
    let (family, model) = (number("cpu family"), number("model"));
    match (vendor, family, model) {
        // Skylake and Cascade Lake; Ice Lake; Sapphire Rapids; Emerald Rapids.
        ("GenuineIntel", 6, 0x55 | 0x6a | 0x6c | 0x8f | 0xcf) => Ok(INTEL),
        ("AuthenticAMD", 0x17, 0x30..) => Ok(ZEN_2),
        ("AuthenticAMD", 0x19, 0x10..=0x1f | 0x60..=0x7f | 0xa0..=0xaf) => Ok(ZEN_4),
        ("AuthenticAMD", 0x19, _) => Ok(ZEN_3),
        ("AuthenticAMD", 0x1a, _) => Ok(ZEN_4),
        ("", ..) => Err("no event known of this processor".to_owned()),
        _ => Err(format!("no event known of {vendor} family {family}, model {model}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What such processors say of themselves, shortened.
    fn cpuinfo(vendor: &str, family: u32, model: u32, name: &str) -> String {
        format!(
            "processor\t: 0\nvendor_id\t: {vendor}\ncpu family\t: {family}\nmodel\t\t: {model}\n\
             model name\t: {name}\nstepping\t: 1\n\nprocessor\t: 1\nvendor_id\t: {vendor}\n"
        )
    }

    #[test]
    fn each_model_has_its_event() {
        for (vendor, family, model, name, expected) in [
            ("GenuineIntel", 6, 85, "Intel(R) Xeon(R) Platinum 8168 CPU @ 2.70GHz", INTEL),
            ("GenuineIntel", 6, 106, "Intel(R) Xeon(R) Platinum 8375C CPU @ 2.90GHz", INTEL),
            ("GenuineIntel", 6, 143, "Intel(R) Xeon(R) Platinum 8488C", INTEL),
            ("GenuineIntel", 6, 207, "INTEL(R) XEON(R) PLATINUM 8592+", INTEL),
            ("AuthenticAMD", 23, 49, "AMD EPYC 7R32", ZEN_2),
            ("AuthenticAMD", 25, 1, "AMD EPYC 7R13 Processor", ZEN_3),
            ("AuthenticAMD", 25, 17, "AMD EPYC 9R14", ZEN_4),
            ("AuthenticAMD", 26, 2, "AMD EPYC 9R45", ZEN_4),
        ] {
            let event = event(&cpuinfo(vendor, family, model, name));
            assert_eq!(event, Ok(expected), "{name}");
        }
    }

    #[test]
    fn a_processor_without_one_is_named() {
        for (vendor, family, model) in
            [("GenuineIntel", 6, 158), ("AuthenticAMD", 23, 1), ("HygonGenuine", 24, 0)]
        {
            let why = event(&cpuinfo(vendor, family, model, "")).unwrap_err();
            assert!(why.contains(&format!("{vendor} family {family}, model {model}")), "{why}");
        }
        assert!(event("").is_err());
    }
}
