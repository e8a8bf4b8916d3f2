//! The number of distinct values: exact while they fit into memory, then an estimate.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use crate::Budget;

/// Bits of a hash that choose a register: the standard error of the estimate is 0.8 %.
const BITS: u32 = 14;
const REGISTERS: usize = 1 << BITS;
/// Approximate overhead of a value in bytes, without its own heap memory.
const VALUE_BYTES: usize = 2 * size_of::<DistinctValue>();
/// The smallest number of bytes to take from the budget.
const BUDGET_STEP: usize = 1 << 14;

/// A value as it is compared for distinctness.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum DistinctValue {
    /// A whole number.
    Number(i128),
    /// Text, or any other bytes.
    Bytes(Box<[u8]>),
}

/// The number of distinct values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DistinctCount {
    /// Number of distinct values.
    pub count: u64,
    /// Whether it is exact; otherwise it is an estimate with a standard error of 0.8 %.
    pub exact: bool,
}

/// Counts the distinct values of a column in bounded memory.
#[derive(Debug)]
pub struct Distinct {
    set: DistinctSet,
    values: u64,
    nulls: u64,
    /// All values are 0, or bytes of 0.
    is_zero: bool,
    /// Bytes taken from the budget.
    held: usize,
    /// Bytes that the values take.
    taken: usize,
    budget: Budget,
}

#[derive(Debug)]
enum DistinctSet {
    All(HashSet<DistinctValue>),
    /// HyperLogLog (Flajolet and others): for each register, the longest run of zeros of a hash,
    /// plus 1.
    Registers(Box<[u8; REGISTERS]>),
}

impl Distinct {
    /// An empty counter.
    pub fn new(budget: &Budget) -> Distinct {
        let set = DistinctSet::All(HashSet::new());
        let budget = budget.clone();
        Distinct { set, values: 0, nulls: 0, is_zero: true, held: 0, taken: 0, budget }
    }

    /// Adds a value.
    pub fn push(&mut self, value: DistinctValue) {
        self.values += 1;
        self.is_zero &= match &value {
            DistinctValue::Number(number) => *number == 0,
            DistinctValue::Bytes(bytes) => bytes.iter().all(|&byte| byte == 0),
        };
        match &mut self.set {
            DistinctSet::All(values) => {
                let heap = if let DistinctValue::Bytes(bytes) = &value { bytes.len() } else { 0 };
                if values.insert(value) {
                    self.taken += VALUE_BYTES + heap;
                    self.make_room();
                }
            }
            DistinctSet::Registers(registers) => add(registers, &value),
        }
    }

    /// Adds this many NULLs.
    pub fn push_nulls(&mut self, count: u64) {
        self.nulls += count;
    }

    /// Merges another counter.
    pub fn join(&mut self, mut other: Distinct) {
        self.values += other.values;
        self.nulls += other.nulls;
        self.is_zero &= other.is_zero;
        match std::mem::replace(&mut other.set, DistinctSet::All(HashSet::new())) {
            DistinctSet::All(theirs) => {
                let values = self.values;
                theirs.into_iter().for_each(|value| self.push(value));
                self.values = values;
            }
            DistinctSet::Registers(theirs) => {
                self.switch_to_registers();
                if let DistinctSet::Registers(ours) = &mut self.set {
                    raise(ours, &theirs);
                }
            }
        }
    }

    /// The number of values added.
    pub fn values(&self) -> u64 {
        self.values
    }

    /// Whether each value is 0, or consists of zero bytes.
    pub fn is_zero(&self) -> bool {
        self.is_zero
    }

    /// The number of NULLs added.
    pub fn nulls(&self) -> u64 {
        self.nulls
    }

    /// The number of distinct values.
    pub fn count(&self) -> DistinctCount {
        match &self.set {
            DistinctSet::All(values) => DistinctCount { count: values.len() as u64, exact: true },
            DistinctSet::Registers(registers) => {
                let count = (estimate(registers).round() as u64).min(self.values);
                DistinctCount { count, exact: false }
            }
        }
    }

    /// The number of distinct values in the union of both.
    pub fn count_with(&self, other: &Distinct) -> DistinctCount {
        if let (DistinctSet::All(ours), DistinctSet::All(theirs)) = (&self.set, &other.set) {
            let more = theirs.iter().filter(|value| !ours.contains(value)).count();
            return DistinctCount { count: (ours.len() + more) as u64, exact: true };
        }
        let mut union = [0; REGISTERS];
        for set in [&self.set, &other.set] {
            match set {
                DistinctSet::All(values) => values.iter().for_each(|value| add(&mut union, value)),
                DistinctSet::Registers(registers) => raise(&mut union, registers),
            }
        }
        let values = self.values.saturating_add(other.values);
        DistinctCount { count: (estimate(&union).round() as u64).min(values), exact: false }
    }

    fn make_room(&mut self) {
        if self.taken <= self.held {
            return;
        }
        let more = (self.taken - self.held).max(BUDGET_STEP);
        if self.budget.take(more) {
            self.held += more;
        } else {
            self.switch_to_registers();
        }
    }

    /// Replaces the values by registers, and returns their share of the budget.
    fn switch_to_registers(&mut self) {
        let DistinctSet::All(values) = &mut self.set else { return };
        let mut registers = Box::new([0; REGISTERS]);
        values.iter().for_each(|value| add(&mut registers, value));
        self.set = DistinctSet::Registers(registers);
        self.taken = 0;
        self.budget.give(std::mem::take(&mut self.held));
    }
}

impl Drop for Distinct {
    fn drop(&mut self) {
        self.budget.give(self.held);
    }
}

/// Raises each register to the longer of both runs.
fn raise(ours: &mut [u8; REGISTERS], theirs: &[u8; REGISTERS]) {
    ours.iter_mut().zip(theirs).for_each(|(one, two)| *one = (*one).max(*two));
}

fn add(registers: &mut [u8; REGISTERS], value: &DistinctValue) {
    // The keys are fixed, because all parts must hash alike.
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    let hash = hasher.finish();
    let register = &mut registers[(hash >> (64 - BITS)) as usize];
    let zeros = (hash << BITS).leading_zeros().min(64 - BITS) as u8;
    *register = (*register).max(zeros + 1);
}

/// The estimator of O. Ertl, "New cardinality estimation algorithms for HyperLogLog sketches"
/// (2017), which has no bias for few or many values.
fn estimate(registers: &[u8; REGISTERS]) -> f64 {
    const MAX_RANK: usize = (64 - BITS) as usize + 1;
    let mut counts = [0u32; MAX_RANK + 1];
    registers.iter().for_each(|&byte| counts[usize::from(byte).min(MAX_RANK)] += 1);
    let all = REGISTERS as f64;
    let mut sum = all * tau(1.0 - f64::from(counts[MAX_RANK]) / all);
    for &count in counts[1..MAX_RANK].iter().rev() {
        sum = 0.5 * (sum + f64::from(count));
    }
    sum += all * sigma(f64::from(counts[0]) / all);
    all * all / (2.0 * std::f64::consts::LN_2 * sum)
}

fn sigma(mut x: f64) -> f64 {
    if x == 1.0 {
        return f64::INFINITY;
    }
    let (mut y, mut z) = (1.0, x);
    loop {
        let before = z;
        x *= x;
        z += x * y;
        y += y;
        if z == before {
            return z;
        }
    }
}

fn tau(mut x: f64) -> f64 {
    if x == 0.0 || x == 1.0 {
        return 0.0;
    }
    let (mut y, mut z) = (1.0, 1.0 - x);
    loop {
        let before = z;
        x = x.sqrt();
        y *= 0.5;
        z -= (1.0 - x).powi(2) * y;
        if z == before {
            return z / 3.0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(value: u64) -> DistinctValue {
        DistinctValue::Number(value.into())
    }

    #[test]
    fn what_fits_is_exact() {
        let budget = Budget::new(1 << 20);
        let mut all = Distinct::new(&budget);
        (0..3000).for_each(|n| all.push(number(n % 1000)));
        all.push(DistinctValue::Bytes(b"a".as_slice().into()));
        all.push_nulls(4);
        let mut other = Distinct::new(&budget);
        (500..1500).for_each(|n| other.push(number(n)));
        assert_eq!(all.count_with(&other), DistinctCount { count: 1501, exact: true });
        all.join(other);
        assert_eq!(all.count(), DistinctCount { count: 1501, exact: true });
        assert_eq!((all.values(), all.nulls()), (4001, 4));
        drop(all);
        // The whole budget is returned.
        assert!(budget.take(1 << 20));
    }

    #[test]
    fn what_does_not_fit_is_estimated() {
        for count in [0u64, 1, 100, 20_000, 60_000, 1_000_000] {
            let budget = Budget::new(0);
            let mut parts = [Distinct::new(&budget), Distinct::new(&budget)];
            for value in 0..count {
                // Every value is added twice, every fifth to both.
                let second = usize::from(value % 2 == 1);
                parts[second].push(number(value * 7919));
                parts[if value % 5 == 0 { 1 - second } else { second }].push(number(value * 7919));
            }
            let [mut one, two] = parts;
            let together = one.count_with(&two);
            one.join(two);
            assert_eq!(one.count(), together);
            let estimated = one.count();
            assert_eq!(estimated.exact, count == 0);
            let off = (estimated.count as f64 - count as f64).abs();
            assert!(off <= count as f64 * 0.03, "{} of {count}", estimated.count);
        }
    }

    #[test]
    fn its_memory_does_not_grow() {
        let budget = Budget::new(1 << 16);
        let mut all = Distinct::new(&budget);
        (0..100_000).for_each(|number| {
            all.push(DistinctValue::Bytes(number.to_string().into_bytes().into()));
        });
        assert!(!all.count().exact);
        assert!(budget.take(1 << 16), "values are let go of");
    }
}
