//! USDT probes: points in a program that its authors named, from `.note.stapsdt`.
//!
//! A note has three addresses (the probe, the section `.stapsdt.base`, and the semaphore or 0) and
//! three texts: provider, name, and arguments such as `-4@%esi 8@$3 4@16(%rbx)`.

/// The note of a probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsdtNote {
    /// The provider, such as `postgresql`.
    pub provider: String,
    /// The name, such as `query__start`.
    pub name: String,
    /// The arguments, as in the note.
    pub text: String,
    /// The parsed arguments.
    pub arguments: Vec<UsdtArgument>,
    /// The address in the file.
    pub(crate) address: u64,
    /// The address of `.stapsdt.base` when the note was written.
    pub(crate) base: u64,
    /// The address of its semaphore; 0 if it has none.
    pub(crate) semaphore: u64,
}

/// An argument of a probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UsdtArgument {
    /// Size in bytes: 1, 2, 4 or 8.
    pub size: u8,
    /// Whether it is signed.
    pub is_signed: bool,
    /// The location of the value at the probe.
    pub operand: Operand,
}

/// The location of an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operand {
    /// In a register of x86-64, by its number for perf_event_open(2), from bit `shift` on.
    Register {
        /// `PERF_REG_X86_…`.
        number: u8,
        /// 8 for `ah`, `bh`, `ch` and `dh`.
        shift: u8,
    },
    /// A constant.
    Constant(i64),
    /// In memory, or at an unsupported location.
    Unsupported,
}

/// Most arguments of a probe.
const ARGUMENTS: usize = 12;

impl UsdtNote {
    /// Parses a note of `.note.stapsdt`. `None` if it is invalid.
    pub(crate) fn parse(bytes: &[u8]) -> Option<UsdtNote> {
        let word = |at: usize| Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
        let mut texts = bytes.get(24..)?.split(|&byte| byte == 0);
        let mut text = || Some(str::from_utf8(texts.next()?).ok()?.to_owned());
        let (provider, name, text) = (text()?, text()?, text()?);
        if provider.is_empty() || name.is_empty() {
            return None;
        }
        let arguments = text.split_ascii_whitespace().map(UsdtArgument::parse);
        let arguments = arguments.take(ARGUMENTS).collect();
        let (address, base, semaphore) = (word(0)?, word(8)?, word(16)?);
        Some(UsdtNote { provider, name, arguments, text, address, base, semaphore })
    }

    /// Adjusts the address for a file that was changed after linking: its section `.stapsdt.base`
    /// is now at `base`.
    pub(crate) fn moved(self, base: u64) -> UsdtNote {
        let by = base.wrapping_sub(self.base);
        let semaphore = match self.semaphore {
            0 => 0,
            address => address.wrapping_add(by),
        };
        UsdtNote { address: self.address.wrapping_add(by), base, semaphore, ..self }
    }
}

impl UsdtArgument {
    /// `-4@%esi`: the size, negative for a signed value, and the operand.
    fn parse(text: &str) -> UsdtArgument {
        let (size, operand) = match text.split_once('@') {
            Some((size, operand)) => (size.parse::<i8>().unwrap_or(8), operand),
            None => (8, text),
        };
        let is_known = matches!(size.unsigned_abs(), 1 | 2 | 4 | 8);
        let operand = if is_known { Operand::parse(operand) } else { Operand::Unsupported };
        let is_signed = size < 0;
        let size = if is_known { size.unsigned_abs() } else { 8 };
        UsdtArgument { size, is_signed, operand }
    }
}

impl Operand {
    fn parse(text: &str) -> Operand {
        let constant = text.strip_prefix('$').and_then(number);
        let register = || text.strip_prefix('%').and_then(register);
        constant.map(Operand::Constant).or_else(register).unwrap_or(Operand::Unsupported)
    }
}

/// A number in assembly syntax.
fn number(text: &str) -> Option<i64> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1i64, digits),
        None => (1, text),
    };
    let digits = digits.strip_prefix("0x").map(|hex| u64::from_str_radix(hex, 16));
    let digits = digits.unwrap_or_else(|| text.trim_start_matches('-').parse()).ok()?;
    Some((digits as i64).wrapping_mul(sign))
}

/// Names of the registers with named parts, in the order of perf_event_open(2).
const NAMED: [[&str; 4]; 8] = [
    ["rax", "eax", "ax", "al"],
    ["rbx", "ebx", "bx", "bl"],
    ["rcx", "ecx", "cx", "cl"],
    ["rdx", "edx", "dx", "dl"],
    ["rsi", "esi", "si", "sil"],
    ["rdi", "edi", "di", "dil"],
    ["rbp", "ebp", "bp", "bpl"],
    ["rsp", "esp", "sp", "spl"],
];
/// The perf_event_open(2) number of r8; r9 to r15 follow.
const FIRST_NUMBERED: u8 = 16;

fn register(name: &str) -> Option<Operand> {
    let is_it = |names: &[&str; 4]| names.contains(&name);
    if let Some(number) = NAMED.iter().position(is_it) {
        return Some(Operand::Register { number: number as u8, shift: 0 });
    }
    if let Some(number) = ["ah", "bh", "ch", "dh"].iter().position(|high| *high == name) {
        return Some(Operand::Register { number: number as u8, shift: 8 });
    }
    // r8, r8d, r8w, r8b.
    let digits = name.strip_prefix('r')?;
    let digits = digits.strip_suffix(['d', 'w', 'b']).unwrap_or(digits);
    let number = digits.parse::<u8>().ok().filter(|number| (8..16).contains(number))?;
    Some(Operand::Register { number: FIRST_NUMBERED + number - 8, shift: 0 })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn note(words: [u64; 3], texts: &str) -> Vec<u8> {
        let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        bytes.extend(texts.bytes());
        bytes
    }

    #[test]
    fn a_note_says_where_and_what() {
        let bytes = note([0x1000, 0x5000, 0x8000], "db\0query__start\0-4@%esi 8@$-3 4@16(%rbx)\0");
        let found = UsdtNote::parse(&bytes).unwrap();
        assert_eq!((found.provider.as_str(), found.name.as_str()), ("db", "query__start"));
        let register = Operand::Register { number: 4, shift: 0 };
        let expected = [
            UsdtArgument { size: 4, is_signed: true, operand: register },
            UsdtArgument { size: 8, is_signed: false, operand: Operand::Constant(-3) },
            UsdtArgument { size: 4, is_signed: false, operand: Operand::Unsupported },
        ];
        assert_eq!(found.arguments, expected);
        let moved = found.clone().moved(0x5100);
        assert_eq!((moved.address, moved.semaphore), (0x1100, 0x8100));
        let without = UsdtNote { semaphore: 0, ..found };
        assert_eq!(without.moved(0x5100).semaphore, 0, "none stays none");
    }

    #[test]
    fn registers_have_the_numbers_of_perf() {
        let number = |name: &str| match register(name) {
            Some(Operand::Register { number, shift }) => Some((number, shift)),
            _ => None,
        };
        let known = [("rax", (0, 0)), ("bl", (1, 0)), ("dh", (3, 8)), ("edi", (5, 0))];
        let numbered = [("rsp", (7, 0)), ("r8", (16, 0)), ("r13d", (21, 0)), ("r15b", (23, 0))];
        for (name, expected) in known.into_iter().chain(numbered) {
            assert_eq!(number(name), Some(expected), "{name}");
        }
        for name in ["xmm0", "r7", "r16", "rip", "r", "", "rr8"] {
            assert_eq!(number(name), None, "{name}");
        }
    }

    #[test]
    fn constants_are_numbers_of_assembly() {
        let all = [("0", 0), ("-1", -1), ("0x10", 16), ("-0x10", -16)];
        for (text, expected) in all {
            assert_eq!(number(text), Some(expected), "{text}");
        }
        assert_eq!(number("18446744073709551615"), Some(-1));
        assert_eq!((number("x"), number(""), number("-")), (None, None, None));
    }

    proptest! {
        #[test]
        fn no_bytes_are_too_strange(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            UsdtNote::parse(&bytes);
        }

        #[test]
        fn nor_is_any_text(text in "[-0-9a-z@%$() ]{0,40}") {
            let bytes = note([1, 2, 3], &format!("p\0n\0{text}\0"));
            let found = UsdtNote::parse(&bytes).unwrap();
            prop_assert!(found.arguments.len() <= ARGUMENTS);
            for argument in found.arguments {
                prop_assert!([1, 2, 4, 8].contains(&argument.size));
            }
        }
    }
}
