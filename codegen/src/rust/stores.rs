//! The stores of a frame, in Rust.

use ppt_frame_dsl::Stored;
use ppt_frame_dsl::role::SpanHalf;
use ppt_frame_dsl::schema::Int;
use proc_macro2::TokenStream;
use quote::quote;

use super::gate::reading;
use super::half_structs::type_of;
use super::tokens::{element_type, ident, number};
use crate::model::{BitSource, Bits, BufferModel, FieldModel, FrameModel, Store, WordPart};

/// The stores of a frame into the ring.
pub(super) fn writer(
    model: &BufferModel<'_>,
    frame: &FrameModel<'_>,
    half: Option<SpanHalf>,
) -> TokenStream {
    let name = type_of(frame, half);
    let stores = stores(frame, half);
    let id = number(frame.id as u32);
    let inline = if frame.inline { quote!(#[inline(always)]) } else { quote!(#[inline]) };
    let stamp = |field: &FieldModel<'_>| {
        let (name, reading) = (ident(field.name), reading(model.stamp_of(field)));
        quote!(self.#name = #reading;)
    };
    let (start, end) =
        frame.interval().map(|interval| (stamp(interval.start), stamp(interval.end))).unzip();
    quote! {
        impl ppt::Frame for #name {
            #[inline(always)]
            fn ppt_on() -> bool {
                PPT_CONTROL.wants::<#id>()
            }
            #inline
            fn ppt_commit(&self) {
                if let ::core::option::Option::Some(write) = ppt_begin(#id) {
                    #(#stores)*
                    ppt_end(write);
                }
            }
            #[cold]
            fn ppt_busy() {
                ppt::busy(&PPT_CONTROL, &PPT_BUFFER, &PPT_THREAD);
            }
            #[inline(always)]
            fn ppt_start(&mut self) {
                #start
            }
            #[inline(always)]
            fn ppt_end(&mut self) {
                #end
            }
        }
    }
}

/// Statements that store the words of `self`, but word 0, through `write`.
fn stores(frame: &FrameModel<'_>, half: Option<SpanHalf>) -> Vec<TokenStream> {
    let store = |store: &Store| match store {
        Store::Word { index, parts } => {
            let index = number(*index);
            let parts = parts.iter().map(|part| shifted(frame, part));
            let value = if parts.len() == 0 { quote!(0) } else { quote!(#(#parts) | *) };
            quote!(let word: u64 = #value; write.put::<#index>(word);)
        }
        Store::Array { first, words, field, from } => {
            let Array { ty, length, value } = array(&frame.fields[*field]);
            let (first, from, words) = (number(*first), number(*from), number(*words));
            quote!(write.put_array::<#ty, #length, #first, #from, #words>(#value);)
        }
    };
    frame.stores_in(half).iter().map(store).collect()
}

/// A field as an array of plain numbers.
struct Array {
    ty: TokenStream,
    length: proc_macro2::Literal,
    value: TokenStream,
}

fn array(field: &FieldModel<'_>) -> Array {
    let name = ident(field.name);
    let (ty, value) = match field.stored {
        Stored::Text { .. } => (quote!(u8), quote!(self.#name.as_bytes())),
        Stored::Bytes { .. } => (quote!(u8), quote!(&self.#name)),
        Stored::Enum(declared) => {
            let repr = ident(declared.repr.word());
            (quote!(#repr), quote!(&self.#name.map(|it| it.0)))
        }
        other => (element_type(other), quote!(&self.#name)),
    };
    Array { ty, length: number(field.length().expect("an array")), value }
}

fn shifted(frame: &FrameModel<'_>, part: &WordPart) -> TokenStream {
    let bits = match part.value {
        BitSource::FrameId(id) => {
            let id = number(id as u32);
            quote!(#id)
        }
        BitSource::Bytes { field, at, count } => {
            let Array { ty, length, value } = array(&frame.fields[field]);
            let (at, count) = (number(at), number(count));
            quote!(ppt::array_bytes::<#ty, #length, #at, #count>(#value))
        }
        BitSource::Number { field, element, bits } => {
            let name = ident(frame.fields[field].name);
            let index = element.map(|element| {
                let element = number(element);
                quote!([#element])
            });
            number_word(bits, &quote!(self.#name #index))
        }
    };
    match part.shift {
        0 => bits,
        shift => {
            let shift = number(shift);
            quote!((#bits) << #shift)
        }
    }
}

fn number_word(bits: Bits, value: &TokenStream) -> TokenStream {
    // By way of the unsigned type of its width: no sign may reach the neighbours.
    let unsigned = |int: Int| ident(&format!("u{}", int.size() * 8));
    match bits {
        Bits::Int(Int::I64 | Int::U64) | Bits::Bool => quote!(#value as u64),
        Bits::Int(int) => {
            let unsigned = unsigned(int);
            quote!(#value as #unsigned as u64)
        }
        Bits::Enum(int) => {
            let unsigned = unsigned(int);
            quote!(#value.0 as #unsigned as u64)
        }
        Bits::F32 => quote!(ppt::f32_word(#value)),
        Bits::F64 => quote!(ppt::f64_word(#value)),
        Bits::Seconds => quote!(#value.tv_sec as u64),
        Bits::Microseconds => quote!(#value.tv_usec as u64),
        Bits::Nanoseconds => quote!(#value.tv_nsec as u64),
    }
}
