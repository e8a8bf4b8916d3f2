//! Nested activities, and the steps within them.

use std::collections::HashMap;

use super::moments::Moments;
use super::recorded_run::{RecordedRun, VertexId};

/// Nested activities: each context has a name, and is within another.
#[derive(Debug, Default)]
pub(super) struct Contexts {
    by: HashMap<(u32, u32), u32>,
    /// Pairs of the outer context and the name. Context 0 is outside of all activities.
    all: Vec<(u32, u32)>,
}

impl Contexts {
    fn within(&mut self, context: u32, name: u32) -> u32 {
        *self.by.entry((context, name)).or_insert_with(|| {
            self.all.push((context, name));
            self.all.len() as u32
        })
    }

    /// For each context, `value` of the innermost name that has one, or else `default`.
    pub fn each<T: Copy>(&self, default: T, value: impl Fn(u32) -> Option<T>) -> Vec<T> {
        let mut each = vec![default; self.all.len() + 1];
        for (at, &(within, name)) in self.all.iter().enumerate() {
            each[at + 1] = value(name).unwrap_or(each[within as usize]);
        }
        each
    }
}

/// For each vertex, the context of the step to it from the previous one of its thread.
pub(super) fn contexts_of(
    recording: &RecordedRun,
    moments: &Moments,
    vertex_index: &[u32],
    contexts: &mut Contexts,
) -> Vec<u32> {
    let at = |vertex: VertexId| vertex_index[vertex.0 as usize];
    let mut opens: Vec<_> = recording
        .intervals
        .iter()
        .chain(&recording.pieces)
        .map(|interval| (at(interval.begin), at(interval.end), interval.name.0))
        .filter(|entry| {
            entry.0 < entry.1
                && moments.thread[entry.0 as usize] == moments.thread[entry.1 as usize]
        })
        .collect();
    opens.sort_unstable_by_key(|entry| (entry.0, std::cmp::Reverse(entry.1)));
    let mut opens = opens.into_iter().peekable();
    // End, name and context of each open activity.
    let mut open: Vec<(u32, u32, u32)> = Vec::new();
    let mut each = vec![0; moments.len()];
    for here in 0..moments.len() as u32 {
        each[here as usize] = open.last().map_or(0, |entry| entry.2);
        if open.iter().any(|entry| entry.0 <= here) {
            open.retain(|entry| entry.0 > here);
            let mut within = 0;
            for pair in &mut open {
                pair.2 = contexts.within(within, pair.1);
                within = pair.2;
            }
        }
        while let Some((_, end, name)) = opens.next_if(|entry| entry.0 == here) {
            let context = contexts.within(open.last().map_or(0, |entry| entry.2), name);
            open.push((end, name, context));
        }
    }
    each
}
