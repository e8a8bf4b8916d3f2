//! The differences between the JSON of OTLP and serde's.

use std::fmt::Display;

use serde::{Serialize, Serializer};

/// A number of 64 bits is text.
pub(super) fn long<S: Serializer>(value: &impl Display, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(value)
}

/// Bytes of ids are hexadecimal digits.
pub(super) fn hex<S: Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&hex::encode(bytes))
}

/// Values for which JSON has no number are text.
pub(super) fn double<S: Serializer>(value: &f64, to: S) -> Result<S::Ok, S::Error> {
    match *value {
        value if value.is_finite() => to.serialize_f64(value),
        value if value.is_nan() => to.serialize_str("NaN"),
        value if value > 0.0 => to.serialize_str("Infinity"),
        _ => to.serialize_str("-Infinity"),
    }
}

pub(super) fn longs<S: Serializer>(values: &[u64], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(values.iter().map(u64::to_string))
}

struct Double(f64);

impl Serialize for Double {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        double(&self.0, to)
    }
}

pub(super) fn doubles<S: Serializer>(values: &[f64], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(values.iter().map(|&value| Double(value)))
}

pub(super) fn is_empty<T>(values: &[T]) -> bool {
    values.is_empty()
}

pub(super) fn is_zero(value: &u64) -> bool {
    *value == 0
}
