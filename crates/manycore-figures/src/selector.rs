//! One value out of many measurements.

use std::collections::BTreeMap;

use manycore_measure::Measurement;
use serde::Deserialize;

use crate::field::{Coordinate, Field};

/// Which measurements are meant, and what of them.
#[derive(Clone, Debug, Deserialize)]
pub struct Selector {
    /// Which of several is taken, by their value.
    pub take: Option<Extreme>,
    /// The quantity: by default the record's value; or a metric; or its coordinate in a dimension.
    pub what: Option<String>,
    /// The coordinates of the records. In a dimension that is not named, any coordinate.
    #[serde(flatten)]
    places: BTreeMap<Field, OneOrMany>,
}

/// Which of several.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Extreme {
    /// The one with the greatest value.
    Most,
    /// The one with the least.
    Least,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
enum OneOrMany {
    One(Coordinate),
    Many(Vec<Coordinate>),
}

impl OneOrMany {
    fn all(&self) -> &[Coordinate] {
        match self {
            Self::One(place) => std::slice::from_ref(place),
            Self::Many(places) => places,
        }
    }
}

impl Extreme {
    /// Whether the first is to be taken rather than the second.
    fn prefers(self, first: f64, second: f64) -> bool {
        match self {
            Self::Most => first > second,
            Self::Least => first < second,
        }
    }

    /// Takes from several.
    pub fn of(self, values: impl IntoIterator<Item = f64>) -> Option<f64> {
        values.into_iter().reduce(|best, next| if self.prefers(next, best) { next } else { best })
    }
}

impl Selector {
    /// The places that it names.
    pub(crate) fn places(&self) -> impl Iterator<Item = (Field, &Coordinate)> {
        self.places
            .iter()
            .flat_map(|(field, places)| places.all().iter().map(|place| (*field, place)))
    }

    /// Whether a measurement is among those that are meant.
    pub fn is_of(&self, measurement: &Measurement) -> bool {
        let stands = |(field, places): (&Field, &OneOrMany)| {
            field.of(measurement).is_some_and(|place| places.all().contains(&place))
        };
        self.places.iter().all(stands)
    }

    /// The value. The error says why there is none.
    pub fn value(&self, measurements: &[&Measurement]) -> Result<f64, String> {
        let of_what = self.what.as_deref().filter(|what| Field::of_name(what).is_none());
        let value = |measurement: &Measurement| match of_what {
            None => Ok(measurement.value),
            Some(name) => match measurement.metrics.get(name) {
                Some(metric) => Ok(metric.value),
                None => Err(format!("there is no metric `{name}`")),
            },
        };
        let mut taken: Option<(&Measurement, f64)> = None;
        for measurement in measurements.iter().filter(|measurement| self.is_of(measurement)) {
            let next = value(measurement)?;
            taken = match (taken, self.take) {
                (None, _) => Some((measurement, next)),
                (Some(_), None) => return Err("several were run: say which to `take`".to_owned()),
                (Some((_, best)), Some(take)) if take.prefers(next, best) => {
                    Some((measurement, next))
                }
                (best, _) => best,
            };
        }
        let (measurement, value) = taken.ok_or("it was not run")?;
        match self.what.as_deref().and_then(Field::of_name) {
            None => Ok(value),
            Some(field) => match field.of(measurement) {
                Some(Coordinate::Number(number)) => Ok(number),
                _ => Err(format!("`{}` is no number here", field.name())),
            },
        }
    }
}
