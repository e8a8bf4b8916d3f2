//! Names the addresses of one process, with a cache.

use std::borrow::Cow;
use std::sync::Arc;

use crate::program::ProgramNames;

/// Smallest and largest size of the cache: powers of two.
const MIN_CACHED: usize = 256;
const MAX_CACHED: usize = 1 << 16;
/// Number of slots in which a name may be. A longer search could be made slow by chosen addresses.
const PROBES: usize = 8;

/// Names the addresses of one process. Programs use few addresses repeatedly, so most names are in
/// the cache, where a name costs a few nanoseconds and no lock.
#[derive(Debug)]
pub struct Namer {
    program: Arc<ProgramNames>,
    /// The current set of modules.
    set: usize,
    cache: NameCache,
}

/// The cache: names by address. Allocated for the first address.
#[derive(Debug, Default)]
struct NameCache {
    slots: Vec<Option<(u64, Arc<str>)>>,
    len: usize,
}

impl Namer {
    pub(crate) fn new(program: Arc<ProgramNames>) -> Namer {
        Namer { program, set: 0, cache: NameCache::default() }
    }

    /// The following addresses are from about `mono_ns` of CLOCK_MONOTONIC. This selects the
    /// modules of that time.
    pub fn at(&mut self, mono_ns: u64) {
        let set = self.program.set_at(mono_ns);
        if set != self.set {
            self.set = set;
            self.cache = NameCache::default();
        }
    }

    /// The name of an address. `None` for 0, which is no address.
    ///
    /// * `processCommand+0x12 (redis-server)`: a function, the offset in it, and the module,
    /// * `redis-server+0x4f2c1`: a module, and the address that its file assigns,
    /// * `0x7f0012345678`: not in a module.
    ///
    /// The text comes from untrusted files, so escape it before you show it.
    #[inline]
    pub fn name(&mut self, address: u64) -> Option<&Arc<str>> {
        if address == 0 {
            return None;
        }
        let slot = match self.cache.find(address) {
            Some(slot) => slot,
            None => self.cache.insert(address, self.program.name(self.set, address)),
        };
        self.cache.slots.get(slot)?.as_ref().map(|known| &known.1)
    }
}

impl NameCache {
    /// The slots in which the name of an address may be.
    #[inline]
    fn places(&self, address: u64) -> impl Iterator<Item = usize> + use<> {
        let mask = self.slots.len() - 1;
        // Fibonacci hashing: the multiplication mixes the low bits into the high ones.
        let hash = (address.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize;
        (hash..hash + PROBES).map(move |place| place & mask)
    }

    #[inline]
    fn find(&self, address: u64) -> Option<usize> {
        if self.slots.is_empty() {
            return None;
        }
        let is_it =
            |place: &usize| matches!(&self.slots[*place], Some(known) if known.0 == address);
        self.places(address).find(is_it)
    }

    /// Stores a name in a free slot, or replaces another name. Returns the slot.
    fn insert(&mut self, address: u64, name: Arc<str>) -> usize {
        if 2 * self.len >= self.slots.len() && self.slots.len() < MAX_CACHED {
            self.grow();
        }
        let free = self.places(address).find(|&place| self.slots[place].is_none());
        self.len += usize::from(free.is_some());
        let place = free.or_else(|| self.places(address).next()).unwrap_or_default();
        self.slots[place] = Some((address, name));
        place
    }

    #[cold]
    fn grow(&mut self) {
        let slots = vec![None; (4 * self.slots.len()).max(MIN_CACHED)];
        let before = std::mem::replace(self, NameCache { slots, len: 0 });
        for (address, name) in before.slots.into_iter().flatten() {
            self.insert(address, name);
        }
    }
}

/// The function or the module of a name, without the offset: `processCommand+0x12 (redis-server)` →
/// `processCommand (redis-server)`.
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
    fn names_at_hand_are_those_of_their_addresses() {
        let mut cache = NameCache::default();
        // Far more than fit, with many collisions.
        for round in 0..3u64 {
            for number in 0..200_000u64 {
                let address = if number % 2 == 0 { number << 40 } else { number + 1 };
                let slot = match cache.find(address) {
                    Some(slot) => slot,
                    None => cache.insert(address, address.to_string().into()),
                };
                let known = cache.slots[slot].as_ref().unwrap();
                assert_eq!((known.0, &*known.1), (address, &*address.to_string()), "{round}");
            }
        }
        assert!(cache.slots.len() == MAX_CACHED && cache.len <= MAX_CACHED);
    }

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
