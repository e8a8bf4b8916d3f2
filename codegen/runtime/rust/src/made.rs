//! Segments that this process makes, which an agent fetches by their descriptors.

use std::ffi::c_void;
use std::mem::offset_of;
use std::ptr;

use ppt_segment::abi::{
    ABI_VERSION, Claim, Control as Words, HEADER_LENGTH, MARGIN, MAX_FRAMES, MaskPage,
    SEGMENT_MAGIC, Section, SegmentHeader,
};

use super::control::Control;
use super::errno::errno;
use super::shape::Shape;

/// A mapped segment, and its descriptor.
pub(super) type Made = (*mut c_void, i32);

/// Makes a sealed segment, which cannot shrink while other processes map it. The error is an errno.
pub(super) fn make(
    control: &Control,
    schema_hash: u64,
    nonce: u64,
    shape: &Shape,
) -> Result<Made, i32> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: fills the structure that it is given.
    let known = unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &mut limit) } == 0;
    if !known || limit.rlim_cur < shape.words().size {
        return Err(libc::EFBIG); // ftruncate(2) would say it by SIGXFSZ
    }
    let fd = memfd()?;
    map(fd, shape)
        .map(|base| {
            // SAFETY: mapped just now, as large as the shape, and nobody else knows it yet.
            unsafe { initialise(base, control, schema_hash, nonce, shape) };
            (base, fd)
        })
        .inspect_err(|_| close(fd))
}

/// A memfd with a high number: programs close 0, 1 and 2 to open other files in their place, and select(2)
/// needs low numbers.
fn memfd() -> Result<i32, i32> {
    let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
    // SAFETY: a string that ends.
    let new = |flags: libc::c_uint| unsafe {
        libc::syscall(libc::SYS_memfd_create, c"ppt".as_ptr(), flags)
    };
    let fd = match new(flags | libc::MFD_NOEXEC_SEAL) {
        -1 if errno() == libc::EINVAL => new(flags), // Linux before 6.3
        fd => fd,
    };
    if fd == -1 {
        return Err(errno());
    }
    // SAFETY: no pointers.
    let above = |least: i32| unsafe { libc::fcntl(fd as i32, libc::F_DUPFD_CLOEXEC, least) };
    let high = match above(256) {
        -1 => above(3),
        high => high,
    };
    let error = errno();
    close(fd as i32);
    if high == -1 { Err(error) } else { Ok(high) }
}

fn map(fd: i32, shape: &Shape) -> Result<*mut c_void, i32> {
    let geometry = shape.words();
    let size = geometry.size as usize;
    let seals = libc::F_SEAL_SEAL | libc::F_SEAL_SHRINK | libc::F_SEAL_GROW;
    // SAFETY: no pointers. By syscall(2): a preloaded library (ppt's) takes ftruncate(2) for the program's.
    let sealed = unsafe {
        libc::syscall(libc::SYS_ftruncate, fd, geometry.size) == 0
            && libc::fcntl(fd, libc::F_ADD_SEALS, seals) == 0
    };
    if !sealed {
        return Err(errno());
    }
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: the kernel chooses an unused address.
    let base = unsafe { libc::mmap(ptr::null_mut(), size, protection, libc::MAP_SHARED, fd, 0) };
    if base == libc::MAP_FAILED {
        return Err(errno());
    }
    // SAFETY: our own mapping, which nobody knows yet.
    unsafe {
        // If there is not enough memory, this call fails, instead of a SIGBUS later. EINVAL means a Linux
        // before 5.14.
        let headers = libc::madvise(base, geometry.slots as usize, libc::MADV_POPULATE_WRITE);
        if headers != 0 && errno() != libc::EINVAL {
            libc::munmap(base, size);
            return Err(libc::ENOMEM);
        }
        libc::madvise(base, size, libc::MADV_DONTFORK);
    }
    Ok(base)
}

/// Writes the same words as an agent writes into its segments.
///
/// # Safety
/// `shape.words().size` bytes are mapped at `base`, which is aligned to pages, and nobody else
/// touches them during the call.
pub(super) unsafe fn initialise(
    base: *mut c_void,
    control: &Control,
    schema_hash: u64,
    nonce: u64,
    shape: &Shape,
) {
    const AGENT_PID: usize = offset_of!(Words, claim) + offset_of!(Claim, agent_pid);
    let now = |clock| {
        let now = super::clock::clock(clock);
        now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
    };
    let g = shape.words();
    let mut sections = [Section { kind: 0, flags: 0, offset: 0, length: 0, item: 0 }; 16];
    // The agent will write masks: older versions do not use this segment.
    let masked = control.will_be_masked().then(|| shape.masked_section());
    let parts = shape.sections().chain(masked);
    sections.iter_mut().zip(parts).for_each(|(to, section)| *to = section);
    let header = SegmentHeader {
        magic: SEGMENT_MAGIC,
        abi_version: ABI_VERSION,
        length: HEADER_LENGTH,
        nonce,
        margin: MARGIN,
        reserved: 0,
        schema_hash,
        stride: g.stride,
        log2_slots: g.log2_slots,
        rings: g.rings,
        ring_pitch: g.ring_pitch,
        agent_pid: control.word::<AGENT_PID>().load(std::sync::atomic::Ordering::Relaxed),
        created_mono_ns: now(libc::CLOCK_MONOTONIC),
        created_real_ns: now(libc::CLOCK_REALTIME),
        sections,
    };
    // SAFETY: header and masks lie in the mapping (`Shape`), and nobody else touches it.
    unsafe {
        base.cast::<SegmentHeader>().write(header);
        let enable = base.byte_add(g.masks as usize + offset_of!(MaskPage, enable));
        enable.cast::<[u64; MAX_FRAMES / 64]>().write([u64::MAX; MAX_FRAMES / 64]);
    }
}

/// Closes a descriptor of this process.
pub(super) fn close(fd: i32) {
    // SAFETY: no pointers. By syscall(2), for close(2) may cancel the thread.
    unsafe { libc::syscall(libc::SYS_close, fd) };
}
