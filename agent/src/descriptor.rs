//! Reads an address that may hold a descriptor, and checks it before it is trusted.

use ppt_frame_dsl::Schema;
use ppt_segment::abi::{self, Descriptor, PAGE};

use crate::budget::Budget;
use crate::buffer::{Buffer, DESCRIPTOR_BYTES, FoundBy};
use crate::escape::escaped;
use crate::mapping::Mapping;
use crate::memory::ProcessMemory;

/// Longest schema text that is read from a target.
const SCHEMA_LIMIT: u64 = 1 << 20;
/// The charge for each byte of a schema that is read. Parsing a byte takes longer than searching it
/// for a magic.
const SCHEMA_COST: u64 = 16;

/// An address to check.
pub(crate) struct Candidate<'a> {
    pub(crate) address: u64,
    /// Path of the object that it lies in, and its build id.
    pub(crate) object: &'a str,
    pub(crate) build_id: &'a str,
    /// The way in which the address was found.
    pub(crate) found_by: FoundBy,
}

/// The result of the check of an address.
pub(crate) enum Checked {
    Believed(Box<Buffer>),
    /// Claims to be a descriptor but failed a check; the reason.
    Refused(String),
    /// Nothing, or only a copy of a descriptor.
    Nothing,
}

/// Reads and checks a descriptor.
pub(crate) fn check(
    memory: &ProcessMemory,
    mappings: &[Mapping],
    candidate: Candidate,
    budget: &mut Budget,
) -> Checked {
    match believed(memory, mappings, candidate, budget) {
        Ok(Some(buffer)) => Checked::Believed(Box::new(buffer)),
        Ok(None) => Checked::Nothing,
        Err(failed) => Checked::Refused(failed),
    }
}

fn believed(
    memory: &ProcessMemory,
    mappings: &[Mapping],
    Candidate { address, object, build_id, found_by }: Candidate,
    budget: &mut Budget,
) -> std::result::Result<Option<Buffer>, String> {
    let mut bytes = [0; DESCRIPTOR_BYTES];
    if !address.is_multiple_of(8) || !memory.read_exact(address, &mut bytes).unwrap_or(false) {
        return Ok(None);
    }
    let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    let half = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    let field = std::mem::offset_of!(Descriptor, self_address);
    if bytes[..16] != abi::DESCRIPTOR_MAGIC || word(field) != address {
        return Ok(None);
    }
    if !inside(mappings, address, DESCRIPTOR_BYTES as u64, |mapping| {
        mapping.is_private && !mapping.is_stack
    }) {
        return Err("its descriptor is not in a private mapping".into());
    }
    let version = half(std::mem::offset_of!(Descriptor, abi_version));
    if version != abi::ABI_VERSION {
        let age = if version > abi::ABI_VERSION { "newer" } else { "unknown" };
        return Err(format!(
            "it was built for ppt ABI {version}, which is {age}; this ppt knows ABI {}: use \
             the ppt that came with its pptc",
            abi::ABI_VERSION
        ));
    }
    let hash = word(std::mem::offset_of!(Descriptor, schema_hash));
    let schema_address = word(std::mem::offset_of!(Descriptor, schema_address));
    let schema_length = word(std::mem::offset_of!(Descriptor, schema_length));
    if schema_length == 0 || schema_length > SCHEMA_LIMIT {
        return Err(format!("its schema claims to be {schema_length} bytes long"));
    }
    if !budget.memory.take_all(schema_length * SCHEMA_COST) {
        return Err("its schema was not read: the search has cost too much already".into());
    }
    let mut json = vec![0; schema_length as usize];
    if !memory.read_exact(schema_address, &mut json).unwrap_or(false) {
        return Err("its schema points out of its memory".into());
    }
    let schema = Schema::from_json(&json)
        .map_err(|error| format!("its schema is not valid: {}", escaped(&error.to_string())))?;
    if schema.hash() != hash {
        return Err("its schema does not have the hash that its descriptor states".into());
    }
    if half(std::mem::offset_of!(Descriptor, stride)) != schema.stride {
        return Err("its stride is not that of its schema".into());
    }
    let cells = schema.cells();
    if cells > 0 && word(std::mem::offset_of!(Descriptor, cells)) != u64::from(cells) {
        return Err("its counters are not those of its schema".into());
    }
    let control = word(std::mem::offset_of!(Descriptor, control_address));
    // Not by `PAGE`: where the kernel's pages are smaller, valgrind and the loaders of musl and of
    // glibc before 2.35 align to the kernel's pages. The control page is still alone in its pages.
    if !control.is_multiple_of(procfs::page_size()) {
        return Err("its control page is misaligned".into());
    }
    if let Some(where_it_is) = unfit(mappings, control) {
        return Err(format!("its control page is {where_it_is}"));
    }
    Ok(Some(Buffer {
        name: String::new(),
        schema,
        schema_json: json,
        schema_hash: hash,
        object: escaped(object),
        build_id: build_id.into(),
        found_by,
        address,
        control,
        descriptor: bytes,
    }))
}

/// The reason why a page cannot be a control page. `None` if it can be one.
fn unfit(mappings: &[Mapping], page: u64) -> Option<&'static str> {
    let mut unfit = Some("not mapped");
    let fits = |mapping: &Mapping| {
        unfit = match mapping {
            _ if !mapping.is_private => Some("in shared memory"),
            _ if mapping.is_stack => Some("on a stack"),
            _ if !mapping.is_readable || !mapping.is_writable => Some("not writable"),
            _ => None,
        };
        unfit.is_none()
    };
    if inside(mappings, page, PAGE, fits) { None } else { unfit.or(Some("not mapped")) }
}

fn inside(
    mappings: &[Mapping],
    address: u64,
    length: u64,
    mut rule: impl FnMut(&Mapping) -> bool,
) -> bool {
    // A range may cross several mappings: an object's data, and pages that a fault handler or
    // mprotect(2) has split off.
    let mut at = address;
    let Some(end) = address.checked_add(length) else { return false };
    while at < end {
        match mappings.iter().find(|mapping| mapping.contains(at, 1)) {
            Some(mapping) if rule(mapping) => at = mapping.end,
            _ => return false,
        }
    }
    true
}
