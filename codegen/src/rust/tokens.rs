//! Names, numbers, types, zeros and comments as tokens of Rust.

use ppt_frame_dsl::Stored;
use ppt_frame_dsl::names::upper_camel;
use ppt_text::masked;
use proc_macro2::{Ident, Literal, Span, TokenStream};
use quote::quote;

/// An identifier.
pub(super) fn ident(name: &str) -> Ident {
    Ident::new(name, Span::call_site())
}

/// A literal without a suffix.
pub(super) fn number(value: impl Into<i128>) -> Literal {
    Literal::i128_unsuffixed(value.into())
}

/// The type of one element.
pub(super) fn element_type(stored: Stored<'_>) -> TokenStream {
    match stored {
        Stored::Int(int) => {
            let word = ident(int.word());
            quote!(#word)
        }
        Stored::F32 => quote!(f32),
        Stored::F64 => quote!(f64),
        Stored::Bool => quote!(bool),
        Stored::Enum(declared) => {
            let name = ident(&upper_camel(&declared.name));
            quote!(#name)
        }
        Stored::Timeval => quote!(::ppt_probe::Timeval),
        Stored::Timespec => quote!(::ppt_probe::Timespec),
        Stored::Text { len } => {
            let len = number(len);
            quote!(::ppt_probe::Text<#len>)
        }
        Stored::Bytes { len } => {
            let len = number(len);
            quote!([u8; #len])
        }
    }
}

/// The lines of a doc comment.
pub(super) fn doc(text: &str) -> TokenStream {
    let shown = masked(text, |char| matches!(char, '\t' | '\n'));
    let lines = shown.lines().map(|line| format!(" {}", line.trim()));
    quote!(#(#[doc = #lines])*)
}

/// `doc`, if the frame file has no comment.
pub(super) fn doc_or(text: &str, otherwise: &str) -> TokenStream {
    doc(if text.is_empty() { otherwise } else { text })
}

/// The value of an element before it is set.
pub(super) fn zero(stored: Stored<'_>) -> TokenStream {
    match stored {
        Stored::Int(_) => quote!(0),
        Stored::F32 | Stored::F64 => quote!(0.0),
        Stored::Bool => quote!(false),
        Stored::Enum(_) => {
            let ty = element_type(stored);
            quote!(#ty(0))
        }
        Stored::Timeval => quote!(::ppt_probe::Timeval::ZERO),
        Stored::Timespec => quote!(::ppt_probe::Timespec::ZERO),
        Stored::Text { .. } => quote!(::ppt_probe::Text::EMPTY),
        Stored::Bytes { len } => {
            let len = number(len);
            quote!([0; #len])
        }
    }
}
