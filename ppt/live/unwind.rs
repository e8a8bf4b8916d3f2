//! The unwind tables of captured processes, for `--stacks=unwind`.

use std::collections::HashMap;

use ppt_agent::{CodeMapping, FileId, Target};
use ppt_kernel::{MappedCode, UnwindMapping, UnwindTables};
use ppt_symbols::{CodeAddresses, CodeFile};

/// Most bytes of tables. Beyond that, ppt reads no further tables, and stacks end in the code of
/// further files, which are counted.
const MAX_BYTES: usize = 512 << 20;

/// The tables of files, each read once.
#[derive(Default)]
pub(super) struct UnwindFiles {
    /// By device and inode. `None`: the file has no tables, or they are damaged.
    read: HashMap<FileId, Option<UnwindFile>>,
    bytes: usize,
    /// Number of files whose tables ppt may not read, or that are too many.
    pub(super) unread: usize,
    /// Whether a process has more mappings than ppt reads.
    pub(super) is_cut: bool,
}

struct UnwindFile {
    addresses: CodeAddresses,
    tables: UnwindTables,
}

impl UnwindFiles {
    /// The code that a process has mapped now, with the tables of its files.
    pub(super) fn code(&mut self, target: &Target) -> MappedCode {
        let mut unwind = Vec::new();
        let mapped_code = target.code();
        self.is_cut |= mapped_code.is_cut;
        for mapped in &mapped_code.files {
            let (bytes, unread) = (&mut self.bytes, &mut self.unread);
            let read = self.read.entry(mapped.identity).or_insert_with(|| {
                let file = (*bytes < MAX_BYTES).then(|| target.open_code(mapped)).flatten();
                *unread += usize::from(file.is_none());
                let code = CodeFile::new(file?)?;
                let table = code.unwind_table()?;
                *bytes += table.bytes.len();
                let tables = UnwindTables::new(table.address, table.bytes)?;
                Some(UnwindFile { addresses: code.into_addresses(), tables })
            });
            let Some(UnwindFile { addresses, tables }) = read else { continue };
            let with_tables = |mapping: &CodeMapping| {
                let (address, tables) = (addresses.of_offset(mapping.offset)?, tables.clone());
                Some(UnwindMapping { range: mapping.start..mapping.end, address, tables })
            };
            unwind.extend(mapped.mappings.iter().filter_map(with_tables));
        }
        MappedCode { ranges: mapped_code.ranges, unwind }
    }
}
