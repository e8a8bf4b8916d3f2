//! The registers and the copy of the stack at the end of a record (perf_event_open(2),
//! PERF_SAMPLE_REGS_USER and PERF_SAMPLE_STACK_USER).

use framehop::UnwindRegsNative;

use crate::records::u64_at;

/// The number of bytes of a stack that the kernel copies. Callers beyond them are not found.
pub(crate) const COPY_BYTES: u32 = 8 << 10;

/// The numbers of the registers that unwinding starts with, in the order of their values in a record.
#[cfg(target_arch = "x86_64")]
const NUMBERS: [u8; 3] = [6, 7, 8]; // PERF_REG_X86_BP, SP, IP
#[cfg(target_arch = "aarch64")]
const NUMBERS: [u8; 4] = [29, 30, 31, 32]; // PERF_REG_ARM64_X29, LR, SP, PC

/// The registers that a record needs, as bits.
pub(crate) fn register_mask() -> u64 {
    NUMBERS.iter().fold(0, |mask, number| mask | 1 << number)
}

/// The registers of a thread that unwinding starts with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StackRegisters {
    /// The address of the next instruction.
    pub code: u64,
    values: [u64; NUMBERS.len()],
}

impl StackRegisters {
    /// The registers and the bytes of the stack from its pointer on. `None` if the record has none: the
    /// thread is the kernel's own, or runs code of 32 bits.
    pub fn of_record(copy: &[u8]) -> Option<(Self, &[u8])> {
        /// PERF_SAMPLE_REGS_ABI_64.
        const OF_64_BITS: u64 = 2;
        let word = |number: usize| u64_at(copy, 8 * number);
        if word(0)? != OF_64_BITS {
            return None;
        }
        let mut values = [0; NUMBERS.len()];
        for (number, value) in values.iter_mut().enumerate() {
            *value = word(1 + number)?;
        }
        let size = usize::try_from(word(1 + NUMBERS.len())?).ok()?;
        let stack = &copy[8 * (2 + NUMBERS.len())..];
        let filled = match size {
            0 => 0,
            // The number of bytes of the copy that are valid follows it.
            _ => usize::try_from(u64_at(stack, size)?).ok()?.min(size),
        };
        let code = values[NUMBERS.len() - 1];
        Some((Self { code, values }, &stack[..filled]))
    }

    /// The address of the first byte of the stack.
    #[cfg(target_arch = "x86_64")]
    pub fn stack_pointer(&self) -> u64 {
        self.values[1]
    }

    /// The registers in the order that the unwinder takes.
    #[cfg(target_arch = "x86_64")]
    pub fn native(&self) -> UnwindRegsNative {
        let [frame, stack, code] = self.values;
        UnwindRegsNative::new(code, stack, frame)
    }

    /// The address of the first byte of the stack.
    #[cfg(target_arch = "aarch64")]
    pub fn stack_pointer(&self) -> u64 {
        self.values[2]
    }

    /// The registers in the order that the unwinder takes.
    #[cfg(target_arch = "aarch64")]
    pub fn native(&self) -> UnwindRegsNative {
        let [frame, link, stack, _] = self.values;
        UnwindRegsNative::new(link, stack, frame)
    }
}

/// The address of the next instruction of what a signal has interrupted. `values` are the registers in
/// the code to which its handler returns, and become those that the kernel has saved on the stack.
#[cfg(target_arch = "x86_64")]
pub(crate) fn interrupted(
    values: &mut UnwindRegsNative,
    read: &mut impl FnMut(u64) -> Result<u64, ()>,
) -> Option<u64> {
    use framehop::x86_64::Reg;
    // The offset of gregs in ucontext_t, and the registers in their order there.
    const SAVED: u64 = 40;
    const ORDER: [Reg; 16] = {
        use Reg::*;
        [R8, R9, R10, R11, R12, R13, R14, R15, RDI, RSI, RBP, RBX, RDX, RAX, RCX, RSP]
    };
    let saved = values.sp().checked_add(SAVED)?;
    let mut word = |number: usize| read(saved.checked_add(8 * number as u64)?).ok();
    for (number, register) in ORDER.into_iter().enumerate() {
        values.set(register, word(number)?);
    }
    let code = word(ORDER.len())?;
    values.set_ip(code);
    Some(code)
}

/// The kernel's frame there has what the unwinder needs.
#[cfg(target_arch = "aarch64")]
pub(crate) fn interrupted(
    _: &mut UnwindRegsNative,
    _: &mut impl FnMut(u64) -> Result<u64, ()>,
) -> Option<u64> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    fn registers() -> Vec<u64> {
        std::iter::once(2).chain((0..NUMBERS.len() as u64).map(|number| 0x1000 + number)).collect()
    }

    #[test]
    fn a_copy_ends_where_the_stack_did() {
        let copy = bytes(&[registers(), vec![32, 7, 8, 0, 0, 16]].concat());
        let (found, stack) = StackRegisters::of_record(&copy).unwrap();
        assert_eq!((found.code, stack), (0x1000 + NUMBERS.len() as u64 - 1, &bytes(&[7, 8])[..]));
        // A length that is too large does not read beyond the copy.
        let copy = bytes(&[registers(), vec![16, 7, 8, 4096]].concat());
        assert_eq!(StackRegisters::of_record(&copy).unwrap().1, bytes(&[7, 8]));
    }

    #[test]
    fn what_is_cut_or_of_32_bits_is_none() {
        let whole = bytes(&[registers(), vec![16, 7, 8, 16]].concat());
        for len in 0..whole.len() {
            assert_eq!(StackRegisters::of_record(&whole[..len]), None, "{len}");
        }
        let short = bytes(&[vec![1], registers()[1..].to_vec(), vec![0]].concat());
        assert_eq!(StackRegisters::of_record(&short), None);
        let nothing = bytes(&[registers(), vec![0]].concat());
        assert!(StackRegisters::of_record(&nothing).unwrap().1.is_empty());
    }
}
