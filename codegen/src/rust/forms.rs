//! The functions that write a frame, in Rust.

use ppt_frame_dsl::names::upper_camel;
use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};

use super::gate::reading;
use super::half_structs::self_or_half;
use super::tokens::{doc, ident, number};
use crate::model::{BufferModel, FormMark, FrameModel, MarkValue, ScopeInterval, WriteForm};

/// The functions that write a frame of fields that a closure sets, one for each form.
fn writes(model: &BufferModel<'_>, frame: &FrameModel<'_>) -> Vec<TokenStream> {
    let bit = number(frame.id as u32);
    let write = |form: &WriteForm<'_>| {
        let about = doc(&format!(
            "Runs `fill` only while somebody is attached, and writes the frame{}. Fields that are\n\
             not set are 0.",
            written_as(form)
        ));
        let parameter = parameter(form).map(|(name, ty)| quote!(#name: #ty,));
        let (verb, (take, store)) = (ident(form.verb), own(model, frame, form));
        let ty = self_or_half(frame, form.half);
        quote! {
            #about
            #[inline(always)]
            pub fn #verb(#parameter fill: impl ::core::ops::FnOnce(&mut #ty)) {
                if PPT_CONTROL.wants::<#bit>() {
                    #take
                    let mut frame = #ty::PPT_ZERO;
                    fill(&mut frame);
                    #store
                    ppt::Frame::ppt_commit(&frame);
                    ppt::written();
                }
            }
        }
    };
    frame.forms.iter().map(write).collect()
}

/// The functions that write the thread's frame of the macro form, if ppt sets a field: one for each form.
fn updates(model: &BufferModel<'_>, frame: &FrameModel<'_>) -> Vec<TokenStream> {
    let last = last(frame);
    let update = |form: &WriteForm<'_>| {
        let (update, (take, store)) = (update(form), own(model, frame, form));
        let parameter = parameter(form).map(|(name, ty)| quote!(#name: #ty,));
        let ty = self_or_half(frame, form.half);
        let call = match form.half {
            None => quote!(ppt::update_as(last, true, set, |frame| { #take #store })),
            Some(_) => quote!(ppt::update_half(last, set, |frame: &mut #ty| { #take #store })),
        };
        quote! {
            #[doc(hidden)]
            #[inline(always)]
            pub fn #update(#parameter set: impl ::core::ops::FnOnce(&mut #ty)) {
                #last.with(|last| #call);
            }
        }
    };
    frame.forms.iter().filter(|_| frame.is_completed()).map(update).collect()
}

/// The functions `write` and `scope`.
pub(super) fn forms(model: &BufferModel<'_>, frame: &FrameModel<'_>) -> TokenStream {
    let (name, last) = (ident(&upper_camel(frame.name)), last(frame));
    let (writes, updates) = (writes(model, frame), updates(model, frame));
    let scope = frame.interval().map(|ScopeInterval { start, end }| {
        let about = format!(
            "Stamps `{}` now, and `{}` when the guard is dropped, which writes the frame:\n\
             at the end of the block, on return and on panic. `fill` runs only while somebody is\n\
             attached.",
            start.name, end.name
        );
        let about = doc(&about);
        quote! {
            #about
            #[inline(always)]
            pub fn scope(fill: impl ::core::ops::FnOnce(&mut Self)) -> ::ppt_probe::Scope<Self> {
                ppt::scope(Self::PPT_ZERO, fill)
            }
        }
    });
    let set = match frame.halves() {
        [None] => quote! {
            #[doc(hidden)]
            #[inline(always)]
            pub fn ppt_update(write: bool, set: impl ::core::ops::FnOnce(&mut Self)) {
                #last.with(|last| ppt::update(last, write, set));
            }
        },
        // Such a frame is written only as halves.
        _ => quote! {
            #[doc(hidden)]
            #[inline(always)]
            pub fn ppt_update(_: bool, set: impl ::core::ops::FnOnce(&mut Self)) {
                #last.with(|last| ppt::set(last, set));
            }
        },
    };
    quote! {
        impl #name {
            #(#writes)*
            #scope
            #set
            #(#updates)*
        }
        ::std::thread_local! {
            static #last: ::core::cell::RefCell<#name> =
                const { ::core::cell::RefCell::new(#name::PPT_ZERO) };
        }
    }
}

/// The fields that ppt itself sets: the stamp, which it takes first, and the mark, which it stores last, over
/// any value of the program.
fn own(
    model: &BufferModel<'_>,
    frame: &FrameModel<'_>,
    form: &WriteForm<'_>,
) -> (TokenStream, TokenStream) {
    let mark = form.mark.as_ref().map(|FormMark { field, member, enum_type, value }| {
        let (field, member) = (ident(field), ident(member));
        let enum_type = ident(&upper_camel(&enum_type.name));
        match value {
            MarkValue::Named(value, _) => {
                let value = ident(&upper_camel(value));
                quote!(frame.#member = #enum_type::#value;)
            }
            MarkValue::Argument(_) => quote!(frame.#member = #field;),
        }
    });
    let (take, store) = frame
        .own_stamp()
        .map(|field| {
            let (name, reading) = (ident(field.name), reading(model.stamp_of(field)));
            (quote!(let stamp = #reading;), quote!(frame.#name = stamp;))
        })
        .unwrap_or_default();
    (take, quote!(#mark #store))
}

/// The parameters of a form before the function that fills the frame: names and types.
pub(super) fn parameter(form: &WriteForm<'_>) -> Option<(Ident, Ident)> {
    match &form.mark {
        Some(FormMark { field, enum_type, value: MarkValue::Argument(_), .. }) => {
            Some((ident(field), ident(&upper_camel(&enum_type.name))))
        }
        _ => None,
    }
}

/// The form, for the doc comment of a function: ` as …`; empty if the frame has one form.
pub(super) fn written_as(form: &WriteForm<'_>) -> String {
    match form.mark.as_ref().map(|mark| &mark.value) {
        None => String::new(),
        Some(MarkValue::Named(value, _)) => format!(" as `{value}`"),
        Some(MarkValue::Argument(_)) => " as that step".into(),
    }
}

/// The name of the function that writes the thread's frame of the macro form, if ppt sets a field.
pub(super) fn update(form: &WriteForm<'_>) -> Ident {
    format_ident!("ppt_{}", form.verb)
}

/// The name of the thread's frame of the macro form.
fn last(frame: &FrameModel<'_>) -> Ident {
    format_ident!("PPT_LAST_{}", frame.name.to_ascii_uppercase())
}
