//! perf_event_open(2), and the rings into which the kernel writes records.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicU64, Ordering};

use memmap2::{MmapOptions, MmapRaw};
use nix::errno::Errno;
use nix::time::{ClockId, clock_gettime};
use perf_event_open_sys::bindings::{self, perf_event_attr, perf_event_mmap_page};
use perf_event_open_sys::{ioctls, perf_event_open};

use crate::stack_registers::{COPY_BYTES, register_mask};

/// The clock of records.
const CLOCK: ClockId = ClockId::CLOCK_MONOTONIC;

/// The settings of an event.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EventTarget {
    /// The counted event.
    pub counted: CountedEvent,
    /// Each event writes a record.
    pub samples: bool,
    /// Records have the raw bytes of a tracepoint.
    pub raw: bool,
    /// Records have the addresses of the program's stack.
    pub stack: bool,
    /// Records have registers and a copy of the stack.
    pub stack_copy: bool,
    /// Context switches of the thread write records.
    pub switches: bool,
    /// The thread's end and the threads that it makes write records.
    pub tasks: bool,
    /// Events in the kernel count, too.
    pub kernel: bool,
    /// Threads that the thread makes inherit the event.
    pub inherit: bool,
}

/// The kind of a counted event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CountedEvent {
    Nothing,
    MinorFaults,
    MajorFaults,
    Tracepoint(u64),
    /// The thread has run for this many ns.
    Running(u64),
    /// The thread gives up its CPU.
    Leaving,
}

/// The largest number of addresses of a stack, as in a frame `stack`.
pub(crate) const MAX_ADDRESSES: usize = 30;

/// The fields of all samples except the raw bytes. Records of other kinds end in these, without the address.
const FIELDS: u32 = bindings::PERF_SAMPLE_IDENTIFIER
    | bindings::PERF_SAMPLE_TID
    | bindings::PERF_SAMPLE_TIME
    | bindings::PERF_SAMPLE_ADDR
    | bindings::PERF_SAMPLE_CPU;

impl EventTarget {
    fn attr(&self) -> perf_event_attr {
        let mut attr = perf_event_attr {
            size: size_of::<perf_event_attr>() as u32,
            clockid: CLOCK.as_raw(),
            sample_type: FIELDS.into(),
            read_format: bindings::PERF_FORMAT_LOST.into(),
            ..perf_event_attr::default()
        };
        (attr.type_, attr.config) = match self.counted {
            CountedEvent::Nothing => {
                (bindings::PERF_TYPE_SOFTWARE, bindings::PERF_COUNT_SW_DUMMY.into())
            }
            CountedEvent::MinorFaults => {
                (bindings::PERF_TYPE_SOFTWARE, bindings::PERF_COUNT_SW_PAGE_FAULTS_MIN.into())
            }
            CountedEvent::MajorFaults => {
                (bindings::PERF_TYPE_SOFTWARE, bindings::PERF_COUNT_SW_PAGE_FAULTS_MAJ.into())
            }
            CountedEvent::Tracepoint(id) => (bindings::PERF_TYPE_TRACEPOINT, id),
            CountedEvent::Running(_) => {
                (bindings::PERF_TYPE_SOFTWARE, bindings::PERF_COUNT_SW_CPU_CLOCK.into())
            }
            CountedEvent::Leaving => {
                (bindings::PERF_TYPE_SOFTWARE, bindings::PERF_COUNT_SW_CONTEXT_SWITCHES.into())
            }
        };
        if self.samples {
            attr.__bindgen_anon_1.sample_period = match self.counted {
                CountedEvent::Running(ns) => ns,
                _ => 1,
            };
        }
        if self.stack {
            attr.sample_type |= u64::from(bindings::PERF_SAMPLE_CALLCHAIN);
            attr.set_exclude_callchain_kernel(1);
            attr.sample_max_stack = MAX_ADDRESSES as u16;
        }
        if self.stack_copy {
            attr.sample_type |=
                u64::from(bindings::PERF_SAMPLE_REGS_USER | bindings::PERF_SAMPLE_STACK_USER);
            attr.sample_regs_user = register_mask();
            attr.sample_stack_user = COPY_BYTES;
        }
        if self.raw {
            attr.sample_type |= u64::from(bindings::PERF_SAMPLE_RAW);
        }
        attr.set_disabled(1);
        attr.set_use_clockid(1);
        attr.set_sample_id_all(1);
        attr.set_context_switch(self.switches.into());
        attr.set_task(self.tasks.into());
        attr.set_exclude_kernel((!self.kernel).into());
        attr.set_exclude_hv(1);
        attr.set_inherit(self.inherit.into());
        attr.set_inherit_thread(self.inherit.into());
        attr
    }
}

/// A uprobe: an instruction of a file, counted on a CPU in every process.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Uprobe<'a> {
    /// The type of such events, which the kernel assigns.
    pub pmu: u32,
    pub path: &'a CStr,
    /// The offset of the instruction in the file.
    pub offset: u64,
    /// The offset of the counter that is not 0 while the probe is in use; 0 if there is none.
    pub semaphore: u32,
    /// Counts returns of the function that begins there.
    pub is_return: bool,
    /// The registers of a record, as bits.
    pub registers: u64,
}

impl Uprobe<'_> {
    fn attr(&self) -> perf_event_attr {
        let mut attr = perf_event_attr {
            size: size_of::<perf_event_attr>() as u32,
            type_: self.pmu,
            config: u64::from(self.semaphore) << 32 | u64::from(self.is_return),
            clockid: CLOCK.as_raw(),
            sample_type: u64::from(FIELDS | bindings::PERF_SAMPLE_REGS_USER),
            sample_regs_user: self.registers,
            read_format: bindings::PERF_FORMAT_LOST.into(),
            ..perf_event_attr::default()
        };
        attr.__bindgen_anon_1.sample_period = 1;
        attr.__bindgen_anon_3.config1 = self.path.as_ptr() as u64;
        attr.__bindgen_anon_4.config2 = self.offset;
        attr.set_disabled(1);
        attr.set_use_clockid(1);
        attr.set_sample_id_all(1);
        attr
    }
}

/// An open event. It counts from enabling until it is dropped.
#[derive(Debug)]
pub(crate) struct PerfEvent(OwnedFd);

impl PerfEvent {
    /// Opens an event of `thread`, or of all threads if None, on `cpu`.
    pub fn open(kind: &EventTarget, thread: Option<i32>, cpu: u32) -> io::Result<Self> {
        Self::open_with(|| kind.attr(), thread, cpu)
    }

    /// Opens a uprobe of all threads on `cpu`.
    pub fn open_uprobe(uprobe: &Uprobe<'_>, cpu: u32) -> io::Result<Self> {
        Self::open_with(|| uprobe.attr(), None, cpu)
    }

    fn open_with(
        make: impl Fn() -> perf_event_attr,
        thread: Option<i32>,
        cpu: u32,
    ) -> io::Result<Self> {
        let mut attr = make();
        match Self::open_attr(&mut attr, thread, cpu) {
            // Linux 6.0 and later count the lost records of each event.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                attr = make();
                attr.read_format = 0;
                Self::open_attr(&mut attr, thread, cpu)
            }
            done => done,
        }
    }

    fn open_attr(attr: &mut perf_event_attr, thread: Option<i32>, cpu: u32) -> io::Result<Self> {
        let (thread, cpu) = (thread.unwrap_or(-1), cpu as i32);
        let flags = bindings::PERF_FLAG_FD_CLOEXEC.into();
        // SAFETY: `attr` is an initialised structure of the size that it states. Its maker borrows the path
        // that it points to, and the kernel reads that before it returns. The event only counts and leaves
        // records.
        let fd = unsafe { perf_event_open(attr, thread, cpu, -1, flags) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: a new descriptor, which nobody else owns.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    /// The number in its records, also in those of threads that inherited it.
    pub fn id(&self) -> io::Result<u64> {
        let mut id = 0;
        // SAFETY: the kernel writes a u64 to that place.
        checked(unsafe { ioctls::ID(self.0.as_raw_fd(), &mut id) })?;
        Ok(id)
    }

    /// Redirects its records to the ring of `other`, on the same CPU.
    pub fn redirect(&self, other: &PerfEvent) -> io::Result<()> {
        // SAFETY: takes a descriptor, and no memory.
        checked(unsafe { ioctls::SET_OUTPUT(self.0.as_raw_fd(), other.0.as_raw_fd()) })
    }

    /// Starts it, also in threads that have inherited it.
    pub fn enable(&self) -> io::Result<()> {
        // SAFETY: takes a number, and no memory.
        checked(unsafe { ioctls::ENABLE(self.0.as_raw_fd(), 0) })
    }

    /// Stops it.
    pub fn disable(&self) -> io::Result<()> {
        // SAFETY: takes a number, and no memory.
        checked(unsafe { ioctls::DISABLE(self.0.as_raw_fd(), 0) })
    }

    /// Restricts records to those that pass `filter`.
    pub fn filter(&self, filter: &str) -> io::Result<()> {
        let filter = CString::new(filter)?;
        // SAFETY: the kernel reads a text that ends in NUL, and writes nothing there.
        checked(unsafe { ioctls::SET_FILTER(self.0.as_raw_fd(), filter.as_ptr().cast_mut()) })
    }

    /// The number of lost records, if the kernel counts them.
    pub fn lost(&self) -> u64 {
        self.values()[1]
    }

    /// The number of its events.
    pub fn count(&self) -> u64 {
        self.values()[0]
    }

    /// The numbers of its events and of its lost records.
    fn values(&self) -> [u64; 2] {
        let mut bytes = [0; 16];
        // If the kernel does not count losses, the second stays 0.
        let _ = nix::unistd::read(&self.0, &mut bytes);
        let [happened, lost] = [0, 8].map(|at| bytes[at..].first_chunk().copied());
        [happened, lost].map(|bytes| bytes.map_or(0, u64::from_ne_bytes))
    }
}

fn checked(result: i32) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// The memory of an event: a page of cursors, and a ring of records.
#[derive(Debug)]
pub(crate) struct PerfRing {
    map: MmapRaw,
    /// The size of the ring in bytes, a power of two.
    size: usize,
    /// The offset of the ring in the mapping.
    start: usize,
    /// The cursor of the reader.
    tail: u64,
}

impl PerfRing {
    /// Maps the ring of `event`, of `size` bytes, which is a power of two of pages.
    pub fn map(event: &PerfEvent, size: usize) -> io::Result<Self> {
        let page = page_size();
        let map = MmapOptions::new().len(page + size).map_raw(&event.0)?;
        Ok(Self { map, size, start: page, tail: 0 })
    }

    /// The size in bytes.
    pub fn size(&self) -> usize {
        self.size
    }

    fn cursor(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: inside the first page of the mapping, and aligned; it lives as long as `self`. The
        // kernel writes to it as to an atomic.
        unsafe { &*self.map.as_mut_ptr().add(offset).cast::<AtomicU64>() }
    }

    /// Appends all records to `to`, and frees their place.
    pub fn take(&mut self, to: &mut Vec<u8>) {
        let head = self.cursor(std::mem::offset_of!(perf_event_mmap_page, data_head));
        let head = head.load(Ordering::Acquire);
        let len = (head.wrapping_sub(self.tail) as usize).min(self.size);
        let at = self.tail as usize & (self.size - 1);
        let before = len.min(self.size - at);
        for (at, len) in [(at, before), (0, len - before)] {
            to.reserve(len);
            // SAFETY: the source lies inside the mapping, because `at + len <= size`; the room
            // behind `to` was reserved. The kernel does not write there before `data_tail` says so.
            unsafe {
                let from = self.map.as_ptr().add(self.start + at);
                let end = to.as_mut_ptr().add(to.len());
                std::ptr::copy_nonoverlapping(from, end, len);
                to.set_len(to.len() + len);
            }
        }
        self.tail = head;
        let tail = self.cursor(std::mem::offset_of!(perf_event_mmap_page, data_tail));
        tail.store(head, Ordering::Release);
    }
}

/// The time by the clock of records, in ns.
pub(crate) fn now() -> io::Result<u64> {
    let now = clock_gettime(CLOCK)?;
    Ok(now.tv_sec() as u64 * 1_000_000_000 + now.tv_nsec() as u64)
}

/// The size of a page in bytes.
pub(crate) fn page_size() -> usize {
    rustix::param::page_size()
}

/// Whether an error says that the thread of an event has ended.
pub(crate) fn is_gone(error: &io::Error) -> bool {
    error.raw_os_error() == Some(Errno::ESRCH as i32)
}
