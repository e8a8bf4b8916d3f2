//! The names of an enum's values.

use ppt_frame_dsl::schema::Enum;

/// Names by value.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EnumNames {
    /// Sorted by value, each value once.
    names: Vec<(i128, String)>,
}

impl EnumNames {
    /// The names of `declared`. If two names share a value, the first declared one is used.
    pub fn from_enum(declared: &Enum) -> EnumNames {
        let values = declared.values.iter();
        let mut names: Vec<_> = values.map(|(name, value)| (*value, name.clone())).collect();
        names.sort_by_key(|(value, _)| *value);
        names.dedup_by_key(|(value, _)| *value);
        EnumNames { names }
    }

    /// The name of `value`, or None if it has none.
    #[inline]
    pub fn get(&self, value: i128) -> Option<&str> {
        let found = self.names.binary_search_by_key(&value, |(value, _)| *value).ok()?;
        Some(&self.names[found].1)
    }

    /// The values that have a name, in ascending order, with their names.
    pub fn iter(&self) -> impl Iterator<Item = (i128, &str)> {
        self.names.iter().map(|(value, name)| (*value, name.as_str()))
    }
}
