//! Limits of memory and work, for any captures and files.

/// Most bytes that are read of one symbol table, and of its string table.
pub const TABLE_BYTES: u64 = 256 << 20;
/// Most bytes of headers and notes that are read at a time.
pub const HEADER_BYTES: u64 = 4 << 20;
/// Most bytes of the unwind table of one file.
pub const UNWIND_BYTES: u64 = 64 << 20;
/// Most functions of one file.
pub const FUNCTIONS: usize = 4 << 20;
/// Most bytes of one name, before and after demangling. A longer name stays mangled, and is cut.
pub const NAME_BYTES: usize = 4096;
/// Most bytes that the tables of all files take together. Further files are not loaded.
pub const ALL_TABLES_BYTES: usize = 1 << 30;
/// Most bytes of a map of JIT code.
pub const PERF_MAP_BYTES: u64 = 64 << 20;
/// Most names that are kept of one program. Beyond that, all are discarded.
pub const NAMES: usize = 1 << 20;
/// Most remarks that are kept.
pub const REMARKS: usize = 1000;
/// Most notes of USDT probes that are read of one file.
pub const USDT_NOTES: usize = 1 << 16;
