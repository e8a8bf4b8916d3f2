//! Finds callers in a copy of a stack by the unwind tables (`.eh_frame`) of the code that a process has mapped.
//! Programs without frame pointers need this.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use framehop::{
    CacheNative, ExplicitModuleSectionInfo, FrameAddress, MayAllocateDuringUnwind, Module,
    Unwinder, UnwinderNative,
};
use gimli::{
    BaseAddresses, CallFrameInstruction, CallFrameInstructionIter, CieOrFde,
    CommonInformationEntry, EhFrame, EndianSlice, LittleEndian, Operation, UnwindExpression,
    UnwindSection,
};

use crate::perf::MAX_ADDRESSES;
use crate::records::u64_at;
use crate::stack_registers::{StackRegisters, interrupted};

/// The largest number of instructions of an entry of a table. An entry is read for each stack that it unwinds.
const MAX_INSTRUCTIONS: usize = 10_000;
/// The largest size of an entry in bytes.
const MAX_ENTRY_BYTES: usize = 1 << 20;
/// The longest time for the check of a table. A table of 10 MiB takes 0.1 s.
const MAX_CHECK_TIME: Duration = Duration::from_secs(5);

type Bytes = Arc<[u8]>;
type TableSlice<'a> = EndianSlice<'a, LittleEndian>;

/// The checked unwind tables of a file.
#[derive(Debug, Clone)]
pub struct UnwindTables {
    address: u64,
    bytes: Bytes,
    /// Addresses to which handlers of signals return. An unwinder does not step over their entries.
    trampolines: Arc<[Range<u64>]>,
}

impl UnwindTables {
    /// Checks the section `.eh_frame` of a file, which the file maps to `address`. `None` if it is damaged, or
    /// if reading an entry could take long: because of an expression with a branch, which may be a loop, or too
    /// many instructions or bytes. Compilers write no such entries.
    pub fn new(address: u64, bytes: Vec<u8>) -> Option<Self> {
        address.checked_add(bytes.len() as u64)?;
        let trampolines = checked(&bytes, address).ok()??.into();
        Some(Self { address, bytes: bytes.into(), trampolines })
    }
}

/// The code to which handlers of signals return. `None` unless every entry of the table can be read
/// in bounded time.
fn checked(bytes: &[u8], address: u64) -> gimli::Result<Option<Vec<Range<u64>>>> {
    let section = EhFrame::new(bytes, LittleEndian);
    let bases = BaseAddresses::default().set_eh_frame(address);
    let begin = Instant::now();
    let mut entries = section.entries(&bases);
    let mut trampolines = Vec::new();
    while let Some(entry) = entries.next()? {
        let common = |cie: &CommonInformationEntry<TableSlice<'_>>| -> gimli::Result<bool> {
            Ok(cie.entry_len() <= MAX_ENTRY_BYTES
                && are_bounded(&section, cie.encoding(), cie.instructions(&section, &bases))?)
        };
        let bounded = match entry {
            CieOrFde::Cie(cie) => common(&cie)?,
            CieOrFde::Fde(partial) => {
                let fde = partial.parse(EhFrame::cie_from_offset)?;
                let encoding = fde.cie().encoding();
                if cfg!(target_arch = "x86_64") && fde.is_signal_trampoline() {
                    trampolines.push(fde.initial_address()..fde.end_address());
                }
                // Its common entry is not necessarily among the entries.
                fde.entry_len() <= MAX_ENTRY_BYTES
                    && common(fde.cie())?
                    && are_bounded(&section, encoding, fde.instructions(&section, &bases))?
            }
        };
        if !bounded || begin.elapsed() > MAX_CHECK_TIME {
            return Ok(None);
        }
    }
    Ok(Some(trampolines))
}

fn are_bounded(
    section: &EhFrame<TableSlice<'_>>,
    encoding: gimli::Encoding,
    mut instructions: CallFrameInstructionIter<'_, TableSlice<'_>>,
) -> gimli::Result<bool> {
    let branches = |expression: UnwindExpression<usize>| -> gimli::Result<bool> {
        let mut operations = expression.get(section)?.operations(encoding);
        while let Some(operation) = operations.next()? {
            if matches!(operation, Operation::Bra { .. } | Operation::Skip { .. }) {
                return Ok(true);
            }
        }
        Ok(false)
    };
    let mut count = 0;
    while let Some(instruction) = instructions.next()? {
        count += 1;
        let branches = match instruction {
            CallFrameInstruction::DefCfaExpression { expression }
            | CallFrameInstruction::Expression { expression, .. }
            | CallFrameInstruction::ValExpression { expression, .. } => branches(expression)?,
            _ => false,
        };
        if branches || count > MAX_INSTRUCTIONS {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The code that a process has mapped.
#[derive(Debug, Clone, Default)]
pub struct MappedCode {
    /// The addresses of all code of the process.
    pub ranges: Vec<Range<u64>>,
    /// The code of files with unwind tables.
    pub unwind: Vec<UnwindMapping>,
}

/// Code that a process has mapped from a file with unwind tables.
#[derive(Debug, Clone)]
pub struct UnwindMapping {
    /// The addresses in the process.
    pub range: Range<u64>,
    /// The address that the file assigns to the first of them.
    pub address: u64,
    /// The tables of the file.
    pub tables: UnwindTables,
}

/// Unwinds the stacks of a process. One thread sets its mappings, another unwinds.
#[derive(Default)]
pub struct StackUnwinder(Mutex<UnwinderState>);

#[derive(Default)]
struct UnwinderState {
    /// Sorted.
    code: Vec<Range<u64>>,
    /// Sorted.
    trampolines: Vec<Range<u64>>,
    unwinder: UnwinderNative<Bytes, MayAllocateDuringUnwind>,
    cache: CacheNative<MayAllocateDuringUnwind>,
}

impl std::fmt::Debug for StackUnwinder {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("StackUnwinder").finish_non_exhaustive()
    }
}

impl StackUnwinder {
    /// Sets the mappings of the process.
    pub fn set_code(&self, code: MappedCode) {
        let MappedCode { mut ranges, unwind } = code;
        ranges.sort_unstable_by_key(|range| range.start);
        let (mut unwinder, mut trampolines) = (UnwinderNative::new(), Vec::new());
        for UnwindMapping { range, address, tables } in unwind {
            let size = tables.bytes.len() as u64;
            let moved = |at: u64| range.start.wrapping_add(at.wrapping_sub(address));
            let mapped = tables.trampolines.iter().map(|it| moved(it.start)..moved(it.end));
            trampolines.extend(mapped.filter(|it| range.start <= it.start && it.end <= range.end));
            let sections = ExplicitModuleSectionInfo {
                base_svma: address,
                eh_frame_svma: Some(tables.address..tables.address.saturating_add(size)),
                eh_frame: Some(tables.bytes),
                ..Default::default()
            };
            let start = range.start;
            unwinder.add_module(Module::new(String::new(), range, start, sections));
        }
        trampolines.sort_unstable_by_key(|range| range.start);
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // The cache notices that the unwinder has changed.
        (state.code, state.trampolines, state.unwinder) = (ranges, trampolines, unwinder);
    }

    /// The stack of a thread, the innermost function first: the number of addresses, and the addresses. `copy`
    /// is the end of a record: registers, and the copy of the stack. `None` if the record has none.
    pub(crate) fn unwind(&self, copy: &[u8]) -> Option<(u8, [u64; MAX_ADDRESSES])> {
        let (registers, stack) = StackRegisters::of_record(copy)?;
        let begin = registers.stack_pointer();
        let mut read = |address: u64| {
            let at = address.checked_sub(begin).and_then(|at| usize::try_from(at).ok());
            at.and_then(|at| u64_at(stack, at)).ok_or(())
        };
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let UnwinderState { code, trampolines, unwinder, cache } = &mut *state;
        let (mut depth, mut addresses) = (0, [0; MAX_ADDRESSES]);
        let mut values = registers.native();
        let mut frame = FrameAddress::from_instruction_pointer(registers.code);
        for place in &mut addresses {
            let address = frame.address_for_lookup();
            // Without a table, the next address is a guess.
            if depth > 0 && !is_among(code, address) {
                break;
            }
            *place = address;
            depth += 1;
            let next = if is_among(trampolines, address) {
                interrupted(&mut values, &mut read).map(FrameAddress::from_instruction_pointer)
            } else {
                // The copy of the stack may end within a function.
                let caller = unwinder.unwind_frame(frame, &mut values, cache, &mut read);
                caller.ok().flatten().and_then(FrameAddress::from_return_address)
            };
            let Some(next) = next else { break };
            frame = next;
        }
        Some((depth, addresses))
    }
}

/// Whether one of these sorted ranges has the address.
fn is_among(ranges: &[Range<u64>], address: u64) -> bool {
    let behind = ranges.partition_point(|range| range.start <= address);
    ranges[..behind].last().is_some_and(|range| address < range.end)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TABLE_AT: u64 = 0x5000;
    const CODE_AT: u64 = 0x1000;
    const DEF_CFA_EXPRESSION: u8 = 0x0f;
    const SKIP: u8 = 0x2f;
    const BREG7: u8 = 0x77;

    /// An entry: its length, `head`, and `instructions`.
    fn entry(head: &[u8], instructions: &[u8]) -> Vec<u8> {
        let mut content = [head, instructions].concat();
        content.resize(content.len().next_multiple_of(8) + 4, 0);
        [&(content.len() as u32).to_le_bytes()[..], &content].concat()
    }

    /// A table of one function at [`CODE_AT`], of 256 bytes.
    fn table(instructions: &[u8]) -> Vec<u8> {
        table_of(b"", instructions)
    }

    /// The same with letters that augment its common entry.
    fn table_of(letters: &[u8], instructions: &[u8]) -> Vec<u8> {
        // The caller's stack begins 8 bytes higher, after the return address.
        let common = [&[0, 0, 0, 0, 1], letters, &[0, 1, 0x78, 16, 0x0c, 7, 8, 0x90, 1]].concat();
        let mut all = entry(&common, &[]);
        let back = (all.len() + 4) as u32;
        let mut head = back.to_le_bytes().to_vec();
        head.extend(CODE_AT.to_le_bytes());
        head.extend(256u64.to_le_bytes());
        all.extend(entry(&head, instructions));
        all.extend([0; 4]);
        all
    }

    fn unwinder(bytes: Vec<u8>) -> Option<StackUnwinder> {
        let tables = UnwindTables::new(TABLE_AT, bytes)?;
        let unwinder = StackUnwinder::default();
        let range = 0x7000_0000_1000..0x7000_0000_1100;
        let unwind = vec![UnwindMapping { range: range.clone(), address: CODE_AT, tables }];
        unwinder.set_code(MappedCode { ranges: vec![range], unwind });
        Some(unwinder)
    }

    /// The end of a record of a thread at `code` with this stack.
    #[cfg(target_arch = "x86_64")]
    fn copy(code: u64, stack: &[u64]) -> Vec<u8> {
        let len = 8 * stack.len() as u64;
        let words = [&[2, 0x9000, 0x8000, code, len][..], stack, &[len]].concat();
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn callers_are_found_by_the_table() {
        let code = 0x7000_0000_1010;
        let found = |instructions: &[u8], stack: &[u64]| {
            let (depth, addresses) =
                unwinder(table(instructions)).unwrap().unwind(&copy(code, stack)).unwrap();
            addresses[..usize::from(depth)].to_vec()
        };
        assert_eq!(found(&[], &[code + 0x21, code + 0x42, 5, 6]), [code, code + 0x20, code + 0x41]);
        // At 16 bytes in, the function has 16 bytes more on the stack: DW_CFA_advance_loc,
        // DW_CFA_def_cfa_offset.
        let stack = [1, 2, code + 0x21, 0, 0];
        assert_eq!(found(&[0x50, 0x0e, 24], &stack)[..2], [code, code + 0x20]);
        // An expression without a branch: 16 bytes above the stack pointer.
        let expression = [DEF_CFA_EXPRESSION, 2, BREG7, 16];
        assert_eq!(found(&expression, &[1, code + 0x21, 2])[..2], [code, code + 0x20]);
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn what_a_signal_interrupted_is_found() {
        let code = 0x7000_0000_1010;
        // Two handlers, one inside of the other. The copy begins at 0x8000.
        let mut stack = [0; 60];
        (stack[20], stack[21]) = (0x8000 + 8 * 30, code + 0x30);
        (stack[50], stack[51]) = (0x9000, code + 0x50);
        let unwinder = unwinder(table_of(b"S", &[])).unwrap();
        let (depth, addresses) = unwinder.unwind(&copy(code, &stack)).unwrap();
        assert_eq!(addresses[..usize::from(depth)], [code, code + 0x30, code + 0x50]);
    }

    #[test]
    fn tables_that_never_end_are_refused() {
        let forever = [DEF_CFA_EXPRESSION, 3, SKIP, 0xfd, 0xff];
        assert!(unwinder(table(&forever)).is_none());
        assert!(unwinder(table(&vec![0x0a; 2 * MAX_INSTRUCTIONS])).is_none());
        // One instruction of many bytes: DW_CFA_def_cfa_expression with DW_OP_nop.
        let long = MAX_ENTRY_BYTES as u32;
        let mut nothing = vec![DEF_CFA_EXPRESSION];
        nothing.extend([long as u8 | 0x80, (long >> 7) as u8 | 0x80, (long >> 14) as u8]);
        nothing.resize(nothing.len() + MAX_ENTRY_BYTES, 0x96);
        assert!(unwinder(table(&nothing)).is_none());
        assert!(unwinder(table(&[])).is_some());
        assert!(UnwindTables::new(u64::MAX - 8, table(&[])).is_none());
    }

    #[test]
    fn tables_of_programs_are_read() {
        let file = std::fs::read("/proc/self/exe").unwrap();
        let at = |offset: usize| u64_at(&file, offset).unwrap();
        let (sections, count) = (at(40) as usize, usize::from(u16_at(60, &file)));
        let section = |number: usize| sections + 64 * number;
        let names = at(section(usize::from(u16_at(62, &file))) + 24) as usize;
        let is_it = |number: &usize| {
            let name = names + at(section(*number)) as u32 as usize;
            file[name..].starts_with(b".eh_frame\0")
        };
        let found = section((0..count).find(is_it).unwrap());
        let (address, offset, size) = (at(found + 16), at(found + 24), at(found + 32));
        let bytes = file[offset as usize..][..size as usize].to_vec();
        assert!(bytes.len() > 10_000);
        assert!(UnwindTables::new(address, bytes).is_some());
    }

    fn u16_at(offset: usize, bytes: &[u8]) -> u16 {
        crate::records::u16_at(bytes, offset).unwrap()
    }

    proptest! {
        #[test]
        fn no_bytes_upset_it(
            instructions in prop::collection::vec(any::<u8>(), 0..40),
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
            code in 0u64..0x120,
            stack in prop::collection::vec(any::<u64>(), 0..20),
        ) {
            let mut bytes = table(&instructions);
            for (place, value) in changes {
                let at = place.index(bytes.len());
                bytes[at] = value;
            }
            if let Some(unwinder) = unwinder(bytes) {
                let words: Vec<u64> = [2, 0x9000, 0x8000, 0x7000_0000_1000 + code]
                    .into_iter()
                    .chain([8 * stack.len() as u64])
                    .chain(stack.iter().copied())
                    .chain([8 * stack.len() as u64])
                    .collect();
                let copy: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
                if let Some((depth, _)) = unwinder.unwind(&copy) {
                    assert!(usize::from(depth) <= MAX_ADDRESSES);
                }
            }
        }
    }
}
