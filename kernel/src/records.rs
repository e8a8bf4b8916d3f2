//! The parser of the records of a perf ring. Unknown and malformed records are skipped.

use perf_event_open_sys::bindings as sys;

/// A record of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Record<'a> {
    pub time: u64,
    /// The number of the event.
    pub id: u64,
    /// The process that ran, by its number in ppt's pid namespace.
    pub pid: i32,
    /// The thread that ran, likewise.
    pub tid: i32,
    pub cpu: u32,
    pub content: Content<'a>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Content<'a> {
    /// The thread got a CPU.
    In,
    /// The thread lost its CPU.
    Out { preempted: bool },
    /// A thread was made by `parent`.
    Fork { pid: i32, tid: i32, parent: i32 },
    /// A thread ended.
    Exit { tid: i32 },
    /// This many records were lost before this one.
    Lost(u64),
    /// A counted event. `raw` is empty except for tracepoints.
    Sample { address: u64, raw: &'a [u8] },
    /// A counted event with a stack.
    Stack {
        /// The kernel worked for the program.
        in_kernel: bool,
        chain: &'a [u8],
        /// Registers and a copy of the stack; empty if the event takes none.
        copy: &'a [u8],
    },
    /// A counted event with the values of the event's registers.
    Registers(&'a [u8]),
}

/// The data at the end of the samples of a ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SampleEnd {
    Raw,
    Stack,
    Registers,
}

/// The size of the header: type, flags, length.
const HEADER: usize = 8;
/// The size of the end of records other than samples: pid, tid, time, CPU, a reserved word, id.
const TRAILER: usize = 32;

/// The records in `bytes`, up to one of impossible length.
pub(crate) fn records(bytes: &[u8]) -> impl Iterator<Item = Record<'_>> {
    records_that_end(bytes, SampleEnd::Raw)
}

/// The records of a ring whose samples have stacks.
pub(crate) fn stack_records(bytes: &[u8]) -> impl Iterator<Item = Record<'_>> {
    records_that_end(bytes, SampleEnd::Stack)
}

/// The records of a ring whose samples have registers.
pub(crate) fn register_records(bytes: &[u8]) -> impl Iterator<Item = Record<'_>> {
    records_that_end(bytes, SampleEnd::Registers)
}

fn records_that_end(mut bytes: &[u8], end: SampleEnd) -> impl Iterator<Item = Record<'_>> {
    std::iter::from_fn(move || {
        loop {
            let len = usize::from(u16_at(bytes, 6)?);
            let record = bytes.get(..len).filter(|_| len >= HEADER)?;
            bytes = &bytes[len..];
            if let Some(record) = parse(record, end) {
                return Some(record);
            }
        }
    })
}

fn parse(record: &[u8], end: SampleEnd) -> Option<Record<'_>> {
    let (kind, flags) = (u32_at(record, 0)?, u32::from(u16_at(record, 4)?));
    let body = &record[HEADER..];
    if kind == sys::PERF_RECORD_SAMPLE {
        let content = match end {
            SampleEnd::Stack => {
                let bytes = usize::try_from(u64_at(body, 40)?).ok()?.checked_mul(8)?;
                let mode = flags & sys::PERF_RECORD_MISC_CPUMODE_MASK;
                let (chain, copy) = body.get(48..)?.split_at_checked(bytes)?;
                let in_kernel = mode == sys::PERF_RECORD_MISC_KERNEL;
                Content::Stack { in_kernel, chain, copy }
            }
            // The first word is the ABI of the registers; 0 means none.
            SampleEnd::Registers => match u64_at(body, 40)? {
                0 => return None,
                _ => Content::Registers(body.get(48..)?),
            },
            SampleEnd::Raw => {
                let raw = match u32_at(body, 40) {
                    Some(len) => body.get(44..44 + len as usize)?,
                    None => &[],
                };
                Content::Sample { address: u64_at(body, 24)?, raw }
            }
        };
        return Some(Record {
            id: u64_at(body, 0)?,
            pid: u32_at(body, 8)? as i32,
            tid: u32_at(body, 12)? as i32,
            time: u64_at(body, 16)?,
            cpu: u32_at(body, 32)?,
            content,
        });
    }
    let content = match kind {
        sys::PERF_RECORD_SWITCH | sys::PERF_RECORD_SWITCH_CPU_WIDE
            if flags & sys::PERF_RECORD_MISC_SWITCH_OUT == 0 =>
        {
            Content::In
        }
        sys::PERF_RECORD_SWITCH | sys::PERF_RECORD_SWITCH_CPU_WIDE => {
            Content::Out { preempted: flags & sys::PERF_RECORD_MISC_SWITCH_OUT_PREEMPT != 0 }
        }
        sys::PERF_RECORD_FORK => Content::Fork {
            pid: u32_at(body, 0)? as i32,
            tid: u32_at(body, 8)? as i32,
            parent: u32_at(body, 12)? as i32,
        },
        sys::PERF_RECORD_EXIT => Content::Exit { tid: u32_at(body, 8)? as i32 },
        sys::PERF_RECORD_LOST => Content::Lost(u64_at(body, 8)?),
        _ => return None,
    };
    let trailer = &body[body.len().checked_sub(TRAILER)?..];
    Some(Record {
        pid: u32_at(trailer, 0)? as i32,
        tid: u32_at(trailer, 4)? as i32,
        time: u64_at(trailer, 8)?,
        cpu: u32_at(trailer, 16)?,
        id: u64_at(trailer, 24)?,
        content,
    })
}

pub(crate) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

pub(crate) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn record(kind: u32, flags: u16, body: &[u8]) -> Vec<u8> {
        let mut bytes = kind.to_ne_bytes().to_vec();
        bytes.extend(flags.to_ne_bytes());
        bytes.extend(((HEADER + body.len()) as u16).to_ne_bytes());
        bytes.extend(body);
        bytes
    }

    fn trailer(pid: u32, tid: u32, time: u64, cpu: u32, id: u64) -> Vec<u8> {
        let words = [u64::from(tid) << 32 | u64::from(pid), time, cpu.into(), id];
        words.iter().flat_map(|number| number.to_ne_bytes()).collect()
    }

    #[test]
    fn what_is_known_is_read_and_the_rest_skipped() {
        let out =
            (sys::PERF_RECORD_MISC_SWITCH_OUT | sys::PERF_RECORD_MISC_SWITCH_OUT_PREEMPT) as u16;
        let mut bytes = record(sys::PERF_RECORD_SWITCH, 0, &trailer(7, 8, 900, 1, 55));
        bytes.extend(record(sys::PERF_RECORD_COMM, 0, &[0; 48]));
        bytes.extend(record(sys::PERF_RECORD_SWITCH, out, &trailer(7, 8, 950, 1, 55)));
        let lost: Vec<u8> = [55u64, 12]
            .iter()
            .flat_map(|number| number.to_ne_bytes())
            .chain(trailer(7, 9, 960, 0, 55))
            .collect();
        bytes.extend(record(sys::PERF_RECORD_LOST, 0, &lost));
        let mut sample = Vec::new();
        for word in [77, 9 << 32 | 7, 970, 0xbad, 2] {
            sample.extend(u64::to_ne_bytes(word));
        }
        bytes.extend(record(sys::PERF_RECORD_SAMPLE, 0, &sample));
        sample.extend(4u32.to_ne_bytes());
        sample.extend(b"rawb");
        bytes.extend(record(sys::PERF_RECORD_SAMPLE, 0, &sample));
        let found: Vec<_> = records(&bytes).collect();
        let at = |time, tid, cpu, id, content| Record { time, id, pid: 7, tid, cpu, content };
        let expected = [
            at(900, 8, 1, 55, Content::In),
            at(950, 8, 1, 55, Content::Out { preempted: true }),
            at(960, 9, 0, 55, Content::Lost(12)),
            at(970, 9, 2, 77, Content::Sample { address: 0xbad, raw: &[] }),
            at(970, 9, 2, 77, Content::Sample { address: 0xbad, raw: b"rawb" }),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_stack_is_a_count_and_as_many_addresses() {
        let sample = |count: u64, addresses: &[u64]| {
            let words = [77, 9 << 32 | 7, 970, 0, 2, count];
            let words = words.iter().chain(addresses);
            words.flat_map(|word| word.to_ne_bytes()).collect::<Vec<u8>>()
        };
        let kernel = sys::PERF_RECORD_MISC_KERNEL as u16;
        let user = sys::PERF_RECORD_MISC_USER as u16;
        let mut bytes = record(sys::PERF_RECORD_SAMPLE, kernel, &sample(2, &[5, 6]));
        bytes.extend(record(sys::PERF_RECORD_SAMPLE, user, &sample(0, &[])));
        bytes.extend(record(sys::PERF_RECORD_SAMPLE, user, &sample(0, &[9])));
        // More addresses than the record has, and more than any could have.
        bytes.extend(record(sys::PERF_RECORD_SAMPLE, user, &sample(3, &[5, 6])));
        bytes.extend(record(sys::PERF_RECORD_SAMPLE, user, &sample(u64::MAX, &[5, 6])));
        let found: Vec<_> = stack_records(&bytes).map(|found| found.content).collect();
        let chain: Vec<u8> = [5u64, 6].iter().flat_map(|word| word.to_ne_bytes()).collect();
        let expected = [
            Content::Stack { in_kernel: true, chain: &chain, copy: &[] },
            Content::Stack { in_kernel: false, chain: &[], copy: &[] },
            Content::Stack { in_kernel: false, chain: &[], copy: &9u64.to_ne_bytes() },
        ];
        assert_eq!(found, expected);
    }

    proptest! {
        #[test]
        fn nothing_upsets_it(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            assert!(records(&bytes).count() <= bytes.len() / HEADER);
            assert!(stack_records(&bytes).count() <= bytes.len() / HEADER);
        }

        #[test]
        fn nor_do_records_of_strange_content(
            all in prop::collection::vec((0u32..20, any::<u16>(), prop::collection::vec(any::<u8>(), 0..90)), 0..20),
        ) {
            let bytes: Vec<u8> = all.iter().flat_map(|(kind, flags, body)| record(*kind, *flags, body)).collect();
            assert!(records(&bytes).count() <= all.len());
            assert!(stack_records(&bytes).count() <= all.len());
            assert!(register_records(&bytes).count() <= all.len());
        }
    }
}
