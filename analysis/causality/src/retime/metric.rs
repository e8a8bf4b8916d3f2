//! What is measured: `job.handle`, `request`, `path(a, b)`, `rate(job)`, `end`.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use super::critical::Trace;
use super::doubt::RetimeRefusal;
use super::known::{KnownPart, VertexRun, known_ends, known_lengths, known_stretches, progress};
use super::model::RetimeModel;
use super::moments::NONE;
use super::recording::NameId;
use super::replay::Replay;
use super::speed::{NoActivity, named};

/// A metric, as it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Metric {
    /// The lengths of an interval or a span.
    Length(String),
    /// From a point to another that it leads to.
    Path(String, String),
    /// How many of an interval or a span end in a second.
    Rate(String),
    /// The time until all is done.
    End,
}

/// A metric that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{text}` is no metric: {mistake}")]
pub struct MetricError {
    /// What was written.
    pub text: String,
    /// What is wrong.
    pub mistake: MetricMistake,
}

/// What is wrong with a metric.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum MetricMistake {
    /// There is nothing.
    #[error("write `job.handle`, `path(a, b)`, `rate(job)` or `end`")]
    Empty,
    /// A bracket without the other, or something after it.
    #[error("a bracket is open, or something follows it")]
    Brackets,
    /// A word before the bracket that nobody knows.
    #[error("before brackets stands `path` or `rate`, not `{function}`")]
    Function {
        /// The word.
        function: String,
    },
    /// Another number of names is within.
    #[error("`{function}` takes {takes}: {names} stand there")]
    Names {
        /// `path` or `rate`.
        function: &'static str,
        /// In words.
        takes: &'static str,
        /// So many.
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

/// A metric that the run has not.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum NoMetric {
    /// No interval or span has this name.
    #[error(transparent)]
    Name(#[from] NoActivity),
    /// Nothing leads from one to the other.
    #[error("nothing leads from `{from}` to `{to}`")]
    NoWay {
        /// Where it would begin.
        from: String,
        /// Where it would end.
        to: String,
    },
    /// The run is empty, or cannot be timed.
    #[error(transparent)]
    Refused(#[from] RetimeRefusal),
}

/// What of a run is measured.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum MetricPlaces {
    /// From vertex to vertex, by beginning.
    Lengths(Vec<(u32, u32)>),
    /// How often these come, in each stretch that nothing is missing of.
    Ends(Vec<Vec<u32>>),
    /// From the first vertex to the last, …
    Whole,
    /// … or over stretches of vertices, in the order of time, of those of which nothing is missing.
    Stretches(Vec<VertexRun>),
}

/// The values of a metric: each is a quotient, so that rates of parts sum up to that of the whole.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Series {
    pub(super) over: Vec<f64>,
    pub(super) under: Vec<f64>,
    /// The number of lengths or ends.
    pub(super) n: usize,
}

/// What is measured, and which share of the run's time counts for nothing, as frames are missing there.
pub(super) struct FoundMetric {
    pub places: MetricPlaces,
    pub missing_share: f64,
}

impl FoundMetric {
    fn lengths(pairs: Vec<(u32, u32)>, model: &RetimeModel) -> FoundMetric {
        let KnownPart { values, missing_share } = known_lengths(pairs, model);
        FoundMetric { places: MetricPlaces::Lengths(values), missing_share }
    }
}

impl MetricPlaces {
    pub fn find(metric: &Metric, model: &RetimeModel) -> Result<FoundMetric, NoMetric> {
        match metric {
            Metric::Length(of) => Ok(FoundMetric::lengths(lengths(of, model)?, model)),
            Metric::Rate(of) => {
                let KnownPart { values, missing_share } = known_ends(lengths(of, model)?, model);
                Ok(FoundMetric { places: MetricPlaces::Ends(values), missing_share })
            }
            Metric::Path(from, to) => {
                let (begin, end) = (point(from, model)?, point(to, model)?);
                let ways = ways(begin, end, model)?;
                if ways.is_empty() {
                    return Err(NoMetric::NoWay { from: from.clone(), to: to.clone() });
                }
                Ok(FoundMetric::lengths(ways, model))
            }
            Metric::End if model.moments.len() == 0 => {
                Err(RetimeRefusal::Missing { point: "end".to_owned() }.into())
            }
            Metric::End => {
                let KnownPart { values, missing_share } = known_stretches(model);
                let places = if values.is_empty() {
                    MetricPlaces::Whole
                } else {
                    MetricPlaces::Stretches(values)
                };
                Ok(FoundMetric { places, missing_share })
            }
        }
    }

    /// With these times.
    pub fn measure(&self, time: &[i64]) -> Series {
        match self {
            MetricPlaces::Lengths(pairs) => {
                let length =
                    |entry: &(u32, u32)| (time[entry.1 as usize] - time[entry.0 as usize]) as f64;
                let over: Vec<_> = pairs.iter().map(length).collect();
                Series { under: vec![1.0; over.len()], n: over.len(), over }
            }
            MetricPlaces::Ends(stretches) => {
                let mut series = Series::default();
                for ends in stretches {
                    series += rates(ends.iter().map(|&end| time[end as usize]).collect());
                }
                series
            }
            MetricPlaces::Whole => {
                let (first, last) = (time.iter().min(), time.iter().max());
                let whole = first.zip(last).map_or(0, |(first, last)| last - first);
                Series { over: vec![whole as f64], under: vec![1.0], n: 1 }
            }
            MetricPlaces::Stretches(stretches) => {
                let whole = progress(stretches, time);
                Series { over: vec![whole as f64], under: vec![1.0], n: 1 }
            }
        }
    }

    /// The share of it that lies on ways that an activity decides.
    pub fn critical(&self, trace: &Trace, time: &[i64]) -> f64 {
        let share = |pairs: &mut dyn Iterator<Item = (u32, i64)>| {
            let (mut taken, mut length) = (0i128, 0i128);
            for (end, begin) in pairs {
                taken += i128::from(trace.taken(end, begin, time));
                length += i128::from(time[end as usize] - begin);
            }
            if length > 0 { taken as f64 / length as f64 } else { 0.0 }
        };
        // Of what happens one after the other: the last of it, and when the first was.
        fn whole(mut all: impl Iterator<Item = u32>, time: &[i64]) -> Option<(u32, i64)> {
            let first = all.next()?;
            let (mut last, mut begin) = (first, time[first as usize]);
            for at in all {
                last = std::cmp::max_by_key(last, at, |&end| (time[end as usize], end));
                begin = begin.min(time[at as usize]);
            }
            Some((last, begin))
        }
        match self {
            MetricPlaces::Lengths(pairs) => {
                share(&mut pairs.iter().map(|pair| (pair.1, time[pair.0 as usize])))
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

impl std::ops::AddAssign for Series {
    fn add_assign(&mut self, mut other: Series) {
        self.over.append(&mut other.over);
        self.under.append(&mut other.under);
        self.n += other.n;
    }
}

/// How many come in a second, in as many parts as each has ends.
fn rates(mut ends: Vec<i64>) -> Series {
    ends.sort_unstable();
    let n = ends.len();
    let each = n.isqrt().max(1);
    let bounds: Vec<_> = (0..n).step_by(each).chain(n.checked_sub(1)).collect();
    let parts = bounds.windows(2).filter(|window| window[0] < window[1]);
    let (over, under) = parts
        .map(|part| ((part[1] - part[0]) as f64, (ends[part[1]] - ends[part[0]]) as f64 / 1e9))
        .unzip();
    Series { over, under, n }
}

fn lengths(of: &str, model: &RetimeModel) -> Result<Vec<(u32, u32)>, NoMetric> {
    let mut there: Vec<_> = model.measured.iter().map(|length| length.name).collect();
    there.dedup();
    let mut there: Vec<_> = there.into_iter().map(|id| model.names.written(id)).collect();
    there.sort_unstable();
    let name = model.names.find(named(of, &there)?);
    let those = model.measured.iter().filter(|length| Some(length.name) == name);
    Ok(those.map(|length| (length.begin.0, length.end.0)).collect())
}

/// The name of vertices that is `text`, or ends so after a dot.
fn point(text: &str, model: &RetimeModel) -> Result<NameId, NoMetric> {
    let mut there = model.moments.name.clone();
    there.sort_unstable();
    there.dedup();
    let there: Vec<_> =
        there.into_iter().map(|number| model.names.written(NameId(number))).collect();
    match named(text, &there) {
        Ok(name) => Ok(model.names.find(name).expect("a name that is written")),
        Err(NoActivity::Unknown { name, .. }) => Err(RetimeRefusal::Missing { point: name }.into()),
        Err(error) => Err(error.into()),
    }
}

/// For each `to` the `from` that it comes from: along causes where there are any, else along its thread.
fn ways(from: NameId, to: NameId, model: &RetimeModel) -> Result<Vec<(u32, u32)>, NoMetric> {
    let Replay { time, order } = model.as_it_was()?;
    let vertices = time.len();
    let (mut origin, mut caused) = (vec![NONE; vertices], vec![NONE; vertices]);
    let mut ways = Vec::new();
    for at in order {
        let slot = at as usize;
        let before = || model.moments.before(at).map_or(NONE, |before| origin[before as usize]);
        let mut found = match (caused[slot], model.job[slot]) {
            (NONE, NONE) => before(),
            (caused, _) => caused,
        };
        if model.moments.name[slot] == to.0 && found != NONE {
            ways.push((found, at));
        }
        if model.moments.name[slot] == from.0 {
            found = at;
        }
        origin[slot] = found;
        if found == NONE {
            continue;
        }
        for &(next, _) in model.ways.from(at) {
            let known = &mut caused[next as usize];
            if *known == NONE || time[*known as usize] < time[found as usize] {
                *known = found;
            }
        }
    }
    ways.sort_unstable_by_key(|way| (time[way.0 as usize], *way));
    Ok(ways)
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
        // Ten a second, nine of them after the first.
        let series = rates((0..10).rev().map(|number| number * 100_000_000).collect());
        let sum = |of: &[f64]| of.iter().sum::<f64>();
        assert_eq!((sum(&series.over), series.n), (9.0, 10));
        assert!((sum(&series.over) / sum(&series.under) - 10.0).abs() < 1e-9);
        assert_eq!(rates(Vec::new()), Series::default());
        assert_eq!(rates(vec![7]).over, []);
    }
}
