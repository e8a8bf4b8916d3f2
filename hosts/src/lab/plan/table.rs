//! TOML tables that record which keys were read. A key that was never read is a mistake.

use std::ops::Range;
use std::time::Duration;

use ppt_text::nearest;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::{Mistake, PlanError};

/// A table and the keys that were read.
pub(super) struct PlanTable<'t, 'i> {
    table: &'t DeTable<'i>,
    /// The name of the table in messages: `phase `run``.
    place: String,
    span: Range<usize>,
    known: Vec<&'static str>,
}

/// A value with its location and name.
pub(super) struct PlanEntry<'t, 'i> {
    key: &'t str,
    value: &'t Spanned<DeValue<'i>>,
}

/// A key that was not read.
pub(super) struct UnreadKey<'t, 'i> {
    pub(super) name: &'t str,
    pub(super) span: Range<usize>,
    pub(super) entry: PlanEntry<'t, 'i>,
}

pub(super) fn wrong<T>(mistake: Mistake, span: Range<usize>) -> Result<T, PlanError> {
    Err(PlanError { mistake, span })
}

impl<'t, 'i> PlanTable<'t, 'i> {
    pub(super) fn new(table: &'t DeTable<'i>, place: String, span: Range<usize>) -> Self {
        Self { table, place, span, known: Vec::new() }
    }

    /// The value of a key.
    pub(super) fn take(&mut self, key: &'static str) -> Option<PlanEntry<'t, 'i>> {
        self.known.push(key);
        self.table.get(key).map(|value| PlanEntry { key, value })
    }

    pub(super) fn require(&mut self, key: &'static str) -> Result<PlanEntry<'t, 'i>, PlanError> {
        let missing = Mistake::Missing { key, place: self.place.clone() };
        self.take(key).ok_or(PlanError { mistake: missing, span: self.span.clone() })
    }

    /// Refuses keys that were not read. Every reader of a table calls this last.
    pub(super) fn deny_unread(self) -> Result<(), PlanError> {
        match self.unread().next() {
            None => Ok(()),
            Some(UnreadKey { name: key, span, .. }) => {
                let mistake = Mistake::Unknown {
                    key: key.to_owned(),
                    place: self.place.clone(),
                    nearest: nearest(key, self.known.iter().copied()).map(str::to_owned),
                    known: self.known.iter().map(|text| (*text).to_owned()).collect(),
                };
                wrong(mistake, span)
            }
        }
    }

    /// The keys that were not read, in the order of the text: names that the user chose.
    pub(super) fn unread(&self) -> impl Iterator<Item = UnreadKey<'t, 'i>> {
        let mut unread: Vec<_> = self
            .table
            .iter()
            .filter(|entry| !self.known.contains(&entry.0.get_ref().as_ref()))
            .map(|(key, value)| {
                let name = key.get_ref().as_ref();
                let entry = PlanEntry { key: name, value };
                UnreadKey { name, span: key.span(), entry }
            })
            .collect();
        unread.sort_by_key(|key| key.span.start);
        unread.into_iter()
    }

    pub(super) fn span(&self) -> Range<usize> {
        self.span.clone()
    }
}

impl<'t, 'i> PlanEntry<'t, 'i> {
    pub(super) fn span(&self) -> Range<usize> {
        self.value.span()
    }

    pub(super) fn value(&self) -> &'t DeValue<'i> {
        self.value.get_ref()
    }

    pub(super) fn wrong<T>(&self, mistake: Mistake) -> Result<T, PlanError> {
        wrong(mistake, self.span())
    }

    pub(super) fn mistyped<T>(&self, wanted: &'static str) -> Result<T, PlanError> {
        let found = match self.value() {
            DeValue::String(_) => "text",
            DeValue::Integer(_) | DeValue::Float(_) => "a number",
            DeValue::Boolean(_) => "true or false",
            DeValue::Datetime(_) => "a date",
            DeValue::Array(_) => "a list",
            DeValue::Table(_) => "a table",
        };
        self.wrong(Mistake::Type { key: self.key.to_owned(), found, wanted })
    }

    pub(super) fn text(&self) -> Result<&'t str, PlanError> {
        self.value().as_str().map_or_else(|| self.mistyped("text"), Ok)
    }

    pub(super) fn boolean(&self) -> Result<bool, PlanError> {
        self.value().as_bool().map_or_else(|| self.mistyped("true or false"), Ok)
    }

    pub(super) fn table(&self, place: String) -> Result<PlanTable<'t, 'i>, PlanError> {
        match self.value().as_table() {
            Some(table) => Ok(PlanTable::new(table, place, self.span())),
            None => self.mistyped("a table"),
        }
    }

    pub(super) fn list(&self) -> Result<Vec<PlanEntry<'t, 'i>>, PlanError> {
        match self.value().as_array() {
            Some(list) => Ok(list.iter().map(|value| PlanEntry { key: self.key, value }).collect()),
            None => self.mistyped("a list"),
        }
    }

    /// A list, or a single value instead of one.
    pub(super) fn one_or_many(&self) -> Result<Vec<PlanEntry<'t, 'i>>, PlanError> {
        match self.value().as_array() {
            Some(_) => self.list(),
            None => Ok(vec![PlanEntry { key: self.key, value: self.value }]),
        }
    }

    /// A 64-bit integer.
    pub(super) fn integer(&self) -> Result<i64, PlanError> {
        let number = match self.value() {
            DeValue::Integer(integer) => {
                i64::from_str_radix(integer.as_str(), integer.radix()).ok()
            }
            _ => None,
        };
        number.map_or_else(|| self.mistyped("a 64-bit integer"), Ok)
    }

    pub(super) fn integer_in(&self, least: i64, most: i64) -> Result<i64, PlanError> {
        let value = self.integer()?;
        if (least..=most).contains(&value) {
            return Ok(value);
        }
        self.wrong(Mistake::Range { key: self.key.to_owned(), value, least, most })
    }

    pub(super) fn duration(&self) -> Result<Duration, PlanError> {
        let text = self.text()?;
        match humantime::parse_duration(text) {
            Err(why) => self.wrong(Mistake::Time { text: text.to_owned(), why: why.to_string() }),
            Ok(duration) if duration.is_zero() || duration > Duration::from_secs(86_400) => {
                self.wrong(Mistake::TimeRange { text: text.to_owned() })
            }
            Ok(duration) => Ok(duration),
        }
    }

    /// A name that can be part of a file name.
    pub(super) fn name(&self) -> Result<String, PlanError> {
        let text = self.text()?;
        name(text, self.span())
    }
}

pub(super) fn name(text: &str, span: Range<usize>) -> Result<String, PlanError> {
    let good = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let begins = text.starts_with(|c: char| c.is_ascii_alphanumeric());
    if begins && text.len() <= 64 && text.chars().all(good) {
        return Ok(text.to_owned());
    }
    wrong(Mistake::Name { name: text.to_owned() }, span)
}
