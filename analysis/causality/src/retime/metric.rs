//! Metrics: `job.handle`, `request`, `path(a, b)`, `rate(job)`, `end`.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use super::critical_paths::CriticalPaths;
use super::loss_free::{
    LossFree, VertexRun, loss_free_ends, loss_free_lengths, loss_free_stretches, progress,
};
use super::model::RetimeModel;
use super::moments::{NONE, VertexPair};
use super::recorded_run::NameId;
use super::refusal::RetimeRefusal;
use super::replay_result::Replay;
use super::speed::{ActivityError, resolve_name};

/// A metric, as it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Metric {
    /// The length of an interval or a span.
    Length(String),
    /// The time from a point to another that it leads to.
    Path(String, String),
    /// The number of ends of an interval or a span in a second.
    Rate(String),
    /// The time from the first vertex to the last.
    End,
}

/// A text that is not a metric.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{text}` is not a metric: {mistake}")]
pub struct MetricError {
    /// The text.
    pub text: String,
    /// The mistake in it.
    pub mistake: MetricMistake,
}

/// A mistake in a metric.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum MetricMistake {
    /// The text is empty.
    #[error("write `job.handle`, `path(a, b)`, `rate(job)` or `end`")]
    Empty,
    /// A bracket has no partner, or text follows it.
    #[error("a bracket has no partner, or text follows it")]
    Brackets,
    /// The word before the bracket is not a function.
    #[error("unknown function `{function}`: use `path(a, b)` or `rate(name)`")]
    Function {
        /// The unknown word.
        function: String,
    },
    /// The function takes another number of names.
    #[error("`{function}` takes {takes}, not {names}")]
    Names {
        /// `path` or `rate`.
        function: &'static str,
        /// The correct number, in words.
        takes: &'static str,
        /// The number in the text.
        names: usize,
    },
}

impl FromStr for Metric {
    type Err = MetricError;

    fn from_str(text: &str) -> Result<Metric, MetricError> {
        let metric = read(text.trim());
        metric.map_err(|mistake| MetricError { text: text.to_owned(), mistake })
    }
}

fn read(text: &str) -> Result<Metric, MetricMistake> {
    let Some((function, rest)) = text.split_once('(') else {
        return match text {
            "" => Err(MetricMistake::Empty),
            "end" => Ok(Metric::End),
            _ if text.contains(')') => Err(MetricMistake::Brackets),
            _ => Ok(Metric::Length(text.to_owned())),
        };
    };
    let inside = rest.strip_suffix(')').ok_or(MetricMistake::Brackets)?;
    if inside.contains(['(', ')']) {
        return Err(MetricMistake::Brackets);
    }
    let names: Vec<_> = inside.split(',').map(str::trim).filter(|text| !text.is_empty()).collect();
    let wrong = |function, takes| Err(MetricMistake::Names { function, takes, names: names.len() });
    match (function.trim(), &names[..]) {
        ("path", [from, to]) => Ok(Metric::Path((*from).to_owned(), (*to).to_owned())),
        ("path", _) => wrong("path", "two points"),
        ("rate", [of]) => Ok(Metric::Rate((*of).to_owned())),
        ("rate", _) => wrong("rate", "one name"),
        (function, _) => Err(MetricMistake::Function { function: function.to_owned() }),
    }
}

impl Metric {
    /// The share by which a length is shorter, or a rate higher, if it is multiplied by `quotient`.
    pub(crate) fn gain(&self, quotient: f64) -> f64 {
        if matches!(self, Metric::Rate(_)) { quotient - 1.0 } else { 1.0 - quotient }
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Metric::Length(of) => f.write_str(of),
            Metric::Path(from, to) => write!(f, "path({from}, {to})"),
            Metric::Rate(of) => write!(f, "rate({of})"),
            Metric::End => f.write_str("end"),
        }
    }
}

/// Why a run does not have a metric.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum MetricUnavailable {
    /// No interval or span has this name.
    #[error(transparent)]
    Name(#[from] ActivityError),
    /// No path leads from one point to the other.
    #[error("nothing leads from `{from}` to `{to}`")]
    NoWay {
        /// The point where the path would begin.
        from: String,
        /// The point where the path would end.
        to: String,
    },
    /// The run is empty, or cannot be replayed.
    #[error(transparent)]
    Refused(#[from] RetimeRefusal),
}

/// The vertices of a run that a metric is computed from.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum MetricPlaces {
    /// The lengths between these pairs, by begin.
    Lengths(Vec<VertexPair>),
    /// The rates of these vertices, in each stretch without missing frames.
    Ends(Vec<Vec<u32>>),
    /// The time from the first vertex to the last.
    Whole,
    /// The sum of the lengths of the known stretches, in the order of time.
    Stretches(Vec<VertexRun>),
}

/// The values of a metric, as quotients: a length by 1, or a number of ends by a time in seconds. So the rates
/// of parts add up to that of the whole.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Ratios {
    pub(super) numerators: Vec<f64>,
    pub(super) denominators: Vec<f64>,
    /// The number of lengths or ends.
    pub(super) count: usize,
}

impl Ratios {
    pub(super) fn lengths(values: Vec<f64>) -> Ratios {
        Ratios { denominators: vec![1.0; values.len()], count: values.len(), numerators: values }
    }

    pub(super) fn mean(&self) -> f64 {
        self.numerators.iter().sum::<f64>() / self.denominators.iter().sum::<f64>()
    }
}

/// The vertices of a metric, and the share of the run's time that it leaves out because frames are missing.
pub(super) struct FoundMetric {
    pub places: MetricPlaces,
    pub missing_share: f64,
}

impl FoundMetric {
    fn lengths(pairs: Vec<VertexPair>, model: &RetimeModel) -> FoundMetric {
        let LossFree { values, missing_share } = loss_free_lengths(pairs, model);
        FoundMetric { places: MetricPlaces::Lengths(values), missing_share }
    }
}

impl MetricPlaces {
    pub fn find(metric: &Metric, model: &RetimeModel) -> Result<FoundMetric, MetricUnavailable> {
        match metric {
            Metric::Length(of) => Ok(FoundMetric::lengths(lengths(of, model)?, model)),
            Metric::Rate(of) => {
                let LossFree { values, missing_share } = loss_free_ends(lengths(of, model)?, model);
                Ok(FoundMetric { places: MetricPlaces::Ends(values), missing_share })
            }
            Metric::Path(from, to) => {
                let (begin, end) = (point(from, model)?, point(to, model)?);
                let pairs = path_ends(begin, end, model)?;
                if pairs.is_empty() {
                    return Err(MetricUnavailable::NoWay { from: from.clone(), to: to.clone() });
                }
                Ok(FoundMetric::lengths(pairs, model))
            }
            Metric::End if model.moments.len() == 0 => {
                Err(RetimeRefusal::Missing { point: "end".to_owned() }.into())
            }
            Metric::End => {
                let LossFree { values, missing_share } = loss_free_stretches(model);
                let places = if values.is_empty() {
                    MetricPlaces::Whole
                } else {
                    MetricPlaces::Stretches(values)
                };
                Ok(FoundMetric { places, missing_share })
            }
        }
    }

    /// Computes the metric with these times of vertices.
    pub fn measure(&self, time: &[i64]) -> Ratios {
        match self {
            MetricPlaces::Lengths(pairs) => {
                let length = |pair: &VertexPair| {
                    (time[pair.end as usize] - time[pair.begin as usize]) as f64
                };
                Ratios::lengths(pairs.iter().map(length).collect())
            }
            MetricPlaces::Ends(stretches) => {
                let mut ratios = Ratios::default();
                for ends in stretches {
                    ratios += rates(ends.iter().map(|&end| time[end as usize]).collect());
                }
                ratios
            }
            MetricPlaces::Whole => {
                let (first, last) = (time.iter().min(), time.iter().max());
                let whole = first.zip(last).map_or(0, |(first, last)| last - first);
                Ratios::lengths(vec![whole as f64])
            }
            MetricPlaces::Stretches(stretches) => {
                Ratios::lengths(vec![progress(stretches, time) as f64])
            }
        }
    }

    /// The share of an activity in the critical paths of the metric.
    pub fn critical_share(&self, paths: &CriticalPaths, time: &[i64]) -> f64 {
        let share = |pairs: &mut dyn Iterator<Item = (u32, i64)>| {
            let (mut taken, mut length) = (0i128, 0i128);
            for (end, begin) in pairs {
                taken += i128::from(paths.taken(end, begin, time));
                length += i128::from(time[end as usize] - begin);
            }
            if length > 0 { taken as f64 / length as f64 } else { 0.0 }
        };
        // The last of some vertices, and the time of the first.
        fn whole(mut vertices: impl Iterator<Item = u32>, time: &[i64]) -> Option<(u32, i64)> {
            let first = vertices.next()?;
            let (mut last, mut begin) = (first, time[first as usize]);
            for at in vertices {
                last = std::cmp::max_by_key(last, at, |&end| (time[end as usize], end));
                begin = begin.min(time[at as usize]);
            }
            Some((last, begin))
        }
        match self {
            MetricPlaces::Lengths(pairs) => {
                share(&mut pairs.iter().map(|pair| (pair.end, time[pair.begin as usize])))
            }
            MetricPlaces::Ends(ends) => {
                share(&mut ends.iter().filter_map(|ends| whole(ends.iter().copied(), time)))
            }
            MetricPlaces::Whole => share(&mut whole(0..time.len() as u32, time).into_iter()),
            MetricPlaces::Stretches(stretches) => {
                share(&mut stretches.iter().filter_map(|stretch| whole(stretch.known(), time)))
            }
        }
    }
}

impl std::ops::AddAssign for Ratios {
    fn add_assign(&mut self, mut other: Ratios) {
        self.numerators.append(&mut other.numerators);
        self.denominators.append(&mut other.denominators);
        self.count += other.count;
    }
}

/// The rates of ends in about √n stretches with √n ends each.
fn rates(mut ends: Vec<i64>) -> Ratios {
    ends.sort_unstable();
    let count = ends.len();
    let step = count.isqrt().max(1);
    let bounds: Vec<_> = (0..count).step_by(step).chain(count.checked_sub(1)).collect();
    let stretches = bounds.windows(2).filter(|window| window[0] < window[1]);
    let (numerators, denominators) = stretches
        .map(|bound| ((bound[1] - bound[0]) as f64, (ends[bound[1]] - ends[bound[0]]) as f64 / 1e9))
        .unzip();
    Ratios { numerators, denominators, count }
}

fn lengths(name: &str, model: &RetimeModel) -> Result<Vec<VertexPair>, MetricUnavailable> {
    let mut ids: Vec<_> = model.measured.iter().map(|length| length.name).collect();
    ids.dedup();
    let mut names: Vec<_> = ids.into_iter().map(|id| model.names.written(id)).collect();
    names.sort_unstable();
    let id = model.names.find(resolve_name(name, &names)?);
    let lengths = model.measured.iter().filter(|length| Some(length.name) == id);
    Ok(lengths.map(|length| VertexPair { begin: length.begin.0, end: length.end.0 }).collect())
}

/// The name of vertices that is `text`, or ends with `.text`.
fn point(text: &str, model: &RetimeModel) -> Result<NameId, MetricUnavailable> {
    let mut ids = model.moments.name.clone();
    ids.sort_unstable();
    ids.dedup();
    let names: Vec<_> = ids.into_iter().map(|id| model.names.written(NameId(id))).collect();
    match resolve_name(text, &names) {
        Ok(name) => Ok(model.names.find(name).expect("one of the names")),
        Err(ActivityError::Unknown { name, .. }) => {
            Err(RetimeRefusal::Missing { point: name }.into())
        }
        Err(error) => Err(error.into()),
    }
}

/// Pairs each vertex named `to` with the latest `from` that led to it: through its causes if it has any,
/// otherwise through its thread.
fn path_ends(
    from: NameId,
    to: NameId,
    model: &RetimeModel,
) -> Result<Vec<VertexPair>, MetricUnavailable> {
    let Replay { time, order } = model.as_it_was()?;
    let vertices = time.len();
    let (mut origin, mut caused) = (vec![NONE; vertices], vec![NONE; vertices]);
    let mut pairs = Vec::new();
    for at in order {
        let index = at as usize;
        let before = || model.moments.before(at).map_or(NONE, |before| origin[before as usize]);
        let mut found = match (caused[index], model.job_of_vertex[index]) {
            (NONE, NONE) => before(),
            (caused, _) => caused,
        };
        if model.moments.name[index] == to.0 && found != NONE {
            pairs.push(VertexPair { begin: found, end: at });
        }
        if model.moments.name[index] == from.0 {
            found = at;
        }
        origin[index] = found;
        if found == NONE {
            continue;
        }
        for &(next, _) in model.cause_edges.from(at) {
            let known = &mut caused[next as usize];
            if *known == NONE || time[*known as usize] < time[found as usize] {
                *known = found;
            }
        }
    }
    pairs.sort_unstable_by_key(|pair| (time[pair.begin as usize], *pair));
    Ok(pairs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_measured() {
        let read = |text: &str| text.parse::<Metric>();
        let length = |of: &str| Metric::Length(of.to_owned());
        assert_eq!(read("job.handle"), Ok(length("job.handle")));
        assert_eq!(read(" request "), Ok(length("request")));
        assert_eq!(read("end"), Ok(Metric::End));
        assert_eq!(read("rate(job)"), Ok(Metric::Rate("job".to_owned())));
        let path = Metric::Path("sent".to_owned(), "job.received".to_owned());
        assert_eq!(read("path(sent, job.received)"), Ok(path.clone()));
        assert_eq!(path.to_string().parse(), Ok(path));
        let wrong = |text| read(text).unwrap_err().mistake;
        assert_eq!(wrong("  "), MetricMistake::Empty);
        for text in ["path(a, b", "path(a, b) c", "rate((a))", "a)"] {
            assert_eq!(wrong(text), MetricMistake::Brackets, "{text}");
        }
        assert!(matches!(wrong("path(a)"), MetricMistake::Names { names: 1, .. }));
        assert!(matches!(wrong("path(a, b, c)"), MetricMistake::Names { names: 3, .. }));
        assert!(matches!(wrong("rate()"), MetricMistake::Names { names: 0, .. }));
        assert!(matches!(wrong("p99(a)"), MetricMistake::Function { .. }));
    }

    #[test]
    fn a_rate_is_counted_between_its_ends() {
        // Ten ends a second, of which nine come after the first.
        let ratios = rates((0..10).rev().map(|number| number * 100_000_000).collect());
        assert_eq!((ratios.numerators.iter().sum::<f64>(), ratios.count), (9.0, 10));
        assert!((ratios.mean() - 10.0).abs() < 1e-9);
        assert_eq!(rates(Vec::new()), Ratios::default());
        assert_eq!(rates(vec![7]).numerators, []);
    }
}
