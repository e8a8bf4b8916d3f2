//! Enum values as JSON numbers: every i64 and u64, nothing else.

use serde::de::Error as _;
use serde::ser::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Number;

pub(crate) fn serialize<S: Serializer>(
    values: &[(String, i128)],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    values
        .iter()
        .map(|(name, value)| {
            let number = i64::try_from(*value)
                .map(Number::from)
                .or_else(|_| u64::try_from(*value).map(Number::from))
                .map_err(|_| S::Error::custom(format!("`{name}` has no 64-bit value")))?;
            Ok((name, number))
        })
        .collect::<Result<Vec<_>, S::Error>>()?
        .serialize(serializer)
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<(String, i128)>, D::Error> {
    Vec::<(String, Number)>::deserialize(deserializer)?
        .into_iter()
        .map(|(name, number)| {
            let value = number
                .as_i64()
                .map(i128::from)
                .or_else(|| number.as_u64().map(i128::from))
                .ok_or_else(|| D::Error::custom(format!("`{name}` is not a whole number")))?;
            Ok((name, value))
        })
        .collect()
}
