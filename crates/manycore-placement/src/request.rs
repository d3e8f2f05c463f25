//! What the user asks for: `nic-llc:mechanism=pool:files=yes`.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;

use crate::cpu_set::CpuSet;
use crate::problem::Problem;

/// Where system calls are to be executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Policy {
    /// Round robin over the CPUs that share the last-level cache with the card's interrupts: the
    /// publication's.
    NicLlc,
    /// All on the card's memory node.
    SingleNode,
    /// The card's node first, and under a high load the next one.
    CrossNode,
    /// Each call on the memory node of the thread that opened its socket.
    PerNode,
    /// One of these, or none where moving calls cannot help.
    Auto,
}

impl Policy {
    /// All of them.
    pub const ALL: [Self; 5] =
        [Self::NicLlc, Self::SingleNode, Self::CrossNode, Self::PerNode, Self::Auto];

    /// As users write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::NicLlc => "nic-llc",
            Self::SingleNode => "single-node",
            Self::CrossNode => "cross-node",
            Self::PerNode => "per-node",
            Self::Auto => "auto",
        }
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// How a call gets there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mechanism {
    /// A thread for each socket.
    Thread,
    /// A few threads on each CPU for all sockets.
    Pool,
    /// The kernel's own thread, by io_uring.
    Uring,
    /// Not at all: the caller executes it.
    InPlace,
}

impl Mechanism {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Thread, Self::Pool, Self::Uring, Self::InPlace];

    /// As users and the library write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Thread => "thread",
            Self::Pool => "pool",
            Self::Uring => "uring",
            Self::InPlace => "in-place",
        }
    }
}

impl fmt::Display for Mechanism {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A policy and its settings. What the user does not set is chosen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub(crate) policy: Policy,
    pub(crate) mechanism: Option<Mechanism>,
    pub(crate) device: Option<String>,
    pub(crate) threshold: Option<u32>,
    pub(crate) cpus: Option<CpuSet>,
    pub(crate) files: bool,
    pub(crate) bypass: Option<bool>,
    text: String,
}

impl Request {
    /// The policy that was asked for.
    pub fn policy(&self) -> Policy {
        self.policy
    }

    /// The network device that was named.
    pub fn device(&self) -> Option<&str> {
        self.device.as_deref()
    }

    fn set(&mut self, setting: &str) -> Result<(), Problem> {
        let (key, value) = setting.split_once('=').unwrap_or((setting, ""));
        let bad = |remedy: &str| Problem::new(format!("bad setting '{setting}'"), remedy);
        let decision = || match value {
            "yes" => Ok(true),
            "no" => Ok(false),
            _ => Err(bad(&format!("write {key}=yes or {key}=no"))),
        };
        match key {
            "mechanism" => {
                let known = Mechanism::ALL.into_iter().find(|mechanism| mechanism.name() == value);
                let remedy = "there are mechanism=thread, pool, uring and in-place";
                self.mechanism = Some(known.ok_or_else(|| bad(remedy))?);
            }
            "device" if !value.is_empty() => self.device = Some(value.to_owned()),
            "device" => return Err(bad("name a network device, as in device=eth0")),
            "threshold" => {
                let number = value.parse().ok().filter(|number| *number > 0);
                let remedy = "write how many sockets a CPU serves before the next node's are used, as in threshold=8";
                self.threshold = Some(number.ok_or_else(|| bad(remedy))?);
            }
            "cpus" => {
                let cpus = value.parse().ok().filter(|cpus: &CpuSet| !cpus.is_empty());
                let remedy = "write a list of CPUs, as in cpus=0-3,8";
                self.cpus = Some(cpus.ok_or_else(|| bad(remedy))?);
            }
            "files" => self.files = decision()?,
            "bypass" => self.bypass = Some(decision()?),
            _ => {
                return Err(bad(
                    "there are mechanism=, device=, threshold=, cpus=, files= and bypass=",
                ));
            }
        }
        Ok(())
    }
}

impl FromStr for Request {
    type Err = Problem;

    fn from_str(text: &str) -> Result<Self, Problem> {
        let mut parts = text.split(':');
        let name = parts.next().unwrap_or_default();
        let policy = Policy::ALL.into_iter().find(|policy| policy.name() == name);
        let policy = policy.ok_or_else(|| {
            Problem::new(
                format!("unknown policy '{name}' for system calls"),
                format!("there are {}", Policy::ALL.map(Policy::name).join(", ")),
            )
        })?;
        let mut request = Self {
            policy,
            mechanism: None,
            device: None,
            threshold: None,
            cpus: None,
            files: false,
            bypass: None,
            text: text.to_owned(),
        };
        let mut seen: Vec<&str> = Vec::new();
        for setting in parts {
            let key = setting.split('=').next().unwrap_or_default();
            if seen.contains(&key) {
                return Err(Problem::new(format!("'{key}' is set twice"), "leave one out"));
            }
            seen.push(key);
            request.set(setting)?;
        }
        if request.threshold.is_some() && policy != Policy::CrossNode {
            return Err(Problem::new(
                format!("{policy} has no threshold"),
                "it is for cross-node, which goes to the next node over it",
            ));
        }
        Ok(request)
    }
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_read() {
        let text =
            "cross-node:mechanism=uring:device=eth1:threshold=4:cpus=0-3,8:files=yes:bypass=no";
        let request: Request = text.parse().unwrap();
        assert_eq!(request.policy(), Policy::CrossNode);
        assert_eq!(request.mechanism, Some(Mechanism::Uring));
        assert_eq!((request.device(), request.threshold), (Some("eth1"), Some(4)));
        assert_eq!(request.cpus.as_ref().unwrap().to_string(), "0-3,8");
        assert!(request.files && request.bypass == Some(false));
        assert_eq!(request.to_string(), text);
    }

    #[test]
    fn bad_ones_are_refused_with_a_remedy() {
        let cases = [
            ("", "there are nic-llc"),
            ("near", "there are nic-llc"),
            ("auto:", "there are mechanism="),
            ("auto:mechanism=threads", "thread, pool"),
            ("auto:device=", "device=eth0"),
            ("cross-node:threshold=0", "threshold=8"),
            ("nic-llc:threshold=3", "cross-node"),
            ("nic-llc:cpus=", "cpus=0-3,8"),
            ("nic-llc:cpus=3-1", "cpus=0-3,8"),
            ("nic-llc:files=maybe", "files=yes"),
            ("nic-llc:files=yes:files=no", "leave one out"),
            ("nic-llc:turbo=yes", "mechanism="),
        ];
        for (text, remedy) in cases {
            let problem = text.parse::<Request>().unwrap_err();
            assert!(problem.remedy.contains(remedy), "{text}: {problem}");
        }
    }
}
