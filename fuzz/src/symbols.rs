//! What names are read from: ELF files, maps of JIT code, mangled names.

use ppt_symbols::{FunctionTable, demangled, function_part, functions_of, functions_of_map};

/// The same bytes as each of them.
pub(crate) fn symbols(input: &[u8]) {
    look(&functions_of(input));
    look(&functions_of_map(input.to_vec()));
    for name in input.split(|&byte| byte == b'\n' || byte == 0).take(64) {
        let name = demangled(name);
        assert!(name.len() <= 3 * ppt_symbols::limits::NAME_BYTES);
        assert!(function_part(&name).len() <= name.len());
    }
}

/// Looks for functions at places that they may have, and at the ends of the address space.
fn look(functions: &FunctionTable) {
    let places = (0..64).flat_map(|bit| [1u64 << bit, (1u64 << bit) - 1]);
    for address in places.chain([u64::MAX]).chain((0..4096).map(|number| number * 16)) {
        if let Some((name, offset)) = functions.find(address) {
            assert!(name.len() <= ppt_symbols::limits::NAME_BYTES && offset <= address);
        }
    }
}
