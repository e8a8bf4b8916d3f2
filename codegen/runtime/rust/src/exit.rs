//! Releases rings when their threads end, and when the code is unloaded.

use std::ffi::c_void;
use std::ptr;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};

use super::claim::give_back;
use super::control::word;
use super::descriptor::Buffer;
use super::list::buffers;
use super::place::RingPlace;

/// Has the thread's ring released when the thread ends. Without a key (a process may have 1,024), the listener
/// detects that the thread is gone.
///
/// It uses a key of pthread_key_create(3), because a destructor of std would allocate by the program's
/// allocator, which may be instrumented.
///
/// # Safety
/// `place` is a thread-local of the calling thread, and has no destructor.
pub(super) unsafe fn at_thread_exit(buffer: &'static Buffer, place: &RingPlace) {
    place.buffer.set(Some(buffer));
    let Some(key) = make_key(buffer) else { return };
    // SAFETY: the key exists: only `unload` deletes it. The value (contract) outlives the
    // destructors of keys.
    unsafe { libc::pthread_setspecific(key, (&raw const *place).cast()) };
}

/// Makes the key of `buffer` once.
pub(super) fn make_key(buffer: &Buffer) -> Option<libc::pthread_key_t> {
    keep(&raw const UNLOAD);
    let known = |word: u64| word.checked_sub(1).map(|key| key as u32);
    if let Some(key) = known(buffer.exit_key.load(Acquire)) {
        return Some(key);
    }
    let mut key = 0;
    // SAFETY: `key` is ours to fill, and the destructor is what a key takes.
    if unsafe { libc::pthread_key_create(&mut key, Some(thread_exit)) } != 0 {
        return None;
    }
    match buffer.exit_key.compare_exchange(0, key as u64 + 1, AcqRel, Acquire) {
        Ok(_) => Some(key),
        Err(other) => {
            // SAFETY: nobody else knows this key.
            unsafe { libc::pthread_key_delete(key) };
            known(other)
        }
    }
}

unsafe extern "C" fn thread_exit(place: *mut c_void) {
    // SAFETY: the value that `at_thread_exit` gave the key, in the thread that it belongs to.
    let place = unsafe { &*place.cast::<RingPlace>() };
    let Some(buffer) = place.buffer.get() else { return };
    if buffer.guard.copied() {
        return; // what the table says is mapped is not mapped here
    }
    place.enter();
    give_back(buffer, place);
    place.leave();
}

/// Runs when a library is unloaded, and when a program ends.
#[used]
#[unsafe(link_section = ".fini_array")]
static UNLOAD: extern "C" fn() = unload;

/// Prepares for the unloading of a library: closes the gate, and removes the destructor for thread exits.
/// Mappings stay.
extern "C" fn unload() {
    // A program's code stays until the process ends, and its threads may still be writing.
    if in_program() {
        return;
    }
    for buffer in buffers() {
        word!(buffer.control, gate).store(0, Relaxed);
        buffer.guard.dismiss();
        let word = buffer.exit_key.swap(0, AcqRel);
        if word != 0 {
            // SAFETY: a key that `make_key` made, taken out of its place just now.
            unsafe { libc::pthread_key_delete((word - 1) as u32) };
        }
    }
}

/// Whether this code belongs to the program itself, not to a library.
fn in_program() -> bool {
    unsafe extern "C" fn first(info: *mut libc::dl_phdr_info, _: usize, _: *mut c_void) -> i32 {
        let here = unload as extern "C" fn() as usize as u64;
        // SAFETY: dl_iterate_phdr passes an object's headers, which are there during the call.
        let (bias, headers) = unsafe {
            let info = &*info;
            (info.dlpi_addr, std::slice::from_raw_parts(info.dlpi_phdr, info.dlpi_phnum as usize))
        };
        let holds = |phdr: &libc::Elf64_Phdr| {
            phdr.p_type == libc::PT_LOAD
                && here.wrapping_sub(bias.wrapping_add(phdr.p_vaddr)) < phdr.p_memsz
        };
        if headers.iter().any(holds) { IN_PROGRAM } else { ELSEWHERE }
    }
    // Not 0: the first object, which is the program, is enough (dl_iterate_phdr(3)).
    const IN_PROGRAM: i32 = 1;
    const ELSEWHERE: i32 = 2;
    // SAFETY: the callback keeps to what it is given.
    unsafe { libc::dl_iterate_phdr(Some(first), ptr::null_mut()) == IN_PROGRAM }
}

/// Keeps an item from being removed by linkers and optimisers.
pub(super) fn keep<T>(it: *const T) {
    // SAFETY: no instruction at all.
    unsafe {
        std::arch::asm!("/* {} */", in(reg) it, options(readonly, nostack, preserves_flags));
    }
}
