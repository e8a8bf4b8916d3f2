//! Converts CLOCK_REALTIME to ticks, using the readings next to a stamp.
//!
//! Packets are stamped with CLOCK_REALTIME, which is slewed and stepped; ticks are not. The best of
//! the readings next to a stamp locates it, within the possible slew since then. If no slew
//! explains the distance of two readings, the clock was stepped between them, and stamps there are
//! not used. Smaller steps are found in `offsets`.

use super::offsets;
use super::scale::{ROUNDING, TickOrigin};
use super::search::partition_near;
use crate::{ClockId, ClockReading};

/// Readings of ticks and CLOCK_REALTIME of one host, in order.
#[derive(Debug, Default)]
pub(super) struct Brackets {
    brackets: Vec<Bracket>,
    /// The start of each run.
    runs: Vec<usize>,
    slew: f64,
    /// Intervals in which the clock was stepped.
    steps: Vec<(f64, f64)>,
}

/// CLOCK_REALTIME showed `value` between two ticks.
#[derive(Debug, Clone, Copy)]
struct Bracket {
    before: f64,
    after: f64,
    value: u64,
    /// The clock was not stepped between brackets with the same number.
    run: u32,
}

/// Why a stamp is not used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unplaced {
    /// CLOCK_REALTIME was stepped near it.
    Stepped,
    /// There are no near readings on both sides.
    Far,
}

/// A moment, in ns of a host, between two bounds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct BracketedMoment {
    pub lo: f64,
    pub hi: f64,
}

impl Brackets {
    pub fn from_readings(readings: &[ClockReading], scale: TickOrigin, slew: f64) -> Self {
        let brackets = readings.iter().filter_map(|reading| {
            let stamps =
                (reading.a, reading.b) == (ClockId::Tick, ClockId::Realtime) && !reading.distrusted;
            let (before, after) = (scale.ns(reading.a_before)?, scale.ns(reading.a_after)?);
            let value = reading.b_value;
            (stamps && before <= after).then_some(Bracket { before, after, value, run: 0 })
        });
        let mut brackets: Vec<_> = brackets.collect();
        brackets.sort_by(|a, b| a.before.total_cmp(&b.before).then(a.after.total_cmp(&b.after)));
        let runs = brackets.first().map(|_| 0).into_iter().collect();
        let steps = offsets::steps(readings, scale);
        let mut result = Self { brackets, runs, slew, steps };
        for i in 1..result.brackets.len() {
            let (last, this) = (result.brackets[i - 1], result.brackets[i]);
            let ahead = result.from(last, this.value);
            let apart = ahead.lo > this.after || ahead.hi < this.before;
            if apart {
                result.runs.push(i);
            }
            result.brackets[i].run = result.runs.len() as u32 - 1;
        }
        result
    }

    /// When the clock showed `value`, if it was not stepped since `bracket`.
    fn from(&self, bracket: Bracket, value: u64) -> BracketedMoment {
        let since = (i128::from(value) - i128::from(bracket.value)) as f64;
        let (slow, fast) = (since / (1.0 + self.slew), since / (1.0 - self.slew));
        let lo = bracket.before + slow.min(fast) - ROUNDING;
        BracketedMoment { lo, hi: bracket.after + slow.max(fast) + ROUNDING }
    }

    /// What the clock showed at `tick`: a value, and the bounds of what must be added to it.
    pub fn shown(&self, tick: f64, hint: &mut usize) -> Result<(u64, f64, f64), Unplaced> {
        *hint = partition_near(&self.brackets, *hint, |bracket| bracket.before <= tick);
        let (Some(last), Some(to)) = (hint.checked_sub(1), self.brackets.get(*hint)) else {
            return Err(Unplaced::Far);
        };
        let from = self.brackets[last];
        let stepped = self.steps.iter().any(|step| step.0 <= tick && tick <= step.1);
        if stepped || from.run != to.run {
            return Err(Unplaced::Stepped);
        }
        let nearest = if tick - from.after <= to.before - tick { from } else { *to };
        let (least, most) = (tick - nearest.after - ROUNDING, tick - nearest.before + ROUNDING);
        let slew = self.slew * least.abs().max(most.abs());
        Ok((nearest.value, least - slew, most + slew))
    }

    /// When the clock showed `value`, near the moment `near`. `hint` serves the next stamp, which
    /// is probably near this one.
    pub fn place(
        &self,
        value: u64,
        near: f64,
        hint: &mut usize,
    ) -> Result<BracketedMoment, Unplaced> {
        // The readings on both sides of `near`, and those of the same run.
        *hint = partition_near(&self.brackets, *hint, |bracket| bracket.before <= near);
        let last = hint.checked_sub(1).ok_or(Unplaced::Far)?;
        let run = self.brackets[last].run as usize;
        let (start, end) =
            (self.runs[run], *self.runs.get(run + 1).unwrap_or(&self.brackets.len()));
        if *hint == end && end < self.brackets.len() {
            return Err(Unplaced::Stepped);
        }
        // Among them, those on both sides of the value.
        let same = &self.brackets[start..end];
        let next = partition_near(same, last - start, |bracket| bracket.value <= value);
        if next == 0 || next == same.len() {
            let stepped = if next == 0 { start > 0 } else { end < self.brackets.len() };
            return Err(if stepped { Unplaced::Stepped } else { Unplaced::Far });
        }
        // The most precise of the readings next to it, because some took long.
        let around = &same[next.saturating_sub(2)..(next + 2).min(same.len())];
        let moments = around.iter().map(|&bracket| self.from(bracket, value));
        let moment = moments.min_by(|a, b| (a.hi - a.lo).total_cmp(&(b.hi - b.lo)));
        let moment = moment.ok_or(Unplaced::Far)?;
        if self.steps.iter().any(|step| step.0 <= moment.hi && moment.lo <= step.1) {
            Err(Unplaced::Stepped)
        } else {
            Ok(moment)
        }
    }
}
