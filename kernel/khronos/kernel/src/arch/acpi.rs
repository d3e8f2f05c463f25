//! The CPUs that firmware names: ACPI's table of interrupt controllers (MADT).

use crate::arch::boot::information;
use crate::mm::direct_map::physical;

/// CPUs, by the identifiers of their interrupt controllers.
pub struct Cpus {
    /// The identifiers; the first `count` count.
    pub apic_ids: [u8; crate::arch::cpu::MOST],
    /// How many there are.
    pub count: usize,
}

fn bytes<const N: usize>(address: u64) -> [u8; N] {
    // SAFETY: firmware's tables are in memory that the direct map covers.
    unsafe { physical(address).cast::<[u8; N]>().read_unaligned() }
}

fn word(address: u64) -> u32 {
    u32::from_le_bytes(bytes(address))
}

/// Finds the root pointer where BIOSes put it.
fn search() -> Option<u64> {
    (0xe_0000..0x10_0000).step_by(16).find(|&address| bytes::<8>(address) == *b"RSD PTR ")
}

/// The address of the table with this signature.
fn table(signature: &[u8; 4]) -> Option<u64> {
    let root = if information().acpi != 0 { information().acpi } else { search()? };
    if bytes::<8>(root) != *b"RSD PTR " {
        return None;
    }
    let extended = bytes::<1>(root + 15)[0] >= 2;
    let (list, entry_bytes) = if extended {
        (u64::from_le_bytes(bytes(root + 24)), 8)
    } else {
        (u64::from(word(root + 16)), 4)
    };
    let end = list + u64::from(word(list + 4));
    (list + 36..end).step_by(entry_bytes as usize).find_map(|at| {
        let entry = if extended { u64::from_le_bytes(bytes(at)) } else { u64::from(word(at)) };
        (bytes::<4>(entry) == *signature).then_some(entry)
    })
}

/// The CPUs that the firmware has enabled; only the caller's own if it lists none.
pub fn cpus(own: u8) -> Cpus {
    let mut cpus = Cpus { apic_ids: [0; crate::arch::cpu::MOST], count: 0 };
    if let Some(madt) = table(b"APIC") {
        let end = madt + u64::from(word(madt + 4));
        let mut at = madt + 44;
        while at < end {
            let [kind, length] = bytes(at);
            // A local APIC: its identifier, and flags, the first of which says that it is enabled.
            if kind == 0 && word(at + 4) & 1 != 0 && cpus.count < cpus.apic_ids.len() {
                cpus.apic_ids[cpus.count] = bytes::<1>(at + 3)[0];
                cpus.count += 1;
            }
            at += u64::from(length.max(2));
        }
    }
    if cpus.count == 0 {
        cpus.apic_ids[0] = own;
        cpus.count = 1;
    }
    cpus
}
