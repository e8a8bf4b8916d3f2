//! The files that a process has mapped as code.

use std::collections::HashMap;
use std::fs::File;
use std::ops::Range;

use ppt_foreign::{FoundFile, ReadableFile};

use crate::budget::Budget;
use crate::elf::Object;
use crate::error::Result;
use crate::mapping::{FileId, Kept, MAPS_LIMIT, MAPS_OF_MANY, Mapping, read_maps};
use crate::target::Target;

/// The code that a process has mapped.
#[derive(Debug, Default)]
pub struct Code {
    /// Its files, in the order of their first addresses.
    pub files: Vec<MappedFile>,
    /// All addresses of code, also of code that the process makes itself.
    pub ranges: Vec<Range<u64>>,
    /// Whether the process has more mappings than ppt reads.
    pub is_cut: bool,
}

/// A file that a process has mapped as code.
#[derive(Debug)]
pub struct MappedFile {
    /// The path, as the process sees it.
    pub path: String,
    /// Device and inode.
    pub identity: FileId,
    /// The mappings of the file as code.
    pub mappings: Vec<CodeMapping>,
    mapping: Mapping,
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
    /// Whether the process has moved this code to anonymous memory.
    pub is_moved: bool,
}

impl Target {
    /// The code that the process has mapped now. Nothing, if that cannot be read.
    pub fn code(&self) -> Code {
        let Ok((mappings, is_whole)) = self.code_mappings() else { return Code::default() };
        // After an exec, the mappings are those of another program.
        if !self.maps_same_memory() {
            return Code::default();
        }
        let mut code = Code { is_cut: !is_whole, ..Code::default() };
        let mut known: HashMap<FileId, usize> = HashMap::new();
        for mapping in mappings.into_iter().filter(|mapping| mapping.is_executable) {
            let Mapping { start, end, offset, is_moved, file: identity, .. } = mapping;
            code.ranges.push(start..end);
            let (Some(path), 1..) = (mapping.object.clone(), identity.inode) else { continue };
            let index = *known.entry(identity).or_insert(code.files.len());
            if index == code.files.len() {
                code.files.push(MappedFile { path, identity, mappings: Vec::new(), mapping });
            }
            code.files[index].mappings.push(CodeMapping { start, end, offset, is_moved });
        }
        code
    }

    /// A file that the process has mapped as code. `None` if ppt may not open it. The file stays
    /// what it is if its path is reused.
    pub fn open_code(&self, file: &MappedFile) -> Option<ReadableFile> {
        self.mapped_file(&file.mapping)?.open()
    }

    /// Mappings of code with their neighbours, and whether they are all. A program may have moved
    /// code of a file to anonymous memory, for example to huge pages. Its place between the other
    /// mappings of the file tells which code it is.
    pub(crate) fn code_mappings(&self) -> Result<(Vec<Mapping>, bool)> {
        let (mut mappings, is_whole) = self.mappings(Kept::Code, MAPS_LIMIT)?;
        let (mut budget, root) = (Budget::of_one(), self.root());
        for mapping in mappings.iter_mut().filter(|mapping| mapping.is_deleted) {
            root.iter().for_each(|root| mapping.check_deleted(root, self.pid()));
        }
        for at in 1..mappings.len() {
            let (before, rest) = mappings.split_at_mut(at);
            let (before, moved) = (&before[at - 1], &mut rest[0]);
            if !moved.may_be_moved_from(before) {
                continue;
            }
            let file = self.mapped_file(before).and_then(FoundFile::open);
            let offset = file.and_then(|file| {
                let object = Object::begin(&file, &mut budget)?;
                object.code_at(object.bias(before.start, before.offset)?, moved.start, moved.end)
            });
            offset.into_iter().for_each(|offset| moved.set_moved_from(before, offset));
        }
        Ok((mappings, is_whole))
    }

    /// Whether process `pid` has mapped one of these files as code. `None` if that is unknown.
    pub fn is_mapped_by(pid: i32, identities: &[FileId]) -> Option<bool> {
        let maps = File::open(format!("/proc/{pid}/maps")).ok()?;
        let (mappings, _) = read_maps(maps, Kept::Code, MAPS_OF_MANY).ok()?;
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
            |code: Code| code.files.into_iter().find(|file| file.path.ends_with("/napping"));
        let size = |file| target.open_code(file).unwrap().stat.len;
        let before = loop {
            match of_program(target.code()) {
                Some(found) => break found,
                None => std::thread::yield_now(),
            }
        };
        assert_eq!(Target::is_mapped_by(child.id() as i32, &[before.identity]), Some(true));
        let ourselves = std::process::id() as i32;
        assert_eq!(Target::is_mapped_by(ourselves, &[before.identity]), Some(false));
        let size_before = size(&before);
        std::fs::remove_file(&program).unwrap();
        // Opening a file by its mapping rather than by its path needs privileges.
        if rustix::process::geteuid().is_root() {
            let after = of_program(target.code()).unwrap();
            assert_eq!((size(&after), after.identity), (size_before, before.identity));
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
