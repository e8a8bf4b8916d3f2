//! Reading and writing the memory of another process.
//!
//! `/proc/PID/mem`, once opened, stays bound to that address space. After an exec, or when the pid
//! belongs to another process, it reads and writes nothing. process_vm_readv(2) and
//! process_vm_writev(2) use the pid at each call. They serve systems that forbid the file, and
//! users who may trace a process but not open its files: another user with only CAP_SYS_PTRACE.
//! `/proc/PID/maps`, which every user may open, is bound in the same way. It shows right before and
//! right after each write whether the opened address space still exists; the remaining risk is an
//! exec between those two checks. None of these stops the process.

use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut};
use std::ops::Range;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use nix::errno::Errno;
use nix::sys::uio::{RemoteIoVec, process_vm_readv, process_vm_writev};
use nix::unistd::Pid;
use ppt_foreign::{Memory, Subject, read_memory};

/// The interface by which bytes were written into the target.
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

/// An address at which no process has memory.
const NOWHERE: u64 = 0;

/// The memory of one process.
#[derive(Debug)]
pub(crate) struct ProcessMemory {
    pid: Pid,
    access: Access,
    foreign: Mutex<ForeignMemory>,
}

/// Memory that is mapped from file systems that may not answer.
#[derive(Debug, Default)]
struct ForeignMemory {
    mapped: Vec<(Range<u64>, Subject)>,
    /// Parts of it that the process has in memory.
    present: Vec<Range<u64>>,
}

/// A file that stays bound to the opened address space.
#[derive(Debug)]
enum Access {
    /// `/proc/PID/mem`: gives access to the memory.
    Mem(File),
    /// `/proc/PID/maps`: shows only whether the address space still exists.
    Maps(File),
}

impl ProcessMemory {
    pub(crate) fn new(pid: i32, file: File) -> Self {
        Self { pid: Pid::from_raw(pid), access: Access::Mem(file), foreign: Mutex::default() }
    }

    /// Memory that is accessed by system calls only, provided that they are permitted. `maps` is the
    /// process's `/proc/PID/maps`.
    pub(crate) fn by_call(pid: i32, maps: File) -> Option<Self> {
        let (pid, foreign) = (Pid::from_raw(pid), Mutex::default());
        let memory = Self { pid, access: Access::Maps(maps), foreign };
        memory.read_by_call(NOWHERE, &mut [0]).is_ok().then_some(memory)
    }

    /// Whether the opened address space still exists, which an exec ends.
    pub(crate) fn is_there(&self) -> bool {
        match &self.access {
            // An address space that has ended reads as an empty file.
            Access::Mem(file) => !matches!(file.read_at(&mut [0], NOWHERE), Ok(0)),
            Access::Maps(file) => matches!(file.read_at(&mut [0], 0), Ok(1)),
        }
    }

    /// States all mappings from file systems that may not answer.
    pub(crate) fn set_foreign(&self, mapped: Vec<(Range<u64>, Subject)>) {
        self.foreign().mapped = mapped;
    }

    /// States that the process has this in memory, so that no file system is asked for it.
    pub(crate) fn set_present(&self, range: Range<u64>) {
        self.foreign().present.push(range);
    }

    fn foreign(&self) -> MutexGuard<'_, ForeignMemory> {
        self.foreign.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The mapping that a file system must be asked for.
    fn foreign_at(&self, address: u64, length: usize) -> Option<Subject> {
        let foreign = self.foreign();
        let end = address.saturating_add(length as u64);
        let is_in = |range: &Range<u64>| address < range.end && range.start < end;
        let (_, subject) = foreign.mapped.iter().find(|(range, _)| is_in(range))?;
        let holds = |range: &Range<u64>| range.start <= address && end <= range.end;
        (!foreign.present.iter().any(holds)).then(|| subject.clone())
    }

    /// Fills `buffer` from `address`. Reads fewer bytes where the mapping ends, 0 where it is gone.
    pub(crate) fn read(&self, address: u64, buffer: &mut [u8]) -> io::Result<usize> {
        if let Some(subject) = self.foreign_at(address, buffer.len()) {
            let memory = match &self.access {
                Access::Mem(file) => Memory::File(file.as_fd()),
                Access::Maps(_) => Memory::Pid(self.pid.as_raw()),
            };
            return read_memory(&memory, address, buffer, &subject);
        }
        let Access::Mem(file) = &self.access else { return self.read_by_call(address, buffer) };
        let mut done = 0;
        while done < buffer.len() {
            match file.read_at(&mut buffer[done..], address.wrapping_add(done as u64)) {
                Ok(0) => break,
                Ok(n) => done += n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // Reading an unmapped page returns EIO.
                Err(error) if error.raw_os_error() == Some(Errno::EIO as i32) => break,
                Err(_) if done > 0 => break,
                Err(error) => return self.read_by_call(address, buffer).map_err(|_| error),
            }
        }
        Ok(done)
    }

    fn read_by_call(&self, address: u64, buffer: &mut [u8]) -> io::Result<usize> {
        read_by_call(self.pid, address, buffer)
    }

    /// Returns whether all of `buffer` was filled; the address space may end before.
    pub(crate) fn read_exact(&self, address: u64, buffer: &mut [u8]) -> io::Result<bool> {
        Ok(self.read(address, buffer)? == buffer.len())
    }

    /// Writes through the held descriptor, which still works after privileges were dropped; by
    /// system call if that is refused. Returns the number of bytes: 0 if the address space is gone.
    pub(crate) fn write(&self, address: u64, bytes: &[u8]) -> io::Result<(usize, Transport)> {
        let Access::Mem(file) = &self.access else { return self.write_by_call(address, bytes) };
        match file.write_at(bytes, address) {
            Ok(written) => Ok((written, Transport::Mem)),
            Err(error) => match Errno::from_raw(error.raw_os_error().unwrap_or(0)) {
                Errno::EPERM | Errno::EACCES | Errno::ENOSYS => self.write_by_call(address, bytes),
                _ => Err(error),
            },
        }
    }

    fn write_by_call(&self, address: u64, bytes: &[u8]) -> io::Result<(usize, Transport)> {
        if !self.is_there() {
            return Ok((0, Transport::Writev));
        }
        let remote = [RemoteIoVec { base: address as usize, len: bytes.len() }];
        let written = match process_vm_writev(self.pid, &[IoSlice::new(bytes)], &remote) {
            Err(Errno::EFAULT | Errno::ESRCH) => 0,
            other => other?,
        };
        if written > 0 && !self.is_there() {
            return Err(io::Error::other(
                "it started another program (exec) at that very moment, which may have got the bytes",
            ));
        }
        Ok((written, Transport::Writev))
    }
}

/// Reads the memory of the process that has this number now. Reads 0 bytes where nothing is mapped.
pub(crate) fn read_by_call(pid: Pid, address: u64, buffer: &mut [u8]) -> io::Result<usize> {
    let remote = [RemoteIoVec { base: address as usize, len: buffer.len() }];
    match process_vm_readv(pid, &mut [IoSliceMut::new(buffer)], &remote) {
        Err(Errno::EFAULT | Errno::ESRCH) => Ok(0),
        other => Ok(other?),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Write};
    use std::process::{Command, Stdio};

    use procfs::process::Process;

    use super::*;

    /// By the pid alone, the last write would succeed: without address randomisation, the new
    /// program has its stack where the old one had it.
    #[test]
    fn what_goes_by_the_pid_is_not_written_into_another_program() {
        let fixed = Command::new("setarch").args(["-R", "true"]).status();
        let mut command = if fixed.is_ok_and(|status| status.success()) {
            Command::new("setarch")
        } else {
            Command::new("env")
        };
        if command.get_program() == "setarch" {
            command.arg("-R");
        }
        command.args(["sh", "-c", "echo ready; read line; exec sleep 60"]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut ready = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut ready).unwrap();

        let pid = child.id() as i32;
        let process = Process::new(pid).unwrap();
        let address = process.stat().unwrap().startstack;
        let maps = File::open(format!("/proc/{pid}/maps")).unwrap();
        let memory = ProcessMemory::by_call(pid, maps).expect("a child of ours");
        let mut bytes = [0; 8];
        assert!(memory.read_exact(address, &mut bytes).unwrap());
        assert_eq!(memory.write(address, &bytes).unwrap(), (8, Transport::Writev));

        writeln!(child.stdin.as_mut().unwrap()).unwrap();
        while process.stat().unwrap().comm != "sleep" {
            std::thread::yield_now();
        }
        let late = memory.write(address, &bytes).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(late, (0, Transport::Writev));
    }
}
