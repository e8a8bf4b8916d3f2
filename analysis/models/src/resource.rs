//! The use of a resource: the sum of its components, each with a formula of its own.

use nalgebra::DVector;
use thiserror::Error;

use crate::bootstrap::expanded;
use crate::chance::t_quantile;
use crate::error::{ColumnValues, PredictError, quoted};
use crate::fit::{Beyond, Fit};
use crate::interval::ConfidenceInterval;
use crate::limit::{Crossing, CrossingRange, Search};

/// A part of a resource.
#[derive(Debug, Clone)]
pub struct Component {
    /// The name: input, simulation, output.
    pub name: String,
    /// The fit of its use.
    pub fit: Fit,
}

/// A resource as the sum of its components, which depend on one load: the number of users.
#[derive(Debug, Clone)]
pub struct Resource {
    load: String,
    components: Vec<Component>,
    level: f64,
}

/// Why components do not make a resource.
#[derive(Debug, Clone, PartialEq, Error, strum::IntoStaticStr, strum::VariantNames)]
#[strum(serialize_all = "kebab-case", prefix = "resource-")]
pub enum ResourceError {
    /// There is no component.
    #[error("a resource needs at least one component")]
    Empty,
    /// A formula needs more than the load.
    #[error("the formula of `{component}` has {}: a model knows `{load}` alone", quoted(.others))]
    Others {
        /// The name of the component.
        component: String,
        /// The name of the load.
        load: String,
        /// The other columns that its formula needs.
        others: Vec<String>,
    },
    /// No formula has the load.
    #[error("no formula has `{load}`: nothing grows with it")]
    NoLoad {
        /// The load.
        load: String,
    },
}

/// The use of a resource at some load.
#[derive(Debug, Clone, PartialEq)]
pub struct ResourceUse {
    /// The value.
    pub value: f64,
    /// The interval of the mean of many measurements, by Student's t, as if components were independent.
    pub mean: ConfidenceInterval,
    /// The interval of a single measurement, likewise.
    pub single: ConfidenceInterval,
    /// The interval of the mean, by resampling runs, for all components at once if they have the same runs.
    /// None if there are too few.
    pub bootstrap: Option<ConfidenceInterval>,
    /// The share of each component.
    pub parts: Vec<ComponentShare>,
    /// The load, if it is outside of the measured range.
    pub beyond: Option<Beyond>,
}

impl ResourceUse {
    /// The better interval of the mean: over runs, if there are enough.
    pub fn believed(&self) -> ConfidenceInterval {
        self.bootstrap.unwrap_or(self.mean)
    }

    /// The better interval of a single measurement, which is wider than that of the mean.
    pub fn believed_single(&self) -> ConfidenceInterval {
        self.single.single_measurement(self.value, self.mean, self.believed())
    }

    /// The component with the largest share of the uncertainty. A finer model of it helps most.
    pub fn dominant(&self) -> Option<&ComponentShare> {
        self.parts.iter().max_by(|a, b| a.uncertainty.total_cmp(&b.uncertainty))
    }
}

/// The contribution of a component.
#[derive(Debug, Clone, PartialEq)]
pub struct ComponentShare {
    /// The name of the component.
    pub name: String,
    /// What the component uses at the load, in the unit of the resource.
    pub value: f64,
    /// The share of the component in the variance of the total; all shares sum to 1. A share below 0 cancels
    /// errors of others.
    /// NaN if the total is certain.
    pub uncertainty: f64,
}

/// The load at which a resource meets its bound.
#[derive(Debug, Clone, PartialEq)]
pub struct Limit {
    /// The bound.
    pub bound: f64,
    /// The load at which it is met.
    pub crossing: Crossing,
    /// The interval of that load, by Student's t, as if components were independent.
    pub range: CrossingRange,
    /// The interval of that load, by resampling runs.
    pub bootstrap: Option<CrossingRange>,
    /// The use of the resource at that load, or at the largest measured load if the bound is never met. Its
    /// parts show whose uncertainty decides the answer.
    pub at_limit: ResourceUse,
}

impl Limit {
    /// The better interval: over runs, if there are enough.
    pub fn believed(&self) -> CrossingRange {
        self.bootstrap.unwrap_or(self.range)
    }
}

/// The estimated use of a resource at some load.
struct LoadEstimate {
    value: f64,
    /// The variance of the mean.
    variance: f64,
    /// The variance of a single measurement.
    single_variance: f64,
    /// The degrees of freedom.
    freedom: f64,
}

impl Resource {
    /// The sum of components whose formulas have no input but `load`.
    ///
    /// # Errors
    /// A component has another input, or there is no component.
    pub fn new(load: &str, components: Vec<Component>) -> Result<Resource, ResourceError> {
        let Some(level) = components.first().map(|component| component.fit.level) else {
            return Err(ResourceError::Empty);
        };
        let mut grows = false;
        for component in &components {
            let inputs = component.fit.formula.inputs();
            grows |= inputs.contains(&load);
            let others: Vec<String> =
                inputs.into_iter().filter(|input| *input != load).map(str::to_owned).collect();
            if !others.is_empty() {
                let (component, load) = (component.name.clone(), load.to_owned());
                return Err(ResourceError::Others { component, load, others });
            }
        }
        if !grows {
            return Err(ResourceError::NoLoad { load: load.to_owned() });
        }
        Ok(Resource { load: load.to_owned(), components, level })
    }

    /// A resource of a single component.
    ///
    /// # Errors
    /// The formula has another input.
    pub fn from_fit(load: &str, fit: Fit) -> Result<Resource, ResourceError> {
        Resource::new(load, vec![Component { name: fit.formula.response.to_string(), fit }])
    }

    /// The components.
    pub fn components(&self) -> &[Component] {
        &self.components
    }

    /// The smallest and the largest load at which any component was measured.
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

    /// The estimate at a load, with degrees of freedom after Welch and Satterthwaite.
    fn estimate(&self, weights: &[DVector<f64>]) -> LoadEstimate {
        let (mut value, mut variance, mut noise, mut squares) = (0.0, 0.0, 0.0, 0.0);
        for (Component { fit, .. }, weights) in self.components.iter().zip(weights) {
            let part = fit.variance(weights);
            value += fit.estimate.dot(weights);
            variance += part;
            noise += fit.sigma * fit.sigma;
            squares += part * part / fit.freedom;
        }
        let least = self
            .components
            .iter()
            .map(|component| component.fit.freedom)
            .fold(f64::INFINITY, f64::min);
        let freedom = variance * variance / squares;
        let freedom = if freedom.is_finite() { freedom } else { least };
        LoadEstimate { value, variance, single_variance: variance + noise, freedom }
    }

    /// The interval of the mean.
    fn band(&self, weights: &[DVector<f64>]) -> ConfidenceInterval {
        let LoadEstimate { value, variance, freedom, .. } = self.estimate(weights);
        let half = t_quantile((1.0 + self.level) / 2.0, freedom) * variance.sqrt();
        ConfidenceInterval::around(value, half)
    }

    /// Whether all components have bootstraps with the same number of resamples.
    fn resampled(&self) -> bool {
        let counts: Vec<_> = self
            .components
            .iter()
            .map(|component| component.fit.options.resampling.count)
            .collect();
        self.components.iter().all(|component| component.fit.bootstrap.is_ok())
            && counts.iter().all(|count| *count == counts[0])
    }

    /// The values of each component in each resample. Components with the same runs have the same resamples, so
    /// that common effects stay together.
    fn resamples(&self, weights: &[DVector<f64>]) -> Vec<Vec<Option<f64>>> {
        let parts = self.components.iter().zip(weights);
        let parts = parts.filter_map(|(component, weights)| {
            let bootstrap = component.fit.bootstrap.as_ref().ok()?;
            Some(bootstrap.each(|coefficients| coefficients.dot(weights)))
        });
        parts.collect()
    }

    /// The sums over components in each resample.
    fn sums(parts: &[Vec<Option<f64>>]) -> Vec<Option<f64>> {
        let count = parts.first().map_or(0, Vec::len);
        (0..count).map(|at| parts.iter().map(|part| part[at]).sum()).collect()
    }

    /// The numbers of runs and of degrees of freedom of the component with the fewest.
    fn units(&self) -> (f64, f64) {
        let bootstraps =
            self.components.iter().filter_map(|component| component.fit.bootstrap.as_ref().ok());
        let counts = bootstraps.map(|bootstrap| (bootstrap.runs() as f64, bootstrap.freedom()));
        counts.min_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or((1.0, 1.0))
    }

    fn interval(&self, values: Vec<Option<f64>>) -> ConfidenceInterval {
        let (units, freedom) = self.units();
        expanded(values.into_iter().flatten().collect(), self.level, units, freedom)
    }

    /// The use of the resource at a load.
    ///
    /// # Errors
    /// The result is not a number.
    pub fn predict(&self, load: f64) -> Result<ResourceUse, PredictError> {
        if !load.is_finite() {
            let at = ColumnValues(vec![(self.load.clone(), load)]);
            return Err(PredictError::NoValue { term: self.load.clone(), at });
        }
        let weights = self.weights(load)?;
        let LoadEstimate { value, variance, single_variance, freedom } = self.estimate(&weights);
        let wide = t_quantile((1.0 + self.level) / 2.0, freedom);
        let resamples = if self.resampled() { self.resamples(&weights) } else { Vec::new() };
        let uncertainty: Vec<f64> = if resamples.is_empty() {
            let share = |component: &Component, weights| component.fit.variance(weights) / variance;
            self.components
                .iter()
                .zip(&weights)
                .map(|(component, weights)| share(component, weights))
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
        Ok(ResourceUse {
            value,
            mean: ConfidenceInterval::around(value, wide * variance.sqrt()),
            single: ConfidenceInterval::around(value, wide * single_variance.sqrt()),
            bootstrap: (!resamples.is_empty()).then(|| self.interval(Self::sums(&resamples))),
            parts,
            beyond: (!measured.holds(load)).then(|| Beyond {
                column: self.load.clone(),
                at: load,
                measured,
            }),
        })
    }

    /// The load at which the use reaches `bound` from below.
    ///
    /// # Errors
    /// The sum is not a number on the way there.
    pub fn limit(&self, bound: f64) -> Result<Limit, PredictError> {
        if !bound.is_finite() {
            return Err(PredictError::Bound { bound });
        }
        let measured = self.measured();
        let search = Search::new(measured.low, measured.high);
        // Terms may have no value at large loads (an exponential); the bound is not met there.
        let weights: Vec<Option<Vec<DVector<f64>>>> =
            search.places.iter().map(|place| self.weights(*place).ok()).collect();
        let first = |use_of: &dyn Fn(&[DVector<f64>]) -> f64| {
            let use_at = |at: usize| weights[at].as_deref().map_or(f64::NAN, use_of);
            let cost = |load: f64| self.weights(load).map_or(f64::NAN, |weights| use_of(&weights));
            search.first(bound, use_at, cost)
        };
        let crossing = first(&|weights| self.estimate(weights).value);
        let range = CrossingRange {
            low: first(&|weights| self.band(weights).high),
            high: first(&|weights| self.band(weights).low),
        };
        let at = match crossing {
            Crossing::At(at) | Crossing::FromTheStart(at) => at,
            Crossing::Never { .. } => measured.high,
        };
        let bootstrap = self.resampled().then(|| self.limits(&search, &weights, bound));
        Ok(Limit { bound, crossing, range, bootstrap, at_limit: self.predict(at)? })
    }

    fn limits(
        &self,
        search: &Search,
        weights: &[Option<Vec<DVector<f64>>>],
        bound: f64,
    ) -> CrossingRange {
        let coefficients: Vec<&[Option<DVector<f64>>]> = self
            .components
            .iter()
            .filter_map(|component| Some(component.fit.bootstrap.as_ref().ok()?.coefficients()))
            .collect();
        let count = coefficients.first().map_or(0, |resamples| resamples.len());
        let loads = (0..count).map(|resample| {
            let drawn: Option<Vec<&DVector<f64>>> =
                coefficients.iter().map(|resamples| resamples[resample].as_ref()).collect();
            let drawn = drawn?;
            let cost = |weights: &[DVector<f64>]| {
                drawn.iter().zip(weights).map(|(one, other)| one.dot(other)).sum::<f64>()
            };
            let cost_at = |at: usize| weights[at].as_deref().map_or(f64::NAN, cost);
            let at = |load: f64| self.weights(load).map_or(f64::NAN, |weight| cost(&weight));
            Some(search.first(bound, cost_at, at).number())
        });
        let interval = self.interval(loads.collect());
        let start = search.places[0];
        let crossing = |number: f64| match number {
            value if value.is_infinite() => {
                Crossing::Never { searched: search.places.last().copied().unwrap_or(start) }
            }
            value if value <= start => Crossing::FromTheStart(start),
            value => Crossing::At(value),
        };
        CrossingRange { low: crossing(interval.low), high: crossing(interval.high) }
    }
}

/// The covariance of each component with the sum, as a share of the sum's variance.
fn shares(parts: &[Vec<Option<f64>>]) -> Vec<f64> {
    let sums = Resource::sums(parts);
    let complete: Vec<usize> = (0..sums.len()).filter(|&index| sums[index].is_some()).collect();
    let centred = |values: &[Option<f64>]| {
        let values: Vec<f64> = complete.iter().filter_map(|&index| values[index]).collect();
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
