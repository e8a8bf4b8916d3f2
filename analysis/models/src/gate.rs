//! Gates, which bound changes: `job.handle p99 > 1.1x`.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use pest::Parser as _;
use pest::iterators::Pair;
use pest_derive::Parser;
use ppt_text::{alternatives, did_you_mean, nearest, quoted_char};
use thiserror::Error;

use crate::compare::{Change, Estimate};
use crate::error::{carets, expected};
use crate::measured::Statistic;

#[derive(Parser)]
#[grammar = "gate.pest"]
struct GateGrammar;

/// The bound of a change.
#[derive(Debug, Clone, PartialEq)]
pub struct Gate {
    /// The name of the field, as it is written.
    pub field: String,
    /// The position of that name in the text.
    pub span: Range<usize>,
    /// The statistic of the field.
    pub statistic: Statistic,
    /// The side on which a change is too much.
    pub relation: Relation,
    /// The bound.
    pub bound: Bound,
}

/// The side on which a change is too much.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relation {
    /// Values above the bound are too much.
    Above,
    /// Values below the bound are too much.
    Below,
}

/// A bound, relative to the first side.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Bound {
    /// A ratio: `1.1x`, or `10%`.
    Ratio(f64),
    /// A difference: `200us` is 200,000, as times are in nanoseconds.
    Difference(f64),
}

/// The result of a gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::Display)]
#[strum(serialize_all = "kebab-case")]
pub enum GateResult {
    /// Too much: the whole interval of the change is beyond the bound.
    TooMuch,
    /// Not too much: no part of the interval is beyond the bound.
    Fine,
    /// Undecided: the bound is within the interval.
    Unclear,
}

/// A text that is not a gate.
#[derive(Debug, Clone, PartialEq, Error)]
#[error("{mistake}")]
pub struct GateError {
    /// The mistake in it.
    pub mistake: GateMistake,
    /// The position of the mistake, in bytes of the text.
    pub span: Range<usize>,
}

impl GateError {
    /// The line of the text with the mistake, and carets below that mark it.
    pub fn drawn(&self, text: &str) -> String {
        carets(text, &self.span)
    }
}

/// A mistake in a gate.
#[derive(Debug, Clone, PartialEq, Error, strum::IntoStaticStr, strum::VariantNames)]
#[strum(serialize_all = "kebab-case", prefix = "gate-")]
pub enum GateMistake {
    /// The syntax requires something else here.
    #[error("expected {}, found {}: a gate is `job.handle p99 > 1.1x`",
        alternatives(.names, "a term"), quoted_char(*.found))]
    Expected {
        /// The character that was found; None at the end.
        found: Option<char>,
        /// The expected alternatives.
        names: Vec<&'static str>,
    },
    /// A word is not a statistic.
    #[error(transparent)]
    Statistic(#[from] crate::measured::NoStatistic),
    /// A unit is unknown.
    #[error("there is no unit `{unit}`; there are: x, %, ns, us, ms, s, or none")]
    Unit {
        /// The unit.
        unit: String,
    },
    /// A ratio is not above 0.
    #[error("a ratio above 0 is needed: 1x is no change")]
    Ratio,
    /// The text is too long.
    #[error("the gate has {bytes} bytes: at most {most} are read")]
    TooLong {
        /// The length of the text.
        bytes: usize,
        /// The largest length.
        most: usize,
    },
    /// The field was not compared.
    #[error("there is no field `{field}`{}; there are: {}", did_you_mean(.nearest), .available.join(", "))]
    NoField {
        /// The name of the field.
        field: String,
        /// A field of similar spelling.
        nearest: Option<String>,
        /// The fields that were compared.
        available: Vec<String>,
    },
}

impl GateMistake {
    /// The mistake that none of `fields` has this name.
    pub fn no_field(field: &str, fields: &[&str]) -> GateMistake {
        GateMistake::NoField {
            field: field.to_owned(),
            nearest: nearest(field, fields.iter().copied()).map(str::to_owned),
            available: fields.iter().map(|&name| name.to_owned()).collect(),
        }
    }
}

/// Whether `name` is the whole name of a field, or the end of it after a dot.
pub fn is_called(field: &str, name: &str) -> bool {
    let before = field.strip_suffix(name);
    before.is_some_and(|before| before.is_empty() || before.ends_with('.'))
}

/// A change without a ratio.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("{0} is not above 0 everywhere: a ratio says nothing, so give a difference as the bound")]
pub struct NoRatio(pub Statistic);

/// The largest length of a gate in bytes.
const MAX_BYTES: usize = 1024;

impl FromStr for Gate {
    type Err = GateError;

    fn from_str(text: &str) -> Result<Gate, GateError> {
        if text.len() > MAX_BYTES {
            let mistake = GateMistake::TooLong { bytes: text.len(), most: MAX_BYTES };
            return Err(GateError { mistake, span: 0..text.len() });
        }
        let mut pairs =
            GateGrammar::parse(Rule::gate, text).map_err(|error| mistake(text, &error))?;
        let mut gate = Gate {
            field: String::new(),
            span: 0..0,
            statistic: Statistic::Mean,
            relation: Relation::Above,
            bound: Bound::Ratio(1.0),
        };
        for part in pairs.next().into_iter().flat_map(Pair::into_inner) {
            match part.as_rule() {
                Rule::called | Rule::plain => gate.what(part)?,
                Rule::relation if part.as_str() == "<" => gate.relation = Relation::Below,
                Rule::bound => gate.bound = bound(part)?,
                _ => {}
            }
        }
        Ok(gate)
    }
}

fn place(pair: &Pair<'_, Rule>) -> Range<usize> {
    let span = pair.as_span();
    span.start()..span.end()
}

fn bound(pair: Pair<'_, Rule>) -> Result<Bound, GateError> {
    let span = place(&pair);
    let (mut number, mut unit) = (0.0, "");
    for part in pair.into_inner() {
        match part.as_rule() {
            Rule::number => number = part.as_str().parse().unwrap_or(f64::NAN),
            _ => unit = part.as_str(),
        }
    }
    let bound = match unit {
        "x" => Bound::Ratio(number),
        "%" => Bound::Ratio(1.0 + number / 100.0),
        "" | "ns" => Bound::Difference(number),
        "us" | "µs" => Bound::Difference(number * 1e3),
        "ms" => Bound::Difference(number * 1e6),
        "s" => Bound::Difference(number * 1e9),
        _ => {
            let mistake = GateMistake::Unit { unit: unit.to_owned() };
            return Err(GateError { mistake, span });
        }
    };
    match bound {
        Bound::Ratio(ratio) if ratio <= 0.0 => Err(GateError { mistake: GateMistake::Ratio, span }),
        _ => Ok(bound),
    }
}

impl Gate {
    fn what(&mut self, pair: Pair<'_, Rule>) -> Result<(), GateError> {
        for part in pair.into_inner() {
            let span = place(&part);
            match part.as_rule() {
                Rule::statistic => {
                    let statistic = part.as_str().parse();
                    self.statistic = statistic.map_err(|error: crate::measured::NoStatistic| {
                        GateError { mistake: error.into(), span }
                    })?;
                }
                Rule::field => {
                    self.field = part.as_str().trim_matches('"').to_owned();
                    self.span = span;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// The `fields` with the gate's name, or whose name ends with it after a dot.
    ///
    /// # Errors
    /// No field has that name.
    pub fn select<'a>(&self, fields: &[&'a str]) -> Result<Vec<&'a str>, GateError> {
        let is_its = |field: &&str| is_called(field, &self.field);
        let found: Vec<&str> = fields.iter().copied().filter(is_its).collect();
        if found.is_empty() {
            let mistake = GateMistake::no_field(&self.field, fields);
            return Err(GateError { mistake, span: self.span.clone() });
        }
        Ok(found)
    }

    /// Whether a change is too much, by its interval at the level of its verdict.
    ///
    /// # Errors
    /// The bound is a ratio, and the change has none: the first side is 0.
    pub fn judge(&self, change: &Change) -> Result<GateResult, NoRatio> {
        let (estimate, bound): (&Estimate, f64) = match (self.bound, &change.ratio) {
            (Bound::Ratio(bound), Some(_)) => (&change.decisive, bound),
            (Bound::Ratio(_), None) => return Err(NoRatio(change.statistic)),
            (Bound::Difference(bound), _) => (&change.decisive_difference, bound),
        };
        let range = estimate.believed();
        let (beyond, within) = match self.relation {
            Relation::Above => (range.low > bound, range.high <= bound),
            Relation::Below => (range.high < bound, range.low >= bound),
        };
        Ok(match (beyond, within) {
            (true, _) => GateResult::TooMuch,
            (false, true) => GateResult::Fine,
            (false, false) => GateResult::Unclear,
        })
    }
}

impl fmt::Display for Gate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let relation = if self.relation == Relation::Above { ">" } else { "<" };
        write!(f, "{}({}) {relation} ", self.statistic, self.field)?;
        match self.bound {
            Bound::Ratio(ratio) => write!(f, "{ratio}x"),
            Bound::Difference(difference) => write!(f, "{difference}"),
        }
    }
}

fn mistake(text: &str, error: &pest::error::Error<Rule>) -> GateError {
    let word = |rule: &Rule| match rule {
        Rule::relation => "`>` or `<`",
        Rule::open => "`(`",
        Rule::close => "`)`",
        Rule::statistic => "a statistic",
        Rule::bound | Rule::number => "a number",
        Rule::unit => "a unit",
        Rule::EOI => "the end",
        _ => "a field",
    };
    let (found, names, span) = expected(text, error, word);
    GateError { mistake: GateMistake::Expected { found, names }, span }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gate(text: &str) -> Gate {
        text.parse().unwrap_or_else(|error: GateError| panic!("{text}: {error}"))
    }

    #[test]
    fn both_ways_to_write_it() {
        let one = gate("job.handle p99 > 1.1x");
        let other = gate("p99(job.handle)>10%");
        assert_eq!((&one.field[..], one.statistic), ("job.handle", Statistic::Quantile(99_000)));
        assert_eq!((one.bound, one.relation), (Bound::Ratio(1.1), Relation::Above));
        assert_eq!((other.field, other.statistic), (one.field, one.statistic));
        let Bound::Ratio(ratio) = other.bound else { panic!() };
        assert!((ratio - 1.1).abs() < 1e-12);
        assert_eq!(gate("\"odd name\" median < -5 %").field, "odd name");
        assert_eq!(gate("mean(dur) > 1.5ms").bound, Bound::Difference(1.5e6));
        assert_eq!(gate("p99.9(dur) > 3").to_string(), "p99.9(dur) > 3");
    }

    #[test]
    fn mistakes_have_a_place() {
        let drawn = |text: &str| {
            let error = text.parse::<Gate>().unwrap_err();
            format!("{error}\n{}", error.drawn(text))
        };
        assert_eq!(
            drawn("p99(dur) 5%"),
            "expected `>` or `<`, found `5`: a gate is `job.handle p99 > 1.1x`\n\
             p99(dur) 5%\n         ^"
        );
        assert_eq!(
            drawn("p990(dur) > 5%"),
            "there is no statistic `p990`; there are: mean, median, p99 (any p0 … p100), min, max, \
             sd\np990(dur) > 5%\n^^^^"
        );
        assert_eq!(
            drawn("p99(dur) > 5parsec"),
            "there is no unit `parsec`; there are: x, %, ns, us, ms, s, or none\n\
             p99(dur) > 5parsec\n           ^^^^^^^"
        );
        assert_eq!(
            drawn("dur p99 > 0x"),
            "a ratio above 0 is needed: 1x is no change\ndur p99 > 0x\n          ^^"
        );
        assert!(drawn("").ends_with('^'));
    }

    #[test]
    fn fields_by_the_end_of_their_names() {
        let fields = ["dve.job.handle", "dve.job.wait", "job.handle", "mishandle"];
        assert_eq!(
            gate("handle p99 > 1x").select(&fields).unwrap(),
            ["dve.job.handle", "job.handle"]
        );
        assert_eq!(gate("dve.job.handle p99 > 1x").select(&fields).unwrap(), ["dve.job.handle"]);
        let error = gate("job.handel p99 > 1x").select(&fields).unwrap_err();
        assert!(error.to_string().contains("(did you mean `job.handle`?)"), "{error}");
    }
}
