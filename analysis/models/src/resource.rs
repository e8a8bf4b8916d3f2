//! What a resource takes: the sum of its components, each with a formula of its own.

use nalgebra::DVector;
use thiserror::Error;

use crate::bootstrap::expanded;
use crate::chance::t_quantile;
use crate::error::{ColumnValues, PredictError, quoted};
use crate::fit::{Beyond, Fit};
use crate::interval::ConfidenceInterval;
use crate::limit::{Meets, Search};

/// A part of a resource.
#[derive(Debug, Clone)]
pub struct Component {
    /// Its name: input, simulation, output.
    pub name: String,
    /// What it takes.
    pub fit: Fit,
}

/// A resource as the sum of its components, which depend on one load: the number of users.
#[derive(Debug, Clone)]
pub struct Resource {
    load: String,
    components: Vec<Component>,
    level: f64,
}

/// Why components are no resource.
#[derive(Debug, Clone, PartialEq, Error, strum::IntoStaticStr, strum::VariantNames)]
#[strum(serialize_all = "kebab-case", prefix = "resource-")]
pub enum ResourceError {
    /// There are none.
    #[error("a resource needs at least one component")]
    Empty,
    /// A formula needs more than the load.
    #[error("the formula of `{component}` has {}: a model knows `{load}` alone", quoted(.others))]
    Others {
        /// The component.
        component: String,
        /// The load.
        load: String,
        /// What else it needs.
        others: Vec<String>,
    },
    /// No formula has the load.
    #[error("no formula has `{load}`: nothing grows with it")]
    NoLoad {
        /// The load.
        load: String,
    },
}

/// What a resource takes at some load.
#[derive(Debug, Clone, PartialEq)]
pub struct Total {
    /// The value.
    pub value: f64,
    /// Where the mean of many measurements there lies, by Student's t, as if components were
    /// independent.
    pub mean: ConfidenceInterval,
    /// Where a single measurement there lies, likewise.
    pub single: ConfidenceInterval,
    /// Where the mean lies, by resampling runs, for all components at once if they are of the same
    /// runs. None where there are too few.
    pub bootstrap: Option<ConfidenceInterval>,
    /// Each component's part.
    pub parts: Vec<ComponentShare>,
    /// Whether the load is outside of what was measured.
    pub beyond: Option<Beyond>,
}

impl Total {
    /// The interval of the mean to believe: over runs, where there are enough.
    pub fn believed(&self) -> ConfidenceInterval {
        self.bootstrap.unwrap_or(self.mean)
    }

    /// The interval of a single measurement to believe: it is wider than that of the mean.
    pub fn believed_single(&self) -> ConfidenceInterval {
        self.single.of_one(self.value, self.mean, self.believed())
    }

    /// The component that most of the uncertainty comes from: the one to model more finely next.
    pub fn dominant(&self) -> Option<&ComponentShare> {
        self.parts.iter().max_by(|one, other| one.uncertainty.total_cmp(&other.uncertainty))
    }
}

/// What a component contributes.
#[derive(Debug, Clone, PartialEq)]
pub struct ComponentShare {
    /// The component.
    pub name: String,
    /// What it takes.
    pub value: f64,
    /// Its part of the variance of the total: of all components it sums to 1. Below 0 it makes up
    /// for the errors of others. NaN where nothing is uncertain.
    pub uncertainty: f64,
}

/// Where a resource meets its bound.
#[derive(Debug, Clone, PartialEq)]
pub struct Limit {
    /// The bound.
    pub bound: f64,
    /// Where it is met.
    pub meets: Meets,
    /// Where it is met at the earliest and at the latest, by Student's t, as if components were
    /// independent.
    pub range: (Meets, Meets),
    /// The same by resampling runs.
    pub bootstrap: Option<(Meets, Meets)>,
    /// What the resource takes there, or at the end of the search: its parts say whose uncertainty
    /// decides the answer.
    pub there: Total,
}

impl Limit {
    /// The range to believe: over runs, where there are enough.
    pub fn believed(&self) -> (Meets, Meets) {
        self.bootstrap.unwrap_or(self.range)
    }
}

impl Resource {
    /// The sum of these, whose formulas have no input but `load`.
    ///
    /// # Errors
    /// A component has another input, or there are none.
    pub fn new(load: &str, components: Vec<Component>) -> Result<Resource, ResourceError> {
        let Some(level) = components.first().map(|component| component.fit.level) else {
            return Err(ResourceError::Empty);
        };
        let mut grows = false;
        for it in &components {
            let inputs = it.fit.formula.inputs();
            grows |= inputs.contains(&load);
            let others: Vec<String> =
                inputs.into_iter().filter(|input| *input != load).map(str::to_owned).collect();
            if !others.is_empty() {
                let (component, load) = (it.name.clone(), load.to_owned());
                return Err(ResourceError::Others { component, load, others });
            }
        }
        if !grows {
            return Err(ResourceError::NoLoad { load: load.to_owned() });
        }
        Ok(Resource { load: load.to_owned(), components, level })
    }

    /// A single fit as a resource of its own.
    ///
    /// # Errors
    /// The formula has another input.
    pub fn from_fit(load: &str, fit: Fit) -> Result<Resource, ResourceError> {
        Resource::new(load, vec![Component { name: fit.formula.response.to_string(), fit }])
    }

    /// Its components.
    pub fn components(&self) -> &[Component] {
        &self.components
    }

    /// The least and the greatest load that any component was measured at.
    pub fn measured(&self) -> ConfidenceInterval {
        let ranges = self
            .components
            .iter()
            .flat_map(|component| component.fit.measured().map(|entry| entry.1));
        let all = ConfidenceInterval { low: f64::INFINITY, high: f64::NEG_INFINITY };
        ranges.fold(all, |all, range| ConfidenceInterval {
            low: all.low.min(range.low),
            high: all.high.max(range.high),
        })
    }

    fn weights(&self, load: f64) -> Result<Vec<DVector<f64>>, PredictError> {
        let weights = |component: &Component| component.fit.weights(&|_: &str| load);
        self.components.iter().map(weights).collect()
    }

    /// The estimate, its variance, the variance of a single measurement, degrees of freedom (Welch,
    /// Satterthwaite).
    fn moments(&self, weights: &[DVector<f64>]) -> (f64, f64, f64, f64) {
        let (mut value, mut mean, mut noise, mut squares) = (0.0, 0.0, 0.0, 0.0);
        for (it, weights) in self.components.iter().zip(weights) {
            let variance = it.fit.variance(weights);
            value += it.fit.estimate.dot(weights);
            mean += variance;
            noise += it.fit.sigma * it.fit.sigma;
            squares += variance * variance / it.fit.freedom;
        }
        let least = self
            .components
            .iter()
            .map(|component| component.fit.freedom)
            .fold(f64::INFINITY, f64::min);
        let freedom = mean * mean / squares;
        (value, mean, mean + noise, if freedom.is_finite() { freedom } else { least })
    }

    /// The mean's interval at a place.
    fn band(&self, weights: &[DVector<f64>]) -> ConfidenceInterval {
        let (value, mean, _, freedom) = self.moments(weights);
        ConfidenceInterval::around(
            value,
            t_quantile((1.0 + self.level) / 2.0, freedom) * mean.sqrt(),
        )
    }

    /// Whether each component has a bootstrap of as many resamples as the others.
    fn resampled(&self) -> bool {
        let counts: Vec<_> = self
            .components
            .iter()
            .map(|component| component.fit.options.resampling.count)
            .collect();
        self.components.iter().all(|component| component.fit.bootstrap.is_ok())
            && counts.iter().all(|count| *count == counts[0])
    }

    /// Each component's value in each resample. The same runs drew the same numbers, so that what
    /// they have in common stays together.
    fn resamples(&self, weights: &[DVector<f64>]) -> Vec<Vec<Option<f64>>> {
        let parts = self.components.iter().zip(weights);
        let parts = parts.filter_map(|(component, weights)| {
            let bootstrap = component.fit.bootstrap.as_ref().ok()?;
            Some(bootstrap.each(|all| all.dot(weights)))
        });
        parts.collect()
    }

    /// The sums of resamples, the units and the degrees of freedom of the poorest component.
    fn sums(parts: &[Vec<Option<f64>>]) -> Vec<Option<f64>> {
        let count = parts.first().map_or(0, Vec::len);
        (0..count).map(|at| parts.iter().map(|part| part[at]).sum()).collect()
    }

    fn units(&self) -> (f64, f64) {
        let all =
            self.components.iter().filter_map(|component| component.fit.bootstrap.as_ref().ok());
        let poorest = all.map(|bootstrap| (bootstrap.runs() as f64, bootstrap.freedom()));
        poorest.min_by(|one, other| one.1.total_cmp(&other.1)).unwrap_or((1.0, 1.0))
    }

    fn interval(&self, values: Vec<Option<f64>>) -> ConfidenceInterval {
        let (units, freedom) = self.units();
        expanded(values.into_iter().flatten().collect(), self.level, units, freedom)
    }

    /// What it takes at this load.
    ///
    /// # Errors
    /// The result is no number.
    pub fn predict(&self, load: f64) -> Result<Total, PredictError> {
        if !load.is_finite() {
            let at = ColumnValues(vec![(self.load.clone(), load)]);
            return Err(PredictError::NoValue { term: self.load.clone(), at });
        }
        let weights = self.weights(load)?;
        let (value, mean, single, freedom) = self.moments(&weights);
        let wide = t_quantile((1.0 + self.level) / 2.0, freedom);
        let resamples = if self.resampled() { self.resamples(&weights) } else { Vec::new() };
        let uncertainty: Vec<f64> = if resamples.is_empty() {
            let variance = |component: &Component, weights| component.fit.variance(weights) / mean;
            self.components
                .iter()
                .zip(&weights)
                .map(|(component, w)| variance(component, w))
                .collect()
        } else {
            shares(&resamples)
        };
        let parts = self.components.iter().zip(&weights).zip(uncertainty);
        let parts = parts.map(|((component, weights), uncertainty)| ComponentShare {
            name: component.name.clone(),
            value: component.fit.estimate.dot(weights),
            uncertainty,
        });
        let parts = parts.collect();
        let measured = self.measured();
        Ok(Total {
            value,
            mean: ConfidenceInterval::around(value, wide * mean.sqrt()),
            single: ConfidenceInterval::around(value, wide * single.sqrt()),
            bootstrap: (!resamples.is_empty()).then(|| self.interval(Self::sums(&resamples))),
            parts,
            beyond: (!measured.holds(load)).then(|| Beyond {
                column: self.load.clone(),
                at: load,
                measured,
            }),
        })
    }

    /// The load at which it reaches `bound` from below.
    ///
    /// # Errors
    /// The sum is no number on the way there.
    pub fn limit(&self, bound: f64) -> Result<Limit, PredictError> {
        if !bound.is_finite() {
            return Err(PredictError::Bound { bound });
        }
        let measured = self.measured();
        let search = Search::new(measured.low, measured.high);
        // A term may have no value far out (an exponential); nothing is met there.
        let weights: Vec<Option<Vec<DVector<f64>>>> =
            search.places.iter().map(|place| self.weights(*place).ok()).collect();
        let first = |of: &dyn Fn(&[DVector<f64>]) -> f64| {
            let known = |at: usize| weights[at].as_deref().map_or(f64::NAN, of);
            let cost = |load: f64| self.weights(load).map_or(f64::NAN, |weight| of(&weight));
            search.first(bound, known, cost)
        };
        let meets = first(&|matrixes| self.moments(matrixes).0);
        let range = (
            first(&|matrixes| self.band(matrixes).high),
            first(&|matrixes| self.band(matrixes).low),
        );
        let at = match meets {
            Meets::At(at) | Meets::FromTheStart(at) => at,
            Meets::Never { .. } => measured.high,
        };
        let bootstrap = self.resampled().then(|| self.limits(&search, &weights, bound));
        Ok(Limit { bound, meets, range, bootstrap, there: self.predict(at)? })
    }

    fn limits(
        &self,
        search: &Search,
        weights: &[Option<Vec<DVector<f64>>>],
        bound: f64,
    ) -> (Meets, Meets) {
        let all: Vec<&[Option<DVector<f64>>]> = self
            .components
            .iter()
            .filter_map(|component| Some(component.fit.bootstrap.as_ref().ok()?.coefficients()))
            .collect();
        let count = all.first().map_or(0, |matrixes| matrixes.len());
        let each = (0..count).map(|resample| {
            let drawn: Option<Vec<&DVector<f64>>> =
                all.iter().map(|matrixes| matrixes[resample].as_ref()).collect();
            let drawn = drawn?;
            let cost = |weights: &[DVector<f64>]| {
                drawn.iter().zip(weights).map(|(one, other)| one.dot(other)).sum::<f64>()
            };
            let known = |at: usize| weights[at].as_deref().map_or(f64::NAN, cost);
            let at = |load: f64| self.weights(load).map_or(f64::NAN, |weight| cost(&weight));
            Some(search.first(bound, known, at).number())
        });
        let interval = self.interval(each.collect());
        let start = search.places[0];
        let meets = |number: f64| match number {
            value if value.is_infinite() => {
                Meets::Never { searched: search.places.last().copied().unwrap_or(start) }
            }
            value if value <= start => Meets::FromTheStart(start),
            value => Meets::At(value),
        };
        (meets(interval.low), meets(interval.high))
    }
}

/// Each one's covariance with the sum, as a part of the sum's variance.
fn shares(parts: &[Vec<Option<f64>>]) -> Vec<f64> {
    let sums = Resource::sums(parts);
    let whole: Vec<usize> = (0..sums.len()).filter(|&index| sums[index].is_some()).collect();
    let centred = |values: &[Option<f64>]| {
        let values: Vec<f64> = whole.iter().filter_map(|&index| values[index]).collect();
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        values.into_iter().map(|value| value - mean).collect::<Vec<_>>()
    };
    let sums = centred(&sums);
    let variance: f64 = sums.iter().map(|sum| sum * sum).sum();
    let share = |part: &Vec<Option<f64>>| {
        let products = centred(part).into_iter().zip(&sums).map(|(one, other)| one * other);
        products.sum::<f64>() / variance
    };
    parts.iter().map(share).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bootstrap::hash;

    #[test]
    fn runs_of_other_names_draw_other_numbers() {
        let names = |of: &[&str]| of.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        assert_eq!(hash(&names(&["a", "b"])), hash(&names(&["a", "b"])));
        assert_ne!(hash(&names(&["a", "b"])), hash(&names(&["ab"])));
    }

    #[test]
    fn shares_sum_to_one() {
        let one = vec![Some(1.0), Some(2.0), None, Some(4.0)];
        let other = vec![Some(3.0), Some(1.0), Some(9.0), Some(2.0)];
        let all = shares(&[one, other]);
        assert!((all.iter().sum::<f64>() - 1.0).abs() < 1e-12, "{all:?}");
    }
}
