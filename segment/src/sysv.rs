//! System V shared memory, as far as ppt uses it: shmget(2), shmat(2), shmctl(2).
//!
//! A segment is marked for removal as soon as its creator is attached. Linux lets other processes
//! attach it by id while any process holds it, and frees it with the last one. So nothing leaks,
//! whichever process dies (shmctl(2), "Linux permits a process to attach a segment that has already
//! been marked").

use std::io;
use std::mem::MaybeUninit;
use std::ptr::NonNull;

use crate::mapping::Mapping;

fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result == -1 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Makes a segment that only its owner may attach. `AlreadyExists` means that the key is taken.
pub(crate) fn create(key: i32, size: u64) -> io::Result<i32> {
    let size = usize::try_from(size).map_err(|_| io::ErrorKind::InvalidInput)?;
    let flags = libc::IPC_CREAT | libc::IPC_EXCL | libc::SHM_NORESERVE | 0o600;
    // SAFETY: no pointers.
    check(unsafe { libc::shmget(key, size, flags) })
}

/// Marks the segment for removal. It lives as long as a process has it attached.
///
/// # Errors
/// shmctl(2) fails.
pub fn mark_removed(id: i32) -> io::Result<()> {
    // SAFETY: IPC_RMID ignores the pointer.
    check(unsafe { libc::shmctl(id, libc::IPC_RMID, std::ptr::null_mut()) }).map(drop)
}

fn stat(id: i32) -> io::Result<libc::shmid_ds> {
    let mut ds = MaybeUninit::<libc::shmid_ds>::zeroed();
    // SAFETY: IPC_STAT fills the structure that it is given; it was zeroed, so all of it is
    // initialised.
    unsafe {
        check(libc::shmctl(id, libc::IPC_STAT, ds.as_mut_ptr()))?;
        Ok(ds.assume_init())
    }
}

/// Gives the segment to another user, who may then attach it by id.
pub(crate) fn set_owner(id: i32, uid: u32, gid: u32) -> io::Result<()> {
    let mut ds = stat(id)?;
    ds.shm_perm.uid = uid;
    ds.shm_perm.gid = gid;
    ds.shm_perm.mode = 0o600;
    // SAFETY: `ds` is a whole structure, as IPC_STAT returned it.
    check(unsafe { libc::shmctl(id, libc::IPC_SET, &mut ds) }).map(drop)
}

/// Attaches segment `id`, read-write.
pub(crate) fn attach(id: i32) -> io::Result<Mapping> {
    // SAFETY: the kernel chooses an unused address.
    let base = unsafe { libc::shmat(id, std::ptr::null(), 0) };
    if base as isize == -1 {
        return Err(io::Error::last_os_error());
    }
    let attached = || {
        // After attaching: from here on the id refers to this segment, whose size cannot change.
        let size = stat(id)?.shm_segsz;
        let base = NonNull::new(base.cast()).ok_or(io::ErrorKind::AddrNotAvailable)?;
        Ok((base, size))
    };
    match attached() {
        // SAFETY: attached just now, and used by nothing else.
        Ok((base, size)) => unsafe { Mapping::from_owned(base, size) },
        Err(error) => {
            // SAFETY: as above.
            unsafe { libc::shmdt(base) };
            Err(error)
        }
    }
}
