//! The frames of spans whose halves have different fields: one layout, and two structs.

use ppt_frame_dsl::role::SpanHalf;

use super::{BitSource, FieldModel, FrameModel, Member, MemberKind, Store};

impl<'a> FrameModel<'a> {
    /// The halves with a struct of their own, as `Some`, or else `None` for the frame that all forms write.
    pub fn halves(&self) -> &'static [Option<SpanHalf>] {
        if self.fields.iter().any(|field| field.only.is_some()) {
            &[Some(SpanHalf::Begin), Some(SpanHalf::End)]
        } else {
            &[None]
        }
    }

    /// The fields that the program sets in that half.
    pub fn given_in(&self, half: Option<SpanHalf>) -> impl Iterator<Item = &FieldModel<'a>> {
        self.given().filter(move |field| field.is_in(half))
    }

    /// The name of a member in the struct of a half: fields of the other half are inaccessible.
    pub fn member_name(&self, member: &Member, half: Option<SpanHalf>) -> String {
        let only = match member.kind {
            MemberKind::Field(index) => self.fields[index].only.filter(|only| Some(*only) != half),
            MemberKind::Sequence | MemberKind::FrameId | MemberKind::Padding(_) => None,
        };
        match (only, half) {
            (Some(only), Some(_)) => format!("ppt_{}_{}", only.word(), member.name),
            _ => member.name.clone(),
        }
    }

    /// The stores of the words of a half into a slot: fields of the other half are 0.
    pub fn stores_in(&self, half: Option<SpanHalf>) -> Vec<Store> {
        let is_in = |field: usize| self.fields[field].is_in(half);
        let mut stores = Vec::new();
        for store in &self.stores {
            match store {
                Store::Word { index, parts } => {
                    let parts = parts.iter().filter(|part| match part.value {
                        BitSource::FrameId(_) => true,
                        BitSource::Bytes { field, .. } | BitSource::Number { field, .. } => {
                            is_in(field)
                        }
                    });
                    stores.push(Store::Word { index: *index, parts: parts.cloned().collect() });
                }
                Store::Array { first, words, field, .. } if !is_in(*field) => {
                    let zero = |index| Store::Word { index, parts: Vec::new() };
                    stores.extend((*first..first + words).map(zero));
                }
                array @ Store::Array { .. } => stores.push(array.clone()),
            }
        }
        stores
    }
}

impl FieldModel<'_> {
    /// Whether a half has the field; with `None`, whether a frame without halves has it.
    pub fn is_in(&self, half: Option<SpanHalf>) -> bool {
        half.is_none() || self.only.is_none() || self.only == half
    }
}
