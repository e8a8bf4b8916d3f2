//! Reading and writing the memory of another process.
//!
//! `/proc/PID/mem`, opened once, stays bound to that address space: after an exec, or when its pid
//! has come to mean another process, it reads and writes nothing. process_vm_readv(2) and
//! process_vm_writev(2) go by the pid at each call, so they are for systems that forbid the other
//! way, and for who may trace a process but not open its files: another user with no more than
//! CAP_SYS_PTRACE. None of them stops the process.

use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut};
use std::os::unix::fs::FileExt;

use nix::errno::Errno;
use nix::sys::uio::{RemoteIoVec, process_vm_readv, process_vm_writev};
use nix::unistd::Pid;

/// How bytes got into the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// `/proc/PID/mem`.
    Mem,
    /// process_vm_writev(2).
    Writev,
}

impl std::fmt::Display for Transport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Transport::Writev => "process_vm_writev",
            Transport::Mem => "/proc/PID/mem",
        })
    }
}

/// The memory of one process.
#[derive(Debug)]
pub(crate) struct Memory {
    pid: Pid,
    file: Option<File>,
}

impl Memory {
    pub(crate) fn new(pid: i32, file: File) -> Self {
        Self { pid: Pid::from_raw(pid), file: Some(file) }
    }

    /// Memory that is reached by system calls alone, if they reach `address`.
    pub(crate) fn by_call(pid: i32, address: u64) -> Option<Self> {
        let memory = Self { pid: Pid::from_raw(pid), file: None };
        matches!(memory.read(address, &mut [0]), Ok(1)).then_some(memory)
    }

    /// Whether it stays bound to the address space that was opened.
    pub(crate) fn is_bound(&self) -> bool {
        self.file.is_some()
    }

    /// Fills `buffer` from `address`; fewer bytes where the mapping ends, 0 where it is gone.
    pub(crate) fn read(&self, address: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(file) = &self.file else { return self.read_by_call(address, buffer) };
        let mut done = 0;
        while done < buffer.len() {
            match file.read_at(&mut buffer[done..], address.wrapping_add(done as u64)) {
                Ok(0) => break,
                Ok(n) => done += n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // EIO is what an unmapped page reads as.
                Err(error) if error.raw_os_error() == Some(Errno::EIO as i32) => break,
                Err(_) if done > 0 => break,
                Err(error) => return self.read_by_call(address, buffer).map_err(|_| error),
            }
        }
        Ok(done)
    }

    fn read_by_call(&self, address: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let remote = [RemoteIoVec { base: address as usize, len: buffer.len() }];
        match process_vm_readv(self.pid, &mut [IoSliceMut::new(buffer)], &remote) {
            Err(Errno::EFAULT | Errno::ESRCH) => Ok(0),
            other => Ok(other?),
        }
    }

    /// All of `buffer`, or nothing.
    pub(crate) fn read_exact(&self, address: u64, buffer: &mut [u8]) -> io::Result<bool> {
        Ok(self.read(address, buffer)? == buffer.len())
    }

    /// Writes through the held descriptor, which still works when privileges are gone; by system
    /// call where that is refused. Returns how many bytes: 0 when that address space is gone.
    pub(crate) fn write(&self, address: u64, bytes: &[u8]) -> io::Result<(usize, Transport)> {
        let Some(file) = &self.file else { return self.write_by_call(address, bytes) };
        match file.write_at(bytes, address) {
            Ok(written) => Ok((written, Transport::Mem)),
            Err(error) => match Errno::from_raw(error.raw_os_error().unwrap_or(0)) {
                Errno::EPERM | Errno::EACCES | Errno::ENOSYS => self.write_by_call(address, bytes),
                _ => Err(error),
            },
        }
    }

    fn write_by_call(&self, address: u64, bytes: &[u8]) -> io::Result<(usize, Transport)> {
        let remote = [RemoteIoVec { base: address as usize, len: bytes.len() }];
        match process_vm_writev(self.pid, &[IoSlice::new(bytes)], &remote) {
            Err(Errno::EFAULT | Errno::ESRCH) => Ok((0, Transport::Writev)),
            other => Ok((other?, Transport::Writev)),
        }
    }
}
