//! The state of a buffer, in Rust.

use proc_macro2::TokenStream;
use quote::quote;

use super::metrics::adders;
use super::tokens::number;
use crate::model::BufferModel;

/// The static that ppt finds in the target, and the state of a thread.
pub(super) fn buffer(model: &BufferModel<'_>) -> TokenStream {
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
