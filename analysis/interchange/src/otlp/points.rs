//! Points of metrics that are not yet written.

use std::collections::BTreeMap;

use super::batch::REQUEST;
use super::message::{
    CUMULATIVE, Data, Gauge, HistogramDataPoint, HistogramMessage, MetricMessage, NumberDataPoint,
    NumberValue, Sum,
};
use crate::event::EventRows;
use crate::values::FieldValue;

/// A metric: its process, kind and field.
pub(super) type MetricId = (usize, usize, usize);

/// A point of a metric.
#[derive(Debug)]
pub(super) enum MetricPoint {
    /// A value of its own.
    Gauge(NumberDataPoint),
    /// The sum so far, and whether it only rises.
    Sum(NumberDataPoint, bool),
    Histogram(HistogramDataPoint),
}

/// The value of a field in a row; None if it has none. A value that exceeds 63 bits becomes a double.
pub(super) fn number_value(rows: &EventRows, field: usize, row: usize) -> Option<NumberValue> {
    match rows.fields.get(field)?.get(row)? {
        FieldValue::Int(value) => Some(NumberValue::AsInt(value)),
        FieldValue::Uint(value) => Some(match i64::try_from(value) {
            Ok(value) => NumberValue::AsInt(value),
            Err(_) => NumberValue::AsDouble(value as f64),
        }),
        FieldValue::Float(value) => Some(NumberValue::AsDouble(value)),
        _ => None,
    }
}

#[derive(Debug, Default)]
pub(super) struct Points {
    all: BTreeMap<MetricId, MetricMessage>,
    count: usize,
}

impl Points {
    /// Adds a point of a metric with that name and unit. Returns whether it is time to write.
    pub fn push(
        &mut self,
        of: MetricId,
        name: impl Fn() -> [String; 2],
        point: MetricPoint,
    ) -> bool {
        let metric = self.all.entry(of).or_insert_with(|| {
            let [name, unit] = name();
            MetricMessage { name, unit, data: None }
        });
        let aggregation_temporality = CUMULATIVE;
        match (point, &mut metric.data) {
            (MetricPoint::Gauge(point), Some(Data::Gauge(of))) => of.data_points.push(point),
            (MetricPoint::Sum(point, _), Some(Data::Sum(of))) => of.data_points.push(point),
            (MetricPoint::Histogram(point), Some(Data::Histogram(of))) => {
                of.data_points.push(point);
            }
            (MetricPoint::Gauge(point), data) => {
                *data = Some(Data::Gauge(Gauge { data_points: vec![point] }));
            }
            (MetricPoint::Sum(point, is_monotonic), data) => {
                let data_points = vec![point];
                *data = Some(Data::Sum(Sum { data_points, aggregation_temporality, is_monotonic }));
            }
            (MetricPoint::Histogram(point), data) => {
                let data_points = vec![point];
                *data = Some(Data::Histogram(HistogramMessage {
                    data_points,
                    aggregation_temporality,
                }));
            }
        }
        self.count += 1;
        self.count >= REQUEST
    }

    /// The metrics with points, by process.
    pub fn take(&mut self) -> BTreeMap<usize, Vec<MetricMessage>> {
        self.count = 0;
        let mut all: BTreeMap<usize, Vec<MetricMessage>> = BTreeMap::new();
        for ((process, ..), metric) in std::mem::take(&mut self.all) {
            all.entry(process).or_default().push(metric);
        }
        all
    }
}
