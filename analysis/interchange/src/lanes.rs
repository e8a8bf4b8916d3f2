//! Distributes the slices of one thread over lanes so that the slices of a lane nest.

/// Maximum number of lanes of a thread; further slices become instants.
const MAX_LANES: usize = 500;

/// The lanes of one thread, each with the ends of its open slices, the innermost last.
#[derive(Debug, Default)]
pub(crate) struct Lanes {
    open: Vec<Vec<i64>>,
}

impl Lanes {
    /// The lane of a slice that begins no earlier than those before it; None if there are too many lanes.
    /// `closed` receives slices that end before it: lane and time.
    ///
    /// # Errors
    /// `closed` fails.
    pub fn place<E>(
        &mut self,
        begin: i64,
        end: i64,
        mut closed: impl FnMut(usize, i64) -> Result<(), E>,
    ) -> Result<Option<usize>, E> {
        for (number, lane) in self.open.iter_mut().enumerate() {
            while let Some(last) = lane.pop_if(|last| *last <= begin) {
                closed(number, last)?;
            }
            if lane.last().is_none_or(|&last| end <= last) {
                lane.push(end);
                return Ok(Some(number));
            }
        }
        if self.open.len() == MAX_LANES {
            return Ok(None);
        }
        self.open.push(vec![end]);
        Ok(Some(self.open.len() - 1))
    }

    /// The open slices, the innermost of each lane first.
    pub fn close(self) -> impl Iterator<Item = (usize, i64)> {
        let lanes = self.open.into_iter().enumerate();
        lanes.flat_map(|(number, lane)| lane.into_iter().rev().map(move |end| (number, end)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lanes of slices, and the number of ends.
    fn placed(slices: &[(i64, i64)]) -> (Vec<Option<usize>>, usize) {
        let (mut lanes, mut ends) = (Lanes::default(), 0);
        let mut place = |&(begin, end): &(i64, i64)| {
            let closed = |_, _| {
                ends += 1;
                Ok::<_, ()>(())
            };
            lanes.place(begin, end, closed).unwrap()
        };
        let placed = slices.iter().map(&mut place).collect();
        ends += lanes.close().count();
        (placed, ends)
    }

    #[test]
    fn slices_of_a_lane_nest() {
        let slices = [(0, 10), (0, 5), (5, 5), (5, 12), (6, 9), (10, 10), (11, 13), (20, 21)];
        let lanes = [0, 0, 0, 1, 0, 0, 0, 0].map(Some).to_vec();
        assert_eq!(placed(&slices), (lanes, slices.len()), "each ends once");
    }

    #[test]
    fn there_are_not_more_lanes_than_anybody_can_see() {
        let slices: Vec<_> = (0..1000).map(|number| (number, 5000 + number)).collect();
        let (lanes, ends) = placed(&slices);
        assert_eq!(lanes[..MAX_LANES], (0..MAX_LANES).map(Some).collect::<Vec<_>>());
        assert!(lanes[MAX_LANES..].iter().all(Option::is_none) && ends == MAX_LANES);
    }
}
