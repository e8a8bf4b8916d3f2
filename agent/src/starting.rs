//! Programs that have just been started. Until the dynamic loader has mapped and relocated the
//! whole program, some or all of its buffers cannot be found.

use std::time::{Duration, Instant};

use goblin::elf::dynamic::DT_DEBUG;
use goblin::elf::program_header::{PT_DYNAMIC, PT_PHDR};

use crate::buffer::Buffer;
use crate::error::{AgentError, Result};
use crate::search::Remarks;
use crate::system::System;
use crate::target::Target;

/// The time that a program gets to load completely.
const LOAD_TIMEOUT: Duration = Duration::from_millis(200);
/// Interval between two checks.
const POLL_INTERVAL: Duration = Duration::from_millis(5);
/// A process of this age may not be the expected program yet: between fork and exec it is a copy of
/// its parent.
const YOUNG: Duration = Duration::from_millis(500);

const AT_PHDR: u64 = 3;
const AT_PHNUM: u64 = 5;
/// Bytes of a program header, and of an entry of the dynamic section.
const HEADER: usize = 56;
const DYNAMIC: usize = 16;
/// More headers or entries than any program has.
const MAX_ENTRIES: u64 = 256;

impl Target {
    /// Opens process `pid` and chooses buffers as [`Target::choose`] does. It also returns the
    /// remarks of the search. If the program is still being loaded, or the process has just begun
    /// and does not fit, it tries again for a moment.
    ///
    /// # Errors
    /// As for [`Target::open`] and [`Target::choose`], once the moment has passed.
    pub fn with_buffers(
        system: &System,
        pid: i32,
        names: &[String],
    ) -> Result<(Self, Vec<Buffer>, Remarks)> {
        let start = Instant::now();
        let mut process = None;
        loop {
            let target = Self::open(system, pid)?;
            if *process.get_or_insert(target.start_time()) != target.start_time() {
                return Err(AgentError::ProcessChanged { pid });
            }
            // Checked before the search: libraries loaded before this point are found.
            let loading = target.is_loading();
            let found = target.buffers()?;
            let remarks = Remarks::from_search(&found);
            let chosen = target.choose(found, names);
            let early = loading || (chosen.as_ref().is_err_and(may_pass) && target.is_young());
            if !early || start.elapsed() >= LOAD_TIMEOUT {
                return Ok((target, chosen?, remarks));
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    }

    fn is_young(&self) -> bool {
        self.age().is_some_and(|age| age < YOUNG)
    }

    /// Whether the dynamic loader is at work, according to its interface for debuggers: r_state of
    /// the r_debug that DT_DEBUG of the program points to. False if there is no such structure.
    fn is_loading(&self) -> bool {
        self.loader_state().is_some_and(|consistent| !consistent)
    }

    /// Whether everything that is mapped has been relocated. `None` if that is unknown.
    fn loader_state(&self) -> Option<bool> {
        let auxv = self.auxiliary()?;
        let headers = *auxv.get(&AT_PHDR)?;
        let bytes = self.bytes(headers, HEADER as u64 * MAX_ENTRIES.min(*auxv.get(&AT_PHNUM)?))?;
        // File address and size.
        let header = |kind: u32| {
            let found = bytes.chunks_exact(HEADER).find(|chunk| word(chunk, 0) as u32 == kind)?;
            Some((word(found, 16), word(found, 40)))
        };
        let bias = headers.wrapping_sub(header(PT_PHDR)?.0);
        let (address, size) = header(PT_DYNAMIC)?;
        let dynamic =
            self.bytes(bias.wrapping_add(address), size.min(DYNAMIC as u64 * MAX_ENTRIES))?;
        let entry = dynamic.chunks_exact(DYNAMIC).find(|chunk| word(chunk, 0) == DT_DEBUG)?;
        let debug = match word(entry, 8) {
            0 => return Some(false), // the loader has not come to it
            debug => self.bytes(debug, 32)?,
        };
        // r_version, r_map, r_brk, r_state. RT_CONSISTENT is 0, but so is everything before the
        // loader has filled it in.
        Some(word(&debug, 0) as u32 != 0 && word(&debug, 24) as u32 == 0)
    }

    fn bytes(&self, address: u64, length: u64) -> Option<Vec<u8>> {
        let mut bytes = vec![0; length as usize];
        self.memory().read_exact(address, &mut bytes).ok()?.then_some(bytes)
    }
}

/// Whether this error of a just started program may be temporary.
fn may_pass(error: &AgentError) -> bool {
    matches!(
        error,
        AgentError::NoBuffers { .. }
            | AgentError::NoSuchBuffer { .. }
            | AgentError::BufferRefused { .. }
            | AgentError::ProgramChanged { .. }
    )
}

fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("8 bytes"))
}
