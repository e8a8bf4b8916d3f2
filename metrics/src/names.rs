//! The names of series that frame files define.

use std::collections::{BTreeMap, BTreeSet};

use crate::text::{Description, MetricType};
use crate::units::BaseUnit;

/// Most names that are assigned; a program that defines more is not shown.
const MAX_NAMES: usize = 4096;
/// Most characters of a name that are kept.
const MAX_NAME_CHARS: usize = 200;

/// A counter or a histogram, and how it is shown.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Defined {
    pub buffer: String,
    pub name: String,
    pub ty: MetricType,
    pub base: &'static str,
}

/// Names that are assigned for the whole session: a series never changes its name.
#[derive(Debug)]
pub(crate) struct SeriesNames {
    /// The names of all samples.
    taken: BTreeSet<String>,
    given: BTreeMap<Defined, String>,
}

impl SeriesNames {
    /// An empty set that avoids the names of ppt's own families.
    pub fn new(own: &[Description<'_>]) -> SeriesNames {
        let samples = own.iter().flat_map(|description| samples(description.name, description.ty));
        SeriesNames { taken: samples.collect(), given: BTreeMap::new() }
    }

    /// The name of a family, the same one each time. `None` if there are too many.
    pub fn give(&mut self, defined: &Defined) -> Option<&str> {
        if !self.given.contains_key(defined) {
            if self.given.len() >= MAX_NAMES {
                return None;
            }
            let name = self.free(defined);
            self.taken.extend(samples(&name, defined.ty));
            self.given.insert(defined.clone(), name);
        }
        self.given.get(defined).map(String::as_str)
    }

    /// A name that no sample uses.
    fn free(&self, defined: &Defined) -> String {
        let mut stem = format!("ppt_{}_{}", sanitised(&defined.buffer), sanitised(&defined.name));
        if defined.ty == MetricType::Counter {
            let end = stem.strip_suffix("_total").map_or(stem.len(), str::len);
            stem.truncate(end);
        }
        if !defined.base.is_empty() {
            let without = stem.strip_suffix(defined.base).and_then(|text| text.strip_suffix('_'));
            let end = without.map_or(stem.len(), str::len);
            stem.truncate(end);
        }
        let ending = match defined.base {
            "" => String::new(),
            base => format!("_{base}"),
        };
        let numbered = (2u32..).map(|number| format!("{stem}_{number}{ending}"));
        let mut names = std::iter::once(format!("{stem}{ending}")).chain(numbered);
        let is_free =
            |name: &String| samples(name, defined.ty).all(|sample| !self.taken.contains(&sample));
        names.find(is_free).unwrap_or_default()
    }
}

fn samples(name: &str, ty: MetricType) -> impl Iterator<Item = String> {
    ty.suffixes().iter().map(move |suffix| format!("{name}{suffix}"))
}

/// The letters, digits and underscores of a name, which may be untrusted.
fn sanitised(name: &str) -> String {
    let character = |char: char| if char.is_ascii_alphanumeric() { char } else { '_' };
    name.chars().take(MAX_NAME_CHARS).map(character).collect()
}

impl Defined {
    pub fn new(buffer: &str, name: &str, ty: MetricType, unit: BaseUnit) -> Defined {
        Defined { buffer: buffer.to_owned(), name: name.to_owned(), ty, base: unit.base }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn defined(name: &str, ty: MetricType, unit: &str) -> Defined {
        Defined::new("net", name, ty, BaseUnit::read(unit))
    }

    #[test]
    fn names_end_with_their_unit_once() {
        let mut names = SeriesNames::new(&[]);
        let mut given = |name, ty, unit| names.give(&defined(name, ty, unit)).unwrap().to_owned();
        assert_eq!(given("bytes_in", MetricType::Counter, "B"), "ppt_net_bytes_in_bytes");
        assert_eq!(given("bytes", MetricType::Counter, "KiB"), "ppt_net_bytes");
        assert_eq!(given("sent_total", MetricType::Counter, ""), "ppt_net_sent");
        assert_eq!(given("wait", MetricType::Histogram, "ns"), "ppt_net_wait_seconds");
        assert_eq!(given("a b\"\u{e9}", MetricType::Gauge, "x"), "ppt_net_a_b__");
    }

    #[test]
    fn no_two_families_share_a_sample() {
        let own = Description { name: "ppt_net_own", ty: MetricType::Gauge, unit: "", help: "" };
        let mut names = SeriesNames::new(&[own]);
        let mut given = |name, ty, unit| names.give(&defined(name, ty, unit)).unwrap().to_owned();
        assert_eq!(given("own", MetricType::Counter, ""), "ppt_net_own_2");
        assert_eq!(given("wait", MetricType::Histogram, ""), "ppt_net_wait");
        assert_eq!(given("wait_sum", MetricType::Gauge, ""), "ppt_net_wait_sum_2");
        assert_eq!(given("wait", MetricType::Counter, ""), "ppt_net_wait_2");
        assert_eq!(given("wait", MetricType::Counter, "s"), "ppt_net_wait_seconds");
        assert_eq!(given("wait_seconds", MetricType::Counter, "ms"), "ppt_net_wait_2_seconds");
        assert_eq!(given("wait", MetricType::Counter, ""), "ppt_net_wait_2", "it stays");
    }

    #[test]
    fn names_have_an_end() {
        let mut names = SeriesNames::new(&[]);
        let mut all =
            (0..MAX_NAMES).map(|index| defined(&index.to_string(), MetricType::Gauge, ""));
        assert!(all.all(|it| names.give(&it).is_some()));
        assert_eq!(names.give(&defined("more", MetricType::Gauge, "")), None);
        let long = SeriesNames::new(&[]).free(&defined(&"x".repeat(9999), MetricType::Gauge, ""));
        assert_eq!(long.len(), "ppt_net_".len() + MAX_NAME_CHARS);
    }
}
