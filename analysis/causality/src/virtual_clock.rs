//! Virtual time, in which pauses of CPUs do not count.

/// The time without pauses: V(t) = t − G(t).
#[derive(Debug, Clone, Default, PartialEq)]
pub struct VirtualClock {
    /// Points of G, in the order of time. It is constant before the first one.
    pub points: Vec<VirtualClockPoint>,
}

/// A point of G, which grows by `pause_rate` from there to the next point.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct VirtualClockPoint {
    /// The time, ns.
    pub time: i64,
    /// G, the sum of pauses until then, ns.
    pub paused: i64,
    /// The growth of the sum of pauses per ns of time, 0 to 1.
    pub pause_rate: f64,
}

impl VirtualClock {
    /// The virtual time of a time, in ns. It never runs backwards.
    pub fn at(&self, time: i64) -> i64 {
        let next = self.points.partition_point(|point| point.time <= time);
        let Some(before) = next.checked_sub(1).map(|before| self.points[before]) else {
            return time - self.points.first().map_or(0, |first| first.paused);
        };
        let grown = ((time - before.time) as f64 * before.pause_rate).round() as i64;
        time - before.paused - grown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn virtual_time_has_no_pauses() {
        let point = |time, paused, pause_rate| VirtualClockPoint { time, paused, pause_rate };
        let points =
            vec![point(100, 0, 0.5), point(200, 50, 0.0), point(300, 50, 0.2), point(400, 70, 0.0)];
        let clock = VirtualClock { points };
        let times = [0, 100, 150, 200, 250, 300, 350, 400, 500];
        let virtual_times = [0, 100, 125, 150, 200, 250, 290, 330, 430];
        assert_eq!(times.map(|time| clock.at(time)), virtual_times);
        assert_eq!(VirtualClock::default().at(7), 7);
    }
}
