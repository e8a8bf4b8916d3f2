//! Converts ticks to monotonic time, and monotonic time to the epoch, using clock readings.

use std::sync::Arc;

use crate::alignment::Alignment;
use crate::line::{STAMP_IS_MONOTONIC, TickLine};
use crate::reading::{ClockId, ClockReading};

/// The readings of the clocks of one host.
///
/// Ticks become monotonic time by linear interpolation between neighbouring readings. Outside of
/// the readings, the line through the nearest reading and one about a minute away is used. If the
/// counter jumped (a machine slept or was migrated), no line joins the readings before and after
/// the jump, and a stamp is converted by the readings on its side.
///
/// The epoch is monotonic time plus the *first* offset to realtime, so a clock that is stepped
/// during a capture does not reorder its frames. [`ClockTable::steps`] lists later steps.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ClockTable {
    /// Readings of ticks. The counter jumped between consecutive runs.
    runs: Vec<TickRun>,
    tick_steps: Vec<TickStep>,
    /// Ticks per second as stated by the source, for a table with a single reading.
    tick_hz: Option<u64>,
    /// CLOCK_MONOTONIC since which the system has not trusted ticks.
    distrusted: Option<u64>,
    /// Realtime − monotonic at their first reading, ns, and half its width.
    epoch: Option<(i128, u64)>,
    /// Realtime − monotonic at the latest reading, and its largest change other than steps.
    latest: i128,
    drift: u128,
    steps: Vec<(u64, i128)>,
    /// Boottime − monotonic at their first reading, ns.
    boottime: Option<i128>,
    /// Set if times of the epoch are on another host's clock.
    alignment: Option<Arc<Alignment>>,
}

/// Readings of ticks without a jump: both clocks strictly increase.
#[derive(Debug, Clone, Default, PartialEq)]
struct TickRun(Vec<TickPoint>);

/// Ticks and CLOCK_MONOTONIC at one moment.
#[derive(Debug, Clone, Copy, PartialEq)]
struct TickPoint {
    tick: u64,
    ns: u64,
    /// The uncertainty of `ns` from the reading: half its width, in ticks.
    slack: u64,
}

/// A jump of the CPU's counter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TickStep {
    /// CLOCK_MONOTONIC of the last reading before it, and of the first one after it.
    pub between: (u64, u64),
    /// The size of the jump in ns, converted from ticks. A positive value is a jump forward.
    pub by_ns: i128,
}

/// A change of realtime − monotonic by more than this between two readings is a step. Clock
/// discipline slews by at most 500 ppm, which is 0.5 ms in the second between two readings.
pub const REALTIME_STEP_NS: u64 = 5_000_000;
/// A change of the counter's rate by more than this is a jump: clock discipline slews monotonic
/// time by at most 500 ppm, from one side to the other.
const RATE_CHANGE_PPM: i128 = 1_000;
/// Allowed deviation of two readings in addition to their width: the time for which a virtual CPU
/// was not scheduled.
const JUMP_NS: i128 = 20_000;
/// Most steps that are kept; a hostile capture may hold any number.
const MAX_STEPS: usize = 1024;
/// Distance, in readings, from the nearest reading to the other end of an extrapolation line.
const FAR: usize = 64;

impl ClockTable {
    /// Adds readings, in chronological order.
    pub fn add(&mut self, readings: &[ClockReading]) {
        for reading in readings {
            if let Some((tick, ns)) = reading.pair(ClockId::Tick, ClockId::Monotonic) {
                let slack = reading.a_after.saturating_sub(reading.a_before).div_ceil(2);
                if reading.distrusted {
                    self.distrusted = self.distrusted.or(Some(ns));
                } else {
                    self.add_point(TickPoint { tick, ns, slack });
                }
            }
            if let Some((realtime, monotonic)) = reading.pair(ClockId::Realtime, ClockId::Monotonic)
            {
                let slack = reading.a_after.saturating_sub(reading.a_before).div_ceil(2);
                self.add_offset(monotonic, i128::from(realtime) - i128::from(monotonic), slack);
            }
            if let Some((boottime, monotonic)) = reading.pair(ClockId::Boottime, ClockId::Monotonic)
            {
                self.boottime.get_or_insert(i128::from(boottime) - i128::from(monotonic));
            }
        }
    }

    /// Sets the nominal rate of the ticks, in Hz.
    pub fn set_tick_hz(&mut self, hz: u64) {
        self.tick_hz = (hz > 0).then_some(hz);
    }

    /// Puts times of the epoch on the clock of another host from now on. `alignment` maps unaligned
    /// times to that clock.
    pub fn align(&mut self, alignment: Arc<Alignment>) {
        self.alignment = Some(alignment);
    }

    /// The alignment to the clock of another host, if set.
    pub fn alignment(&self) -> Option<&Alignment> {
        self.alignment.as_deref()
    }

    /// Converts a time of the host's own clock, in ns since the epoch, to the aligned clock.
    #[inline]
    pub fn aligned(&self, own: i128) -> i128 {
        match &self.alignment {
            None => own,
            Some(alignment) => alignment.ts(own),
        }
    }

    /// Readings of ticks against monotonic: ticks and ns, in chronological order, and whether the
    /// counter jumped before the next.
    pub fn tick_points(&self) -> impl Iterator<Item = (u64, u64, bool)> {
        self.runs.iter().flat_map(|run| {
            let last = run.0.len();
            (1..).zip(&run.0).map(move |(number, point)| (point.tick, point.ns, number == last))
        })
    }

    fn add_point(&mut self, point: TickPoint) {
        let Some(run) = self.runs.last_mut() else {
            return self.runs.push(TickRun(vec![point]));
        };
        let Some(&last) = run.0.last() else { return };
        if point.ns <= last.ns {
            return; // not in chronological order, so it is not a clock chunk of ours
        }
        let expected = run.convert(point.tick, self.tick_hz);
        let by_ns = expected.unwrap_or(point.ns.into()).saturating_sub(point.ns.into());
        let since = i128::from(point.ns - last.ns);
        let slack = run.slack_ns(last) + run.slack_ns(point);
        let jumped = by_ns.saturating_abs() > since * RATE_CHANGE_PPM / 1_000_000 + JUMP_NS + slack;
        if !jumped && point.tick > last.tick {
            run.0.push(point);
        } else if self.tick_steps.len() < MAX_STEPS {
            self.tick_steps.push(TickStep { between: (last.ns, point.ns), by_ns });
            self.runs.push(TickRun(vec![point]));
        }
    }

    fn add_offset(&mut self, monotonic: u64, offset: i128, slack: u64) {
        let Some((epoch, _)) = self.epoch else {
            self.epoch = Some((offset, slack));
            self.latest = offset;
            return;
        };
        let by = offset - std::mem::replace(&mut self.latest, offset);
        if by.unsigned_abs() > REALTIME_STEP_NS.into() && self.steps.len() < MAX_STEPS {
            self.steps.push((monotonic, by));
        }
        let stepped: i128 = self.steps.iter().map(|step| step.1).sum();
        self.drift = self.drift.max((offset - epoch - stepped).unsigned_abs());
    }

    /// Realtime − monotonic at the start, ns.
    pub fn epoch_offset(&self) -> Option<i128> {
        Some(self.epoch?.0)
    }

    /// Realtime − boottime at the start, ns. Both clocks advance while a machine sleeps.
    pub fn boottime_offset(&self) -> Option<i128> {
        Some(self.epoch?.0 - self.boottime?)
    }

    /// The steps of realtime: monotonic ns, and the size of the step in ns.
    pub fn steps(&self) -> &[(u64, i128)] {
        &self.steps
    }

    /// Jumps of the CPU's counter.
    pub fn tick_steps(&self) -> &[TickStep] {
        &self.tick_steps
    }

    /// CLOCK_MONOTONIC since which the system has not trusted the CPU's counter, in ns.
    pub fn distrusted(&self) -> Option<u64> {
        self.distrusted
    }

    /// Number of readings of ticks against monotonic.
    pub fn tick_readings(&self) -> usize {
        self.runs.iter().map(|run| run.0.len()).sum()
    }

    /// The largest error of a converted stamp, in ns, relative to CLOCK_REALTIME as it ran when the
    /// capture began. It is the largest distance of a reading from the line between its neighbours,
    /// plus the width of the readings. `None` if there are fewer than two readings.
    ///
    /// Steps of realtime, and the second in which the counter jumped, do not count.
    pub fn tick_error_ns(&self) -> Option<u64> {
        let worst = self.runs.iter().filter_map(TickRun::error_ns).max()?;
        Some(worst.saturating_add(self.epoch_error_ns()?))
    }

    /// The largest error of a converted stamp of the monotonic clock, in ns.
    pub fn epoch_error_ns(&self) -> Option<u64> {
        let drift = u64::try_from(self.drift).unwrap_or(u64::MAX);
        Some(self.epoch?.1.saturating_add(drift))
    }

    /// Returns the monotonic ns at `tick`. Returns `None` without readings, and for ticks that the
    /// counter skipped. If several times have the same ticks, it returns the one nearest to `near`
    /// (monotonic ns).
    pub fn tick_to_monotonic(&self, tick: u64, near: u64) -> Option<i128> {
        if let [only] = self.runs.as_slice() {
            return only.convert(tick, self.tick_hz);
        }
        let ns = |point: Option<&TickPoint>| point.map(|point| i128::from(point.ns));
        let end = |index: usize| ns(self.runs.get(index)?.0.last());
        let start = |index: usize| ns(self.runs.get(index)?.0.first());
        // A counter that jumped back passes the same ticks twice.
        let times = self.runs.iter().enumerate().filter_map(|(index, run)| {
            let time = run.convert(tick, self.tick_hz)?;
            let after = index.checked_sub(1).and_then(end).is_none_or(|end| end <= time);
            let before = start(index + 1).is_none_or(|start| time <= start);
            (after && before).then_some(time)
        });
        times.min_by_key(|time| time.saturating_sub(near.into()).unsigned_abs())
    }

    /// Returns the ns since the epoch at `tick`. Returns `None` as
    /// [`ClockTable::tick_to_monotonic`] does, and if the result does not fit into i64.
    pub fn tick_to_epoch(&self, tick: u64, near: u64) -> Option<i64> {
        self.to_epoch(self.tick_to_monotonic(tick, near)?)
    }

    /// The readings on both sides of `tick`, if the counter never jumped.
    pub(crate) fn line(&self, tick: u64) -> Option<TickLine> {
        let [run] = self.runs.as_slice() else { return None };
        if self.alignment.is_some() {
            return None; // times of another clock use its own lines
        }
        let (from, to) = run.line(tick)?;
        // 0 is not a stamp, and no tick has the bit set.
        let stamps = from.tick > 0 && to.tick & STAMP_IS_MONOTONIC == 0;
        if !stamps || !(from.tick..to.tick).contains(&tick) {
            return None;
        }
        let epoch = self.to_epoch(from.ns.into())?;
        let (ns, ticks) = (to.ns - from.ns, to.tick - from.tick);
        Some(TickLine { from: from.tick, to: to.tick, epoch, ns, ticks })
    }

    pub(crate) fn to_epoch(&self, monotonic: i128) -> Option<i64> {
        i64::try_from(self.aligned(monotonic.checked_add(self.epoch?.0)?)).ok()
    }
}

impl TickRun {
    /// The line that converts `tick`: two points.
    fn line(&self, tick: u64) -> Option<(TickPoint, TickPoint)> {
        let points = &self.0;
        let last = points.len().checked_sub(2)? + 1;
        let (from, to) = match points.partition_point(|point| point.tick <= tick) {
            0 => (0, last.min(FAR)),
            after if after > last => (last - last.min(FAR), last),
            after => (after - 1, after),
        };
        Some((points[from], points[to]))
    }

    fn convert(&self, tick: u64, hz: Option<u64>) -> Option<i128> {
        let first = *self.0.first()?;
        let (near, ns, ticks) = match self.line(tick) {
            Some((from, to)) => {
                let near = if tick >= to.tick { to } else { from };
                (near, i128::from(to.ns - from.ns), i128::from(to.tick - from.tick))
            }
            None => (first, 1_000_000_000, i128::from(hz?)),
        };
        let since = i128::from(tick) - i128::from(near.tick);
        since.checked_mul(ns)?.div_euclid(ticks).checked_add(near.ns.into())
    }

    /// Half the width of a reading.
    fn slack_ns(&self, point: TickPoint) -> i128 {
        let (Some(first), Some(last)) = (self.0.first(), self.0.last()) else { return 0 };
        let (ns, ticks) = (last.ns - first.ns, last.tick - first.tick);
        match ticks {
            0 => point.slack.into(),
            ticks => (i128::from(point.slack) * i128::from(ns)) / i128::from(ticks) + 1,
        }
    }

    /// The error of the worst reading. `None` if there are fewer than two.
    fn error_ns(&self) -> Option<u64> {
        let (_, _) = (self.0.first()?, self.0.get(1)?);
        let width = self.0.iter().map(|&point| self.slack_ns(point)).max().unwrap_or(0);
        let off = self.0.windows(3).map(|window| {
            let without = TickRun(vec![window[0], window[2]]);
            let expected = without.convert(window[1].tick, None).unwrap_or(0);
            expected.saturating_sub(window[1].ns.into()).saturating_abs()
        });
        Some(u64::try_from(off.max().unwrap_or(0).saturating_add(width)).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stamps::{Stamps, TimeNamespace};

    fn tick(tick: u64, ns: u64) -> ClockReading {
        ClockReading {
            a: ClockId::Tick,
            a_before: tick - 1,
            b: ClockId::Monotonic,
            b_value: ns,
            a_after: tick + 1,
            distrusted: false,
        }
    }

    fn real(mono: u64, real: u64) -> ClockReading {
        ClockReading::exact(ClockId::Monotonic, mono, ClockId::Realtime, real)
    }

    const SECOND: u64 = 1_000_000_000;
    const EVER: u64 = u64::MAX;

    /// A reading each second of a counter of 2 GHz that shows `offset` at 0.
    fn seconds(range: std::ops::Range<u64>, offset: i64) -> Vec<ClockReading> {
        let at = |s: u64| tick((s * 2 * SECOND).strict_add_signed(offset), s * SECOND);
        range.map(at).collect()
    }

    #[test]
    fn ticks_follow_the_lines_between_readings() {
        let mut table = ClockTable::default();
        table.add(&[tick(1000, 100), tick(2000, 200), tick(3000, 400), real(100, 5100)]);
        assert_eq!(table.tick_to_monotonic(1500, EVER), Some(150));
        assert_eq!(table.tick_to_monotonic(2500, EVER), Some(300));
        assert_eq!(table.tick_to_monotonic(5000, EVER), Some(700), "prolonged");
        assert_eq!(table.tick_to_monotonic(400, EVER), Some(10), "prolonged to the front");
        assert_eq!(table.tick_to_epoch(1500, EVER), Some(5150));
        assert!(table.tick_steps().is_empty());
    }

    #[test]
    fn one_reading_needs_the_nominal_rate() {
        let mut table = ClockTable::default();
        assert_eq!(table.tick_to_monotonic(7, EVER), None);
        table.add(&[tick(1000, 100)]);
        assert_eq!(table.tick_to_monotonic(2000, EVER), None);
        assert_eq!(table.tick_error_ns(), None);
        table.set_tick_hz(1_000_000_000);
        assert_eq!(table.tick_to_monotonic(2000, EVER), Some(1100));
    }

    #[test]
    fn a_step_is_listed_and_not_folded_in() {
        let mut table = ClockTable::default();
        table.add(&[real(100, 5100), real(200, 5201), real(300, 1_000_005_301)]);
        assert_eq!(table.epoch_offset(), Some(5000));
        assert_eq!(table.steps(), [(300, 1_000_000_000)]);
        assert_eq!(table.epoch_error_ns(), Some(1), "the change that was no step");
    }

    #[test]
    fn extremes_do_not_overflow() {
        let mut table = ClockTable::default();
        table.add(&[
            tick(1, 0),
            tick(2, u64::MAX - 1),
            real(0, u64::MAX),
            tick(u64::MAX - 1, EVER),
        ]);
        table.tick_to_monotonic(u64::MAX, 0);
        table.tick_to_monotonic(0, 0);
        table.tick_error_ns();
        assert_eq!(table.tick_to_epoch(u64::MAX, EVER), None);
    }

    #[test]
    fn a_counter_that_jumps_ahead_is_read_on_either_side() {
        let mut table = ClockTable::default();
        let jump = 5 * SECOND;
        table.add(&seconds(1..4, 0));
        table.add(&seconds(4..7, 2 * jump as i64));
        let step = TickStep { between: (3 * SECOND, 4 * SECOND), by_ns: jump.into() };
        assert_eq!(table.tick_steps(), [step]);
        // Half a second before the jump, and half a second after it.
        assert_eq!(table.tick_to_monotonic(7 * SECOND, EVER), Some(3_500_000_000));
        assert_eq!(table.tick_to_monotonic(19 * SECOND, EVER), Some(4_500_000_000));
        assert_eq!(table.tick_to_monotonic(12 * SECOND, EVER), None, "jumped over");
        assert_eq!(table.tick_error_ns(), None, "no realtime");
    }

    #[test]
    fn repeated_ticks_are_distinguished_by_the_time_of_their_drain() {
        let mut table = ClockTable::default();
        table.add(&seconds(10..13, 0));
        table.add(&seconds(13..16, -4 * SECOND as i64));
        assert_eq!(table.tick_steps()[0].by_ns, -2 * i128::from(SECOND));
        // 12 s by the first run; 14 s by the second one.
        let twice = 24 * SECOND;
        assert_eq!(table.tick_to_monotonic(twice, 12 * SECOND + 5), Some(12_000_000_000));
        assert_eq!(table.tick_to_monotonic(twice, 14 * SECOND + 5), Some(14_000_000_000));
        // A counter that restarts.
        let mut table = ClockTable::default();
        table.add(&seconds(10..13, 0));
        table.add(&[tick(100, 13 * SECOND), tick(100 + 2 * SECOND, 14 * SECOND)]);
        assert_eq!(table.tick_to_monotonic(100 + SECOND, EVER), Some(13_500_000_000));
        assert_eq!(table.tick_to_monotonic(23 * SECOND, 12 * SECOND), Some(11_500_000_000));
    }

    #[test]
    fn the_error_is_what_the_worst_reading_says() {
        let mut table = ClockTable::default();
        let mut readings = seconds(1..9, 0);
        readings[4].b_value += 400;
        table.add(&readings);
        table.add(&[real(1, 10)]);
        let error = table.tick_error_ns().unwrap();
        assert!((400..=402).contains(&error), "{error}");
        assert!(table.tick_steps().is_empty());
    }

    #[test]
    fn distrusted_readings_are_no_evidence() {
        let mut table = ClockTable::default();
        table.add(&seconds(1..3, 0));
        let wrong = ClockReading { distrusted: true, ..tick(1, 3 * SECOND) };
        table.add(&[wrong]);
        assert_eq!((table.distrusted(), table.tick_readings()), (Some(3 * SECOND), 2));
        assert_eq!(table.tick_to_monotonic(3 * SECOND, EVER), Some(1_500_000_000));
    }

    #[test]
    fn a_stamp_says_what_it_counts() {
        let mut table = ClockTable::default();
        table.add(&seconds(1..3, 0));
        table.add(&[real(0, 1000)]);
        let stamps = Stamps::new(&table, EVER, TimeNamespace::SAME);
        assert_eq!(stamps.epoch(0), None);
        assert_eq!(stamps.epoch(3 * SECOND), Some(1_500_001_000));
        assert_eq!(stamps.epoch(STAMP_IS_MONOTONIC | 77), Some(1077));
        let ahead = TimeNamespace { monotonic: 7, boottime: Some(0) };
        assert_eq!(Stamps::new(&table, EVER, ahead).epoch(STAMP_IS_MONOTONIC | 77), Some(1070));
    }

    #[test]
    fn a_kept_line_says_what_the_table_says() {
        let mut table = ClockTable::default();
        table.add(&[tick(1000, 100), tick(2001, 207), tick(3000, 50_400), real(100, 5103)]);
        table.add(&[tick(STAMP_IS_MONOTONIC - 1, u64::MAX / 3)]);
        let stamps = Stamps::new(&table, EVER, TimeNamespace::SAME);
        // Miri is slow.
        let step = if cfg!(miri) { 97 } else { 1 };
        let ticks = (1..4000u32).step_by(step).map(u64::from).chain([
            1 << 40,
            1 << 62,
            STAMP_IS_MONOTONIC - 1,
        ]);
        for tick in ticks.clone().chain(ticks.rev()) {
            assert_eq!(stamps.epoch(tick), table.tick_to_epoch(tick, EVER), "{tick}");
        }
    }

    #[test]
    fn boot_time_is_placed_by_the_first_readings() {
        let mut table = ClockTable::default();
        let boottime = |mono, boot| ClockReading { b: ClockId::Boottime, ..real(mono, boot) };
        let ahead = TimeNamespace { monotonic: 7, boottime: Some(3) };
        table.add(&[boottime(100, 150)]);
        assert_eq!(Stamps::new(&table, EVER, ahead).boottime_to_epoch(153), None);
        // It slept for 1,000 ns: the offset to realtime is the same.
        table.add(&[real(100, 5100), real(200, 6200), boottime(200, 1250)]);
        assert_eq!(Stamps::new(&table, EVER, ahead).boottime_to_epoch(153), Some(5100));
        assert_eq!(Stamps::new(&table, EVER, ahead).boottime_to_epoch(1253), Some(6200));
    }
}
