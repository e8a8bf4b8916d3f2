//! A process as the agent sees it, made of files: what /proc says of it, its memory, its program.
//! Each of them is hostile in one of the fuzzers.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use ppt_agent::{System, Target, status};

/// No pid that Linux gives to anybody.
const PID: i32 = i32::MAX - 1;
/// Where the memory that a fuzzer chooses begins: the descriptor, in the seeds.
const BASE: u64 = 0x10000;
/// Bytes of it.
const SIZE: u64 = 0x8000;
/// What stands for the inode of the program in a text of mappings.
const INODE: &str = "7777777";
/// The program's mappings where they are not what is hostile: code, descriptor, control page.
const MAPS: &str = "\
00400000-00402000 r-xp 00000000 00:1f 7777777                            /program\n\
00010000-00018000 rw-p 00002000 00:1f 7777777                            /program\n\
7ffff000-80000000 rw-p 00000000 00:00 0                                  [stack]\n";

/// The text of `/proc/PID/maps`, over memory that holds a buffer.
pub(crate) fn maps(input: &[u8]) {
    let process = FakeProcess::new();
    process.memory(include_bytes!("../corpus/memory/buffer"));
    process.maps(input);
    process.attach_to();
}

/// The program's file: symbols lead into memory that holds a buffer.
pub(crate) fn elf(input: &[u8]) {
    let process = FakeProcess::new();
    process.memory(include_bytes!("../corpus/memory/buffer"));
    fs::write(&process.program, input).unwrap();
    process.maps(MAPS.as_bytes());
    process.attach_to();
}

/// The process's memory: descriptor, schema, control page.
pub(crate) fn memory(input: &[u8]) {
    let process = FakeProcess::new();
    process.memory(input);
    process.maps(MAPS.as_bytes());
    process.attach_to();
}

struct FakeProcess {
    /// Stands for /proc.
    proc: tempfile::TempDir,
    thread: PathBuf,
    program: PathBuf,
}

impl FakeProcess {
    fn new() -> Self {
        // In memory, where there is such a place.
        let shm = Path::new("/dev/shm");
        let folder = if shm.is_dir() { shm.into() } else { std::env::temp_dir() };
        let proc = tempfile::Builder::new().prefix("ppt-fuzz-").tempdir_in(folder).unwrap();
        let process = proc.path().join(PID.to_string());
        let thread = process.join(format!("task/{PID}"));
        fs::create_dir_all(thread.join("root")).unwrap();
        let program = thread.join("root/program");
        for folder in [&process, &thread] {
            fs::write(folder.join("stat"), stat()).unwrap();
            fs::write(folder.join("status"), STATUS).unwrap();
        }
        fs::write(&program, "").unwrap();
        std::os::unix::fs::symlink("root/program", thread.join("exe")).unwrap();
        Self { proc, thread, program }
    }

    fn memory(&self, bytes: &[u8]) {
        let file = File::create(self.thread.join("mem")).unwrap();
        file.write_all_at(&bytes[..bytes.len().min(SIZE as usize)], BASE).unwrap();
        file.set_len(BASE + SIZE).unwrap();
    }

    fn maps(&self, text: &[u8]) {
        let inode = fs::metadata(&self.program).unwrap().ino().to_string();
        let mut file = File::create(self.thread.join("maps")).unwrap();
        let mut rest = text;
        while let Some(at) = rest.windows(INODE.len()).position(|window| window == INODE.as_bytes())
        {
            file.write_all(&rest[..at]).unwrap();
            file.write_all(inode.as_bytes()).unwrap();
            rest = &rest[at + INODE.len()..];
        }
        file.write_all(rest).unwrap();
    }

    /// As far as an agent comes that has not written anything yet; returns how many buffers it
    /// believes.
    fn attach_to(&self) -> usize {
        let system = System { proc: self.proc.path().into(), ..System::default() };
        let Ok(target) = Target::open(&system, PID) else { return 0 };
        let Ok(found) = target.buffers() else { return 0 };
        for refused in &found.refused {
            assert!(!refused.chars().any(char::is_control), "{refused:?}");
        }
        let buffers = target.choose(found, &[]).unwrap_or_default();
        for buffer in &buffers {
            assert!(!buffer.name.chars().any(char::is_control), "{:?}", buffer.name);
            assert!(status(&target, buffer).is_ok());
        }
        buffers.len()
    }
}

fn stat() -> String {
    format!(
        "{PID} (fuzz) S 1 {PID} {PID} 0 -1 4194304 0 0 0 0 0 0 0 0 20 0 1 0 100 4096 1 \
         18446744073709551615 4194304 4202496 65536 0 0 0 0 0 0 0 0 0 17 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n"
    )
}

const STATUS: &str = "\
Name:\tfuzz\nUmask:\t0022\nState:\tS (sleeping)\nTgid:\t2147483646\nNgid:\t0\nPid:\t2147483646\n\
PPid:\t1\nTracerPid:\t0\nUid:\t0\t0\t0\t0\nGid:\t0\t0\t0\t0\nFDSize:\t64\nGroups:\t\n\
NStgid:\t2147483646\nNSpid:\t2147483646\nNSpgid:\t1\nNSsid:\t1\nThreads:\t1\nSigQ:\t0/1\n\
SigPnd:\t0000000000000000\nShdPnd:\t0000000000000000\nSigBlk:\t0000000000000000\n\
SigIgn:\t0000000000000000\nSigCgt:\t0000000000000000\nCapInh:\t0000000000000000\n\
CapPrm:\t0000000000000000\nCapEff:\t0000000000000000\nNoNewPrivs:\t0\nSeccomp:\t0\n\
voluntary_ctxt_switches:\t0\nnonvoluntary_ctxt_switches:\t0\n";

#[cfg(test)]
mod tests {
    use super::*;

    /// Without this, the fuzzers would not get far.
    #[test]
    fn what_is_not_hostile_is_believed() {
        let process = FakeProcess::new();
        process.maps(MAPS.as_bytes());
        process.memory(b"");
        assert_eq!(process.attach_to(), 0);
        process.memory(include_bytes!("../corpus/memory/buffer"));
        assert_eq!(process.attach_to(), 1);
    }
}
