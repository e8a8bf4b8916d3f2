//! The unwind tables of captured processes, for `--stacks=unwind`.

use std::collections::HashMap;

use ppt_agent::{CodeMapping, FileId, Target};
use ppt_kernel::{MappedCode, UnwindMapping, UnwindTables};
use ppt_symbols::CodeFile;

/// Most bytes of tables. Beyond that, ppt reads no further tables, and stacks end in the code of
/// further files.
const MAX_BYTES: usize = 512 << 20;

/// The tables of files, each read once.
#[derive(Default)]
pub(super) struct UnwindFiles {
    /// By device and inode. `None`: the file has no tables, or they are damaged.
    read: HashMap<FileId, Option<UnwindFile>>,
    bytes: usize,
}

struct UnwindFile {
    code: CodeFile,
    tables: UnwindTables,
}

impl UnwindFiles {
    /// The code that a process has mapped now, with the tables of its files.
    pub(super) fn code(&mut self, target: &Target) -> MappedCode {
        let mut unwind = Vec::new();
        for mapped in target.code_files() {
            let bytes = &mut self.bytes;
            let read = self.read.entry(mapped.identity).or_insert_with(|| {
                if *bytes >= MAX_BYTES {
                    return None;
                }
                let code = CodeFile::new(mapped.file)?;
                let table = code.unwind_table()?;
                *bytes += table.bytes.len();
                Some(UnwindFile { code, tables: UnwindTables::new(table.address, table.bytes)? })
            });
            let Some(UnwindFile { code, tables }) = read else { continue };
            let with_tables = |mapping: &CodeMapping| {
                let (address, tables) = (code.address(mapping.offset)?, tables.clone());
                Some(UnwindMapping { range: mapping.start..mapping.end, address, tables })
            };
            unwind.extend(mapped.mappings.iter().filter_map(with_tables));
        }
        MappedCode { ranges: target.code_ranges(), unwind }
    }
}
