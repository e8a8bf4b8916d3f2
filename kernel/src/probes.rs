//! The probes of a process: places in code, and the values to record there.

use std::fs::File;
use std::sync::Arc;

/// A probe: its places, and what its frames hold.
#[derive(Debug, Clone)]
pub struct Probe {
    /// The name, such as `processCommand` or `postgresql:query__start`.
    pub name: String,
    /// Whether frames last from the entry of a function to its return.
    pub returns: bool,
    /// The arguments, which every place has.
    pub arguments: Vec<ProbeArgument>,
    /// The places of the probe.
    pub sites: Vec<ProbeSite>,
}

/// An argument of a probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbeArgument {
    /// The name of its field.
    pub name: String,
    /// The size in bytes: 1, 2, 4 or 8.
    pub size: u8,
    /// Whether the value may be negative.
    pub is_signed: bool,
}

/// A place of a probe.
#[derive(Debug, Clone)]
pub struct ProbeSite {
    /// The file that has the code.
    pub file: Arc<File>,
    /// The offset of the instruction in the file.
    pub offset: u64,
    /// The offset of the semaphore, by which the program learns that the probe is in use; 0 if there is none.
    pub semaphore: u32,
    /// The values of the arguments here, in their order.
    pub values: Vec<SiteValue>,
}

/// The value of an argument at a place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SiteValue {
    /// The origin of its bytes.
    pub origin: ValueOrigin,
    /// The size at this place, in bytes.
    pub size: u8,
    /// Whether the value may be negative at this place.
    pub is_signed: bool,
}

/// The origin of the bytes of an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ValueOrigin {
    /// In the register of this number (`PERF_REG_X86_…`), shifted by a number of bits.
    Register {
        /// The number.
        number: u8,
        /// Bits.
        shift: u8,
    },
    /// A constant.
    Constant(i64),
}

/// Registers by the numbers of perf_event_open(2), of x86-64.
pub(crate) mod registers {
    pub const AX: u8 = 0;
    pub const CX: u8 = 2;
    pub const DX: u8 = 3;
    pub const SI: u8 = 4;
    pub const DI: u8 = 5;
    pub const SP: u8 = 7;
    pub const IP: u8 = 8;
    pub const R8: u8 = 16;
    pub const R9: u8 = 17;
    /// One more than the last.
    pub const END: u8 = 24;
}

/// The registers of the first six arguments of a function that are numbers or addresses, and the names
/// of their fields.
const OF_CALLS: [(&str, u8); 6] = [
    ("a", registers::DI),
    ("b", registers::SI),
    ("c", registers::DX),
    ("d", registers::CX),
    ("e", registers::R8),
    ("f", registers::R9),
];

impl Probe {
    /// A probe of the functions that begin at these places.
    pub fn of_function(name: &str, places: Vec<(Arc<File>, u64)>, returns: bool) -> Self {
        let argument = |name: &str| ProbeArgument { name: name.into(), size: 8, is_signed: false };
        let value = |number| SiteValue {
            origin: ValueOrigin::Register { number, shift: 0 },
            size: 8,
            is_signed: false,
        };
        let values: Vec<_> = OF_CALLS.iter().map(|(_, number)| value(*number)).collect();
        let site =
            |(file, offset)| ProbeSite { file, offset, semaphore: 0, values: values.clone() };
        Self {
            name: name.into(),
            returns,
            arguments: OF_CALLS.iter().map(|(name, _)| argument(name)).collect(),
            sites: places.into_iter().map(site).collect(),
        }
    }
}

impl SiteValue {
    /// The value, where the registers have these values, as 64 bits with its sign.
    pub(crate) fn read(&self, registers: &RegisterValues) -> u64 {
        let bits = match self.origin {
            ValueOrigin::Register { number, shift } => registers.get(number) >> (shift & 63),
            ValueOrigin::Constant(constant) => return constant as u64,
        };
        match (self.size, self.is_signed) {
            (1, false) => u64::from(bits as u8),
            (2, false) => u64::from(bits as u16),
            (4, false) => u64::from(bits as u32),
            (1, true) => i64::from(bits as i8) as u64,
            (2, true) => i64::from(bits as i16) as u64,
            (4, true) => i64::from(bits as i32) as u64,
            _ => bits,
        }
    }
}

/// The values of the registers that an event takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RegisterValues {
    values: [u64; registers::END as usize],
}

impl RegisterValues {
    /// Reads the registers of `mask`, in the order of their numbers. None if there are fewer.
    pub fn of_record(mask: u64, bytes: &[u8]) -> Option<Self> {
        let mut all = Self { values: [0; registers::END as usize] };
        let mut words = bytes.chunks_exact(8);
        for number in (0..registers::END).filter(|number| mask >> number & 1 == 1) {
            all.values[usize::from(number)] = u64::from_ne_bytes(words.next()?.try_into().ok()?);
        }
        Some(all)
    }

    pub fn get(&self, number: u8) -> u64 {
        self.values.get(usize::from(number)).copied().unwrap_or_default()
    }
}

/// The registers that a place needs, as bits.
pub(crate) fn registers_of(values: &[SiteValue]) -> u64 {
    let number = |value: &SiteValue| match value.origin {
        ValueOrigin::Register { number, .. } if number < registers::END => Some(number),
        _ => None,
    };
    values.iter().filter_map(number).fold(1 << registers::SP, |mask, number| mask | 1 << number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_their_size_and_sign() {
        let values = [0xffff_ffff_ffff_80fe, 0x1234];
        let bytes: Vec<u8> = values.iter().flat_map(|value: &u64| value.to_ne_bytes()).collect();
        let mask = 1 << registers::AX | 1 << registers::R9;
        let all = RegisterValues::of_record(mask, &bytes).unwrap();
        assert_eq!((all.get(registers::AX), all.get(registers::R9)), (values[0], values[1]));
        assert_eq!((all.get(registers::DI), all.get(255)), (0, 0));
        let read = |shift, size, is_signed| {
            let origin = ValueOrigin::Register { number: registers::AX, shift };
            SiteValue { origin, size, is_signed }.read(&all) as i64
        };
        assert_eq!((read(0, 1, false), read(0, 1, true)), (0xfe, -2));
        assert_eq!((read(8, 1, false), read(8, 1, true)), (0x80, -128));
        assert_eq!((read(0, 2, false), read(0, 2, true)), (0x80fe, 0x80fe - 0x1_0000));
        assert_eq!((read(0, 4, false), read(0, 4, true)), (0xffff_80fe, -0x7f02));
        assert_eq!(read(0, 8, false), values[0] as i64);
        let constant = SiteValue { origin: ValueOrigin::Constant(-7), size: 4, is_signed: true };
        assert_eq!(constant.read(&all) as i64, -7);
        assert_eq!(RegisterValues::of_record(mask, &bytes[..8]), None);
        let values = [constant];
        assert_eq!(registers_of(&values), 1 << registers::SP);
    }
}
