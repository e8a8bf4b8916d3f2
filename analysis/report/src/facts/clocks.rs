//! Accuracy of the clocks of hosts, if captures are from several.

use std::collections::BTreeMap;

use ppt_query::Engine;

use crate::error::ReportError;
use crate::span::ChartSpan;
use crate::text_rows;

/// Accuracy of a host's clock.
#[derive(Debug)]
pub struct HostClock {
    pub host: String,
    /// The host whose clock defines the times.
    pub reference: String,
    /// Width of the bounds in the middle of each slice, in ns; None: unbounded.
    pub over: Vec<Option<f64>>,
}

impl HostClock {
    /// Minimum, median and maximum width, in ns. None if all slices are unbounded.
    pub fn widths(&self) -> Option<[f64; 3]> {
        let mut all: Vec<f64> = self.over.iter().flatten().copied().collect();
        all.sort_by(f64::total_cmp);
        Some([*all.first()?, all[all.len() / 2], *all.last()?])
    }

    /// Fraction of the time without bounds.
    pub fn unknown(&self) -> f64 {
        self.over.iter().filter(|value| value.is_none()).count() as f64
            / self.over.len().max(1) as f64
    }
}

/// A time at which the bounds are known: ns since the epoch, width in ns, and whether they hold after
/// it.
type Knot = (i64, f64, bool);

pub(super) async fn gather(
    engine: &Engine,
    span: Option<&ChartSpan>,
) -> Result<Vec<HostClock>, ReportError> {
    let Some(span) = span else { return Ok(Vec::new()) };
    // Captures of one host share its clock, so any of them will do.
    let sql = "SELECT host, reference, capture, CAST(ts AS BIGINT) AS t, width, known FROM \
               clock_bounds WHERE host <> reference ORDER BY host, capture, t";
    let mut hosts: BTreeMap<(String, String), BTreeMap<String, Vec<Knot>>> = BTreeMap::new();
    for row in text_rows::query(engine, sql).await? {
        let [host, reference, capture, t, width, known] =
            <[String; 6]>::try_from(row).unwrap_or_default();
        let (Ok(t), Ok(width)) = (t.parse(), width.parse()) else { continue };
        let captures = hosts.entry((host, reference)).or_default();
        captures.entry(capture).or_default().push((t, width, known == "true"));
    }
    let clock = |((host, reference), captures): (_, BTreeMap<_, Vec<Knot>>)| {
        let middle = |slice: usize| {
            let (from, to) = span.part(slice);
            span.from.saturating_add(((from + to) / 2.0 * span.every as f64) as i64)
        };
        let widest = |slice: usize| {
            let widths = captures.values().filter_map(|capture| width_at(capture, middle(slice)));
            widths.max_by(f64::total_cmp)
        };
        let over = (0..span.slices).map(widest).collect();
        HostClock { host, reference, over }
    };
    Ok(hosts.into_iter().map(clock).collect())
}

/// The width at a time, interpolated between two knots.
fn width_at(knots: &[Knot], time: i64) -> Option<f64> {
    let next = knots.partition_point(|knot| knot.0 <= time);
    let (from, to) = (knots.get(next.checked_sub(1)?)?, knots.get(next)?);
    let part = (time - from.0) as f64 / (to.0 - from.0) as f64;
    from.2.then_some(from.1 + part * (to.1 - from.1))
}

#[cfg(test)]
mod tests {
    use super::width_at;

    #[test]
    fn a_width_is_on_a_line_between_two_knots() {
        let knots = [(0, 10.0, true), (10, 20.0, false), (20, 5.0, true)];
        let at = |time| width_at(&knots, time);
        assert_eq!(
            [at(-1), at(0), at(5), at(12), at(20)],
            [None, Some(10.0), Some(15.0), None, None]
        );
    }
}
