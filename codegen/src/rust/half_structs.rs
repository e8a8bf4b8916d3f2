//! Spans whose halves have different fields, in Rust: a struct for each half.

use ppt_frame_dsl::names::upper_camel;
use ppt_frame_dsl::role::SpanHalf;
use proc_macro2::{Ident, TokenStream};
use quote::quote;

use super::tokens::ident;
use crate::model::FrameModel;

/// The type of a frame, or of the half of a span that has fields of its own.
pub(super) fn type_of(frame: &FrameModel<'_>, half: Option<SpanHalf>) -> Ident {
    let name = upper_camel(frame.name);
    ident(&half.map_or_else(|| name.clone(), |half| format!("{name}{}", upper_camel(half.word()))))
}

/// How a half is taken out of the thread's frame of the macro form, and kept in it.
pub(super) fn of_whole(frame: &FrameModel<'_>, half: Option<SpanHalf>) -> TokenStream {
    let (whole, name) = (type_of(frame, None), type_of(frame, half));
    let fields = frame.given_in(half).map(|field| ident(field.name));
    let fields: Vec<_> = fields.collect();
    quote! {
        impl ppt::Half for #name {
            type Whole = #whole;
            #[inline(always)]
            fn ppt_of(whole: &#whole) -> Self {
                Self { #(#fields: whole.#fields,)* ..Self::PPT_ZERO }
            }
            #[inline(always)]
            fn ppt_keep(&self, whole: &mut #whole) {
                #(whole.#fields = self.#fields;)*
            }
        }
    }
}

/// The type that a form fills, inside of the `impl` of the frame.
pub(super) fn self_or_half(frame: &FrameModel<'_>, half: Option<SpanHalf>) -> TokenStream {
    match half {
        None => quote!(Self),
        Some(_) => {
            let ty = type_of(frame, half);
            quote!(#ty)
        }
    }
}
