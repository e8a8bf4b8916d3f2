//! The status line of a capture.

use ppt_text::grouped;

use super::Live;
use super::kernel::KernelWatch;
use crate::measure::bytes;
use crate::report;

impl Live<'_> {
    /// Shows the number of frames so far.
    pub(super) fn show(&mut self) {
        let progress = self.listener.progress();
        let seconds = self.started.elapsed().as_secs_f64();
        let none = progress.captured == 0 && progress.left_out == 0;
        // The end of a probe says why there are no frames.
        let has_stopped = self.kernel.as_ref().is_some_and(KernelWatch::has_stopped);
        if none && !has_stopped && !self.has_reported_waiting && seconds > 1.0 {
            self.has_reported_waiting = true;
            if !self.options.quiet {
                self.status.clear();
                report::note(
                    "waiting for the first frame: the program has not reached a write yet",
                );
            }
        }
        let rate = progress.captured as f64 / seconds.max(0.001);
        self.status.show(format_args!(
            "{} frames, {}/s, {} lost, {}",
            grouped(progress.captured),
            grouped(rate as u64),
            grouped(progress.lost.total()),
            bytes(progress.bytes)
        ));
    }
}
