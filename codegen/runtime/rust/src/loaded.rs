//! Prepares each buffer when the program or library that holds it is loaded.

use std::sync::atomic::Ordering::Relaxed;

use super::descriptor::Buffer;
use super::errno::{errno, set_errno};
use super::{exit, fork, hello, list};

/// Has `$buffer` registered as early as a program can, because other constructors may write frames.
///
/// A macro of this crate, so that the generated code is safe code.
#[doc(hidden)]
#[macro_export]
macro_rules! at_load {
    ($buffer:ident) => {
        const _: () = {
            extern "C" fn at_load() {
                $crate::generated::loaded(&$buffer);
            }
            #[used]
            #[unsafe(link_section = ".init_array.00101")]
            static AT_LOAD: extern "C" fn() = at_load;
        };
    };
}

/// Registers `buffer`, whose program or library was loaded, unless it is registered already.
pub fn loaded(buffer: &'static Buffer) {
    if buffer.listed.swap(true, Relaxed) {
        return;
    }
    let saved = errno();
    exit::keep(&raw const hello::LOADED);
    fork::protect(buffer);
    // So the first frame does not need to make the key.
    exit::make_key(buffer);
    set_errno(saved);
    list::add(buffer);
}

#[cfg(test)]
mod tests {
    use super::super::{Control, Descriptor, Layout};
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "needs madvise(2)")]
    fn a_buffer_is_listed_once() {
        static CONTROL: Control = Control::new();
        static DESCRIPTOR: Descriptor = Descriptor::new(
            &DESCRIPTOR,
            &CONTROL,
            "{}",
            Layout { hash: 1, stride: 64, log2_slots: 4, frames: 1, cells: 0 },
        );
        static BUFFERS: [Buffer; 2] = [const { Buffer::new(&DESCRIPTOR, &CONTROL) }; 2];
        // Registered once more when others are before it: a second place in the list would be a cycle.
        [&BUFFERS[0], &BUFFERS[1], &BUFFERS[0], &BUFFERS[1]].into_iter().for_each(loaded);
        let listed: Vec<_> = list::buffers().take(10).map(std::ptr::from_ref).collect();
        assert_eq!(listed, [&raw const BUFFERS[1], &raw const BUFFERS[0]]);
    }
}
