//! Names the addresses of one process, again and again.

use std::borrow::Cow;
use std::sync::Arc;

use crate::program::Program;

/// Names that are at hand, a power of two.
const AT_HAND: usize = 1024;

/// Names the addresses of one process. Programs use few addresses again and again, so most names are at
/// hand: then a name costs a few nanoseconds, without a lock.
#[derive(Debug)]
pub struct Namer {
    program: Arc<Program>,
    /// The set of modules that holds.
    set: usize,
    /// By a hash of the address. Made when the first address comes.
    at_hand: Vec<Option<(u64, Arc<str>)>>,
}

impl Namer {
    pub(crate) fn new(program: Arc<Program>) -> Namer {
        Namer { program, set: 0, at_hand: Vec::new() }
    }

    /// Addresses that come next are of `mono_ns` of CLOCK_MONOTONIC, more or less: modules come and go.
    pub fn at(&mut self, mono_ns: u64) {
        let set = self.program.set_at(mono_ns);
        if set != self.set {
            self.set = set;
            self.at_hand.clear();
        }
    }

    /// The name of an address, or None for 0, which is no address:
    ///
    /// * `processCommand+0x12 (redis-server)`: a function, the place in it, and the module,
    /// * `redis-server+0x4f2c1`: a module, and what its file calls the address,
    /// * `0x7f0012345678`: no module has it.
    ///
    /// The text comes from files of others, so escape it before you show it.
    #[inline]
    pub fn name(&mut self, address: u64) -> Option<&Arc<str>> {
        if address == 0 {
            return None;
        }
        if self.at_hand.is_empty() {
            self.at_hand.resize(AT_HAND, None);
        }
        // Fibonacci hashing: the multiplication mixes the low bits into the high ones.
        let hash = address.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - AT_HAND.ilog2());
        let slot = &mut self.at_hand[hash as usize];
        if !slot.as_ref().is_some_and(|known| known.0 == address) {
            *slot = Some((address, self.program.name(self.set, address)));
        }
        slot.as_ref().map(|known| &known.1)
    }
}

/// The function or the module of a name, without the place in it:
/// `processCommand+0x12 (redis-server)` → `processCommand (redis-server)`.
pub fn function_part(name: &str) -> Cow<'_, str> {
    let module = if name.ends_with(')') { name.rfind(" (") } else { None };
    let (place, module) = name.split_at(module.unwrap_or(name.len()));
    let Some((function, offset)) = place.rsplit_once("+0x") else { return name.into() };
    if offset.is_empty() || !offset.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return name.into();
    }
    if module.is_empty() { function.into() } else { format!("{function}{module}").into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_is_its_name_without_the_place() {
        for (name, function) in [
            ("processCommand+0x12 (redis-server)", "processCommand (redis-server)"),
            ("processCommand (redis-server)", "processCommand (redis-server)"),
            ("redis-server+0x4f2c1", "redis-server"),
            ("0x7f0012345678", "0x7f0012345678"),
            ("operator+(int, int)+0x4 (a.out)", "operator+(int, int) (a.out)"),
            ("odd+0x (a.out)", "odd+0x (a.out)"),
            ("odd+0xyz (a.out)", "odd+0xyz (a.out)"),
            ("f (int)", "f (int)"),
            ("", ""),
        ] {
            assert_eq!(function_part(name), function);
        }
    }
}
