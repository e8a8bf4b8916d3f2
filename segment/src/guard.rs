//! Keeps ppt alive if a mapping loses its memory.
//!
//! A process that truncates the file of a shared mapping takes pages away from every process that
//! maps it, and touching such a page raises SIGBUS. A target that runs as root can do that to a
//! System V segment (`/proc/PID/map_files`). No process can do it to a sealed memfd. The handler
//! maps a page of zeros at the fault and marks the segment. The reader continues, and sees the
//! mark. Zeros are never frames.
//!
//! A fault anywhere else behaves as it would without this handler: the former disposition is
//! restored, and the instruction faults again.

use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::sync::Once;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize};
use std::{io, ptr};

/// A guarded range of addresses. Ranges are never freed, only reused: a handler may be reading one
/// at any time.
struct GuardedRange {
    /// 0 while it guards nothing; set last, cleared first.
    start: AtomicUsize,
    end: AtomicUsize,
    faulted: AtomicBool,
    used: AtomicBool,
    next: AtomicPtr<GuardedRange>,
}

static RANGES: AtomicPtr<GuardedRange> = AtomicPtr::new(ptr::null_mut());
static PAGE_BYTES: AtomicUsize = AtomicUsize::new(4096);
static INSTALL: Once = Once::new();
static BEFORE: Before = Before(UnsafeCell::new(MaybeUninit::zeroed()));

/// The disposition before ours.
struct Before(UnsafeCell<MaybeUninit<libc::sigaction>>);

// SAFETY: written once, inside `INSTALL`, before the handler that reads it is installed.
unsafe impl Sync for Before {}

/// All ranges.
fn ranges() -> impl Iterator<Item = &'static GuardedRange> {
    let first = RANGES.load(Acquire);
    // SAFETY: the list consists of leaked boxes.
    std::iter::successors(unsafe { first.as_ref() }, |range| unsafe {
        range.next.load(Acquire).as_ref()
    })
}

/// Guards a mapping that may lose its memory until it is dropped, which must be before the
/// unmapping.
#[derive(Debug)]
pub(crate) struct Guarded(&'static GuardedRange);

impl std::fmt::Debug for GuardedRange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:#x}", self.start.load(Relaxed))
    }
}

impl Guarded {
    /// Guards `[start, start + size)`, which is a mapping of ours.
    pub(crate) fn new(start: usize, size: usize) -> io::Result<Self> {
        install()?;
        let free = |range: &&GuardedRange| {
            range.used.compare_exchange(false, true, AcqRel, Relaxed).is_ok()
        };
        let range = ranges().find(free).unwrap_or_else(another);
        range.faulted.store(false, Relaxed);
        range.end.store(start + size, Relaxed);
        range.start.store(start, Release);
        Ok(Self(range))
    }

    /// Whether some of its memory was missing when it was touched.
    pub(crate) fn faulted(&self) -> bool {
        self.0.faulted.load(Relaxed)
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        self.0.start.store(0, Release);
        self.0.used.store(false, Release);
    }
}

/// Allocates another range, in use.
fn another() -> &'static GuardedRange {
    let range = Box::leak(Box::new(GuardedRange {
        start: AtomicUsize::new(0),
        end: AtomicUsize::new(0),
        faulted: AtomicBool::new(false),
        used: AtomicBool::new(true),
        next: AtomicPtr::new(ptr::null_mut()),
    }));
    let mut first = RANGES.load(Relaxed);
    loop {
        range.next.store(first, Relaxed);
        match RANGES.compare_exchange(first, range, AcqRel, Relaxed) {
            Ok(_) => return range,
            Err(other) => first = other,
        }
    }
}

/// Installs the handler, once per process.
fn install() -> io::Result<()> {
    let mut failed = None;
    INSTALL.call_once(|| {
        // SAFETY: no pointers.
        let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
        PAGE_BYTES.store(usize::try_from(page).unwrap_or(4096), Relaxed);
        let handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) = on_fault;
        // SAFETY: a sigaction of zeros is a valid one; `BEFORE` is accessed only by us inside
        // `call_once`; the handler does only what handlers may do (below).
        unsafe {
            let mut ours: libc::sigaction = std::mem::zeroed();
            ours.sa_sigaction = handler as usize;
            ours.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART;
            if libc::sigaction(libc::SIGBUS, &ours, (*BEFORE.0.get()).as_mut_ptr()) != 0 {
                failed = Some(io::Error::last_os_error());
            }
        }
    });
    failed.map_or(Ok(()), Err)
}

/// Async-signal-safe: atomics, mmap(2), sigaction(2), and errno is restored.
extern "C" fn on_fault(
    _signal: libc::c_int,
    info: *mut libc::siginfo_t,
    _context: *mut libc::c_void,
) {
    // SAFETY: the kernel passes the siginfo of this signal, and a fault has an address.
    let (address, code) = unsafe { ((*info).si_addr() as usize, (*info).si_code) };
    // SAFETY: this thread's errno.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: as above.
    let saved = unsafe { *errno };
    // Sent by the kernel, not by kill(2): a missing page.
    let ours =
        (code == libc::BUS_ADRERR).then(|| ranges().find(|range| holds(range, address))).flatten();
    if !ours.is_some_and(|range| fill(range, address)) {
        // SAFETY: what sigaction(2) returned when the handler was installed.
        unsafe { libc::sigaction(libc::SIGBUS, (*BEFORE.0.get()).as_ptr(), ptr::null_mut()) };
        if code <= 0 {
            // SAFETY: no pointers. The signal was sent by a process, so no fault recurs: it is sent
            // again.
            unsafe { libc::raise(libc::SIGBUS) };
        }
    }
    // SAFETY: as above.
    unsafe { *errno = saved };
}

fn holds(range: &GuardedRange, address: usize) -> bool {
    let start = range.start.load(Acquire);
    start != 0 && start <= address && address < range.end.load(Relaxed)
}

/// Maps zeros where `address` has lost its memory.
fn fill(range: &GuardedRange, address: usize) -> bool {
    range.faulted.store(true, Relaxed);
    let bytes = PAGE_BYTES.load(Relaxed);
    let page = ptr::with_exposed_provenance_mut(address / bytes * bytes);
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
    // SAFETY: a page of a mapping of ours that is still guarded, so still mapped. It had no memory
    // any more, and all access to it is by atomics or raw copies, for which any bytes are valid.
    let at = unsafe { libc::mmap(page, bytes, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0) };
    at != libc::MAP_FAILED
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memfd;
    use std::os::fd::AsRawFd;

    #[test]
    #[cfg_attr(miri, ignore = "needs memfd_create(2)")]
    fn a_mapping_that_lost_its_memory_reads_as_zeros() {
        let file = memfd::tests::make(8192, libc::F_SEAL_SEAL);
        // SAFETY: the kernel chooses an unused address.
        let base = unsafe {
            let protection = libc::PROT_READ | libc::PROT_WRITE;
            libc::mmap(ptr::null_mut(), 8192, protection, libc::MAP_SHARED, file.as_raw_fd(), 0)
        };
        assert_ne!(base, libc::MAP_FAILED);
        let guarded = Guarded::new(base as usize, 8192).unwrap();
        let word = |at: usize| {
            // SAFETY: inside the mapping, which exists until the end of the test.
            unsafe { base.cast::<u64>().add(at / 8).read_volatile() }
        };
        // SAFETY: as above.
        unsafe { base.cast::<u64>().write_volatile(7) };
        assert_eq!(word(0), 7);
        // SAFETY: no pointers.
        assert_eq!(unsafe { libc::ftruncate(file.as_raw_fd(), 4096) }, 0);
        assert_eq!((word(0), guarded.faulted()), (7, false));
        assert_eq!((word(4096), guarded.faulted()), (0, true));
        assert_eq!(word(0), 7, "what is still there stays");
        drop(guarded);
        let next = Guarded::new(base as usize, 4096).unwrap();
        assert!(!next.faulted(), "a range that is used again begins anew");
        drop(next);
        // SAFETY: our own mapping, not used after this.
        unsafe { libc::munmap(base, 8192) };
    }
}
