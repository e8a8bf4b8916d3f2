//! Convex hulls: the points that bound a line.
//!
//! Delays are only ever added, so the lower hull of one direction and the upper hull of the other
//! contain all information of a window of packets about two clocks (Duda, Harrus, Haddad and
//! Bernard, "Estimating global time in distributed systems", ICDCS 1987). Filters of queued
//! packets, such as the coded pairs of Huygens (Geng et al., NSDI 2018), remove points that are not
//! on a hull: bounds hold with and without them.

/// A point: a position, and a bound there.
pub(super) type HullPoint = (f64, f64);

/// Reduces `points`, which are sorted, to their lower hull.
pub(super) fn lower(points: &mut Vec<HullPoint>) {
    let mut hull_len = 0;
    for i in 0..points.len() {
        let point = points[i];
        // Of two points at one position, the lower one.
        while hull_len > 0 && points[hull_len - 1].0 >= point.0 && points[hull_len - 1].1 >= point.1
        {
            hull_len -= 1;
        }
        if hull_len > 0 && points[hull_len - 1].0 >= point.0 {
            continue;
        }
        while hull_len > 1 && !turns_up(points[hull_len - 2], points[hull_len - 1], point) {
            hull_len -= 1;
        }
        points[hull_len] = point;
        hull_len += 1;
    }
    points.truncate(hull_len);
}

fn turns_up(a: HullPoint, b: HullPoint, c: HullPoint) -> bool {
    (b.0 - a.0) * (c.1 - a.1) > (c.0 - a.0) * (b.1 - a.1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// No line is below all hull points and above another point.
        #[test]
        fn a_hull_bounds_the_lines_that_all_points_bound(
            points in prop::collection::vec((-100..100i32, -100..100i32), 1..40),
            slope in -5.0..5.0,
        ) {
            let mut all: Vec<HullPoint> =
                points.iter().map(|&(x, y)| (f64::from(x), f64::from(y))).collect();
            all.sort_by(|a, b| a.0.total_cmp(&b.0));
            let mut hull = all.clone();
            lower(&mut hull);
            let least = |points: &[HullPoint]| {
                points.iter().map(|point| point.1 - slope * point.0).fold(f64::INFINITY, f64::min)
            };
            prop_assert!((least(&all) - least(&hull)).abs() < 1e-9);
            prop_assert!(hull.windows(2).all(|pair| pair[0].0 < pair[1].0));
            let bends = hull.windows(3).all(|points| turns_up(points[0], points[1], points[2]));
            prop_assert!(bends);
        }
    }
}
