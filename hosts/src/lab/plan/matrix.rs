//! Parameters, their values, and the cells that they make.

use std::cmp::Ordering;
use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// A parameter of an experiment and all its values.
#[derive(Debug, Clone, PartialEq)]
pub struct Axis {
    /// The name of the parameter.
    pub name: String,
    /// The values, in the order of the file.
    pub values: Vec<ParameterValue>,
}

/// The value of a parameter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ParameterValue {
    /// `true`, `false`.
    Truth(bool),
    /// A whole number.
    Whole(i64),
    /// Another number.
    Real(f64),
    /// Text.
    Text(String),
}

/// One combination of parameters, in one repetition.
#[derive(Debug, Clone, PartialEq)]
pub struct Cell {
    /// The parameter values, in the order of the axes.
    pub parameters: Vec<ParameterValue>,
    /// The repetition, from 1.
    pub repeat: u32,
    /// Unique name of the cell: the parameters and the repetition, as a file name.
    pub key: String,
}

impl ParameterValue {
    /// The value's type, for messages.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            ParameterValue::Truth(_) => "true or false",
            ParameterValue::Whole(_) | ParameterValue::Real(_) => "a number",
            ParameterValue::Text(_) => "text",
        }
    }

    /// Whether the two types can be compared.
    pub(super) fn is_like(&self, other: &ParameterValue) -> bool {
        self.kind() == other.kind()
    }

    pub(super) fn order(&self, other: &ParameterValue) -> Ordering {
        match (self, other) {
            (ParameterValue::Truth(a), ParameterValue::Truth(b)) => a.cmp(b),
            (ParameterValue::Whole(a), ParameterValue::Whole(b)) => a.cmp(b),
            (ParameterValue::Text(a), ParameterValue::Text(b)) => a.cmp(b),
            _ => self.number().total_cmp(&other.number()),
        }
    }

    fn number(&self) -> f64 {
        match self {
            ParameterValue::Whole(whole) => *whole as f64,
            ParameterValue::Real(real) => *real,
            _ => f64::NAN,
        }
    }
}

impl fmt::Display for ParameterValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ParameterValue::Truth(truth) => write!(f, "{truth}"),
            ParameterValue::Whole(whole) => write!(f, "{whole}"),
            ParameterValue::Real(real) => write!(f, "{real}"),
            ParameterValue::Text(text) => f.write_str(text),
        }
    }
}

/// All cells in the order in which they run. The order depends only on the seed and the cells'
/// keys, by SHA-256: it is the same on every machine and in every version.
pub(super) fn cells(axes: &[Axis], repeat: u32, seed: u64) -> Vec<Cell> {
    let mut combined: Vec<Vec<ParameterValue>> = vec![Vec::new()];
    for axis in axes {
        let with = |values: Vec<ParameterValue>| {
            axis.values.iter().map(move |value| [values.clone(), vec![value.clone()]].concat())
        };
        combined = combined.into_iter().flat_map(with).collect();
    }
    let mut cells = Vec::new();
    for parameters in combined {
        for repeat in 1..=repeat {
            let named =
                axes.iter().zip(&parameters).map(|(axis, value)| format!("{}={value},", axis.name));
            let key: String = named.chain([format!("r{repeat}")]).collect();
            let order = Sha256::digest(format!("{seed} {key}").as_bytes());
            cells.push((order, Cell { parameters: parameters.clone(), repeat, key }));
        }
    }
    cells.sort_by_key(|cell| cell.0);
    let mut cells: Vec<Cell> = cells.into_iter().map(|cell| cell.1).collect();
    for cell in &mut cells {
        cell.key = file_name(&cell.key);
    }
    cells
}

/// Replaces a key that would collide or is no valid file name by one with a part of its hash.
fn file_name(key: &str) -> String {
    const LONGEST: usize = 120;
    let plain = |c: char| c.is_ascii_alphanumeric() || "=,.+-_".contains(c);
    if key.len() <= LONGEST && key.chars().all(plain) && !key.starts_with('.') {
        return key.to_owned();
    }
    let hash = Sha256::digest(key.as_bytes());
    let short: String = key.chars().map(|c| if plain(c) { c } else { '_' }).take(80).collect();
    let end: String = hex::encode(&hash[..4]);
    format!("{}-{end}", short.trim_start_matches('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axes() -> Vec<Axis> {
        let text = |text: &str| ParameterValue::Text(text.to_owned());
        vec![
            Axis { name: "load".to_owned(), values: vec![text("none"), text("a/b c")] },
            Axis { name: "size".to_owned(), values: (0..6).map(ParameterValue::Whole).collect() },
        ]
    }

    #[test]
    fn every_cell_runs_once_in_an_order_of_the_seed() {
        let keys =
            |seed| cells(&axes(), 3, seed).into_iter().map(|cell| cell.key).collect::<Vec<_>>();
        let (first, same, other) = (keys(7), keys(7), keys(8));
        assert_eq!(first, same);
        assert_ne!(first, other);
        let sorted = |mut texts: Vec<String>| {
            texts.sort();
            texts.dedup();
            texts
        };
        assert_eq!(sorted(first.clone()).len(), 36);
        assert_eq!(sorted(first.clone()), sorted(other));
        // The order must never change: a seed in a paper must give the same order for ever.
        assert_eq!(
            first[..3],
            [
                "load=none,size=5,r3",
                "load=a_b_c,size=5,r3-56f60b0e",
                "load=a_b_c,size=4,r2-3be36604"
            ]
        );
    }

    #[test]
    fn keys_are_file_names() {
        assert_eq!(file_name("size=48,r1"), "size=48,r1");
        assert_eq!(file_name("load=a/b,r1"), "load=a_b,r1-77d1deb0");
        assert!(!file_name("../x").starts_with('.'));
        assert!(file_name(&"x".repeat(300)).len() < 120);
    }
}
