//! Rounds, until it is known well enough.
//!
//! In a round every policy has its turn at every point that needs more rounds, in a random order,
//! so neighbours in time are compared. A point needs no more rounds when the intervals of all its
//! ratios are narrow enough. The direction of a ratio does not matter for that. But stopping when
//! intervals *look* narrow prefers rounds that happen to agree, so the intervals are slightly too
//! narrow. In a simulation of Gaussian noise, at the usual precision and with one policy against
//! none, the 95 % intervals held the ratio in 94.0 (+-1.0) % of the cases if pairs differ by 3 %,
//! and in 92.5 (+-1.3) % if they differ by 5 %. There are at least [`LEAST`] rounds, so that a few
//! rounds cannot agree by chance.
//!
//! Servers take long to start, so those of all policies are started together, and then take
//! [`TURNS`] turns each, in an order drawn for each turn. The layout of a process in memory also
//! affects results, and is the same in all turns of a round. So the turns give one value, their
//! median, and the next round has other processes.
//!
//! A failed round is repeated once: another program may have taken the round's free port, and that
//! must not end hours of rounds.

use std::time::{Duration, Instant};

use indicatif::ProgressBar;
use manycore_measure::paired::{Median, Protocol, Schedule};

use super::apache::Apache;
use super::plans::work;
use super::policy::Policy;
use super::work::Work;
use super::{Measured, Options, Point};
use manycore_compare::trial::{Serving, TrialDir};
use manycore_launch::failure::{Failure, Result};
use manycore_launch::preload::Interposition;
use manycore_launch::signals::Inbox;
use manycore_launch::terminal::Terminal;

/// Turns of a server in a round.
const TURNS: usize = 3;
/// Rounds before a point counts as known.
const LEAST: usize = 10;

/// What every run needs.
pub struct Bench<'a> {
    pub options: &'a Options,
    pub policies: &'a [Policy],
    pub apache: Option<&'a Apache>,
    pub interposition: Interposition,
}

/// How far a point has got.
struct State {
    measured: Measured,
    /// The logarithmic half-width of the widest interval of its ratios; `None` if there is none
    /// yet.
    width: Option<f64>,
    /// The time of its rounds so far.
    took: Duration,
}

impl State {
    fn new(point: Point, policies: usize) -> Self {
        let values = vec![Vec::new(); policies];
        Self { measured: Measured { point, values }, width: None, took: Duration::ZERO }
    }

    /// Adds a round: a value of each policy.
    fn add(&mut self, round: &[f64], took: Duration) {
        for (values, value) in self.measured.values.iter_mut().zip(round) {
            values.push(*value);
        }
        self.took += took;
        // Computed once a round: with many rounds it takes long, and it is read many times.
        self.width = width(&self.measured);
    }

    fn rounds(&self) -> usize {
        self.measured.values[0].len()
    }

    fn is_known_to(&self, precision: f64) -> bool {
        self.rounds() >= LEAST && self.width.is_some_and(|width| width <= precision)
    }

    /// The estimated remaining time: the width of an interval falls with the square root of the
    /// number of rounds.
    fn still(&self, precision: f64, rounds_max: u32) -> Duration {
        let (done, least) = (self.rounds() as f64, LEAST as f64);
        if done == 0.0 {
            return Duration::ZERO;
        }
        let by_width = self.width.map_or(least, |width| done * (width / precision).powi(2));
        let wanted = by_width.max(least).min(f64::from(rounds_max));
        self.took.mul_f64((wanted / done - 1.0).max(0.0))
    }
}

/// The width of a point's widest interval.
fn width(measured: &Measured) -> Option<f64> {
    let series: Vec<&[f64]> = measured.values.iter().map(|values| &values[..]).collect();
    let protocol = Protocol::new(measured.point.part.better());
    let comparisons = protocol.compare_all(series[0], &series[1..]).ok()?;
    let widths = comparisons.iter().map(|found| found.interval.map(|(a, b)| (b / a).ln() / 2.0));
    widths.collect::<Option<Vec<f64>>>()?.into_iter().reduce(f64::max)
}

impl Bench<'_> {
    /// Measures all points. If something fails there are those that have been measured until then.
    pub fn measure(
        &self,
        points: &[Point],
        inbox: &mut Inbox,
        terminal: &Terminal,
    ) -> (Vec<Measured>, Result<()>) {
        let mut states: Vec<State> =
            points.iter().map(|point| State::new(*point, self.policies.len())).collect();
        let bar = terminal.progress(self.options.budget.as_secs());
        let ended = self.rounds(&mut states, &bar, inbox, terminal);
        bar.finish_and_clear();
        if ended.is_ok() {
            self.tell_what_is_wide(&states, terminal);
        }
        let has_values = |state: &State| state.rounds() > 0;
        let measured = states.into_iter().filter(has_values).map(|state| state.measured);
        (measured.collect(), ended)
    }

    fn rounds(
        &self,
        states: &mut [State],
        bar: &ProgressBar,
        inbox: &mut Inbox,
        terminal: &Terminal,
    ) -> Result<()> {
        let begin = Instant::now();
        let mut order_of_policies = Schedule::new(self.policies.len(), !self.options.seed);
        let order_of_points = Schedule::new(states.len(), self.options.seed);
        for order in order_of_points.take(self.options.rounds as usize) {
            let open: Vec<usize> =
                order.into_iter().filter(|number| !self.is_enough(&states[*number])).collect();
            if open.is_empty() {
                break;
            }
            for number in open {
                // Every point has one round, whatever the budget.
                if states[number].rounds() > 0 && begin.elapsed() >= self.options.budget {
                    break;
                }
                let point = states[number].measured.point;
                self.show(bar, states, point, begin);
                let round = Instant::now();
                let values = or_once_more(terminal, || {
                    self.round(point, &mut order_of_policies, inbox, terminal)
                })?;
                states[number].add(&values, round.elapsed());
            }
        }
        Ok(())
    }

    fn precision(&self) -> f64 {
        (self.options.precision / 100.0).ln_1p()
    }

    fn is_enough(&self, state: &State) -> bool {
        state.is_known_to(self.precision())
    }

    /// Shows the progress in seconds, so that the bar's own estimate is the time left.
    fn show(&self, bar: &ProgressBar, states: &[State], point: Point, begin: Instant) {
        let left: Duration =
            states.iter().map(|state| state.still(self.precision(), self.options.rounds)).sum();
        let (past, budget) = (begin.elapsed(), self.options.budget);
        bar.set_length((past + left.min(budget.saturating_sub(past))).as_secs());
        bar.set_position(past.as_secs());
        let known = states.iter().filter(|state| self.is_enough(state)).count();
        bar.set_message(format!("s, {known} of {} points known: {point};", states.len()));
    }

    /// The value of each policy at a point: the median of its turns.
    fn round(
        &self,
        point: Point,
        orders: &mut Schedule,
        inbox: &mut Inbox,
        terminal: &Terminal,
    ) -> Result<Vec<f64>> {
        let work = |policy| work(point, policy, self.options.time, self.apache);
        let work = self.policies.iter().map(work).collect::<Result<Vec<_>>>()?;
        let rooms = work.iter().map(|_| TrialDir::new()).collect::<Result<Vec<_>>>()?;
        let mut serving = Vec::new();
        for (number, work) in work.iter().enumerate() {
            let server = self.started(work, &rooms[number], inbox);
            serving.push(server.map_err(|failure| self.at(failure, point, number))?);
        }
        let turns = if serving.iter().any(Option::is_some) { TURNS } else { 1 };
        let mut values = vec![Vec::new(); work.len()];
        for order in orders.take(turns) {
            for number in order {
                let value = self.turn(&work[number], &mut serving[number], inbox);
                let value = value.map_err(|failure| self.at(failure, point, number))?;
                terminal.say(format_args!("{point}, {}: {value}", self.policies[number]));
                values[number].push(value);
            }
        }
        for (number, server) in serving.into_iter().enumerate() {
            let stopped = server.map(Serving::stop).transpose();
            stopped.map_err(|failure| self.at(failure, point, number))?;
        }
        Ok(values.iter().filter_map(|turns| Median::of(turns)).map(|of| of.value).collect())
    }

    /// A run of one policy, on its server if it has one.
    fn turn(
        &self,
        work: &Work,
        serving: &mut Option<Serving<'_>>,
        inbox: &mut Inbox,
    ) -> Result<f64> {
        let outcome = match (serving, &work.plan.load) {
            (Some(server), Some(load)) => server.put(&load.command, inbox),
            _ => work.plan.run(&self.interposition, inbox),
        };
        usable((work.value)(&outcome?)?)
    }

    /// Starts the server of a policy, if there is one, and warms it up.
    fn started<'w>(
        &self,
        work: &'w Work,
        room: &'w TrialDir,
        inbox: &mut Inbox,
    ) -> Result<Option<Serving<'w>>> {
        let Some(load) = &work.plan.load else { return Ok(None) };
        let mut server = work.plan.serve(load, room, &self.interposition, inbox)?;
        if let Some(warm_up) = &work.warm_up {
            server.put(warm_up, inbox)?;
        }
        Ok(Some(server))
    }

    fn at(&self, failure: Failure, point: Point, policy: usize) -> Failure {
        failure.during(format!("{point}, {}", self.policies[policy]))
    }

    /// Reports points that are known less precisely than requested.
    fn tell_what_is_wide(&self, states: &[State], terminal: &Terminal) {
        let wide: Vec<_> = states.iter().filter(|state| !self.is_enough(state)).collect();
        if let [first, ..] = wide[..] {
            terminal.note(format_args!(
                "{} of {} points are not known to {} % (the first is {}): a longer --budget or --time, or more --rounds, would do",
                wide.len(),
                states.len(),
                self.options.precision,
                first.measured.point,
            ));
        }
    }
}

fn usable(value: f64) -> Result<f64> {
    match value > 0.0 && value.is_finite() {
        true => Ok(value),
        false => Err(Failure::failed("nothing was done in the time: let --time be longer")),
    }
}

/// Runs a round. If it fails, repeats it once, unless the failure is permanent or the user wants to
/// stop.
fn or_once_more<T>(terminal: &Terminal, mut round: impl FnMut() -> Result<T>) -> Result<T> {
    match round() {
        Err(failure @ Failure::Failed { .. }) => {
            terminal.note(format_args!("a round is repeated: {failure}"));
            round()
        }
        done => done,
    }
}

#[cfg(test)]
mod tests {
    use super::super::Part;
    use super::super::driver::Driver;
    use super::*;

    fn state() -> State {
        State::new(Point { part: Part::Latency, driver: Driver::Own, level: 64 }, 2)
    }

    #[test]
    fn rounds_that_agree_are_enough_only_when_there_are_some() {
        let mut state = state();
        for done in 0..LEAST {
            assert!(!state.is_known_to(0.02), "after {done} rounds");
            state.add(&[100.0, 50.0], Duration::from_secs(1));
        }
        assert!(state.is_known_to(0.02) && state.width == Some(0.0));
        assert_eq!(state.still(0.02, 101), Duration::ZERO);
    }

    #[test]
    fn rounds_that_differ_need_more() {
        let mut state = state();
        for number in 0..LEAST {
            let ratio = if number % 2 == 0 { 0.5 } else { 2.0 };
            state.add(&[100.0, 100.0 * ratio], Duration::from_secs(1));
        }
        assert!(!state.is_known_to(0.02) && state.is_known_to(1.0));
        // As many as are allowed are not enough.
        assert_eq!(state.still(0.02, 101), Duration::from_secs(91));
    }

    #[test]
    fn a_round_that_fails_is_repeated_once() {
        let terminal = Terminal::new(true, false);
        let mut attempts = 0;
        let second = or_once_more(&terminal, || {
            attempts += 1;
            if attempts == 2 { Ok(attempts) } else { Err(Failure::failed("no port")) }
        });
        assert_eq!(second.unwrap(), 2);
        attempts = 0;
        let never: Result<()> = or_once_more(&terminal, || {
            attempts += 1;
            Err(Failure::failed("no port"))
        });
        assert!(never.is_err() && attempts == 2);
        attempts = 0;
        let ended: Result<()> = or_once_more(&terminal, || {
            attempts += 1;
            Err(Failure::Interrupted(2))
        });
        assert!(ended.is_err() && attempts == 1, "who was asked to end does not begin again");
    }
}
