//! Threads chunks: the names of threads during the capture.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::bytes::{get, put, put_u32, put_u64, u32_at, u64_at};
use crate::error::DamageKind;
use crate::format::threads::{self, entry};

/// Names of threads of one process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ThreadNames {
    /// A source of the process; a source chunk of this number comes first.
    pub source: u16,
    /// Whether an earlier file states them, too.
    pub is_base: bool,
    /// The names. Each holds until a later one of the same thread.
    pub names: Vec<ThreadName>,
}

/// The name of a thread at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ThreadName {
    /// Kernel id of the thread, in the target's own pid namespace.
    pub tid: u32,
    /// CLOCK_MONOTONIC in ns when the name was read. It may have been set before.
    pub mono_ns: u64,
    /// The name as the kernel keeps it: any bytes, zero-padded.
    pub name: [u8; 16],
}

impl ThreadName {
    /// The name as text. U+FFFD replaces bytes that are not UTF-8. It comes from the target, so
    /// escape it before you show it.
    pub fn text(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(self.bytes())
    }

    /// The name without trailing zeros.
    pub fn bytes(&self) -> &[u8] {
        let end = self.name.iter().position(|&byte| byte == 0).unwrap_or(self.name.len());
        &self.name[..end]
    }
}

impl ThreadNames {
    /// Bytes of a payload with this number of names.
    pub const fn payload_len(names: usize) -> usize {
        names * entry::LEN
    }

    pub(crate) fn encode(&self, bytes: &mut [u8]) {
        put_u32(bytes, threads::COUNT, self.names.len() as u32);
        put_u32(bytes, threads::FLAGS, if self.is_base { threads::BASE } else { 0 });
    }

    pub(crate) fn payload(&self) -> Vec<u8> {
        let mut bytes = vec![0; Self::payload_len(self.names.len())];
        for (to, name) in bytes.chunks_exact_mut(entry::LEN).zip(&self.names) {
            put_u32(to, entry::TID, name.tid);
            put_u64(to, entry::MONOTONIC, name.mono_ns);
            put(to, entry::NAME, name.name);
        }
        bytes
    }

    pub(crate) fn decode(source: u16, header: &[u8], payload: &[u8]) -> Result<Self, DamageKind> {
        let count = u32_at(header, threads::COUNT) as usize;
        if payload.len() != Self::payload_len(count) {
            return Err(DamageKind::Length);
        }
        let names = payload.chunks_exact(entry::LEN).map(|from| ThreadName {
            tid: u32_at(from, entry::TID),
            mono_ns: u64_at(from, entry::MONOTONIC),
            name: get(from, entry::NAME),
        });
        let is_base = u32_at(header, threads::FLAGS) & threads::BASE != 0;
        Ok(Self { source, is_base, names: names.collect() })
    }
}

/// The identity of a process, whose pid may be reused.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProcessKey {
    /// In the listener's namespace.
    pub pid: u32,
    /// Start time in clock ticks since boot.
    pub start_ticks: u64,
}

/// The names of all threads of a capture over time.
#[derive(Debug, Clone, Default)]
pub struct ThreadTable(BTreeMap<(ProcessKey, u32), Vec<ThreadName>>);

impl ThreadTable {
    /// Adds the chunk of `process`. A name equal to the current one is ignored.
    pub fn add(&mut self, process: ProcessKey, names: &ThreadNames) {
        for name in &names.names {
            let known = self.0.entry((process, name.tid)).or_default();
            let place = known.partition_point(|before| before.mono_ns <= name.mono_ns);
            let is_same = |other: Option<&ThreadName>| {
                other.is_some_and(|thread_name| thread_name.name == name.name)
            };
            match place.checked_sub(1) {
                Some(before) if is_same(known.get(before)) => {}
                _ if is_same(known.get(place)) => known[place] = *name,
                _ => known.insert(place, *name),
            }
        }
    }

    /// The name of thread `tid` of `process` at `mono_ns` of CLOCK_MONOTONIC: the last one read
    /// before, or else the first.
    pub fn at(&self, process: ProcessKey, tid: u32, mono_ns: u64) -> Option<&ThreadName> {
        let names = self.0.get(&(process, tid))?;
        let after = names.partition_point(|name| name.mono_ns <= mono_ns);
        names.get(after.saturating_sub(1))
    }

    /// The names of each thread in chronological order; threads by process and number.
    pub fn iter(&self) -> impl Iterator<Item = (ProcessKey, &[ThreadName])> {
        self.0.iter().map(|((process, _), names)| (*process, &names[..]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(text: &[u8]) -> ThreadName {
        let mut name = [0; 16];
        name[..text.len()].copy_from_slice(text);
        ThreadName { tid: 7, mono_ns: 5, name }
    }

    #[test]
    fn a_name_is_any_bytes() {
        assert_eq!(named(b"worker").text(), "worker");
        assert_eq!(named(b"").text(), "");
        assert_eq!(named(b"a\x1b[31m\n\xff").text(), "a\u{1b}[31m\n\u{fffd}");
        assert_eq!(named(b"sixteen_of_bytes").text(), "sixteen_of_bytes");
    }

    #[test]
    fn a_payload_of_another_length_is_damage() {
        let names = ThreadNames { source: 3, is_base: true, names: vec![named(b"a"), named(b"b")] };
        let mut header = vec![0; threads::LEN];
        names.encode(&mut header);
        let payload = names.payload();
        assert_eq!(ThreadNames::decode(3, &header, &payload), Ok(names));
        for len in 0..payload.len() {
            let cut = ThreadNames::decode(3, &header, &payload[..len]);
            assert_eq!(cut, Err(DamageKind::Length), "{len}");
        }
    }

    #[test]
    fn a_name_holds_until_the_next() {
        let of = |names: &[(u64, &[u8])]| {
            let names = names.iter().map(|&(mono_ns, text)| ThreadName { mono_ns, ..named(text) });
            ThreadNames { names: names.collect(), ..ThreadNames::default() }
        };
        let life = |start_ticks| ProcessKey { pid: 1, start_ticks };
        let mut table = ThreadTable::default();
        table.add(life(1), &of(&[(10, b"a"), (20, b"b")]));
        // Another buffer of the process states the same names, at other times.
        table.add(life(1), &of(&[(9, b"a"), (12, b"a"), (21, b"b")]));
        table.add(life(2), &of(&[(15, b"other")]));
        let at = |time| table.at(life(1), 7, time).map(|name| name.text().into_owned());
        for (time, expected) in [(0, "a"), (9, "a"), (19, "a"), (20, "b"), (u64::MAX, "b")] {
            assert_eq!(at(time).as_deref(), Some(expected), "{time}");
        }
        assert_eq!(table.at(life(1), 8, 10), None);
        let all: Vec<_> = table.iter().map(|(process, names)| (process, names.len())).collect();
        assert_eq!(all, [(life(1), 2), (life(2), 1)]);
        assert_eq!(table.iter().next().unwrap().1[0].mono_ns, 9, "since when it is known");
    }
}
