//! Reading and writing the memory of another process.
//!
//! `/proc/PID/mem`, opened once, stays bound to that address space: after an exec, or when its pid
//! has come to mean another process, it reads and writes nothing. process_vm_readv(2) and
//! process_vm_writev(2) go by the pid at each call, so they are for systems that forbid the other
//! way. None of them stops the process.

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
    file: File,
}

impl Memory {
    pub(crate) fn new(pid: i32, file: File) -> Self {
        Self { pid: Pid::from_raw(pid), file }
    }

    /// Fills `buffer` from `address`; fewer bytes where the mapping ends, 0 where it is gone.
    pub(crate) fn read(&self, address: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let mut done = 0;
        while done < buffer.len() {
            match self.file.read_at(&mut buffer[done..], address.wrapping_add(done as u64)) {
                Ok(0) => break,
                Ok(n) => done += n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // EIO is what an unmapped page reads as.
                Err(error) if error.raw_os_error() == Some(Errno::EIO as i32) => break,
                Err(_) if done > 0 => break,
                Err(error) => return self.read_by_call(address, buffer, error),
            }
        }
        Ok(done)
    }

    /// Systems that forbid /proc/PID/mem may allow the system call.
    fn read_by_call(&self, address: u64, buffer: &mut [u8], cause: io::Error) -> io::Result<usize> {
        let remote = [RemoteIoVec { base: address as usize, len: buffer.len() }];
        process_vm_readv(self.pid, &mut [IoSliceMut::new(buffer)], &remote).map_err(|_| cause)
    }

    /// All of `buffer`, or nothing.
    pub(crate) fn read_exact(&self, address: u64, buffer: &mut [u8]) -> io::Result<bool> {
        Ok(self.read(address, buffer)? == buffer.len())
    }

    /// Writes through the held descriptor, which still works when privileges are gone; by system
    /// call where that is refused. Returns how many bytes: 0 when that address space is gone.
    pub(crate) fn write(&self, address: u64, bytes: &[u8]) -> io::Result<(usize, Transport)> {
        match self.file.write_at(bytes, address) {
            Ok(written) => Ok((written, Transport::Mem)),
            Err(error) => match Errno::from_raw(error.raw_os_error().unwrap_or(0)) {
                Errno::EPERM | Errno::EACCES | Errno::ENOSYS => self.write_by_call(address, bytes),
                _ => Err(error),
            },
        }
    }

    fn write_by_call(&self, address: u64, bytes: &[u8]) -> io::Result<(usize, Transport)> {
        let remote = [RemoteIoVec { base: address as usize, len: bytes.len() }];
        let written = process_vm_writev(self.pid, &[IoSlice::new(bytes)], &remote)?;
        Ok((written, Transport::Writev))
    }
}
