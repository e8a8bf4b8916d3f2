//! Rust: one module per buffer. The generated code is safe; unsafe code is in `runtime/rust`.

mod halves;
mod stores;
mod tokens;

use ppt_frame_dsl::Stored;
use ppt_frame_dsl::metric::{Metric, MetricShape};
use ppt_frame_dsl::names::upper_camel;
use ppt_frame_dsl::role::SpanHalf;
use ppt_frame_dsl::schema::Enum;
use ppt_text::masked;
use proc_macro2::{Ident, Literal, TokenStream};
use quote::{format_ident, quote};

use self::halves::{of_whole, self_or_half, type_of};
use self::tokens::{element_type, ident, number};
use crate::emitter::Emitter;
use crate::model::{
    ABOUT_LENGTH, BufferModel, FieldModel, FormMark, FrameModel, MarkValue, MemberKind,
    ScopeInterval, Stamp, WriteForm, clock_number,
};
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

/// The lines of a doc comment.
fn doc(text: &str) -> TokenStream {
    let shown = masked(text, |char| matches!(char, '\t' | '\n'));
    let lines = shown.lines().map(|line| format!(" {}", line.trim()));
    quote!(#(#[doc = #lines])*)
}

/// `doc`, if the frame file has no comment.
fn doc_or(text: &str, otherwise: &str) -> TokenStream {
    doc(if text.is_empty() { otherwise } else { text })
}

fn module(model: &BufferModel<'_>) -> TokenStream {
    let name = ident(model.buffer());
    let about = doc(&format!("The frames of buffer `{}`.", model.buffer()));
    let buffer = buffer(model);
    let switch = switch(model);
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
            #switch
            #(#enums)*
            #(#frames)*
            #(#metrics)*
        }
    }
}

/// The static that ppt finds, and the state of a thread.
fn buffer(model: &BufferModel<'_>) -> TokenStream {
    let schema = model.schema;
    let json = schema.to_json();
    let hash: TokenStream = format!("0x{:016x}", model.hash).parse().expect("a number");
    let stride = number(schema.stride);
    let log2_slots = number(schema.slots.ilog2());
    let frames = number(schema.frames.len() as u32);
    let cells = number(schema.cells());
    let adders = (!model.metrics.is_empty()).then(adders);
    quote! {
        static PPT_CONTROL: ppt::Control = ppt::Control::new();
        #[used]
        static PPT_DESCRIPTOR: ppt::Descriptor = ppt::Descriptor::new(
            &PPT_DESCRIPTOR,
            &PPT_CONTROL,
            #json,
            ppt::Layout {
                hash: #hash,
                stride: #stride,
                log2_slots: #log2_slots,
                frames: #frames,
                cells: #cells,
            },
        );
        static PPT_BUFFER: ppt::Buffer = ppt::Buffer::new(&PPT_DESCRIPTOR, &PPT_CONTROL);
        ::ppt_probe::at_load!(PPT_BUFFER);
        ::std::thread_local! {
            static PPT_THREAD: ppt::Thread<#stride> = const { ppt::Thread::new() };
        }

        // Cold, so that the code that writes a frame is laid out for the case that ppt is not attached.
        #[cold]
        #[inline(never)]
        fn ppt_begin(frame: u32) -> ::core::option::Option<ppt::Write<#stride>> {
            ppt::begin(&PPT_CONTROL, &PPT_BUFFER, &PPT_THREAD, frame)
        }

        #[inline(always)]
        fn ppt_end(write: ppt::Write<#stride>) {
            write.end();
        }

        #adders
    }
}

/// The code that adds to cells.
fn adders() -> TokenStream {
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
fn metric(model: &BufferModel<'_>, metric: &Metric) -> TokenStream {
    let Metric { name, shape, doc: text, unit, .. } = metric;
    let ty = ident(&upper_camel(name));
    let first = number(metric.cells.start);
    let about = doc_or(text, &format!("The {} `{name}`.", shape.kind()));
    let of = if unit.is_empty() { String::new() } else { format!(", in {unit}") };
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
    let does = doc(&format!("{what}{of}, if somebody is attached."));
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

/// The functions `on`, `prepare` and `now`.
fn switch(model: &BufferModel<'_>) -> TokenStream {
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

/// An enum is its integer: a frame's fields are 0 until they are set, whether or not 0 has a name,
/// and two names may have one value. Neither is so for an `enum` of Rust.
fn enumeration(it: &Enum) -> TokenStream {
    let name = ident(&upper_camel(&it.name));
    let repr = ident(it.repr.word());
    let about = doc_or(&it.doc, &format!("Enum `{}` of the frame file.", it.name));
    let values = it.values.iter().map(|(value, number)| {
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

/// The value of an element that is not set.
fn zero(stored: Stored<'_>) -> TokenStream {
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

/// The expression that reads the clock of a stamp.
fn reading(stamp: &Stamp<'_>) -> TokenStream {
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
fn structure(frame: &FrameModel<'_>, half: Option<SpanHalf>) -> TokenStream {
    let name = type_of(frame, half);
    // Each member, and its initial value.
    let members = frame.members.iter().map(|member| {
        let name = ident(&frame.member_name(member, half));
        match member.what {
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
    let placed = frame.members.iter().filter(|member| matches!(member.what, MemberKind::Field(_)));
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

/// The fields that ppt itself sets: the stamp, which it takes first, and the mark, which it stores last, over
/// any value of the program.
fn own(
    model: &BufferModel<'_>,
    frame: &FrameModel<'_>,
    form: &WriteForm<'_>,
) -> (TokenStream, TokenStream) {
    let mark = form.mark.as_ref().map(|FormMark { field, member, of, value }| {
        let (field, member, of) = (ident(field), ident(member), ident(&upper_camel(&of.name)));
        match value {
            MarkValue::Named(value, _) => {
                let value = ident(&upper_camel(value));
                quote!(frame.#member = #of::#value;)
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
fn parameter(form: &WriteForm<'_>) -> Option<(Ident, Ident)> {
    match &form.mark {
        Some(FormMark { field, of, value: MarkValue::Argument(_), .. }) => {
            Some((ident(field), ident(&upper_camel(&of.name))))
        }
        _ => None,
    }
}

/// A form in words.
fn written_as(form: &WriteForm<'_>) -> String {
    match form.mark.as_ref().map(|mark| &mark.value) {
        None => String::new(),
        Some(MarkValue::Named(value, _)) => format!(" as `{value}`"),
        Some(MarkValue::Argument(_)) => " as that step".into(),
    }
}

/// The functions `write` and `scope`.
fn forms(model: &BufferModel<'_>, frame: &FrameModel<'_>) -> TokenStream {
    let name = ident(&upper_camel(frame.name));
    let (last, bit) = (last(frame), number(frame.id as u32));
    let writes = frame.forms.iter().map(|form| {
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
    });
    let updates = frame.forms.iter().filter(|_| frame.is_completed()).map(|form| {
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
    });
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
        // It is written as halves only.
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

/// The code that writes the thread's frame of the macro form, if ppt sets a field.
fn update(form: &WriteForm<'_>) -> Ident {
    format_ident!("ppt_{}", form.verb)
}

/// The thread's frame of the macro form.
fn last(frame: &FrameModel<'_>) -> Ident {
    format_ident!("PPT_LAST_{}", frame.name.to_ascii_uppercase())
}

/// The stores of a frame into the ring.
fn writer(model: &BufferModel<'_>, frame: &FrameModel<'_>, half: Option<SpanHalf>) -> TokenStream {
    let name = type_of(frame, half);
    let stores = stores::stores(frame, half);
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

/// The macro form of the paper: one frame for each thread, whose fields keep their last value.
fn macros(model: &BufferModel<'_>, frame: &FrameModel<'_>) -> TokenStream {
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
