//! Spans and points on their way into the file: requests of a bounded size.

use std::collections::BTreeMap;
use std::io::{self, Write};

use prost::Message;
use serde::Serialize;

use super::message::{
    Metric, MetricsData, Resource, ResourceMetrics, ResourceSpans, Scope, ScopeMetrics, ScopeSpans,
    Span, TracesData,
};

/// Spans or points of a request: about what collectors send at once.
pub(super) const REQUEST: usize = 512;

/// How requests are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// Messages, each with its length before it, in 4 bytes, the most significant one first: the format
    /// `proto` of the collector's file exporter.
    Protobuf,
    /// A line each: what the receiver `otlpjsonfile` of the collector reads.
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
            serde_json::to_writer(&mut *out, message)?;
            out.write_all(b"\n")
        }
    }
}

/// Spans that are not yet written, by process.
#[derive(Debug, Default)]
pub(super) struct Spans {
    all: BTreeMap<usize, Vec<Span>>,
    count: usize,
}

impl Spans {
    /// Takes in a span of a process; whether it is time to write.
    pub fn push(&mut self, process: usize, span: Span) -> bool {
        self.all.entry(process).or_default().push(span);
        self.count += 1;
        self.count >= REQUEST
    }

    /// Writes them as a request, if there are any.
    pub fn write(
        &mut self,
        out: &mut impl Write,
        encoding: Encoding,
        resource: impl Fn(usize) -> Resource,
    ) -> io::Result<()> {
        self.count = 0;
        let all = std::mem::take(&mut self.all).into_iter();
        let resource_spans: Vec<_> = all
            .map(|(process, spans)| ResourceSpans {
                resource: Some(resource(process)),
                scope_spans: vec![ScopeSpans { scope: scope(), spans }],
            })
            .collect();
        match resource_spans.is_empty() {
            true => Ok(()),
            false => write(out, encoding, &TracesData { resource_spans }),
        }
    }
}

/// Writes metrics of processes as a request.
pub(super) fn write_metrics(
    out: &mut impl Write,
    encoding: Encoding,
    metrics: BTreeMap<usize, Vec<Metric>>,
    resource: impl Fn(usize) -> Resource,
) -> io::Result<()> {
    let of_process = |(process, metrics)| ResourceMetrics {
        resource: Some(resource(process)),
        scope_metrics: vec![ScopeMetrics { scope: scope(), metrics }],
    };
    let resource_metrics: Vec<_> = metrics.into_iter().map(of_process).collect();
    match resource_metrics.is_empty() {
        true => Ok(()),
        false => write(out, encoding, &MetricsData { resource_metrics }),
    }
}
