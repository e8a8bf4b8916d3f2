//! The types of frames and enums, in Rust.

use ppt_frame_dsl::names::upper_camel;
use ppt_frame_dsl::role::SpanHalf;
use ppt_frame_dsl::schema::Enum;
use proc_macro2::{Literal, TokenStream};
use quote::quote;

use super::half_structs::type_of;
use super::tokens::{doc, doc_or, element_type, ident, number, zero};
use crate::model::{FieldModel, FrameModel, MemberKind};

/// An enum is a struct with an integer, not an `enum` of Rust: a field is 0 until it is set, whether or
/// not 0 has a name, and two names may have one value.
pub(super) fn enumeration(declared: &Enum) -> TokenStream {
    let name = ident(&upper_camel(&declared.name));
    let repr = ident(declared.repr.word());
    let about = doc_or(&declared.doc, &format!("Enum `{}` of the frame file.", declared.name));
    let values = declared.values.iter().map(|(value, number)| {
        let about = doc(&format!("`{value}`"));
        let value = ident(&upper_camel(value));
        let number = Literal::i128_unsuffixed(*number);
        quote!(#about pub const #value: Self = Self(#number);)
    });
    quote! {
        #about
        #[repr(transparent)]
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct #name(
            /// The number, which may have no name.
            pub #repr,
        );
        impl #name {
            #(#values)*
        }
    }
}

/// The doc comment of a struct's field.
fn about_field(field: &FieldModel<'_>) -> TokenStream {
    let mut parts = Vec::new();
    if field.own {
        parts.push("set by ppt".into());
    }
    if let Some(clock) = field.clock() {
        parts.push(format!("{} clock", clock.word()));
    }
    if field.is_ticks() {
        parts.push("ticks".into());
    }
    if !field.unit.is_empty() {
        parts.push(format!("in {}", field.unit));
    }
    parts.extend(field.doc.lines().map(|line| line.trim().to_owned()));
    let text = if parts.is_empty() { format!("`{}`", field.name) } else { parts.join("; ") };
    doc(&text)
}

/// The struct, in the order of the layout, and assertions of that layout.
pub(super) fn structure(frame: &FrameModel<'_>, half: Option<SpanHalf>) -> TokenStream {
    let name = type_of(frame, half);
    // Each member, and its initial value.
    let members = frame.members.iter().map(|member| {
        let name = ident(&frame.member_name(member, half));
        match member.kind {
            MemberKind::Sequence => (quote!(#name: u64), quote!(#name: 0)),
            MemberKind::FrameId => (quote!(#name: u16), quote!(#name: 0)),
            MemberKind::Field(index) => {
                let field = &frame.fields[index];
                let about = about_field(field);
                let (mut ty, mut zero) = (element_type(field.stored), zero(field.stored));
                if let Some(length) = field.array {
                    let length = number(length);
                    (ty, zero) = (quote!([#ty; #length]), quote!([#zero; #length]));
                }
                let public = (!field.own && field.is_in(half)).then(|| quote!(pub));
                (quote!(#about #public #name: #ty), quote!(#name: #zero))
            }
            MemberKind::Padding(bytes) => {
                let bytes = number(bytes);
                (quote!(#name: [u8; #bytes]), quote!(#name: [0; #bytes]))
            }
        }
    });
    let (fields, zeros): (Vec<_>, Vec<_>) = members.unzip();
    let size = number(frame.size);
    let placed = frame.members.iter().filter(|member| matches!(member.kind, MemberKind::Field(_)));
    let offsets = placed.map(|member| {
        let field = ident(&frame.member_name(member, half));
        let offset = number(member.offset);
        quote!(assert!(::core::mem::offset_of!(#name, #field) == #offset);)
    });
    let about = doc_or(frame.doc, &format!("Frame `{}`.", frame.name));
    let about = match half {
        None => about,
        Some(half) => doc(&format!("The fields of the {} of a `{}`.", half.word(), frame.name)),
    };
    quote! {
        #about
        #[repr(C)]
        #[derive(Clone, Copy, Debug)]
        pub struct #name {
            #(#fields,)*
        }
        const _: () = {
            assert!(::core::mem::size_of::<#name>() == #size);
            #(#offsets)*
        };
        impl #name {
            const PPT_ZERO: Self = Self { #(#zeros,)* };
        }
        impl ::core::default::Default for #name {
            fn default() -> Self {
                Self::PPT_ZERO
            }
        }
    }
}
