//! The functions of a buffer, in Rust: whether ppt is attached, and its clocks.

use ppt_frame_dsl::Stored;
use proc_macro2::TokenStream;
use quote::quote;

use super::tokens::{doc, element_type, ident, number, zero};
use crate::model::{ABOUT_LENGTH, BufferModel, Stamp, clock_number};

/// The functions `on`, `prepare` and `now`.
pub(super) fn gate_functions(model: &BufferModel<'_>) -> TokenStream {
    let clocks = model.stamps.iter().map(|stamp| {
        let name = ident(&stamp.name);
        let ty = element_type(stamp.stored);
        let zero = zero(stamp.stored);
        let reading = reading(stamp);
        let about = doc(&format!("{}; 0 when nobody is attached.", stamp.about()));
        let length = stamp.length().map(|length| {
            let (length, about) = (ident(&length), doc(ABOUT_LENGTH));
            quote! {
                #about
                #[inline]
                pub fn #length(start: u64, end: u64) -> i64 {
                    ppt::ns_between(&PPT_CONTROL, start, end)
                }
            }
        });
        quote! {
            #about
            #[inline(always)]
            pub fn #name() -> #ty {
                if on() { #reading } else { #zero }
            }
            #length
        }
    });
    quote! {
        /// Whether somebody is attached; costs one load.
        #[inline(always)]
        pub fn on() -> bool {
            PPT_CONTROL.on()
        }

        /// A number of the session that is attached, another one for each; 0 when nobody is.
        #[inline]
        pub fn session() -> u64 {
            PPT_CONTROL.session()
        }

        /// Does the slow work of a thread's first frame in advance.
        #[inline(always)]
        pub fn prepare() {
            ppt::prepare(&PPT_CONTROL, &PPT_BUFFER, &PPT_THREAD);
        }

        #(#clocks)*
    }
}

/// The expression that reads the clock of a stamp.
pub(super) fn reading(stamp: &Stamp<'_>) -> TokenStream {
    let Some(clock) = stamp.clock else {
        return quote!(ppt::stamp(&PPT_CONTROL));
    };
    let clock = number(clock_number(clock));
    match stamp.stored {
        Stored::Timeval => quote!(ppt::clock(#clock).timeval()),
        Stored::Timespec => quote!(ppt::clock(#clock)),
        _ => quote!(ppt::clock(#clock).nanoseconds()),
    }
}
