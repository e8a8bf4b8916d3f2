//! The open slices of a thread. A slice is the parent of the events that it contains.

/// The maximum number of open slices of a thread. If more overlap, the first ones contain nothing.
const MAX_SLICES: usize = 500;

/// The open slices of one thread, in the order of their beginnings.
#[derive(Debug)]
pub(super) struct OpenSlices<T> {
    slices: Vec<(i64, T)>,
}

impl<T> Default for OpenSlices<T> {
    fn default() -> Self {
        OpenSlices { slices: Vec::new() }
    }
}

impl<T: Copy> OpenSlices<T> {
    /// The innermost slice that contains the time from `begin` to `end`. Begins of successive calls ascend.
    pub fn around(&mut self, begin: i64, end: i64) -> Option<T> {
        while self.slices.pop_if(|last| last.0 <= begin).is_some() {}
        let mut inner_first = self.slices.iter().rev();
        inner_first.find(|slice| slice.0 > begin && slice.0 >= end).map(|slice| slice.1)
    }

    /// Adds an open slice, which ends at `end`.
    pub fn push(&mut self, end: i64, slice: T) {
        if self.slices.len() >= MAX_SLICES {
            self.slices.remove(0);
        }
        self.slices.push((end, slice));
    }
}

#[cfg(test)]
mod tests {
    use super::super::ids::SpanContext;
    use super::*;

    #[test]
    fn the_innermost_slice_around_is_the_parent() {
        let context = |number| SpanContext { trace: [number; 16], span: [number; 8] };
        let mut open = OpenSlices::default();
        let mut parent = |begin, end, number| {
            let around = open.around(begin, end);
            open.push(end, context(number));
            around.map(|context| context.span[0])
        };
        assert_eq!(parent(0, 100, 1), None);
        assert_eq!(parent(10, 50, 2), Some(1));
        assert_eq!(parent(20, 60, 3), Some(1), "it overlaps 2");
        assert_eq!(parent(30, 40, 4), Some(3));
        assert_eq!(parent(40, 45, 5), Some(3), "4 has ended");
        assert_eq!(parent(55, 58, 6), Some(3), "2 has ended below 3");
        assert_eq!(parent(100, 101, 7), None);
    }

    #[test]
    fn open_slices_are_bounded() {
        let mut open = OpenSlices::default();
        for number in 0..10_000 {
            open.push(100_000 + number, SpanContext { trace: [1; 16], span: [1; 8] });
        }
        assert_eq!(open.slices.len(), MAX_SLICES);
    }
}
