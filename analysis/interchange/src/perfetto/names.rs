//! Names that are interned from the beginning.

use super::message::{InternedData, InternedName};
use crate::event::EventSchema;

/// Names of annotations of every event; those of fields follow.
const IDENTITY: [&str; 3] = ["segment", "ring", "seqno"];

/// A kind, as packets refer to it.
#[derive(Debug)]
pub(super) struct PacketSchema {
    pub kind: EventSchema,
    pub category: Option<u64>,
    pub name: u64,
    /// Interned names of the sequence number and the fields.
    pub annotations: Vec<u64>,
    pub named_by: Option<usize>,
    pub flow: Option<usize>,
    /// Indices of the keys of a chain.
    pub chain: Option<Vec<usize>>,
    /// Hashes that enter and leave a point: index and type.
    pub identities: Vec<(usize, String)>,
    pub counters: Vec<usize>,
}

/// Names that are interned from the beginning.
#[derive(Debug, Default)]
pub(super) struct InternedNames {
    categories: Vec<String>,
    names: Vec<String>,
    annotations: Vec<String>,
}

impl InternedNames {
    pub fn schema(&mut self, kind: &EventSchema) -> PacketSchema {
        let category =
            (!kind.buffer.is_empty()).then(|| number(&mut self.categories, &kind.buffer));
        let seqno = [IDENTITY[0], IDENTITY[1], &kind.seqno];
        let fields = kind.fields.iter().map(|field| field.name().as_str());
        let annotations = seqno.into_iter().chain(fields);
        let annotations =
            annotations.map(|annotation| number(&mut self.annotations, annotation)).collect();
        PacketSchema {
            category,
            name: number(&mut self.names, &kind.label()),
            annotations,
            named_by: kind.marked(|marks| marks.name),
            flow: kind.marked(|marks| marks.flow),
            chain: kind.chain(),
            identities: kind.identities(),
            counters: kind.counters(),
            kind: kind.clone(),
        }
    }

    pub fn interned(self) -> InternedData {
        let named = |names: Vec<String>| {
            let named = |(at, name)| InternedName { iid: Some(at), name: Some(name) };
            (1..).zip(names).map(named).collect()
        };
        InternedData {
            event_categories: named(self.categories),
            event_names: named(self.names),
            debug_annotation_names: named(self.annotations),
            ..InternedData::default()
        }
    }
}

/// The id of a name, from 1 on.
fn number(names: &mut Vec<String>, name: &str) -> u64 {
    let at = names.iter().position(|text| text == name).unwrap_or_else(|| {
        names.push(name.to_owned());
        names.len() - 1
    });
    at as u64 + 1
}
