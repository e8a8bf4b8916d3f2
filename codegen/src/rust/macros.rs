//! The macro form, in Rust.

use ppt_frame_dsl::names::upper_camel;
use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote};

use super::forms::{parameter, update, written_as};
use super::tokens::{doc, ident};
use crate::model::{BufferModel, FrameModel};

/// The macro form of the paper: one frame for each thread, whose fields keep their last value.
pub(super) fn macros(model: &BufferModel<'_>, frame: &FrameModel<'_>) -> TokenStream {
    let module = ident(model.buffer());
    let frame_name = ident(&upper_camel(frame.name));
    let one = |verb: &str, update: &Ident, write: Option<bool>, step: bool, about: &str| {
        let write = write.map(|write| quote!(#write,));
        let (pattern, first, name) = if step {
            (
                quote!($step:expr $(, $field:ident = $value:expr)* $(,)?),
                quote!($step,),
                quote!(step,),
            )
        } else {
            (quote!($($field:ident = $value:expr),* $(,)?), quote!(), quote!())
        };
        let macro_name = format_ident!("{verb}_{}", frame.name);
        let about = doc(about);
        quote! {
            #about
            macro_rules! #macro_name {
                (#pattern) => {
                    match (#first $($value,)*) {
                        (#name $($field,)*) => $crate::#module::#frame_name::#update(#write #name |frame| {
                            let _ = &frame;
                            $(::ppt_probe::generated::Put::put(&mut frame.$field, $field);)*
                        }),
                    }
                };
            }
            pub(crate) use #macro_name;
        }
    };
    let set = one(
        "set",
        &ident("ppt_update"),
        Some(false),
        false,
        "Sets fields of the thread's frame, on or off: `field = value, …`. They keep their values.",
    );
    let writes = frame.forms.iter().map(|form| {
        let about = format!(
            "Sets fields of the thread's frame, on or off, and writes it{} if somebody is attached.\n\
             Fields that are not named keep their last value; the first is 0.",
            written_as(form)
        );
        if frame.is_completed() { one(form.verb, &update(form), None, parameter(form).is_some(), &about) } else { one(form.verb, &ident("ppt_update"), Some(true), false, &about) }
    });
    quote!(#set #(#writes)*)
}
