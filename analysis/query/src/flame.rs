//! The data of `ppt plot --flame`: how often threads ran in which functions, and their callers.

use std::collections::HashMap;

use futures::StreamExt;

use crate::engine::{BoxedAnswer, Engine};
use crate::error::QueryError;
use crate::stacks::{StackBatch, StackRow, StackState};
use crate::why::WhyQuestion;

/// The stacks to add up.
#[derive(Debug, Clone, Default)]
pub struct FlameRequest {
    /// Divide the stacks into those within the slowest of these intervals, and the others. None to keep all
    /// stacks together.
    pub slowest: Option<WhyQuestion>,
    /// Take the stacks of threads that began to wait, instead of threads that ran.
    pub waits: bool,
}

/// Stacks that were added up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flame {
    /// All functions, each after its caller. The first node is the root, which is no function.
    pub nodes: Vec<FlameNode>,
}

/// A function, called by a certain chain of callers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FlameNode {
    /// `rdbSaveRio (redis-server)`.
    pub function: String,
    /// The place of its caller in the list.
    pub caller: usize,
    /// The number of callers above the function.
    pub depth: usize,
    /// The number of stacks that contain the function with these callers.
    pub count: u64,
}

/// The stacks within the slowest intervals, and the others; or all of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flames {
    /// The number of intervals, and the stacks within them.
    pub slowest: Option<(usize, Flame)>,
    /// The other stacks.
    pub others: Flame,
}

/// Stands for the callers that a deep stack had no room for.
const CUT: &str = "…";

impl Default for Flame {
    fn default() -> Flame {
        let root = FlameNode { function: String::new(), caller: 0, depth: 0, count: 0 };
        Flame { nodes: vec![root] }
    }
}

impl Flame {
    /// The number of stacks.
    pub fn count(&self) -> u64 {
        self.nodes[0].count
    }

    /// The greatest depth of a node.
    pub fn depth(&self) -> usize {
        self.nodes.iter().map(|node| node.depth).max().unwrap_or(0)
    }
}

/// Adds up stacks.
#[derive(Default)]
struct FlameBuilder {
    flame: Flame,
    places: HashMap<(usize, String), usize>,
}

impl FlameBuilder {
    /// Adds a stack, the innermost function first.
    fn add(&mut self, functions: &[impl AsRef<str>]) {
        self.flame.nodes[0].count += 1;
        let mut caller = 0;
        for function in functions.iter().rev().map(AsRef::as_ref) {
            let nodes = &mut self.flame.nodes;
            let depth = nodes[caller].depth + 1;
            let place = *self.places.entry((caller, function.to_owned())).or_insert_with(|| {
                nodes.push(FlameNode { function: function.to_owned(), caller, depth, count: 0 });
                nodes.len() - 1
            });
            nodes[place].count += 1;
            caller = place;
        }
    }

    fn add_row(&mut self, stack: &StackRow<'_>) {
        let mut functions: Vec<_> = stack.functions().collect();
        if stack.is_cut() {
            functions.push(CUT.into());
        }
        self.add(&functions);
    }
}

/// Intervals by thread.
struct IntervalsByThread<'a>(HashMap<FlameThread<'a>, Vec<FlameInterval>>);

/// Host, process and thread.
type FlameThread<'a> = (&'a str, i64, i64);

/// From and to, ns since the epoch.
type FlameInterval = (i64, i64);

impl IntervalsByThread<'_> {
    /// Whether the stack was taken within one of the intervals of its thread.
    fn contains(&self, stack: &StackRow<'_>) -> bool {
        let Some(all) = self.0.get(&(stack.host, stack.pid, stack.thread)) else { return false };
        let begun = all.partition_point(|interval| interval.0 <= stack.ts);
        // Overlapping intervals were joined, so only the last one that has begun can contain the time.
        all[..begun].last().is_some_and(|interval| stack.ts <= interval.1)
    }

    /// Joins overlapping intervals.
    fn join(&mut self) {
        for all in self.0.values_mut() {
            all.sort_unstable();
            let mut joined: Vec<(i64, i64)> = Vec::new();
            for &(from, to) in all.iter() {
                match joined.last_mut() {
                    Some(last) if from <= last.1 => last.1 = last.1.max(to),
                    _ => joined.push((from, to)),
                }
            }
            *all = joined;
        }
    }
}

impl Engine {
    /// Adds up the stacks of all threads.
    ///
    /// # Errors
    /// There are no stacks, or no such intervals: see [`QueryError`].
    pub fn flames<'a>(&'a self, request: &'a FlameRequest) -> BoxedAnswer<'a, Flames> {
        Box::pin(async move {
            let Some(stacks) = self.stacks().await? else { return Err(QueryError::NoStacks) };
            let slow = match &request.slowest {
                Some(why) => self.slowest_only(why).await?,
                None => Vec::new(),
            };
            let mut within = IntervalsByThread(HashMap::new());
            for one in &slow {
                if let (Some(pid), Some(tid)) = (one.pid, one.tid) {
                    let thread = (one.host.as_str(), pid.into(), tid.into());
                    within.0.entry(thread).or_default().push((one.ts, one.ts + one.dur));
                }
            }
            within.join();
            let state = if request.waits { StackState::Waited } else { StackState::Ran };
            let (mut inside, mut others) = (FlameBuilder::default(), FlameBuilder::default());
            let mut stream = stacks.execute_stream().await?;
            while let Some(batch) = stream.next().await {
                let batch = StackBatch::new(&batch?)?;
                for stack in batch.rows().filter(|stack| stack.state == state) {
                    let to = if within.contains(&stack) { &mut inside } else { &mut others };
                    to.add_row(&stack);
                }
            }
            let slowest = request.slowest.as_ref().map(|_| (slow.len(), inside.flame));
            Ok(Flames { slowest, others: others.flame })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_are_added_up_by_callers() {
        let mut builder = FlameBuilder::default();
        builder.add(&["malloc", "save", "main"]);
        builder.add(&["save", "main"]);
        builder.add(&["malloc", "main"]);
        builder.add(&["malloc", "save", "main"]);
        let found: Vec<_> = builder
            .flame
            .nodes
            .iter()
            .map(|node| (node.function.as_str(), node.caller, node.depth, node.count))
            .collect();
        let expected = [
            ("", 0, 0, 4),
            ("main", 0, 1, 4),
            ("save", 1, 2, 3),
            ("malloc", 2, 3, 2),
            ("malloc", 1, 2, 1),
        ];
        assert_eq!(found, expected);
        assert_eq!((builder.flame.count(), builder.flame.depth()), (4, 3));
    }

    #[test]
    fn overlapping_intervals_are_joined() {
        let mut within = IntervalsByThread(HashMap::new());
        within.0.insert(("", 1, 2), vec![(50, 60), (0, 30), (10, 20), (30, 40)]);
        within.join();
        assert_eq!(within.0[&("", 1, 2)], [(0, 40), (50, 60)]);
    }
}
