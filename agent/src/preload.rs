//! Whether the dynamic linker would preload a library into a program.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use goblin::container::{Container, Ctx, Endian};
use goblin::elf::Elf;
use goblin::elf::header::{EM_AARCH64, EM_X86_64, Header};
use goblin::elf::program_header::{PT_INTERP, PT_NOTE, ProgramHeader};
use memchr::memmem;
use procfs::process::Process;

use crate::system::System;
use crate::target::{has_io_uring, program};

/// Why a preloaded library would not be in a program, or would see nothing there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PreloadBarrier {
    /// The program has no dynamic linker.
    Static,
    /// The program is set-user-ID or set-group-ID, or has file capabilities, so the dynamic linker
    /// ignores
    /// `LD_PRELOAD`.
    Privileged,
    /// The program is written in Go, which calls the kernel without the C library.
    Go,
    /// The program is for another architecture or word size.
    Architecture,
}

/// The state of an `LD_PRELOAD` library in a process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Preloaded {
    /// The process has mapped the library.
    pub is_loaded: bool,
    /// The fact that keeps the library out of the program, if any.
    pub barrier: Option<PreloadBarrier>,
    /// The systemd service of the process.
    pub service: Option<String>,
    /// The process has an io_uring, which no library sees.
    pub has_io_uring: bool,
}

/// The state of the library with this file name in process `pid`. `None` if the process cannot be
/// read.
#[must_use]
pub fn preloaded(system: &System, pid: i32, file_name: &str) -> Option<Preloaded> {
    let folder = system.proc.join(pid.to_string());
    let maps = std::fs::read(folder.join("maps")).ok().filter(|maps| !maps.is_empty())?;
    let groups = std::fs::read_to_string(folder.join("cgroup")).unwrap_or_default();
    let names = groups.lines().flat_map(|line| line.rsplit('/'));
    let process = Process::new_with_root(folder.clone()).ok()?;
    // Without a helper, nothing is read from a file system that may not answer.
    let is_local = program(&process, pid).is_some_and(|file| file.is_local());
    let service = names.into_iter().find(|name| name.ends_with(".service"));
    Some(Preloaded {
        is_loaded: memmem::find(&maps, format!("/{file_name}").as_bytes()).is_some(),
        barrier: is_local.then(|| preload_barrier(&folder.join("exe")).ok()?).flatten(),
        service: service.map(str::to_owned),
        has_io_uring: has_io_uring(&process),
    })
}

/// Most bytes of program headers and notes that are read.
const LIMIT: u64 = 64 << 10;
/// The type of a Go program's note, and its owner.
const GO_OWNER: &[u8] = b"\x04\0\0\0Go\0\0";

/// The fact that would keep a library out of the program in this file. `None` if there is none, or if
/// the file is a script: its interpreter decides.
///
/// # Errors
/// The file cannot be read.
pub fn preload_barrier(path: &Path) -> io::Result<Option<PreloadBarrier>> {
    let mut file = File::open(path)?;
    let mut head = [0; 64];
    let mut read = 0;
    while read < head.len() {
        match file.read(&mut head[read..])? {
            0 => return Ok(None),
            more => read += more,
        }
    }
    if !head.starts_with(b"\x7fELF") {
        return Ok(None);
    }
    let Some(header) = native(&head) else { return Ok(Some(PreloadBarrier::Architecture)) };
    if is_privileged(path, &file)? {
        return Ok(Some(PreloadBarrier::Privileged));
    }
    let context = Ctx { container: Container::Big, le: Endian::Little };
    let table = part(&mut file, header.e_phoff, u64::from(header.e_phnum) * 56)?;
    let count = table.len() / 56;
    let programs = ProgramHeader::parse(&table, 0, count, context).unwrap_or_default();
    let mut is_go = false;
    for note in programs.iter().filter(|program| program.p_type == PT_NOTE) {
        let bytes = part(&mut file, note.p_offset, note.p_filesz)?;
        is_go |= memmem::find(&bytes, GO_OWNER).is_some();
    }
    Ok(match programs.iter().any(|program| program.p_type == PT_INTERP) {
        _ if is_go => Some(PreloadBarrier::Go),
        false => Some(PreloadBarrier::Static),
        true => None,
    })
}

/// The header, if the program is for the architecture of this program.
fn native(head: &[u8; 64]) -> Option<Header> {
    let machine = if cfg!(target_arch = "aarch64") { EM_AARCH64 } else { EM_X86_64 };
    let is_wide = head[4] == 2 && head[5] == 1;
    Elf::parse_header(head).ok().filter(|header| is_wide && header.e_machine == machine)
}

/// Whether the kernel would give the program rights that this process does not have.
fn is_privileged(path: &Path, file: &File) -> io::Result<bool> {
    let found = file.metadata()?;
    let us = rustix::process::geteuid().as_raw();
    let other_user = found.mode() & 0o4000 != 0 && found.uid() != us;
    let other_group =
        found.mode() & 0o2010 == 0o2010 && found.gid() != rustix::process::getegid().as_raw();
    let mut value = [0; 1];
    let has_capabilities = match rustix::fs::getxattr(path, "security.capability", &mut value[..]) {
        Ok(_) | Err(rustix::io::Errno::RANGE) => us != 0,
        Err(_) => false,
    };
    Ok(other_user || other_group || has_capabilities)
}

/// A part of the file, which may be shorter than requested.
fn part(file: &mut File, offset: u64, length: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(offset))?;
    file.take(length.min(LIMIT)).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_programs_that_are_everywhere() {
        let barrier = |path: &str| preload_barrier(Path::new(path)).unwrap();
        assert_eq!(barrier("/bin/sh"), None);
        assert_eq!(barrier("/proc/self/exe"), None);
        assert_eq!(barrier("/etc/passwd"), None, "no program at all");
        assert!(preload_barrier(Path::new("/nowhere")).is_err());
    }

    #[test]
    fn of_a_process_and_its_service() {
        let folder = std::env::temp_dir().join(format!("ppt-preloaded-{}", std::process::id()));
        let process = folder.join("7");
        std::fs::create_dir_all(&process).unwrap();
        let maps = "7f00-7f01 r-xp 0 08:01 5   /usr/lib/ppt/libppt-with.so\n";
        std::fs::write(process.join("maps"), maps).unwrap();
        std::fs::write(process.join("cgroup"), "0::/system.slice/nginx.service/worker\n").unwrap();
        std::os::unix::fs::symlink("/proc/self/exe", process.join("exe")).unwrap();
        let system = System { proc: folder.clone(), ..System::default() };
        let found = [("libppt-with.so", 7), ("other.so", 7), ("libppt-with.so", 8)]
            .map(|(name, pid)| preloaded(&system, pid, name));
        std::fs::remove_dir_all(&folder).unwrap();
        let service = Some("nginx.service".to_owned());
        let loaded = Preloaded { is_loaded: true, barrier: None, service, has_io_uring: false };
        let other = Preloaded { is_loaded: false, ..loaded.clone() };
        assert_eq!(found, [Some(loaded), Some(other), None]);
    }

    #[test]
    fn of_a_program_for_another_machine() {
        let folder = std::env::temp_dir().join(format!("ppt-preload-{}", std::process::id()));
        let mut bytes = std::fs::read("/proc/self/exe").unwrap();
        bytes.truncate(4096);
        bytes[18] = 0xf3; // RISC-V
        std::fs::write(&folder, &bytes).unwrap();
        let found = preload_barrier(&folder);
        std::fs::remove_file(&folder).unwrap();
        assert_eq!(found.unwrap(), Some(PreloadBarrier::Architecture));
    }
}
