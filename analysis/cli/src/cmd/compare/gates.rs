//! Judgements of gates on a comparison.

use ppt_models::{Gate, GateResult};

use super::fields::MeasuredSide;
use super::row::ComparedField;
use super::text;
use crate::error::AnswerError;
use crate::message;

/// Judgement of all gates together.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct GateVerdict {
    /// Whether a change is too large.
    pub(super) failed: bool,
    /// Whether a field of a gate cannot be judged.
    pub(super) unjudged: bool,
}

impl GateVerdict {
    pub(super) fn passed(self) -> bool {
        !self.failed && !self.unjudged
    }
}

/// Judges the fields of all gates, and no others. Prints which gates fail, and which cannot be decided.
pub(super) fn all(
    gates: &[Gate],
    rows: &[ComparedField],
    sides: [&MeasuredSide; 2],
) -> Result<GateVerdict, AnswerError> {
    let mut names: Vec<&str> = sides.iter().flat_map(|side| side.fields()).collect();
    names.sort_unstable();
    names.dedup();
    let mut verdict = GateVerdict::default();
    for gate in gates {
        for field in gate.select(&names).map_err(|error| AnswerError::no_field(&error))? {
            let its_rows: Vec<&ComparedField> =
                rows.iter().filter(|row| row.field == field).collect();
            let mut judged = false;
            for row in &its_rows {
                judged |= judge(gate, row, &mut verdict);
            }
            if !judged {
                verdict.unjudged = true;
                if its_rows.is_empty() {
                    let why = why_not(field, sides);
                    let text = format_args!("{gate}: {field} cannot be judged: {why}");
                    message::error("not-judged", text);
                }
            }
        }
    }
    Ok(verdict)
}

/// Judges one field, or one group of it. Returns whether that was possible.
fn judge(gate: &Gate, row: &ComparedField, verdict: &mut GateVerdict) -> bool {
    let mut changes = row.comparison.changes.iter();
    let Some(change) = changes.find(|change| change.statistic == gate.statistic) else {
        return false;
    };
    let name = text::name(row);
    match gate.judge(change) {
        Err(why) => {
            let text = format_args!("{gate}: {name} cannot be judged: {why}");
            message::error("not-judged", text);
            return false;
        }
        Ok(GateResult::TooMuch) => {
            verdict.failed = true;
            message::error("gate-failed", format_args!("{gate}: {name}: {change}"));
        }
        Ok(GateResult::Unclear) => {
            message::note(format_args!("{gate}: {name}: not shown, not ruled out"));
        }
        Ok(GateResult::Fine) => {}
    }
    true
}

/// Why a field has no comparison.
fn why_not(field: &str, sides: [&MeasuredSide; 2]) -> String {
    for (side, which) in sides.into_iter().zip(["first", "second"]) {
        if let Some(found) = side.unmeasured.iter().find(|other| other.field == field) {
            return format!("on the {which} side, {}", found.why);
        }
        if side.fields().all(|other| other != field) {
            return format!("the {which} side does not have it");
        }
    }
    "the two sides have no group of it in common".to_owned()
}
