//! Counters and histograms, in Rust.

use ppt_frame_dsl::metric::{Metric, MetricShape};
use ppt_frame_dsl::names::upper_camel;
use proc_macro2::{Literal, TokenStream};
use quote::quote;

use super::tokens::{doc, doc_or, ident, number};
use crate::model::BufferModel;

/// The code that adds to cells.
pub(super) fn adders() -> TokenStream {
    quote! {
        #[cold]
        #[inline(never)]
        fn ppt_add(cell: u32, value: u64) {
            ppt::add(&PPT_CONTROL, &PPT_BUFFER, &PPT_THREAD, cell, value);
        }

        #[cold]
        #[inline(never)]
        fn ppt_observe(sum: u32, bucket: u32, value: u64) {
            ppt::observe(&PPT_CONTROL, &PPT_BUFFER, &PPT_THREAD, (sum, bucket), value);
        }
    }
}

/// A counter or a histogram.
pub(super) fn metric(model: &BufferModel<'_>, metric: &Metric) -> TokenStream {
    let Metric { name, shape, doc: text, unit, .. } = metric;
    let ty = ident(&upper_camel(name));
    let first = number(metric.cells.start);
    let about = doc_or(text, &format!("The {} `{name}`.", shape.kind()));
    let in_unit = if unit.is_empty() { String::new() } else { format!(", in {unit}") };
    let (what, value, call) = match *shape {
        MetricShape::Counter => ("Adds to it", quote!(u64), quote!(ppt_add(#first, value))),
        MetricShape::UpDownCounter => {
            ("Adds to it, or takes from it", quote!(i64), quote!(ppt_add(#first, value as u64)))
        }
        MetricShape::Exponential => {
            let bucket = quote!(#first + ppt::exponential(value));
            let call = quote!(ppt_observe(#first, #bucket, value as u64));
            ("Counts a length of time in ns", quote!(i64), call)
        }
        MetricShape::Linear { from, to, buckets } => {
            let (from, to) = (Literal::u64_unsuffixed(from), Literal::u64_unsuffixed(to));
            let buckets = number(buckets);
            let bucket = quote!(#first + ppt::linear(value, #from, #to, #buckets));
            let call = quote!(ppt_observe(#first, #bucket, value as u64));
            ("Counts a value", quote!(u32), call)
        }
    };
    let verb = ident(shape.verb());
    let bit = number(model.bit_of(metric));
    let does = doc(&format!("{what}{in_unit}, if somebody is attached."));
    quote! {
        #about
        #[derive(Clone, Copy, Debug)]
        pub struct #ty;
        impl #ty {
            #does
            #[inline(always)]
            pub fn #verb(value: #value) {
                if PPT_CONTROL.wants::<#bit>() {
                    #call;
                }
            }
        }
    }
}
