//! Cells that a spreadsheet does not take for formulas: `'` stands before their text.
//!
//! A reader undoes it by taking one `'` away from each text that begins with one. That is exact,
//! because text that begins with `'` itself gets another.

/// The characters that begin a formula, and the guard. Spreadsheets in East Asian languages read the
/// wide forms as well.
const GUARDED: [&str; 9] =
    ["=", "+", "-", "@", "'", "\u{ff1d}", "\u{ff0b}", "\u{ff0d}", "\u{ff20}"];

/// Whether a spreadsheet may take a cell for a formula, or for a guarded one.
pub fn begins_formula(cell: &[u8]) -> bool {
    GUARDED.iter().any(|start| cell.starts_with(start.as_bytes()))
}

/// The text of a cell before it was guarded.
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
