//! The fields of a row as attributes. Keys are unique, as the protocol demands.

use super::message::{Any, AnyValue, KeyValue};
use crate::event::{EventRows, EventSchema};
use crate::values::FieldValue;

pub(super) fn attribute(key: &str, value: Any) -> KeyValue {
    KeyValue { key: key.to_owned(), value: Some(AnyValue { value: Some(value) }) }
}

pub(super) fn text(key: &str, text: &str) -> KeyValue {
    attribute(key, Any::Text(text.to_owned()))
}

pub(super) fn int(key: &str, value: i64) -> KeyValue {
    attribute(key, Any::Int(value))
}

fn any(value: FieldValue<'_>) -> Any {
    match value {
        FieldValue::Int(value) => Any::Int(value),
        // The protocol has no numbers from 2^63 on.
        FieldValue::Uint(value) => match i64::try_from(value) {
            Ok(value) => Any::Int(value),
            Err(_) => Any::Text(value.to_string()),
        },
        FieldValue::Float(value) => Any::Double(value),
        FieldValue::Bool(value) => Any::Bool(value),
        FieldValue::Word(text) | FieldValue::Text(text) => Any::Text(text.to_owned()),
        FieldValue::Bytes(bytes) => Any::Text(hex::encode(bytes)),
    }
}

/// The attributes of a row: its fields, and the identity of its frame. A field hides an attribute of the same name.
pub(super) fn attributes(kind: &EventSchema, rows: &EventRows, row: usize) -> Vec<KeyValue> {
    let names = kind.fields.iter().map(|field| field.name().as_str());
    let fields = names.clone().zip(&rows.fields);
    let fields = fields.filter_map(|(name, column)| Some(attribute(name, any(column.get(row)?))));
    let mut all: Vec<KeyValue> = fields.collect();
    let word = |key: &'static str, word: Option<&str>| Some((key, any(FieldValue::Word(word?))));
    let number = |key: &'static str, value: Option<i64>| Some((key, Any::Int(value?)));
    let frame = Some(kind.frame.as_str()).filter(|frame| !frame.is_empty());
    let identity = [
        word("ppt.buffer", rows.buffer.get(row)),
        word("ppt.frame", frame),
        word("ppt.interval", kind.interval.as_deref()),
        word("ppt.segment", rows.segment.get(row)),
        number("ppt.ring", rows.ring(row).map(i64::from)),
        number("ppt.seqno", rows.seqno(row)),
        number("thread.id", rows.tid(row).map(i64::from)),
    ];
    let identity = identity.into_iter().flatten();
    let own = identity.filter(|(key, _)| names.clone().all(|name| name != *key));
    all.extend(own.map(|(key, value)| attribute(key, value)));
    all
}
