//! Rust: one module per buffer. The generated code is safe; unsafe code is in `runtime/rust`.

mod buffer;
mod forms;
mod gate;
mod half_structs;
mod macros;
mod metrics;
mod stores;
mod structure;
mod tokens;

use proc_macro2::TokenStream;
use quote::quote;

use self::buffer::buffer;
use self::forms::forms;
use self::gate::gate_functions;
use self::half_structs::of_whole;
use self::macros::macros;
use self::metrics::metric;
use self::stores::writer;
use self::structure::{enumeration, structure};
use self::tokens::{doc, ident};
use crate::emitter::Emitter;
use crate::model::BufferModel;
use crate::output::GeneratedFile;

/// Writes `STEM.rs`.
pub(crate) struct Rust;

impl Emitter for Rust {
    fn emit(&self, model: &BufferModel<'_>) -> Vec<GeneratedFile> {
        let [first, second] = model.banner("Frames");
        let file = syn::parse2(module(model)).expect("what is quoted here is Rust");
        let text = format!("// {first}\n// {second}\n{}", prettyplease::unparse(&file));
        vec![GeneratedFile { name: format!("{}.rs", model.stem), text }]
    }
}

fn module(model: &BufferModel<'_>) -> TokenStream {
    let name = ident(model.buffer());
    let about = doc(&format!("The frames of buffer `{}`.", model.buffer()));
    let buffer = buffer(model);
    let gate_functions = gate_functions(model);
    let enums = model.schema.enums.iter().map(enumeration);
    let frames = model.frames.iter().map(|frame| {
        // The thread's frame of the macro form has all fields, but each half of a span only its own.
        let halves = frame.halves().iter().filter(|half| half.is_some());
        let structures = std::iter::once(&None).chain(halves.clone());
        let structures = structures.map(|half| structure(frame, *half));
        let halves = halves.map(|half| of_whole(frame, *half));
        let forms = forms(model, frame);
        let writers = frame.halves().iter().map(|half| writer(model, frame, *half));
        let macros = macros(model, frame);
        quote!(#(#structures)* #(#halves)* #forms #(#writers)* #macros)
    });
    let metrics = model.metrics.iter().map(|declared| metric(model, declared));
    quote! {
        #about
        #[allow(dead_code, non_snake_case, non_upper_case_globals, trivial_numeric_casts)]
        #[allow(unreachable_pub, unused_imports, unused_macros, unused_qualifications)]
        #[allow(clippy::all, clippy::pedantic)]
        pub(crate) mod #name {
            use ::ppt_probe::generated as ppt;
            #buffer
            #gate_functions
            #(#enums)*
            #(#frames)*
            #(#metrics)*
        }
    }
}
