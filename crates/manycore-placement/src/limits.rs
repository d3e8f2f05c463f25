//! The CPUs that may be used: the affinity mask, limited by the control groups.

use serde::Serialize;

use crate::cpu_set::CpuSet;
use crate::problem::Problem;
use crate::tree::Tree;

/// What this process may use.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Limits {
    /// The CPUs of the affinity mask, as sched_getaffinity gives them.
    pub affinity: CpuSet,
    /// The kind of control groups that limit CPUs, if there are any.
    pub groups: Option<ControlGroups>,
    /// The CPUs of the control group, if it limits them.
    pub cpuset: Option<CpuSet>,
    /// How many CPUs' time the control groups give, if they limit it.
    pub quota: Option<f64>,
    /// The CPUs that are online and in all of these; at least one.
    pub allowed: CpuSet,
}

/// The kernel's two interfaces of control groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ControlGroups {
    /// A hierarchy for each kind of limit.
    V1,
    /// One hierarchy for all controllers.
    V2,
}

impl Limits {
    pub(crate) fn read(tree: &Tree, online: &CpuSet) -> Result<Self, Problem> {
        let affinity = affinity(tree)?;
        let groups = tree.text("proc/self/cgroup")?.unwrap_or_default();
        let mounts = mounts(tree)?;
        let mut limits = Self {
            allowed: affinity.and(online),
            affinity,
            groups: None,
            cpuset: None,
            quota: None,
        };
        for line in groups.lines() {
            let mut parts = line.splitn(3, ':');
            let (Some(_), Some(controllers), Some(path)) =
                (parts.next(), parts.next(), parts.next())
            else {
                return Err(tree.broken("proc/self/cgroup", format!("'{line}' is no group")));
            };
            let controllers: Vec<&str> = controllers.split(',').collect();
            for mount in mounts.iter().filter(|mount| mount.has(&controllers)) {
                limits.take(tree, mount, &controllers, path)?;
            }
        }
        if let Some(cpuset) = &limits.cpuset {
            limits.allowed = limits.allowed.and(cpuset);
        }
        if limits.allowed.is_empty() {
            let group =
                limits.cpuset.map_or(String::new(), |set| format!(", the control group {set}"));
            return Err(Problem::new(
                format!(
                    "no CPU is left: online are {online}, the affinity mask has {}{group}",
                    limits.affinity
                ),
                "give this process a CPU that is online",
            ));
        }
        Ok(limits)
    }

    /// Adds the limits of a group and of those around it.
    fn take(
        &mut self,
        tree: &Tree,
        mount: &Mount,
        controllers: &[&str],
        path: &str,
    ) -> Result<(), Problem> {
        let mut found = false;
        for directory in mount.upwards(path) {
            let (cpus, quota) = match mount.version {
                ControlGroups::V2 => {
                    let cpus = format!("{directory}/cpuset.cpus.effective");
                    (tree.value::<CpuSet>(&cpus)?, quota_v2(tree, &directory)?)
                }
                ControlGroups::V1 => {
                    let has = |controller| controllers.contains(&controller);
                    let cpus = format!("{directory}/cpuset.cpus");
                    let cpus = if has("cpuset") { tree.value::<CpuSet>(&cpus)? } else { None };
                    (cpus, if has("cpu") { quota_v1(tree, &directory)? } else { None })
                }
            };
            let cpus = cpus.filter(|cpus| !cpus.is_empty());
            found |= cpus.is_some() || quota.is_some();
            // The innermost group with a setting counts: it is within the groups around it.
            self.cpuset = self.cpuset.take().or(cpus);
            self.quota = match (self.quota, quota) {
                (Some(own), Some(outer)) => Some(own.min(outer)),
                (own, outer) => own.or(outer),
            };
        }
        if found {
            self.groups = Some(mount.version);
        }
        Ok(())
    }
}

/// The kernel shows the mask of the main thread here in the form of its lists.
fn affinity(tree: &Tree) -> Result<CpuSet, Problem> {
    const PATH: &str = "proc/self/status";
    let status = tree.text(PATH)?.ok_or_else(|| tree.missing(PATH))?;
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    let list = list.ok_or_else(|| tree.broken(PATH, "it has no Cpus_allowed_list"))?;
    list.parse().map_err(|why| tree.broken(PATH, why))
}

/// Where a hierarchy of control groups can be seen.
struct Mount {
    version: ControlGroups,
    /// Its controllers; of the newer interface there is no list.
    options: Vec<String>,
    /// The group that is at the top of it here.
    top: String,
    /// Below the tree's root.
    point: String,
}

impl Mount {
    /// Whether this is the hierarchy of a line of /proc/self/cgroup with these controllers.
    fn has(&self, controllers: &[&str]) -> bool {
        match self.version {
            ControlGroups::V2 => controllers == [""],
            ControlGroups::V1 => {
                controllers != [""]
                    && controllers.iter().all(|c| self.options.iter().any(|o| o == c))
            }
        }
    }

    /// The directory of a group and those around it, innermost first.
    fn upwards(&self, path: &str) -> Vec<String> {
        // In a container the hierarchy often begins at the container's own group.
        let below =
            path.strip_prefix(self.top.as_str()).filter(|_| self.top != "/").unwrap_or(path);
        let parts: Vec<&str> = below.split('/').filter(|part| !part.is_empty()).collect();
        let directory = |length: usize| {
            parts[..length].iter().fold(self.point.clone(), |path, part| format!("{path}/{part}"))
        };
        (0..=parts.len()).rev().map(directory).collect()
    }
}

fn mounts(tree: &Tree) -> Result<Vec<Mount>, Problem> {
    let text = tree.text("proc/self/mountinfo")?.unwrap_or_default();
    let mount = |line: &str| {
        let (place, kind) = line.split_once(" - ")?;
        let place: Vec<&str> = place.split(' ').collect();
        let kind: Vec<&str> = kind.split(' ').collect();
        let version = match *kind.first()? {
            "cgroup" => ControlGroups::V1,
            "cgroup2" => ControlGroups::V2,
            _ => return None,
        };
        Some(Mount {
            version,
            options: kind.last()?.split(',').map(str::to_owned).collect(),
            top: (*place.get(3)?).to_owned(),
            point: place.get(4)?.trim_start_matches('/').to_owned(),
        })
    };
    Ok(text.lines().filter_map(mount).collect())
}

/// CPUs' worth of time in each period.
fn quota_v2(tree: &Tree, directory: &str) -> Result<Option<f64>, Problem> {
    let path = format!("{directory}/cpu.max");
    let Some(text) = tree.text(&path)? else { return Ok(None) };
    let broken = || tree.broken(&path, format!("'{text}' is no quota and period"));
    let (quota, period) = text.split_once(' ').ok_or_else(broken)?;
    if quota == "max" {
        return Ok(None);
    }
    let number = |word: &str| word.parse::<f64>().ok().filter(|number| *number > 0.0);
    Ok(Some(number(quota).ok_or_else(broken)? / number(period).ok_or_else(broken)?))
}

fn quota_v1(tree: &Tree, directory: &str) -> Result<Option<f64>, Problem> {
    let of = |name: &str| tree.value::<i64>(&format!("{directory}/{name}"));
    let (quota, period) = (of("cpu.cfs_quota_us")?, of("cpu.cfs_period_us")?);
    // -1: no limit.
    let quota = quota.filter(|quota| *quota > 0);
    Ok(quota.zip(period.filter(|period| *period > 0)).map(|(q, p)| q as f64 / p as f64))
}
