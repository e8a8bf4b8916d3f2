//! The messages of OTLP that are used, as `opentelemetry/proto` of version 1 declares them; in JSON, as
//! its page on JSON says: numbers of 64 bits are text, ids are hexadecimal digits.

use prost::{Message, Oneof};
use serde::Serialize;

use super::json::{double, doubles, hex, is_empty, is_zero, long, longs};

/// `opentelemetry.proto.trace.v1.TracesData`, and a request for traces: the two have the same bytes.
#[derive(Clone, PartialEq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TracesData {
    #[prost(message, repeated, tag = "1")]
    pub resource_spans: Vec<ResourceSpans>,
}

#[derive(Clone, PartialEq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ResourceSpans {
    #[prost(message, optional, tag = "1")]
    pub resource: Option<Resource>,
    #[prost(message, repeated, tag = "2")]
    pub scope_spans: Vec<ScopeSpans>,
}

#[derive(Clone, PartialEq, Message, Serialize)]
pub(super) struct Resource {
    #[prost(message, repeated, tag = "1")]
    pub attributes: Vec<KeyValue>,
}

#[derive(Clone, PartialEq, Message, Serialize)]
pub(super) struct ScopeSpans {
    #[prost(message, optional, tag = "1")]
    pub scope: Option<Scope>,
    #[prost(message, repeated, tag = "2")]
    pub spans: Vec<SpanMessage>,
}

/// `InstrumentationScope`.
#[derive(Clone, PartialEq, Message, Serialize)]
pub(super) struct Scope {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(string, tag = "2")]
    pub version: String,
}

#[derive(Clone, PartialEq, Message, Serialize)]
pub(super) struct KeyValue {
    #[prost(string, tag = "1")]
    pub key: String,
    #[prost(message, optional, tag = "2")]
    pub value: Option<AnyValue>,
}

#[derive(Clone, PartialEq, Message, Serialize)]
pub(super) struct AnyValue {
    #[prost(oneof = "Any", tags = "1, 2, 3, 4")]
    #[serde(flatten)]
    pub value: Option<Any>,
}

#[derive(Clone, PartialEq, Oneof, Serialize)]
pub(super) enum Any {
    #[prost(string, tag = "1")]
    #[serde(rename = "stringValue")]
    Text(String),
    #[prost(bool, tag = "2")]
    #[serde(rename = "boolValue")]
    Bool(bool),
    #[prost(int64, tag = "3")]
    #[serde(rename = "intValue")]
    Int(#[serde(serialize_with = "long")] i64),
    #[prost(double, tag = "4")]
    #[serde(rename = "doubleValue")]
    Double(#[serde(serialize_with = "double")] f64),
}

#[derive(Clone, PartialEq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SpanMessage {
    #[prost(bytes = "vec", tag = "1")]
    #[serde(serialize_with = "hex")]
    pub trace_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    #[serde(serialize_with = "hex")]
    pub span_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "4")]
    #[serde(serialize_with = "hex", skip_serializing_if = "is_empty")]
    pub parent_span_id: Vec<u8>,
    #[prost(string, tag = "5")]
    pub name: String,
    #[prost(int32, tag = "6")]
    pub kind: i32,
    #[prost(fixed64, tag = "7")]
    #[serde(serialize_with = "long")]
    pub start_time_unix_nano: u64,
    #[prost(fixed64, tag = "8")]
    #[serde(serialize_with = "long")]
    pub end_time_unix_nano: u64,
    #[prost(message, repeated, tag = "9")]
    #[serde(skip_serializing_if = "is_empty")]
    pub attributes: Vec<KeyValue>,
    #[prost(message, repeated, tag = "13")]
    #[serde(skip_serializing_if = "is_empty")]
    pub links: Vec<LinkMessage>,
}

/// `SPAN_KIND_INTERNAL`.
pub(super) const INTERNAL: i32 = 1;

#[derive(Clone, PartialEq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct LinkMessage {
    #[prost(bytes = "vec", tag = "1")]
    #[serde(serialize_with = "hex")]
    pub trace_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    #[serde(serialize_with = "hex")]
    pub span_id: Vec<u8>,
    #[prost(message, repeated, tag = "4")]
    #[serde(skip_serializing_if = "is_empty")]
    pub attributes: Vec<KeyValue>,
}

/// `opentelemetry.proto.metrics.v1.MetricsData`, and a request for metrics.
#[derive(Clone, PartialEq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct MetricsData {
    #[prost(message, repeated, tag = "1")]
    pub resource_metrics: Vec<ResourceMetrics>,
}

#[derive(Clone, PartialEq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ResourceMetrics {
    #[prost(message, optional, tag = "1")]
    pub resource: Option<Resource>,
    #[prost(message, repeated, tag = "2")]
    pub scope_metrics: Vec<ScopeMetrics>,
}

#[derive(Clone, PartialEq, Message, Serialize)]
pub(super) struct ScopeMetrics {
    #[prost(message, optional, tag = "1")]
    pub scope: Option<Scope>,
    #[prost(message, repeated, tag = "2")]
    pub metrics: Vec<MetricMessage>,
}

#[derive(Clone, PartialEq, Message, Serialize)]
pub(super) struct MetricMessage {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(string, tag = "3")]
    pub unit: String,
    #[prost(oneof = "Data", tags = "5, 7, 9")]
    #[serde(flatten)]
    pub data: Option<Data>,
}

#[derive(Clone, PartialEq, Oneof, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Data {
    #[prost(message, tag = "5")]
    Gauge(Gauge),
    #[prost(message, tag = "7")]
    Sum(Sum),
    #[prost(message, tag = "9")]
    Histogram(HistogramMessage),
}

/// `AGGREGATION_TEMPORALITY_CUMULATIVE`.
pub(super) const CUMULATIVE: i32 = 2;

#[derive(Clone, PartialEq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Gauge {
    #[prost(message, repeated, tag = "1")]
    pub data_points: Vec<NumberDataPoint>,
}

#[derive(Clone, PartialEq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Sum {
    #[prost(message, repeated, tag = "1")]
    pub data_points: Vec<NumberDataPoint>,
    #[prost(int32, tag = "2")]
    pub aggregation_temporality: i32,
    #[prost(bool, tag = "3")]
    pub is_monotonic: bool,
}

#[derive(Clone, PartialEq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct HistogramMessage {
    #[prost(message, repeated, tag = "1")]
    pub data_points: Vec<HistogramDataPoint>,
    #[prost(int32, tag = "2")]
    pub aggregation_temporality: i32,
}

#[derive(Clone, PartialEq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct NumberDataPoint {
    #[prost(fixed64, tag = "2")]
    #[serde(serialize_with = "long", skip_serializing_if = "is_zero")]
    pub start_time_unix_nano: u64,
    #[prost(fixed64, tag = "3")]
    #[serde(serialize_with = "long")]
    pub time_unix_nano: u64,
    #[prost(message, repeated, tag = "7")]
    #[serde(skip_serializing_if = "is_empty")]
    pub attributes: Vec<KeyValue>,
    #[prost(oneof = "NumberValue", tags = "4, 6")]
    #[serde(flatten)]
    pub value: Option<NumberValue>,
}

#[derive(Clone, Copy, PartialEq, Oneof, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum NumberValue {
    #[prost(double, tag = "4")]
    AsDouble(#[serde(serialize_with = "double")] f64),
    #[prost(sfixed64, tag = "6")]
    AsInt(#[serde(serialize_with = "long")] i64),
}

#[derive(Clone, PartialEq, Message, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct HistogramDataPoint {
    #[prost(fixed64, tag = "2")]
    #[serde(serialize_with = "long")]
    pub start_time_unix_nano: u64,
    #[prost(fixed64, tag = "3")]
    #[serde(serialize_with = "long")]
    pub time_unix_nano: u64,
    #[prost(fixed64, tag = "4")]
    #[serde(serialize_with = "long")]
    pub count: u64,
    /// Only where no value is negative, as the protocol demands.
    #[prost(double, optional, tag = "5")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sum: Option<f64>,
    #[prost(fixed64, repeated, tag = "6")]
    #[serde(serialize_with = "longs")]
    pub bucket_counts: Vec<u64>,
    #[prost(double, repeated, tag = "7")]
    #[serde(serialize_with = "doubles")]
    pub explicit_bounds: Vec<f64>,
}
