//! The files that a process has mapped as code, opened.

use std::ops::Range;

use ppt_foreign::{FoundFile, ReadableFile};

use crate::mapping::{FileId, Mapping};
use crate::target::Target;

/// Most bytes of `/proc/PID/maps` that are read, and most files that are opened.
const MAPS_LIMIT: u64 = 4 << 20;
const FILES: usize = 1024;

/// A file that a process has mapped as code. It stays that file if its path is reused.
#[derive(Debug)]
pub struct MappedFile {
    /// The path, as the process sees it.
    pub path: String,
    /// Device and inode.
    pub identity: FileId,
    /// The file.
    pub file: ReadableFile,
    /// The mappings of the file as code.
    pub mappings: Vec<CodeMapping>,
}

/// A range of addresses at which a process has mapped code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CodeMapping {
    /// The first address.
    pub start: u64,
    /// The end address, exclusive.
    pub end: u64,
    /// The file offset of `start`, in bytes.
    pub offset: u64,
}

impl Target {
    /// The files that the process has mapped as code, the program first. Files that ppt may not
    /// open are left out.
    pub fn code_files(&self) -> Vec<MappedFile> {
        let Ok((mappings, _)) = self.mappings(MAPS_LIMIT) else { return Vec::new() };
        // After an exec, the mappings are those of another program.
        if !self.maps_same_memory() {
            return Vec::new();
        }
        let root = self.root();
        let mut files: Vec<MappedFile> = Vec::new();
        let is_code = |mapping: &&Mapping| mapping.is_executable && mapping.file.inode != 0;
        for mapping in mappings.iter().filter(is_code) {
            let Mapping { start, end, offset, .. } = *mapping;
            let place = CodeMapping { start, end, offset };
            if let Some(known) = files.iter_mut().find(|known| known.identity == mapping.file) {
                known.mappings.push(place);
                continue;
            }
            let Some(path) = mapping.object.clone() else { continue };
            if files.len() == FILES {
                continue;
            }
            let located = || root.as_ref().and_then(|root| mapping.locate(root, self.pid()));
            let file = located().or_else(|| self.mapped_file(mapping)).and_then(FoundFile::open);
            let identity = mapping.file;
            let mappings = vec![place];
            files.extend(file.map(|file| MappedFile { path, identity, file, mappings }));
        }
        files
    }

    /// All addresses at which the process has mapped code, also code that it makes itself.
    pub fn code_ranges(&self) -> Vec<Range<u64>> {
        let Ok((mappings, _)) = self.mappings(MAPS_LIMIT) else { return Vec::new() };
        let code = mappings.iter().filter(|mapping| mapping.is_executable);
        code.map(|mapping| mapping.start..mapping.end).collect()
    }

    /// Whether process `pid` has mapped one of these files as code. `None` if that is unknown.
    pub fn is_mapped_by(pid: i32, identities: &[FileId]) -> Option<bool> {
        let bytes = std::fs::read(format!("/proc/{pid}/maps")).ok()?;
        let mappings = crate::mapping::parse_maps(&bytes).ok()?;
        let is_mapped =
            |mapping: &Mapping| mapping.is_executable && identities.contains(&mapping.file);
        Some(mappings.iter().any(is_mapped))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system::System;

    #[test]
    fn a_deleted_program_has_its_file() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("napping");
        std::fs::copy("/bin/sleep", &program).unwrap();
        let mut child = std::process::Command::new(&program).arg("60").spawn().unwrap();
        let target = Target::open(&System::default(), child.id() as i32).unwrap();
        let of_program =
            |files: Vec<MappedFile>| files.into_iter().find(|file| file.path.ends_with("/napping"));
        let before = loop {
            match of_program(target.code_files()) {
                Some(found) => break found,
                None => std::thread::yield_now(),
            }
        };
        assert_eq!(Target::is_mapped_by(child.id() as i32, &[before.identity]), Some(true));
        let ourselves = std::process::id() as i32;
        assert_eq!(Target::is_mapped_by(ourselves, &[before.identity]), Some(false));
        std::fs::remove_file(&program).unwrap();
        // Opening a file by its mapping rather than by its path needs privileges.
        if nix::unistd::geteuid().is_root() {
            let after = of_program(target.code_files()).unwrap();
            let len = |file: &MappedFile| file.file.stat.len;
            assert_eq!((len(&after), after.identity), (len(&before), before.identity));
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
