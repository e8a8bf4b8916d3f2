//! Applies an expression to kinds of frames.

use std::collections::HashMap;

use ppt_capture::SourceInfo;
use ppt_predicate::{CheckedExpression, ExpressionError, FrameKind, Predicate};

/// An expression, checked against each kind of frame.
#[derive(Debug)]
pub(crate) struct FrameMatcher {
    /// By source and frame id. `None` without an expression.
    programs: Option<HashMap<(usize, usize), CheckedExpression>>,
}

impl FrameMatcher {
    /// Checks `predicate` against the frames of the `chosen` ones of `sources` that are `named`.
    pub fn new(
        predicate: Option<&Predicate>,
        sources: &[&SourceInfo],
        chosen: &[usize],
        named: impl Fn(&str) -> bool,
    ) -> Result<FrameMatcher, ExpressionError> {
        let Some(predicate) = predicate else { return Ok(FrameMatcher { programs: None }) };
        let (mut keys, mut kinds) = (Vec::new(), Vec::new());
        for &index in chosen {
            let SourceInfo { source, schema, .. } = sources[index];
            for (id, frame) in schema
                .frames
                .iter()
                .enumerate()
                .filter(|entry| named(&entry.1.name) && !entry.1.is_hidden())
            {
                keys.push((index, id));
                kinds.push(FrameKind { buffer: &source.buffer, schema, frame });
            }
        }
        let programs = keys.into_iter().zip(predicate.compile(&kinds)?);
        let programs = programs.filter_map(|(key, program)| Some((key, program?)));
        Ok(FrameMatcher { programs: Some(programs.collect()) })
    }

    /// Whether a frame of that kind may be selected.
    pub fn may_have(&self, index: usize, id: usize) -> bool {
        self.programs.as_ref().is_none_or(|program| program.contains_key(&(index, id)))
    }

    /// The condition on a frame of that kind.
    pub fn take(&mut self, index: usize, id: usize) -> Option<CheckedExpression> {
        self.programs.as_mut()?.remove(&(index, id))
    }
}
