//! The kernel's frames in a set of captures.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use arrow_array::StringArray;
use arrow_schema::{Field, Schema, SchemaRef};
use strum::IntoEnumIterator;

use super::fields::{KernelForm, KernelFrameFields};
use super::read::READ;
use crate::builder::Dictionary;
use crate::kernel::{KernelWord, Records};
use crate::set::{CaptureSet, KERNEL};
use crate::standard::STANDARD;

/// The frames of one process in one session. They have one ring, whose sequence numbers all threads share.
#[derive(Debug, Clone, Copy)]
pub(super) struct Group {
    pub buffer: i32,
    pub segment: i32,
    pub ring: Option<i32>,
    pub host: i32,
    pub pid: Option<i32>,
}

/// The kernel's frames in captures.
#[derive(Debug)]
pub(super) struct KernelFrames {
    pub schema: SchemaRef,
    /// The words of all columns, except those of captures, buffers and hosts.
    pub words: Arc<StringArray>,
    pub groups: Vec<Group>,
    /// Number of the group, by process and segment.
    pub group_of: HashMap<(i32, u64), i32>,
    /// By capture and source.
    pub forms: HashMap<(usize, u16), KernelForm>,
    /// By group, once they were read.
    pub records: Mutex<Option<Arc<Vec<Records>>>>,
}

impl KernelFrames {
    pub fn new(set: &CaptureSet) -> KernelFrames {
        let mut dictionary = Dictionary::default();
        KernelWord::iter().for_each(|word| _ = dictionary.key(word.into()));
        let (mut groups, mut group_of, mut forms) = (Vec::new(), HashMap::new(), HashMap::new());
        for (number, capture) in set.captures().iter().enumerate() {
            let catalog = capture.catalog();
            for info in catalog.sources.iter().filter(|source| source.source.kind == KERNEL) {
                let kinds = info.schema.frames.iter().enumerate().filter_map(|(id, frame)| {
                    Some((id as u16, KernelFrameFields::new(&info.schema, frame, &mut dictionary)?))
                });
                let form = KernelForm { multi: info.schema.multi(), kinds: kinds.collect() };
                forms.insert((number, info.id), form);
            }
            for owner in set.owners(number, catalog) {
                if forms.contains_key(&(number, owner.source)) {
                    group_of.entry((owner.process, owner.nonce)).or_insert_with(|| {
                        groups.push(Group {
                            buffer: owner.buffer,
                            segment: owner.segment,
                            ring: owner.ring,
                            host: owner.host,
                            pid: owner.pid,
                        });
                        groups.len() as i32 - 1
                    });
                }
            }
        }
        let standard = STANDARD.iter().map(|standard| standard.field(&Default::default()));
        let own = READ.iter().map(|(_, name, ty)| Field::new(*name, ty.clone(), true));
        KernelFrames {
            schema: Arc::new(Schema::new(standard.chain(own).collect::<Vec<_>>())),
            words: dictionary.array(),
            groups,
            group_of,
            forms,
            records: Mutex::default(),
        }
    }
}
