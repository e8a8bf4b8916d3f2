//! Counts the stacks of threads that ran in slow intervals.

use futures::StreamExt;

use super::answer::SlowInterval;
use super::cut::TimeUse;
use super::during::{StretchSweep, ThreadRow};
use super::functions::FunctionCounts;
use crate::engine::Engine;
use crate::error::QueryError;
use crate::stacks::{StackBatch, StackState};

impl Engine {
    /// Counts the stacks of threads that ran in these intervals.
    pub(super) async fn ask_stacks(&self, slow: &mut [SlowInterval]) -> Result<(), QueryError> {
        let threads: Vec<_> = slow.iter().map(SlowInterval::during).collect();
        let mut pids: Vec<i32> = threads.iter().filter_map(|thread| thread.pid).collect();
        pids.sort_unstable();
        pids.dedup();
        if pids.is_empty() {
            return Ok(());
        }
        let Some(stacks) = self.innermost_of(pids)? else { return Ok(()) };
        let mut stream = stacks.execute_stream().await?;
        let mut sweep = StretchSweep::new(&threads);
        let mut found = vec![FunctionCounts::default(); slow.len()];
        while let Some(batch) = stream.next().await {
            let batch = StackBatch::new(&batch?)?;
            for stack in batch.rows().filter(|stack| stack.state == StackState::Ran) {
                let Some(function) = stack.functions().next() else { continue };
                let (host, pid, tid) = (stack.host.to_owned(), stack.pid, stack.thread);
                let at =
                    ThreadRow { host, pid, tid, from: stack.ts, to: stack.ts.saturating_add(1) };
                sweep.each_overlapping(&at, |number| found[number].add(&function, 1));
            }
        }
        for (slow, mut functions) in slow.iter_mut().zip(found) {
            functions.sort();
            if let Some(ran) = slow.parts.iter_mut().find(|part| part.state == TimeUse::Running) {
                ran.functions = functions;
            }
        }
        Ok(())
    }
}
