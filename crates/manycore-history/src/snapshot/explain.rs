//! What a circle says.

use super::graph::{Graph, Why};
use super::versions::Versions;
use super::{Anomaly, Violation};

/// Asks that the graph has no circle.
pub(super) fn no_circle(versions: &Versions, graph: &Graph) -> Result<(), Violation> {
    let Some(circle) = graph.circle() else { return Ok(()) };
    let anomaly = match (graph.serial, graph.time) {
        (true, _) => Anomaly::WriteSkew,
        (false, None) => Anomaly::TornRead,
        (false, Some(false)) => Anomaly::FutureRead,
        (false, Some(true)) => Anomaly::MissedCommit,
    };
    // A path through nodes of time is one step, from the transaction before to the one after. Begin
    // at a transaction.
    let first = circle.iter().position(|(node, _)| graph.transaction(*node).is_some());
    let mut circle = circle;
    circle.rotate_left(first.unwrap_or(0));
    let of_transactions: Vec<_> =
        (circle.iter()).filter_map(|(node, why)| Some((graph.transaction(*node)?, *why))).collect();
    let next = of_transactions.iter().cycle().skip(1);
    let steps = of_transactions.iter().zip(next).filter_map(|((one, why), (other, _))| {
        let (one, other) = (versions.name(*one), versions.name(*other));
        match why {
            Why::Own => None,
            Why::Sees(object, version) => {
                Some(format!("{other} sees version {version} of object {object}, made by {one}"))
            }
            Why::Replaces(object, version) => Some(format!(
                "{one} sees version {version} of object {object}, which {other} replaces"
            )),
            Why::Time => Some(format!("{one} ends before {other} begins")),
        }
    });
    Err(Violation { anomaly, steps: steps.collect() })
}
