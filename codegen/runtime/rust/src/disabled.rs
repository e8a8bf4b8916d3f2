//! The writer on systems without ppt, and with `--cfg ppt_disable`: ppt is never attached.

use std::thread::LocalKey;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::bytes::Plain;
use crate::time::Timespec;

/// Does nothing. On systems with ppt, it allows processes of this user to attach.
pub fn allow_attach() {}

/// A control page without a gate.
#[derive(Debug, Default)]
pub struct Control;

impl Control {
    /// A control page.
    pub const fn new() -> Self {
        Self
    }
    /// False: ppt is never attached.
    #[inline(always)]
    pub fn on(&self) -> bool {
        false
    }
    /// 0: there is no session.
    #[inline]
    pub fn session(&self) -> u64 {
        0
    }
    /// False: ppt is never attached.
    #[inline(always)]
    pub fn wants<const BIT: u32>(&self) -> bool {
        false
    }
}

/// An empty descriptor.
#[derive(Debug)]
pub struct Descriptor;

/// The numbers of a buffer, which are not used.
#[derive(Debug, Clone, Copy)]
#[expect(missing_docs, reason = "see `enabled.rs`")]
pub struct Layout {
    pub hash: u64,
    pub stride: u32,
    pub log2_slots: u32,
    pub frames: u32,
    pub cells: u32,
}

impl Descriptor {
    /// An empty descriptor.
    pub const fn new(_: &'static Self, _: &'static Control, _: &'static str, _: Layout) -> Self {
        Self
    }
}

/// An empty buffer.
#[derive(Debug)]
pub struct Buffer;

impl Buffer {
    /// An empty buffer.
    pub const fn new(_: &'static Descriptor, _: &'static Control) -> Self {
        Self
    }
}

/// The empty state of a thread.
#[derive(Debug, Default)]
pub struct Thread<const STRIDE: usize>;

impl<const STRIDE: usize> Thread<STRIDE> {
    /// The empty state of a thread.
    pub const fn new() -> Self {
        Self
    }
}

/// A write, of which there are no values.
#[derive(Debug)]
pub enum Write<const STRIDE: usize> {}

impl<const STRIDE: usize> Write<STRIDE> {
    /// Cannot be called.
    #[inline(always)]
    pub fn put<const INDEX: usize>(&self, _: u64) {}
    /// Cannot be called.
    #[inline(always)]
    pub fn put_array<
        T: Plain,
        const N: usize,
        const FIRST: usize,
        const FROM: usize,
        const COUNT: usize,
    >(
        &self,
        _: &[T; N],
    ) {
    }
    /// Cannot be called.
    #[inline(always)]
    pub fn end(self) {}
}

/// Expands to nothing: no code runs at load.
#[doc(hidden)]
#[macro_export]
macro_rules! at_load {
    ($buffer:ident) => {};
}

/// Does nothing.
pub fn loaded(_: &'static Buffer) {}

/// None: ppt is never attached.
#[inline(always)]
pub fn begin<const STRIDE: usize>(
    _: &'static Control,
    _: &'static Buffer,
    _: &'static LocalKey<Thread<STRIDE>>,
    _: u32,
) -> Option<Write<STRIDE>> {
    None
}

/// Does nothing.
#[inline(always)]
pub fn prepare<const STRIDE: usize>(
    _: &'static Control,
    _: &'static Buffer,
    _: &'static LocalKey<Thread<STRIDE>>,
) {
}

/// Does nothing.
#[inline(always)]
pub fn busy<const STRIDE: usize>(
    _: &'static Control,
    _: &'static Buffer,
    _: &'static LocalKey<Thread<STRIDE>>,
) {
}

/// Does nothing.
#[inline(always)]
pub fn add<const STRIDE: usize>(
    _: &'static Control,
    _: &'static Buffer,
    _: &'static LocalKey<Thread<STRIDE>>,
    _: u32,
    _: u64,
) {
}

/// Does nothing.
#[inline(always)]
pub fn observe<const STRIDE: usize>(
    _: &'static Control,
    _: &'static Buffer,
    _: &'static LocalKey<Thread<STRIDE>>,
    _: (u32, u32),
    _: u64,
) {
}

/// The wall clock, which is clock 0; other clocks have no reader here.
pub fn clock(number: i32) -> Timespec {
    match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(now) if number == 0 => {
            Timespec { tv_sec: now.as_secs() as i64, tv_nsec: now.subsec_nanos() as i64 }
        }
        _ => Timespec::ZERO,
    }
}

/// 0: no stamps are taken.
#[inline(always)]
pub fn ns_between(_: &Control, _: u64, _: u64) -> i64 {
    -1
}

/// 0: there are no ticks.
#[inline(always)]
pub fn stamp(_: &Control) -> u64 {
    0
}
