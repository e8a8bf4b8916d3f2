//! Counts the ends of a metric.

use ppt_agent::{FrameCounter, Session};

use super::names::is_named;

/// The frames with which a metric ends.
#[derive(Debug)]
pub(super) struct MetricEnds(Vec<CountedEnd>);

#[derive(Debug)]
struct CountedEnd {
    frames: FrameCounter,
    /// Frames that make one end: 2 for a span, else 1.
    each: u64,
}

impl MetricEnds {
    /// Finds the ends of a metric, as the command line names it. None if no frame records them.
    pub(super) fn find(metric: &str, sessions: &[Session]) -> Option<Self> {
        let name = last_name(metric);
        let mut ends = Vec::new();
        let buffers =
            |session| (0..).zip(Session::attached(session)).map(move |buffer| (session, buffer));
        for (session, (index, buffer)) in sessions.iter().flat_map(buffers) {
            for (id, frame) in buffer.buffer.schema.frames.iter().enumerate() {
                let halves = frame.fields.iter().filter_map(|field| field.interval.as_ref());
                let mut intervals = halves.map(|half| format!("{}.{}", frame.name, half.name));
                let is_span = frame.span().is_some();
                let is_whole = (is_span || frame.point().is_some()) && is_named(&frame.name, name);
                if is_whole || intervals.any(|interval| is_named(&interval, name)) {
                    // A span is two frames.
                    let each = if is_span { 2 } else { 1 };
                    ends.push(CountedEnd { frames: session.frame_counter(index, id as u16), each });
                }
            }
        }
        (!ends.is_empty()).then_some(Self(ends))
    }

    /// Counts from now on.
    pub(super) fn restart(&mut self) {
        self.0.iter_mut().for_each(|end| end.frames.restart());
    }

    /// Whether at least `enough` ends have come.
    pub(super) fn are_there(&mut self, enough: u64) -> bool {
        let count = |end: &mut CountedEnd| end.frames.count(enough * end.each) / end.each;
        self.0.iter_mut().map(count).sum::<u64>() >= enough
    }
}

/// The name at which a metric ends: `b` of `path(a, b)`, `x` of `rate(x)` and `x`.
fn last_name(metric: &str) -> &str {
    let inner = |function: &str| {
        let inner = metric.trim().strip_prefix(function)?.trim_start().strip_prefix('(')?;
        inner.trim_end().strip_suffix(')')
    };
    let path = inner("path").and_then(|ends| ends.split_once(',')).map(|ends| ends.1);
    path.or_else(|| inner("rate")).unwrap_or(metric).trim()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_metric_ends_with_its_last_name() {
        assert_eq!(last_name("path(asked, got)"), "got");
        assert_eq!(last_name(" path (asked,jobs.got) "), "jobs.got");
        assert_eq!(last_name("rate(serve.work)"), "serve.work");
        assert_eq!(last_name("request"), "request");
    }
}
