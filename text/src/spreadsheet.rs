//! Protects cells from being read as formulas by a spreadsheet: their text gets a leading `'`.
//!
//! A reader removes one leading `'` from each text that has one. That is exact, because text that
//! already starts with `'` gets another one.

/// The characters that start a formula, and the guard. Spreadsheets in East Asian languages also
/// accept the wide forms.
const GUARDED: [&str; 9] =
    ["=", "+", "-", "@", "'", "\u{ff1d}", "\u{ff0b}", "\u{ff0d}", "\u{ff20}"];

/// Whether a spreadsheet may read a cell as a formula, or the cell looks guarded.
pub fn begins_formula(cell: &[u8]) -> bool {
    GUARDED.iter().any(|start| cell.starts_with(start.as_bytes()))
}

/// The text of a cell before guarding.
pub fn unguarded(cell: &[u8]) -> &[u8] {
    cell.strip_prefix(b"'").unwrap_or(cell)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn written(cell: &str) -> String {
        if begins_formula(cell.as_bytes()) { format!("'{cell}") } else { cell.to_owned() }
    }

    #[test]
    fn no_two_cells_become_one() {
        assert_eq!(["=x", "'=x", "x", ""].map(written), ["'=x", "''=x", "x", ""]);
    }

    proptest! {
        #[test]
        fn a_reader_can_undo_it(cell in "['=+@＝a-]{0,4}.*") {
            let written = written(&cell);
            prop_assert_eq!(unguarded(written.as_bytes()), cell.as_bytes());
            prop_assert!(written.starts_with('\'') || !begins_formula(written.as_bytes()));
        }
    }
}
