//! The JSON text of a schema.
//!
//! serde's `flatten` cannot split one object between a tagged enum and a map of unknown keys (the
//! enum consumes nothing), and it buffers through a type without i128. So a field is read and
//! written through [`FieldText`], and enum values through `values.rs`.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::schema::{
    Attribute, Clock, Extra, Field, FieldType, Interval, MAX_JSON_BYTES, MAX_JSON_DEPTH, Schema,
};
use crate::stored::plain;
use crate::verify::{SchemaError, verify};

impl Schema {
    /// Returns the canonical text, with keys in the order of the structs. Equal schemas have equal
    /// texts.
    pub fn to_json(&self) -> String {
        // This could fail only for a map with keys that are not strings, or if writing failed.
        serde_json::to_string(self).expect("a schema has a JSON text")
    }

    /// Parses an untrusted text, for example of a damaged or hostile process.
    ///
    /// # Errors
    /// The first rule that the text breaks; see [`SchemaError`].
    pub fn from_json(text: &[u8]) -> Result<Schema, SchemaError> {
        if text.len() > MAX_JSON_BYTES {
            return Err(SchemaError::TooLong { bytes: text.len() });
        }
        if depth(text) > MAX_JSON_DEPTH {
            return Err(SchemaError::TooDeep);
        }
        let mut schema: Schema = serde_json::from_slice(text)?;
        verify(&schema)?;
        schema.show_what_is_no_stand_in();
        Ok(schema)
    }
}

/// Deepest nesting of brackets outside strings.
fn depth(text: &[u8]) -> usize {
    let (mut depth, mut deepest) = (0usize, 0);
    let (mut string, mut escaped) = (false, false);
    for &byte in text {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if string => escaped = true,
            b'"' => string = !string,
            b'{' | b'[' if !string => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' if !string => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

/// A field in JSON: `type`, then the keys of that type.
#[derive(Serialize, Deserialize)]
struct FieldText {
    name: String,
    #[serde(rename = "type")]
    ty: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    clock: Option<Clock>,
    #[serde(rename = "enum", default, skip_serializing_if = "Option::is_none")]
    enumeration: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    len: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    array: Option<u32>,
    offset: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    interval: Option<Interval>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    at: bool,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    unit: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    doc: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    attributes: Vec<Attribute>,
    #[serde(flatten)]
    extra: Extra,
}

impl Serialize for Field {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        FieldText::from(self.clone()).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Field {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        FieldText::deserialize(deserializer)?.try_into().map_err(D::Error::custom)
    }
}

impl From<Field> for FieldText {
    fn from(field: Field) -> Self {
        let ty = field.ty.word().to_owned();
        let (mut clock, mut enumeration, mut len) = (None, None, None);
        match field.ty {
            FieldType::Ns { clock: of } | FieldType::Timespec { clock: of } => clock = Some(of),
            FieldType::Enum { name } => enumeration = Some(name),
            FieldType::Char { len: bytes } | FieldType::Bytes { len: bytes } => len = Some(bytes),
            _ => {}
        }
        FieldText {
            name: field.name,
            ty,
            clock,
            enumeration,
            len,
            array: field.array,
            offset: field.offset,
            interval: field.interval,
            at: field.at,
            unit: field.unit,
            doc: field.doc,
            attributes: field.attributes,
            extra: field.extra,
        }
    }
}

impl TryFrom<FieldText> for Field {
    type Error = String;

    fn try_from(text: FieldText) -> Result<Self, String> {
        Ok(Field {
            ty: field_type(&text)?,
            name: text.name,
            array: text.array,
            offset: text.offset,
            interval: text.interval,
            at: text.at,
            unit: text.unit,
            doc: text.doc,
            attributes: text.attributes,
            extra: text.extra,
        })
    }
}

fn field_type(text: &FieldText) -> Result<FieldType, String> {
    let needs = |key: &str| format!("field `{}` of type `{}` needs `{key}`", text.name, text.ty);
    let ty = match text.ty.as_str() {
        "timeval" => FieldType::Timeval,
        "timespec" => FieldType::Timespec { clock: text.clock.ok_or_else(|| needs("clock"))? },
        "ns" => FieldType::Ns { clock: text.clock.ok_or_else(|| needs("clock"))? },
        "tsc" => FieldType::Tsc,
        "enum" => FieldType::Enum { name: text.enumeration.clone().ok_or_else(|| needs("enum"))? },
        "char" => FieldType::Char { len: text.len.ok_or_else(|| needs("len"))? },
        "bytes" => FieldType::Bytes { len: text.len.ok_or_else(|| needs("len"))? },
        other => plain(other)
            .ok_or_else(|| format!("field `{}` has the unknown type `{other}`", text.name))?,
    };
    let takes_clock = matches!(ty, FieldType::Timespec { .. } | FieldType::Ns { .. });
    let takes_len = matches!(ty, FieldType::Char { .. } | FieldType::Bytes { .. });
    let takes_enum = matches!(ty, FieldType::Enum { .. });
    if (text.clock.is_some() && !takes_clock)
        || (text.len.is_some() && !takes_len)
        || (text.enumeration.is_some() && !takes_enum)
    {
        return Err(format!("field `{}` has keys of another type than `{}`", text.name, text.ty));
    }
    Ok(ty)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"{"v":1,"buffer":"b","slots":16,"stride":48,"frames":[{"name":"f","kind":"plain","size":48,"fields":[{"name":"a","type":"ns","clock":"thread_cpu","offset":8,"at":true,"later":{"x":[1]}},{"name":"e","type":"enum","enum":"E","array":2,"offset":16},{"name":"c","type":"char","len":3,"offset":32,"unit":"B","attributes":[{"name":"unit","args":["B"]}]},{"name":"t","type":"tsc","offset":40}],"z":null}],"enums":[{"name":"E","type":"u64","values":[["A",0],["B",18446744073709551615]]},{"name":"I","type":"i64","values":[["A",-9223372036854775808]],"new":1}],"tags":[["k","v"]],"more":"kept"}"#;

    #[test]
    fn the_text_survives_a_round_trip() {
        let schema = Schema::from_json(TEXT.as_bytes()).unwrap();
        assert_eq!(schema.to_json(), TEXT);
        assert_eq!(schema.enums[0].values[1].1, i128::from(u64::MAX));
        assert_eq!(schema.enums[1].values[0].1, i128::from(i64::MIN));
        assert_eq!(schema.extra["more"], "kept");
        assert_eq!(schema.frames[0].fields[0].extra.keys().collect::<Vec<_>>(), ["later"]);
    }

    #[test]
    fn key_order_of_the_reader_does_not_matter() {
        let shuffled = TEXT
            .replace(r#""name":"e","type":"enum","enum":"E","#, r#""enum":"E","name":"e","#)
            .replace(r#""array":2,"offset":16"#, r#""offset":16,"array":2,"type":"enum""#);
        assert_ne!(shuffled, TEXT);
        assert_eq!(Schema::from_json(shuffled.as_bytes()).unwrap().to_json(), TEXT);
    }

    #[test]
    fn hostile_texts() {
        let deep = "[".repeat(100_000);
        assert!(matches!(Schema::from_json(deep.as_bytes()), Err(SchemaError::TooDeep)));
        let long = vec![b' '; MAX_JSON_BYTES + 1];
        assert!(matches!(Schema::from_json(&long), Err(SchemaError::TooLong { .. })));
        for (from, to) in [
            (r#""clock":"thread_cpu","#, ""),
            (r#""type":"tsc""#, r#""type":"tsc","len":1"#),
            (r#""type":"tsc""#, r#""type":"hwcounter""#),
            ("18446744073709551615", "18446744073709551616"),
            (r#"["A",0]"#, r#"["A",0.5]"#),
            (r#""slots":16,"#, ""),
        ] {
            let text = TEXT.replacen(from, to, 1);
            assert_ne!(text, TEXT);
            let error = Schema::from_json(text.as_bytes()).unwrap_err();
            assert!(matches!(error, SchemaError::Json(_)), "{error}");
        }
        assert!(Schema::from_json(&TEXT.as_bytes()[..TEXT.len() - 1]).is_err());
        assert!(Schema::from_json(b"\xff\xfe").is_err());
    }

    #[test]
    fn brackets_in_strings_do_not_nest() {
        assert_eq!(depth(br#"{"a\"[[[":["]"]}"#), 2);
    }
}
