//! A frame as the 64-bit words that are stored into a slot: `c/words.rs` in Rust.
//!
//! Words are composed from the fields, so that a compiler can keep the fields in registers.

use ppt_frame_dsl::schema::{Field, FieldType, Frame, Schema};
use proc_macro2::TokenStream;
use quote::quote;

use super::{ident, number};

/// Full words inside one array that are worth a loop.
const LOOP_FROM: u32 = 8;

/// Statements that store the words of `self`, but word 0, through `write`.
pub(super) fn stores(schema: &Schema, frame: &Frame, id: Option<usize>) -> Vec<TokenStream> {
    let mut parts: Vec<Vec<TokenStream>> = vec![Vec::new(); frame.size as usize / 8];
    if let Some(id) = id {
        let id = number(id as u32);
        parts[1].push(quote!(#id));
    }
    let mut loops = Vec::new();
    for field in &frame.fields {
        let bytes = field.bytes(schema);
        match bulk(schema, field) {
            Some(words) => {
                compose(schema, field, 0, words.before, &mut parts);
                compose(schema, field, words.after, bytes, &mut parts);
                loops.push(((field.offset + words.before) / 8, words, field));
            }
            None => compose(schema, field, 0, bytes, &mut parts),
        }
    }
    let mut statements = Vec::new();
    let mut word = 1;
    while word < parts.len() as u32 {
        let first = number(word);
        if let Some((_, words, field)) = loops.iter().find(|it| it.0 == word) {
            let count = (words.after - words.before) / 8;
            let array = array(schema, field);
            let (ty, length, value) = (array.ty, array.length, array.value);
            let (before, words) = (number(words.before), number(count));
            statements
                .push(quote!(write.put_array::<#ty, #length, #first, #before, #words>(#value);));
            word += count;
            continue;
        }
        let value = match parts[word as usize].as_slice() {
            [] => quote!(0),
            parts => quote!(#(#parts) | *),
        };
        statements.push(quote!(let word: u64 = #value; write.put::<#first>(word);));
        word += 1;
    }
    statements
}

/// Bytes of an array that make whole words, when they are many.
struct Bulk {
    before: u32,
    after: u32,
}

fn bulk(schema: &Schema, field: &Field) -> Option<Bulk> {
    let is_array = matches!(field.ty, FieldType::Char { .. } | FieldType::Bytes { .. });
    let is_time = matches!(field.ty, FieldType::Timeval | FieldType::Timespec { .. });
    if is_time || !(is_array || field.array.is_some()) {
        return None;
    }
    let end = field.offset + field.bytes(schema);
    let (first, last) = (field.offset.div_ceil(8), end / 8);
    (last >= first + LOOP_FROM)
        .then(|| Bulk { before: first * 8 - field.offset, after: last * 8 - field.offset })
}

/// A field as an array of plain numbers.
struct Array {
    ty: TokenStream,
    length: proc_macro2::Literal,
    value: TokenStream,
}

fn array(schema: &Schema, field: &Field) -> Array {
    let name = ident(&field.name);
    let (ty, length, value) = match &field.ty {
        FieldType::Char { len } => (quote!(u8), *len, quote!(self.#name.as_bytes())),
        FieldType::Bytes { len } => (quote!(u8), *len, quote!(&self.#name)),
        FieldType::Enum { name: of } => {
            let repr = schema.enum_named(of).expect("a checked schema's enums exist").repr;
            let repr = ident(repr.word());
            (quote!(#repr), field.count(), quote!(&self.#name.map(|it| it.0)))
        }
        ty => (super::element_type(ty), field.count(), quote!(&self.#name)),
    };
    Array { ty, length: number(length), value }
}

/// Adds bytes `[from, to)` of a field to the words that they lie in.
fn compose(schema: &Schema, field: &Field, from: u32, to: u32, parts: &mut [Vec<TokenStream>]) {
    let mut put = |offset: u32, expression: TokenStream| {
        let shift = number(offset % 8 * 8);
        let shifted = match offset % 8 {
            0 => expression,
            _ => quote!((#expression) << #shift),
        };
        parts[offset as usize / 8].push(shifted);
    };
    if let FieldType::Char { .. } | FieldType::Bytes { .. } = field.ty {
        let Array { ty, length, value } = array(schema, field);
        let mut at = from;
        while at < to {
            let offset = field.offset + at;
            let count = (8 - offset % 8).min(to - at);
            let (start, bytes) = (number(at), number(count));
            put(offset, quote!(ppt::array_bytes::<#ty, #length, #start, #bytes>(#value)));
            at += count;
        }
        return;
    }
    let name = ident(&field.name);
    let size = field.ty.size(schema);
    for element in from / size..to / size {
        let index = field.array.map(|_| number(element)).map(|it| quote!([#it]));
        let value = quote!(self.#name #index);
        let offset = field.offset + element * size;
        // By way of the unsigned type of its width: no sign may reach the neighbours.
        let unsigned = ident(&format!("u{}", size * 8));
        match &field.ty {
            FieldType::F32 => put(offset, quote!(ppt::f32_word(#value))),
            FieldType::F64 => put(offset, quote!(ppt::f64_word(#value))),
            FieldType::Bool => put(offset, quote!(#value as u64)),
            FieldType::Timeval => {
                put(offset, quote!(#value.tv_sec as u64));
                put(offset + 8, quote!(#value.tv_usec as u64));
            }
            FieldType::Timespec { .. } => {
                put(offset, quote!(#value.tv_sec as u64));
                put(offset + 8, quote!(#value.tv_nsec as u64));
            }
            FieldType::Enum { .. } => put(offset, quote!(#value.0 as #unsigned as u64)),
            _ if size == 8 => put(offset, quote!(#value as u64)),
            _ => put(offset, quote!(#value as #unsigned as u64)),
        }
    }
}
