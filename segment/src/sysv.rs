//! System V shared memory, as far as ppt uses it: shmget(2), shmat(2), shmctl(2), madvise(2).
//!
//! A segment is marked for removal as soon as its creator is attached. Linux lets others attach it
//! by id while anyone holds it and frees it when the last one goes, so nothing can leak, whoever
//! dies (shmctl(2), "Linux permits a process to attach a segment that has already been marked").

use std::io;
use std::mem::MaybeUninit;
use std::ptr::NonNull;

/// A mapping of a whole segment; unmapped when dropped.
#[derive(Debug)]
pub(crate) struct Mapping {
    base: NonNull<u8>,
    size: usize,
}

// SAFETY: a mapping is memory; all access to it goes through atomics or raw copies below.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

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

/// Marks the segment for removal: it lives while somebody is attached.
pub fn mark_removed(id: i32) -> io::Result<()> {
    // SAFETY: IPC_RMID ignores the pointer.
    check(unsafe { libc::shmctl(id, libc::IPC_RMID, std::ptr::null_mut()) }).map(drop)
}

fn stat(id: i32) -> io::Result<libc::shmid_ds> {
    let mut ds = MaybeUninit::<libc::shmid_ds>::zeroed();
    // SAFETY: IPC_STAT fills the structure it is given; it was zeroed, so all of it is initialised.
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

/// Processes attached to the segment, us included.
pub(crate) fn attached(id: i32) -> io::Result<u64> {
    stat(id).map(|ds| ds.shm_nattch)
}

impl Mapping {
    /// Attaches segment `id`, read-write.
    pub(crate) fn attach(id: i32) -> io::Result<Self> {
        // SAFETY: the kernel chooses an unused address.
        let base = unsafe { libc::shmat(id, std::ptr::null(), 0) };
        if base as isize == -1 {
            return Err(io::Error::last_os_error());
        }
        let base = NonNull::new(base.cast()).ok_or(io::ErrorKind::AddrNotAvailable)?;
        // From here on the drop detaches. The size is asked for afterwards: it cannot change.
        let mut mapping = Self { base, size: 0 };
        mapping.size = stat(id)?.shm_segsz;
        Ok(mapping)
    }

    pub(crate) fn base(&self) -> *mut u8 {
        self.base.as_ptr()
    }

    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// madvise(2) on `[offset, offset + length)`, which must lie inside.
    pub(crate) fn advise(&self, offset: u64, length: u64, advice: libc::c_int) -> io::Result<()> {
        let (offset, length) = (offset as usize, length as usize);
        assert!(offset.checked_add(length).is_some_and(|end| end <= self.size));
        // SAFETY: the range lies inside our mapping (asserted). MADV_REMOVE changes contents, which
        // nobody holds a reference to but as atomics.
        check(unsafe { libc::madvise(self.base().add(offset).cast(), length, advice) }).map(drop)
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: `base` came from shmat and is detached once; borrows of the mapping have ended.
        unsafe { libc::shmdt(self.base.as_ptr().cast()) };
    }
}
