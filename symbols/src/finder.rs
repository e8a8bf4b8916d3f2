//! Finds the files that processes had mapped, and their debug files.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use ppt_capture::{FileHeader, Module, Process};
use ppt_foreign::{FileStat, Links, Lookup, ReadableFile, Subject, find};
use rustix::fs::{Mode, OFlags};
use std::os::fd::AsFd;

use crate::limits;

/// Clock ticks per second in `/proc/PID/stat`: the same on every Linux.
const TICKS: u64 = 100;

/// Search paths for files. Tests use their own folders.
#[derive(Debug, Clone)]
pub struct SearchPaths {
    /// The root of paths.
    pub root: PathBuf,
    /// The folder where procfs is mounted.
    pub proc: PathBuf,
    /// Folders with separate debug files, by build id: `.build-id/xx/yyyy.debug` below them.
    pub debug: Vec<PathBuf>,
    /// The folder of the maps that JIT compilers write.
    pub tmp: PathBuf,
}

impl Default for SearchPaths {
    fn default() -> Self {
        let debug = vec![PathBuf::from("/usr/lib/debug")];
        SearchPaths { root: "/".into(), proc: "/proc".into(), debug, tmp: "/tmp".into() }
    }
}

/// The host of a capture, as the capture states it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CaptureHost {
    /// The boot id.
    pub boot_id: String,
    /// CLOCK_REALTIME in ns when the capture began; 0 = unknown.
    pub created_realtime_ns: u64,
    /// CLOCK_MONOTONIC in ns at the same moment.
    pub created_mono_ns: u64,
}

impl CaptureHost {
    /// The host from the header of a capture.
    pub fn of_header(header: &FileHeader) -> CaptureHost {
        CaptureHost {
            boot_id: header.boot_id.clone(),
            created_realtime_ns: header.created_realtime_ns,
            created_mono_ns: header.created_mono_ns,
        }
    }
}

/// Finds the files of a capture's processes.
#[derive(Debug)]
pub(crate) struct Finder {
    places: SearchPaths,
    host: CaptureHost,
    /// Whether the capture was made on this machine, which has not been rebooted since.
    is_here: bool,
}

impl Finder {
    pub fn new(places: SearchPaths, host: CaptureHost) -> Finder {
        let boot_id = std::fs::read_to_string(places.proc.join("sys/kernel/random/boot_id"));
        let is_here = boot_id.is_ok_and(|id| !host.boot_id.is_empty() && id.trim() == host.boot_id);
        Finder { places, host, is_here }
    }

    /// Possible files of a module: at its path, and at the path from the process's view if it still
    /// lives.
    pub fn candidates(&self, module: &Module, process: &Process) -> Vec<PathBuf> {
        let mut files = Vec::new();
        let Some(path) = module.path.strip_prefix(b"/") else { return files };
        // The kernel writes a line end as `\012`, which a path may also contain literally.
        let with_line_ends = replaced(path, b"\\012", b"\n");
        let paths = [Some(path), with_line_ends.as_deref()];
        let below = |root: &Path| {
            let paths = paths.into_iter().flatten().map(OsStr::from_bytes);
            paths.map(|path| root.join(path)).collect::<Vec<_>>()
        };
        files.extend(below(&self.places.root));
        if let Some(folder) = self.folder(process) {
            files.extend(below(&folder.join("root")));
            let range = format!("{:x}-{:x}", module.start, module.end);
            files.push(folder.join("map_files").join(range));
        }
        files
    }

    /// The separate debug files for a build id.
    pub fn debug_files(&self, build_id: &[u8]) -> impl Iterator<Item = PathBuf> + use<'_> {
        let hex = hex::encode(build_id);
        let name = (hex.len() > 2).then(|| format!(".build-id/{}/{}.debug", &hex[..2], &hex[2..]));
        name.into_iter().flat_map(|name| self.places.debug.iter().map(move |path| path.join(&name)))
    }

    /// The map of a process's JIT code, if its user wrote it while the process lived.
    pub fn perf_map(&self, process: &Process) -> Option<Vec<u8>> {
        if !self.is_here {
            return None;
        }
        let name = format!("perf-{}.map", process.ns_pid);
        let of_process = self.folder(process).map(|folder| folder.join("root/tmp").join(&name));
        let beside = self.sees_our_files(process).then(|| self.places.tmp.join(&name));
        let (path, since) = (of_process.into_iter().chain(beside), self.started(process));
        path.filter_map(|path| opened(&path, process)).find_map(|file| {
            let FileStat { uid, mtime, len, .. } = file.stat;
            let is_theirs = uid == process.uid && mtime.0 >= since;
            if !is_theirs || len > limits::PERF_MAP_BYTES {
                return None;
            }
            let mut text = vec![0; len as usize];
            let read = file.read_at(0, &mut text).ok()?;
            text.truncate(read);
            Some(text)
        })
    }

    /// Whether a file was last changed before the capture began.
    pub fn is_older(&self, stat: &FileStat) -> bool {
        let seconds = stat.mtime.0.max(stat.ctime.0);
        u64::try_from(seconds)
            .is_ok_and(|number| number < self.host.created_realtime_ns / 1_000_000_000)
    }

    /// The folder of a process in procfs, if it still lives.
    fn folder(&self, process: &Process) -> Option<PathBuf> {
        let folder = self.places.proc.join(process.pid.to_string());
        let stat = self.is_here.then(|| std::fs::read(folder.join("stat")).ok()).flatten()?;
        let stat = String::from_utf8_lossy(&stat);
        // The name of the program may contain anything, including brackets.
        let start = stat.rsplit_once(')')?.1.split_whitespace().nth(19)?;
        (start.parse() == Ok(process.start_time)).then_some(folder)
    }

    /// Whether the process saw the same files as this program.
    fn sees_our_files(&self, process: &Process) -> bool {
        let theirs =
            process.namespaces.iter().find(|(name, _)| name == "mnt").map(|namespace| namespace.1);
        let ours = std::fs::read_link(self.places.proc.join("self/ns/mnt")).ok();
        let ours = ours.and_then(|link| {
            let link = link.to_str()?.strip_prefix("mnt:[")?;
            link.strip_suffix(']')?.parse::<u64>().ok()
        });
        theirs.is_some() && theirs == ours
    }

    /// The start of a process, in seconds since the epoch, rounded down.
    fn started(&self, process: &Process) -> i64 {
        let ns = process.start_time.saturating_mul(1_000_000_000 / TICKS);
        let before = self.host.created_mono_ns.saturating_sub(ns);
        let started = self.host.created_realtime_ns.saturating_sub(before) / 1_000_000_000;
        i64::try_from(started).unwrap_or(i64::MAX).saturating_sub(2)
    }
}

/// `text` with every `from` replaced by `to`. `None` if it contains no `from`.
fn replaced(text: &[u8], from: &[u8], to: &[u8]) -> Option<Vec<u8>> {
    let (mut rest, mut all) = (text, Vec::with_capacity(text.len()));
    while let Some((&first, behind)) = rest.split_first() {
        match rest.strip_prefix(from) {
            Some(behind) => {
                all.extend_from_slice(to);
                rest = behind;
            }
            None => {
                all.push(first);
                rest = behind;
            }
        }
    }
    (all.len() != text.len()).then_some(all)
}

/// Opens a regular file for a process. The file is checked first, because opening a device or a FIFO
/// may have side effects.
pub(crate) fn opened(path: &Path, process: &Process) -> Option<ReadableFile> {
    let subject = Subject {
        pid: process.pid as i32,
        path: path.to_string_lossy().into_owned(),
        device: None,
    };
    let path = path.as_os_str().as_bytes();
    // The path is absolute. A helper cannot be given CWD, which is no descriptor.
    let look = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let root = rustix::fs::open("/", look, Mode::empty()).ok()?;
    find(&Lookup { folder: root.as_fd(), path, links: Links::Followed, subject: &subject })?.open()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    fn write(path: &Path, text: &str) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// Search paths below a folder, a host, and a process that lives there.
    fn living(folder: &Path) -> (SearchPaths, CaptureHost, Process) {
        let places = SearchPaths {
            root: folder.join("root"),
            proc: folder.join("proc"),
            debug: vec![folder.join("debug")],
            tmp: folder.join("tmp"),
        };
        write(&places.proc.join("sys/kernel/random/boot_id"), "here\n");
        let stat = format!("7 (odd ) name) S {} 4711 0 0\n", "0 ".repeat(18));
        write(&places.proc.join("7/stat"), &stat);
        std::fs::create_dir_all(places.proc.join("self/ns")).unwrap();
        std::os::unix::fs::symlink("mnt:[99]", places.proc.join("self/ns/mnt")).unwrap();
        let host = CaptureHost { boot_id: "here".into(), ..CaptureHost::default() };
        let process = Process {
            pid: 7,
            ns_pid: 3,
            start_time: 4711,
            uid: std::fs::metadata(folder).unwrap().uid(),
            namespaces: vec![("mnt".into(), 99)],
            ..Process::default()
        };
        (places, host, process)
    }

    #[test]
    fn a_process_that_lives_shows_its_own_files() {
        let folder = tempfile::tempdir().unwrap();
        let (places, host, process) = living(folder.path());
        let module =
            Module { start: 0x1000, end: 0x2000, path: b"/a\\012b".into(), ..Module::default() };
        let candidates = |places: &SearchPaths, host: &CaptureHost, process: &Process| {
            Finder::new(places.clone(), host.clone()).candidates(&module, process)
        };
        let root = places.root.clone();
        let below = places.proc.join("7");
        let all = candidates(&places, &host, &process);
        let expected = [
            root.join("a\\012b"),
            root.join("a\nb"),
            below.join("root/a\\012b"),
            below.join("root/a\nb"),
            below.join("map_files/1000-2000"),
        ];
        assert_eq!(all, expected);
        let later = Process { start_time: 4712, ..process.clone() };
        assert_eq!(candidates(&places, &host, &later).len(), 2, "another process has its number");
        let elsewhere = CaptureHost { boot_id: "there".into(), ..host };
        assert_eq!(candidates(&places, &elsewhere, &process).len(), 2);
        let finder = Finder::new(places, CaptureHost::default());
        let debug: Vec<_> = finder.debug_files(&[0xab, 0xcd, 0x01]).collect();
        assert_eq!(debug, [folder.path().join("debug/.build-id/ab/cd01.debug")]);
        assert_eq!(finder.debug_files(&[0xab]).count(), 0);
    }

    #[test]
    fn a_map_of_jit_code_is_that_of_the_process() {
        let folder = tempfile::tempdir().unwrap();
        let (places, host, process) = living(folder.path());
        let map = places.tmp.join("perf-3.map");
        write(&map, "1000 10 beside\n");
        let text = |host: &CaptureHost, process: &Process| {
            let found = Finder::new(places.clone(), host.clone()).perf_map(process);
            found.map(|found| String::from_utf8(found).unwrap())
        };
        assert_eq!(text(&host, &process).as_deref(), Some("1000 10 beside\n"));
        let other_user = Process { uid: process.uid + 1, ..process.clone() };
        assert_eq!(text(&host, &other_user), None);
        let other_files = Process { namespaces: vec![("mnt".into(), 98)], ..process.clone() };
        assert_eq!(text(&host, &other_files), None, "it saw another /tmp");
        let elsewhere = CaptureHost { boot_id: "there".into(), ..host.clone() };
        assert_eq!(text(&elsewhere, &process), None);
        // A process that started after the file was written did not write it.
        let later = CaptureHost { created_realtime_ns: u64::MAX, ..host.clone() };
        assert_eq!(text(&later, &process), None);
        write(&places.proc.join("7/root/tmp/perf-3.map"), "1000 10 own\n");
        assert_eq!(text(&host, &other_files).as_deref(), Some("1000 10 own\n"));
        std::fs::remove_file(&map).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, &map, rustix::fs::FileType::Fifo, Mode::RUSR, 0)
            .unwrap();
        std::fs::remove_file(places.proc.join("7/root/tmp/perf-3.map")).unwrap();
        assert_eq!(text(&host, &process), None, "a FIFO is not opened");
    }
}
