//! Spans and points in requests of a bounded size.

use std::collections::BTreeMap;
use std::io::{self, Write};

use ppt_text::escaped_json;
use prost::Message;
use serde::Serialize;

use super::message::{
    MetricMessage, MetricsData, Resource, ResourceMetrics, ResourceSpans, Scope, ScopeMetrics,
    ScopeSpans, SpanMessage, TracesData,
};

/// The number of spans or points of a request, similar to that of collectors.
pub(super) const REQUEST: usize = 512;

/// The encoding of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// Messages, each with its length before it, in 4 bytes, the most significant one first: the format
    /// `proto` of the collector's file exporter.
    Protobuf,
    /// A line each: the format of the collector's receiver `otlpjsonfile`.
    Json,
}

pub(super) fn scope() -> Option<Scope> {
    Some(Scope { name: "ppt".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() })
}

fn write<M: Message + Serialize>(
    out: &mut impl Write,
    encoding: Encoding,
    message: &M,
) -> io::Result<()> {
    match encoding {
        Encoding::Protobuf => {
            let bytes = message.encode_to_vec();
            let length = u32::try_from(bytes.len()).map_err(io::Error::other)?;
            out.write_all(&length.to_be_bytes())?;
            out.write_all(&bytes)
        }
        Encoding::Json => {
            // Terminals and editors must not obey text from a target.
            out.write_all(escaped_json(&serde_json::to_string(message)?).as_bytes())?;
            out.write_all(b"\n")
        }
    }
}

/// Spans that are not yet written, by process.
#[derive(Debug, Default)]
pub(super) struct Spans {
    full: Vec<BTreeMap<usize, Vec<SpanMessage>>>,
    last: BTreeMap<usize, Vec<SpanMessage>>,
    /// The number of spans in the last request.
    count: usize,
}

impl Spans {
    /// Adds a span of a process.
    pub fn push(&mut self, process: usize, span: SpanMessage) {
        self.last.entry(process).or_default().push(span);
        self.count += 1;
        if self.count >= REQUEST {
            self.close();
        }
    }

    /// Closes the last request.
    pub fn close(&mut self) {
        self.count = 0;
        let last = std::mem::take(&mut self.last);
        self.full.extend(Some(last).filter(|last| !last.is_empty()));
    }

    /// Writes the closed requests.
    pub fn write(
        &mut self,
        out: &mut impl Write,
        encoding: Encoding,
        resource: impl Fn(usize) -> Resource,
    ) -> io::Result<()> {
        for spans in self.full.drain(..) {
            let of_process = |(process, spans)| ResourceSpans {
                resource: Some(resource(process)),
                scope_spans: vec![ScopeSpans { scope: scope(), spans }],
            };
            let resource_spans = spans.into_iter().map(of_process).collect();
            write(out, encoding, &TracesData { resource_spans })?;
        }
        Ok(())
    }
}

/// Writes metrics of processes as a request.
pub(super) fn write_metrics(
    out: &mut impl Write,
    encoding: Encoding,
    metrics: BTreeMap<usize, Vec<MetricMessage>>,
    resource: impl Fn(usize) -> Resource,
) -> io::Result<()> {
    let of_process = |(process, metrics)| ResourceMetrics {
        resource: Some(resource(process)),
        scope_metrics: vec![ScopeMetrics { scope: scope(), metrics }],
    };
    let resource_metrics: Vec<_> = metrics.into_iter().map(of_process).collect();
    if resource_metrics.is_empty() {
        Ok(())
    } else {
        write(out, encoding, &MetricsData { resource_metrics })
    }
}
