//! Names, numbers and types as tokens of Rust.

use ppt_frame_dsl::Stored;
use ppt_frame_dsl::names::upper_camel;
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
        Stored::Enum(it) => {
            let name = ident(&upper_camel(&it.name));
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
