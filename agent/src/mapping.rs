//! The mappings of a process, and their files.

use std::io::{BufRead, BufReader, Read};
use std::os::fd::{AsFd, OwnedFd};

use ppt_foreign::{Device, FoundFile, Links, Lookup, Subject, find, is_local};
use procfs::process::{MMPermissions, MMapPath, MemoryMap, MemoryMaps};
use procfs::{FromRead, ProcResult};

/// The mark of procfs on the path of a deleted file.
const DELETED: &str = " (deleted)";

/// Identity of a mapped file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileId {
    /// Major number of the device.
    pub major: i32,
    /// Minor number of the device.
    pub minor: i32,
    /// 0: no file.
    pub inode: u64,
}

impl FileId {
    pub(crate) fn device(self) -> Device {
        (self.major as u32, self.minor as u32)
    }
}

/// One line of `/proc/PID/maps`.
#[derive(Debug, Clone)]
pub(crate) struct Mapping {
    pub(crate) start: u64,
    pub(crate) end: u64,
    pub(crate) offset: u64,
    pub(crate) is_readable: bool,
    pub(crate) is_writable: bool,
    pub(crate) is_executable: bool,
    pub(crate) is_private: bool,
    pub(crate) is_stack: bool,
    /// Code that the kernel maps into every process.
    is_vdso: bool,
    /// Anonymous memory in place of the file's code.
    pub(crate) is_moved: bool,
    /// The file had been deleted, or replaced by another.
    pub(crate) is_deleted: bool,
    /// The mapped file, without a mark of deletion. Bytes that are not UTF-8 are replaced.
    pub(crate) object: Option<String>,
    /// The path as in procfs, if it differs from `object`.
    raw: Option<Box<[u8]>>,
    /// Device and inode of the file.
    pub(crate) file: FileId,
}

impl From<MemoryMap> for Mapping {
    fn from(map: MemoryMap) -> Self {
        let mut is_deleted = false;
        let object = match &map.pathname {
            MMapPath::Path(path) => {
                let path = path.to_string_lossy();
                is_deleted = path.ends_with(DELETED);
                Some(path.strip_suffix(DELETED).unwrap_or(&path).to_string())
            }
            _ => None,
        };
        Self {
            start: map.address.0,
            end: map.address.1,
            offset: map.offset,
            is_readable: map.perms.contains(MMPermissions::READ),
            is_writable: map.perms.contains(MMPermissions::WRITE),
            is_executable: map.perms.contains(MMPermissions::EXECUTE),
            is_private: map.perms.contains(MMPermissions::PRIVATE),
            is_stack: matches!(map.pathname, MMapPath::Stack | MMapPath::TStack(_)),
            is_vdso: matches!(map.pathname, MMapPath::Vdso),
            is_moved: false,
            is_deleted,
            object,
            raw: None,
            file: FileId { major: map.dev.0, minor: map.dev.1, inode: map.inode },
        }
    }
}

/// The lines of a list of mappings that are kept, always with the lines before and after each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kept {
    Code,
    Private,
}

impl Kept {
    fn keeps(self, line: &[u8]) -> bool {
        let rights = line.split(|&byte| byte == b' ').nth(1).unwrap_or_default();
        let (at, letter) = if self == Kept::Code { (2, b'x') } else { (3, b'p') };
        rights.get(at) == Some(&letter) || line.ends_with(IO_URING) || is_foreign(line)
    }
}

/// Whether the line is of a file whose file system may not answer. All of these are kept.
fn is_foreign(line: &[u8]) -> bool {
    let mut fields = line.split(|&byte| byte == b' ').skip(3);
    let (device, inode) = (fields.next().unwrap_or_default(), fields.next());
    let device = str::from_utf8(device).ok().and_then(|text| text.split_once(':'));
    let number = |text| u32::from_str_radix(text, 16).ok();
    let device = device.and_then(|(major, minor)| Some((number(major)?, number(minor)?)));
    inode != Some(b"0") && device.is_some_and(|device| !is_local(device))
}

/// Most bytes of a list of mappings that are read, which takes less than a second: 65,530 mappings
/// (the usual vm.max_map_count) of files with paths of 900 bytes.
pub(crate) const MAPS_LIMIT: u64 = 64 << 20;
/// That limit for each process in a search of many: paths of 170 bytes.
pub(crate) const MAPS_OF_MANY: u64 = 16 << 20;
/// The name of anonymous memory from mmap(2) with MAP_HUGETLB.
const HUGE: &str = "/anon_hugepage";
/// The end of the line of a ring of an io_uring.
const IO_URING: &[u8] = b"anon_inode:[io_uring]\n";

/// Reads the mappings of a process, within the first `limit` bytes of the list. Returns also
/// whether they are all. A process may map data files 60,000 times, so the list is read line by
/// line.
pub(crate) fn read_maps(
    maps: impl Read,
    kept: Kept,
    limit: u64,
) -> ProcResult<(Vec<Mapping>, bool)> {
    let mut maps = BufReader::new(maps).take(limit);
    let (mut bytes, mut line, mut before) = (Vec::new(), Vec::new(), Vec::new());
    let mut is_after = false;
    while maps.read_until(b'\n', &mut line)? > 0 {
        if !line.ends_with(b"\n") {
            break;
        }
        let is_kept = kept.keeps(&line);
        if is_kept {
            bytes.append(&mut before);
        }
        if is_kept || is_after {
            bytes.extend_from_slice(&line);
            before.clear();
        } else {
            std::mem::swap(&mut before, &mut line);
        }
        is_after = is_kept;
        line.clear();
    }
    Ok((parse_maps(&bytes)?, maps.limit() > 0))
}

/// The mappings in the bytes of `/proc/PID/maps`.
fn parse_maps(bytes: &[u8]) -> ProcResult<Vec<Mapping>> {
    let maps = MemoryMaps::from_read(
        escape_kernel_like_names(&String::from_utf8_lossy(bytes)).as_bytes(),
    )?;
    let mut mappings: Vec<Mapping> = maps.into_iter().map(Mapping::from).collect();
    let lines = bytes.split_inclusive(|&byte| byte == b'\n');
    let lines: Vec<&[u8]> = lines.filter(|line| !line[0].is_ascii_uppercase()).collect();
    if lines.len() == mappings.len() {
        for (mapping, line) in mappings.iter_mut().zip(lines) {
            mapping.keep_raw(line);
        }
    }
    Ok(mappings)
}

/// `path` with a line end for each `\012`, if there is one.
fn with_line_ends(path: &[u8]) -> Option<Vec<u8>> {
    const ESCAPED: &[u8] = b"\\012";
    let (mut rest, mut plain) = (path, Vec::with_capacity(path.len()));
    while let Some((&first, behind)) = rest.split_first() {
        let escaped = rest.strip_prefix(ESCAPED);
        plain.push(if escaped.is_some() { b'\n' } else { first });
        rest = escaped.unwrap_or(behind);
    }
    (plain.len() < path.len()).then_some(plain)
}

impl Mapping {
    /// Keeps the path from the procfs line if it differs from [`Mapping::object`].
    fn keep_raw(&mut self, line: &[u8]) {
        let Some(object) = &self.object else { return };
        let Some(at) = line.iter().position(|&byte| byte == b'/') else { return };
        let path = line[at..].strip_suffix(b"\n").unwrap_or(&line[at..]);
        let path = path.strip_suffix(DELETED.as_bytes()).unwrap_or(path);
        if path != object.as_bytes() {
            self.raw = Some(path.into());
        }
    }

    /// The path of its file as in procfs, without a mark of deletion, or the kernel's name of its
    /// own code. Empty if there is neither.
    pub(crate) fn path(&self) -> Vec<u8> {
        let path = self.raw.as_deref().or(self.object.as_deref().map(str::as_bytes));
        path.unwrap_or(if self.is_vdso { b"[vdso]" } else { b"" }).to_vec()
    }

    /// Size in bytes.
    pub(crate) fn size(&self) -> u64 {
        self.end.saturating_sub(self.start)
    }

    /// The mapped file below `root`, if the path is a regular file and still the one that is mapped.
    ///
    /// The path was correct at the time of mapping; the target's user may have replaced the file
    /// since. So no link is followed, nothing outside of the target's root is found, and a file is
    /// inspected before it is opened: opening a device or a FIFO may have side effects.
    pub(crate) fn locate(&self, root: &OwnedFd, pid: i32) -> Option<FoundFile> {
        self.paths().find_map(|path| self.locate_at(root, pid, &path))
    }

    fn locate_at(&self, root: &OwnedFd, pid: i32, path: &[u8]) -> Option<FoundFile> {
        let (folder, links, subject) = (root.as_fd(), Links::Refused, &self.subject(pid));
        let found = find(&Lookup { folder, path, links, subject });
        found.filter(|file| file.stat.inode == self.file.inode)
    }

    /// Whether its file system may not answer.
    pub(crate) fn is_foreign(&self) -> bool {
        self.file.inode != 0 && !is_local(self.file.device())
    }

    /// Its file, to say that nothing answers.
    pub(crate) fn subject(&self, pid: i32) -> Subject {
        let path = self.object.clone().unwrap_or_default();
        Subject { pid, path, device: Some(self.file.device()) }
    }

    /// The possible paths: procfs writes a line end as `\012`, which a path may also contain
    /// literally.
    fn paths(&self) -> impl Iterator<Item = Vec<u8>> {
        let written = self.raw.as_deref().or(self.object.as_deref().map(str::as_bytes));
        let written = written.and_then(|path| path.strip_prefix(b"/")).map(<[u8]>::to_vec);
        let with_line_ends = written.as_deref().and_then(with_line_ends);
        written.into_iter().chain(with_line_ends)
    }

    /// Corrects what the mark of procfs says of a file whose name ends like that mark.
    pub(crate) fn check_deleted(&mut self, root: &OwnedFd, pid: i32) {
        let marked = [&self.path()[..], DELETED.as_bytes()].concat();
        let is_name = |marked: &[u8]| {
            marked.strip_prefix(b"/").is_some_and(|path| self.locate_at(root, pid, path).is_some())
        };
        if self.is_deleted && is_name(&marked) {
            self.is_deleted = false;
            self.object = Some(String::from_utf8_lossy(&marked).into_owned());
            self.raw = Some(marked.into());
        }
    }

    /// Whether it is code in anonymous memory right behind a mapping of a file.
    pub(crate) fn may_be_moved_from(&self, before: &Mapping) -> bool {
        let is_anonymous = match &self.object {
            None => self.file.inode == 0 && !self.is_vdso && !self.is_stack,
            Some(path) => path == HUGE,
        };
        let is_behind = before.end == self.start && before.file.inode != 0;
        self.is_executable && is_anonymous && is_behind
    }

    /// Makes it a mapping of the file of `before`, whose code at `offset` it replaces.
    pub(crate) fn set_moved_from(&mut self, before: &Mapping, offset: u64) {
        (self.is_moved, self.offset) = (true, offset);
        (self.file, self.is_deleted) = (before.file, before.is_deleted);
        (self.object, self.raw) = (before.object.clone(), before.raw.clone());
    }

    pub(crate) fn contains(&self, address: u64, length: u64) -> bool {
        self.start <= address && address.checked_add(length).is_some_and(|end| end <= self.end)
    }
}

/// Turns mappings with names that only start like the kernel's own into file names. A target may
/// choose such names, and procfs does not expect them. Lines that start like a line of smaps are
/// left out, because procfs would parse their numbers.
fn escape_kernel_like_names(maps: &str) -> String {
    let digits = |text: &str, radix| text.chars().all(|c| c.is_digit(radix));
    let is_odd = |name: &str| {
        let name = name.trim_end();
        let key = name.strip_prefix("/SYSV");
        let thread = name.strip_prefix("[stack:");
        key.is_some_and(|key| !key.is_char_boundary(8) || key.len() < 8 || !digits(&key[..8], 16))
            || thread.is_some_and(|thread| {
                thread
                    .strip_suffix(']')
                    .is_none_or(|text| !(1..=9).contains(&text.len()) || !digits(text, 10))
            })
    };
    let mut escaped = String::with_capacity(maps.len());
    let of_smaps = |line: &&str| line.starts_with(|c: char| c.is_ascii_uppercase());
    for line in maps.split_inclusive('\n').filter(|line| !of_smaps(line)) {
        let name = line.splitn(6, ' ').nth(5).unwrap_or_default().trim_start();
        let (before, name) = line.split_at(line.len() - name.len());
        escaped.push_str(before);
        escaped.push_str(if is_odd(name) { "/." } else { "" });
        escaped.push_str(name);
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_found_whatever_their_paths_are() {
        use std::ffi::OsStr;
        use std::fs::File;
        use std::os::unix::ffi::OsStrExt;
        use std::os::unix::fs::MetadataExt;

        let folder = tempfile::tempdir().unwrap();
        let root = OwnedFd::from(File::open("/").unwrap());
        for name in [&b"plain"[..], b"\xff\xfe", b"line\nend \xff", b"as\\012written", b"blank "] {
            let path = folder.path().join(OsStr::from_bytes(name));
            std::fs::write(&path, "").unwrap();
            let mut line =
                format!("1000-2000 r-xp 00000000 00:01 {} ", path.metadata().unwrap().ino());
            line += "   ";
            let mut line = line.into_bytes();
            for &byte in path.as_os_str().as_bytes() {
                line.extend_from_slice(if byte == b'\n' {
                    b"\\012"
                } else {
                    std::slice::from_ref(&byte)
                });
            }
            line.push(b'\n');
            let mappings = parse_maps(&line).unwrap();
            assert!(mappings[0].locate(&root, 1).is_some(), "{}", path.display());
        }
        let path = folder.path().join("srv (deleted)");
        std::fs::write(&path, "").unwrap();
        for (inode, is_deleted) in [(path.metadata().unwrap().ino(), false), (1, true)] {
            let line = format!("1000-2000 r-xp 00000000 00:01 {inode} {}\n", path.display());
            let mut mapping = parse_maps(line.as_bytes()).unwrap().remove(0);
            mapping.check_deleted(&root, 1);
            let name = if is_deleted { &b"/srv"[..] } else { b"/srv (deleted)" };
            assert!(mapping.is_deleted == is_deleted && mapping.path().ends_with(name));
        }
    }

    #[test]
    fn data_hides_no_code() {
        let line = |number: usize, rights: &str| {
            let start = number << 12;
            format!("{start:x}-{:x} {rights} 00000000 00:01 7  /x/{number}\n", start + 4096)
        };
        let data = |from: usize| (from..from + 50_000).map(|number| line(number, "r--s"));
        let list: String = data(1)
            .chain([line(60_000, "r-xp"), line(60_001, "rw-p")])
            .chain(data(70_000))
            .collect();
        let starts = |kept, limit| {
            let (found, is_whole) = read_maps(list.as_bytes(), kept, limit).unwrap();
            (found.iter().map(|mapping| mapping.start >> 12).collect::<Vec<_>>(), is_whole)
        };
        assert_eq!(starts(Kept::Code, MAPS_LIMIT), (vec![50_000, 60_000, 60_001], true));
        let private = vec![50_000, 60_000, 60_001, 70_000];
        assert_eq!(starts(Kept::Private, MAPS_LIMIT), (private, true));
        assert_eq!(starts(Kept::Code, 1_000_000), (vec![], false));
        assert!(!starts(Kept::Code, list.len() as u64 - 1).1, "a part of a line");
    }

    #[test]
    fn names_that_look_like_the_kernels_are_names_of_files() {
        let line = |name: &str| format!("1000-2000 rw-p 00000000 00:01 7      {name}\n");
        for kernels in ["", "[heap]", "[stack]", "[stack:77]", "/SYSV0000abcd (deleted)", "/bin/x"]
        {
            assert_eq!(escape_kernel_like_names(&line(kernels)), line(kernels));
        }
        for odd in
            ["/SYSV", "/SYSV1", "/SYSVzzzzzzzz", "/SYSVééééé", "[stack:", "[stack:é", "[stack:x]"]
        {
            let escaped = escape_kernel_like_names(&line(odd));
            assert!(escaped.ends_with(&format!(" /.{odd}\n")), "{escaped}");
            let maps = MemoryMaps::from_read(escaped.as_bytes()).unwrap();
            assert!(matches!(maps.0[0].pathname, MMapPath::Path(_)), "{maps:?}");
        }
    }
}
