//! The C library's errno, which frames do not change.

pub(super) fn errno() -> i32 {
    // SAFETY: the C library's own variable of this thread.
    unsafe { *libc::__errno_location() }
}

pub(super) fn set_errno(value: i32) {
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = value };
}
