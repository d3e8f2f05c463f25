//! Which CPUs serve which interrupt of a device.

use serde::Serialize;

use crate::cpu_set::CpuSet;
use crate::problem::Problem;
use crate::tree::Tree;

/// Parts of names that drivers give to the interrupts which announce no packets.
const CONTROL: &[&str] =
    &["async", "config", "ctrl", "control", "cmd", "admin", "mgmnt", "mgmt", "misc", "fw", "pages"];

/// An interrupt: a line by which a device signals a CPU.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Interrupt {
    /// The kernel's number.
    pub number: u32,
    /// The driver's name for it; empty if /proc/interrupts does not have it.
    pub name: String,
    /// The CPUs that serve it now; none if it is switched off.
    pub cpus: CpuSet,
    /// How often it came since the machine started.
    pub count: u64,
    /// Whether it announces packets, as far as its name tells.
    pub of_queue: bool,
}

/// A row of /proc/interrupts.
#[derive(Clone, Debug)]
struct Row {
    number: u32,
    /// The chip, the line and the names, as the kernel writes them.
    words: Vec<String>,
    count: u64,
}

/// The interrupts of the device in this directory of sysfs, or the interrupts whose names show that
/// they are the device's.
pub(crate) fn of_device(
    tree: &Tree,
    directories: &[String],
    names: &[String],
    notes: &mut Vec<String>,
) -> Result<Vec<Interrupt>, Problem> {
    let rows = rows(tree)?;
    let mut numbers = None;
    for directory in directories {
        if let Some(listed) = tree.names(&format!("{directory}/msi_irqs"))? {
            numbers = Some(listed.iter().filter_map(|name| name.parse().ok()).collect());
            break;
        }
    }
    let numbers: Vec<u32> = numbers.unwrap_or_else(|| {
        let of_device = |row: &&Row| row.words.iter().any(|word| is_of(word, names));
        let found: Vec<u32> = rows.iter().filter(of_device).map(|row| row.number).collect();
        if !found.is_empty() {
            notes.push(format!(
                "the interrupts of {} were found by their names in /proc/interrupts",
                names.join(", ")
            ));
        }
        found
    });
    let mut interrupts = Vec::new();
    for number in numbers {
        let row = rows.iter().find(|row| row.number == number);
        interrupts.push(interrupt(tree, number, row)?);
    }
    interrupts.sort_by_key(|interrupt| interrupt.number);
    // A driver that names all of its interrupts alike: they may all announce packets.
    if interrupts.iter().all(|interrupt| !interrupt.of_queue) {
        interrupts.iter_mut().for_each(|interrupt| interrupt.of_queue = true);
    }
    Ok(interrupts)
}

fn interrupt(tree: &Tree, number: u32, row: Option<&Row>) -> Result<Interrupt, Problem> {
    let directory = format!("proc/irq/{number}");
    let mut cpus = tree.value::<CpuSet>(&format!("{directory}/effective_affinity_list"))?;
    if cpus.is_none() {
        // Kernels before 4.13 do not show which of the possible CPUs serves an interrupt.
        cpus = tree.value(&format!("{directory}/smp_affinity_list"))?;
    }
    let name = row.and_then(|row| row.words.last()).cloned().unwrap_or_default();
    Ok(Interrupt {
        number,
        cpus: cpus.unwrap_or_default(),
        count: row.map_or(0, |row| row.count),
        of_queue: !CONTROL.iter().any(|part| name.contains(part)),
        name,
    })
}

/// Whether an interrupt of this name belongs to a device of one of these: `eth0-TxRx-3`,
/// `virtio2-input.0`, `mlx5_comp0@pci:0000:3b:00.0`.
fn is_of(word: &str, names: &[String]) -> bool {
    let word = word.trim_end_matches(',');
    names.iter().any(|name| {
        let starts = word.strip_prefix(name.as_str());
        starts.is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_alphanumeric()))
            || word.ends_with(&format!("@pci:{name}"))
    })
}

fn rows(tree: &Tree) -> Result<Vec<Row>, Problem> {
    const PATH: &str = "proc/interrupts";
    let Some(text) = tree.text(PATH)? else { return Ok(Vec::new()) };
    let columns = text.lines().next().unwrap_or_default().split_whitespace().count();
    if columns == 0 || !text.trim_start().starts_with("CPU") {
        return Err(tree.broken(PATH, "it does not begin with the CPUs"));
    }
    Ok(text.lines().skip(1).filter_map(|line| row(line, columns)).collect())
}

/// A row of an interrupt with a number; the others are the architecture's.
fn row(line: &str, columns: usize) -> Option<Row> {
    let (number, rest) = line.split_once(':')?;
    let words: Vec<&str> = rest.split_whitespace().collect();
    let counts = words.iter().take(columns).map(|word| word.parse::<u64>());
    let count = counts.collect::<Result<Vec<_>, _>>().ok()?.iter().sum();
    let words = words.iter().skip(columns).map(|word| (*word).to_owned()).collect();
    Some(Row { number: number.trim().parse().ok()?, words, count })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_read() {
        let line = " 38:          2       9220 PCI-MSIX-0000:00:03.0   1-edge      virtio2-input.0";
        let row = row(line, 2).unwrap();
        assert_eq!((row.number, row.count), (38, 9_222));
        assert_eq!(row.words.last().unwrap(), "virtio2-input.0");
        assert!(super::row("NMI:   0  0   Non-maskable interrupts", 2).is_none());
        assert!(super::row("ERR:   0", 2).is_none());
    }

    #[test]
    fn names_tell_whose_an_interrupt_is() {
        let of = |word: &str, name: &str| is_of(word, &[name.to_owned()]);
        assert!(
            of("eth0-TxRx-3", "eth0") && of("eth0", "eth0") && of("virtio2-input.0", "virtio2")
        );
        assert!(of("mlx5_comp0@pci:0000:3b:00.0", "0000:3b:00.0"));
        assert!(!of("eth01-rx", "eth0") && !of("virtio21-input.0", "virtio2"));
    }
}
