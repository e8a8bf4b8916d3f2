//! Simulated processes: a procfs in which any number of processes have any mappings.

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use ppt_agent::{System, Target};

/// Memory that holds a buffer: descriptor, schema, control page.
const BUFFER: &[u8] = include_bytes!("../../../fuzz/corpus/memory/buffer");
/// Size of that memory in bytes, in whole pages.
pub const BUFFER_SIZE: u64 = 0x2000;
/// The offset at which relocated data begins in a file of [`elf`].
pub const DATA: u64 = 0x1000;
/// The offset at which that data ends.
pub const DATA_END: u64 = 0x100000;

pub struct FakeSystem {
    proc: tempfile::TempDir,
    last: std::cell::Cell<i32>,
}

/// A process, whose memory and mappings are to be filled in.
pub struct FakeProcess {
    pub pid: i32,
    folder: PathBuf,
    memory: File,
    maps: String,
}

impl FakeSystem {
    pub fn new() -> Self {
        let proc = tempfile::Builder::new().prefix("ppt-test-").tempdir().unwrap();
        // Pids that Linux never assigns.
        let system = Self { proc, last: std::cell::Cell::new(i32::MAX - (1 << 20)) };
        system.uptime(1e6);
        system
    }

    /// Sets the uptime; 0 is 1 s before the processes start.
    pub fn uptime(&self, seconds: f64) {
        fs::write(self.path().join("uptime"), format!("{seconds:.2} 1.00\n")).unwrap();
    }

    pub fn system(&self) -> System {
        System { proc: self.proc.path().into(), ..System::default() }
    }

    pub fn path(&self) -> &Path {
        self.proc.path()
    }

    /// A single-threaded process that sees the whole file system as it is.
    pub fn process(&self) -> FakeProcess {
        let pid = self.last.get() + 1;
        self.last.set(pid);
        let process = self.proc.path().join(pid.to_string());
        let folder = process.join(format!("task/{pid}"));
        fs::create_dir_all(&folder).unwrap();
        for folder in [&process, &folder] {
            fs::write(folder.join("stat"), stat(pid)).unwrap();
            fs::write(folder.join("status"), status(pid)).unwrap();
        }
        std::os::unix::fs::symlink("/", folder.join("root")).unwrap();
        let memory = File::create_new(folder.join("mem")).unwrap();
        FakeProcess { pid, folder, memory, maps: String::new() }
    }

    pub fn open(&self, process: &FakeProcess) -> Target {
        fs::write(process.folder.join("maps"), &process.maps).unwrap();
        Target::open(&self.system(), process.pid).unwrap()
    }
}

impl FakeProcess {
    /// A mapping of a file. Pages that were never written read as zeros.
    pub fn map(&mut self, (start, size): (u64, u64), how: &str, offset: u64, file: &Path) {
        let inode = fs::metadata(file).map_or(1, |metadata| metadata.ino());
        let (end, path) = (start + size, file.display());
        self.maps += &format!("{start:08x}-{end:08x} {how} {offset:08x} 00:1f {inode} {path}\n");
        if self.memory.metadata().unwrap().len() < end {
            self.memory.set_len(end).unwrap();
        }
    }

    /// An object as the loader maps it: its headers, its data.
    pub fn load(&mut self, start: u64, file: &Path) {
        self.map((start, DATA), "r--p", 0, file);
        self.map((start + DATA, DATA_END - DATA), "rw-p", DATA, file);
    }

    /// A buffer at `address`, followed by its control page.
    pub fn buffer(&self, address: u64) {
        let control = (address + BUFFER_SIZE / 2) & !0xfff;
        let mut bytes = BUFFER.to_vec();
        for (at, word) in [(16, address), (40, address + 128), (56, control)] {
            bytes[at..at + 8].copy_from_slice(&word.to_le_bytes());
        }
        self.memory.write_all_at(&bytes[..0x1000.min(bytes.len())], address).unwrap();
    }
}

/// A shared object file: a page of headers, then relocated data. Its section headers, if any,
/// describe a symbol table and a string table that claim to have `names` bytes.
pub fn elf(path: &Path, size: u64, names: u64) {
    let file = File::create(path).unwrap();
    file.set_len(size).unwrap();
    let mut header = vec![0; 64];
    header[..8].copy_from_slice(b"\x7fELF\x02\x01\x01\0");
    put(&mut header, 16, 3, 2); // ET_DYN
    put(&mut header, 18, if cfg!(target_arch = "aarch64") { 183 } else { 62 }, 2);
    put(&mut header, 20, 1, 4);
    put(&mut header, 32, 64, 8); // program headers
    put(&mut header, 52, 64, 2);
    put(&mut header, 54, 56, 2);
    put(&mut header, 56, 2, 2);
    put(&mut header, 58, 64, 2);
    if names > 0 {
        put(&mut header, 40, 0x800, 8); // section headers
        put(&mut header, 60, 3, 2);
    }
    for (flags, offset, end) in [(4, 0, DATA), (6, DATA, DATA_END)] {
        let at = header.len();
        header.resize(at + 56, 0);
        put(&mut header, at, 1, 4); // PT_LOAD
        put(&mut header, at + 4, flags, 4);
        put(&mut header, at + 8, offset, 8);
        put(&mut header, at + 16, offset, 8);
        put(&mut header, at + 32, end - offset, 8);
        put(&mut header, at + 40, end - offset, 8);
    }
    file.write_all_at(&header, 0).unwrap();
    let mut sections = vec![0; 3 * 64];
    put(&mut sections, 64 + 4, 2, 4); // SHT_SYMTAB
    put(&mut sections, 64 + 24, DATA_END, 8);
    put(&mut sections, 64 + 32, names / 24 * 24, 8);
    put(&mut sections, 64 + 40, 2, 4);
    put(&mut sections, 128 + 4, 3, 4); // SHT_STRTAB
    put(&mut sections, 128 + 24, DATA_END, 8);
    put(&mut sections, 128 + 32, names, 8);
    file.write_all_at(&sections, 0x800).unwrap();
}

fn put(bytes: &mut [u8], at: usize, value: u64, size: usize) {
    bytes[at..at + size].copy_from_slice(&value.to_le_bytes()[..size]);
}

fn stat(pid: i32) -> String {
    format!(
        "{pid} (fake) S 1 {pid} {pid} 0 -1 4194304 0 0 0 0 0 0 0 0 20 0 1 0 100 4096 1 \
         18446744073709551615 4194304 4202496 65536 0 0 0 0 0 0 0 0 0 17 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n"
    )
}

fn status(pid: i32) -> String {
    format!(
        "Name:\tfake\nUmask:\t0022\nState:\tS (sleeping)\nTgid:\t{pid}\nNgid:\t0\nPid:\t{pid}\n\
         PPid:\t1\nTracerPid:\t0\nUid:\t0\t0\t0\t0\nGid:\t0\t0\t0\t0\nFDSize:\t64\nGroups:\t\n\
         NStgid:\t{pid}\nNSpid:\t{pid}\nNSpgid:\t1\nNSsid:\t1\nThreads:\t1\nSigQ:\t0/1\n\
         SigPnd:\t0000000000000000\nShdPnd:\t0000000000000000\nSigBlk:\t0000000000000000\n\
         SigIgn:\t0000000000000000\nSigCgt:\t0000000000000000\nCapInh:\t0000000000000000\n\
         CapPrm:\t0000000000000000\nCapEff:\t0000000000000000\nNoNewPrivs:\t0\nSeccomp:\t0\n\
         voluntary_ctxt_switches:\t0\nnonvoluntary_ctxt_switches:\t0\n"
    )
}
