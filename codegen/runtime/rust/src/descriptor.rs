//! The descriptor, which `ppt attach` finds. It is constant once the program is loaded.

use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64};

use ppt_segment::abi;

use super::control::Control;
use super::guard::Guard;

/// [`abi::Descriptor`] with addresses that the linker or loader fills in.
#[repr(C)]
#[derive(Debug)]
pub struct Descriptor {
    magic: [u8; 16],
    self_address: *const Descriptor,
    abi_version: u32,
    length: u32,
    schema_hash: u64,
    schema_address: *const u8,
    schema_length: u64,
    control_address: *const Control,
    stride: u32,
    log2_slots: u32,
    frames: u32,
    flags: u32,
    cells: u64,
    reserved: [u64; 5],
}

// SAFETY: it is never written, and its pointers are to statics (`new` takes nothing else).
unsafe impl Sync for Descriptor {}

macro_rules! same_offsets {
    ($($field:ident)*) => {
        $(const _: () = assert!(
            std::mem::offset_of!(Descriptor, $field)
                == std::mem::offset_of!(abi::Descriptor, $field)
        );)*
    };
}
same_offsets!(magic self_address abi_version length schema_hash schema_address schema_length
    control_address stride log2_slots frames flags cells reserved);
const _: () = assert!(size_of::<Descriptor>() == size_of::<abi::Descriptor>());

/// The numbers of a buffer.
#[derive(Debug, Clone, Copy)]
pub struct Layout {
    /// Hash of the schema's layout part.
    pub hash: u64,
    /// Bytes of one slot.
    pub stride: u32,
    /// Default slots per ring, as a power of two.
    pub log2_slots: u32,
    /// Number of frame kinds.
    pub frames: u32,
    /// Cells of a row.
    pub cells: u32,
}

impl Descriptor {
    /// The descriptor for the static `me`.
    pub const fn new(
        me: &'static Self,
        control: &'static Control,
        schema: &'static str,
        layout: Layout,
    ) -> Self {
        Self {
            magic: abi::DESCRIPTOR_MAGIC,
            self_address: me,
            abi_version: abi::ABI_VERSION,
            length: size_of::<Self>() as u32,
            schema_hash: layout.hash,
            schema_address: schema.as_ptr(),
            schema_length: schema.len() as u64,
            control_address: control,
            stride: layout.stride,
            log2_slots: layout.log2_slots,
            frames: layout.frames,
            // A crate may be linked into a library.
            flags: abi::descriptor_flags::UNLOADABLE,
            cells: layout.cells as u64,
            reserved: [0; 5],
        }
    }
}

impl Descriptor {
    pub(super) fn schema_hash(&self) -> u64 {
        self.schema_hash
    }

    pub(super) fn cells(&self) -> u64 {
        self.cells
    }

    pub(super) fn stride(&self) -> u32 {
        self.stride
    }
}

/// The parts of a buffer, for code off the hot path.
#[derive(Debug)]
pub struct Buffer {
    pub(super) descriptor: &'static Descriptor,
    pub(super) control: &'static Control,
    /// The key whose destructor releases a thread's ring, plus 1; 0 while there is none.
    pub(super) exit_key: AtomicU64,
    pub(super) guard: Guard,
    /// Whether the buffer is in the list of buffers.
    pub(super) listed: AtomicBool,
    /// The next buffer of the list.
    pub(super) next: AtomicPtr<Buffer>,
}

impl Buffer {
    /// A buffer before its first frame.
    pub const fn new(descriptor: &'static Descriptor, control: &'static Control) -> Self {
        let next = AtomicPtr::new(std::ptr::null_mut());
        let (exit_key, guard) = (AtomicU64::new(0), Guard::new());
        let listed = AtomicBool::new(false);
        Self { descriptor, control, exit_key, guard, listed, next }
    }
}
