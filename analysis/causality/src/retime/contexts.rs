//! Activities, and what lies in them.

use std::collections::HashMap;

use super::moments::Moments;
use super::recording::{Recording, Vertex};

/// Activities within activities: each context has a name, and is within another.
#[derive(Debug, Default)]
pub(super) struct Contexts {
    by: HashMap<(u32, u32), u32>,
    /// (within, name); context 0 is none.
    all: Vec<(u32, u32)>,
}

impl Contexts {
    fn within(&mut self, context: u32, name: u32) -> u32 {
        *self.by.entry((context, name)).or_insert_with(|| {
            self.all.push((context, name));
            self.all.len() as u32
        })
    }

    /// What `of` a name says for each context: that of the innermost name for which it says anything.
    pub fn each<T: Copy>(&self, none: T, of: impl Fn(u32) -> Option<T>) -> Vec<T> {
        let mut each = vec![none; self.all.len() + 1];
        for (at, &(within, name)) in self.all.iter().enumerate() {
            each[at + 1] = of(name).unwrap_or(each[within as usize]);
        }
        each
    }
}

/// For each vertex, in which activities the way to it from the one before is.
pub(super) fn contexts_of(
    recording: &Recording,
    moments: &Moments,
    place: &[u32],
    contexts: &mut Contexts,
) -> Vec<u32> {
    let at = |it: Vertex| place[it.0 as usize];
    let mut opens: Vec<_> = recording
        .intervals
        .iter()
        .map(|it| (at(it.begin), at(it.end), it.name.0))
        .filter(|it| it.0 < it.1 && moments.thread[it.0 as usize] == moments.thread[it.1 as usize])
        .collect();
    opens.sort_unstable_by_key(|it| (it.0, std::cmp::Reverse(it.1)));
    let mut opens = opens.into_iter().peekable();
    // (its end, its name, its context)
    let mut open: Vec<(u32, u32, u32)> = Vec::new();
    let mut each = vec![0; moments.len()];
    for here in 0..moments.len() as u32 {
        each[here as usize] = open.last().map_or(0, |it| it.2);
        if open.iter().any(|it| it.0 <= here) {
            open.retain(|it| it.0 > here);
            let mut within = 0;
            for it in &mut open {
                it.2 = contexts.within(within, it.1);
                within = it.2;
            }
        }
        while let Some((_, end, name)) = opens.next_if(|it| it.0 == here) {
            let context = contexts.within(open.last().map_or(0, |it| it.2), name);
            open.push((end, name, context));
        }
    }
    each
}
