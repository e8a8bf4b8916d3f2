//! The end of a capture.

use ppt_agent::Session;
use ppt_listener::EndReason;

use super::follow::Follow;
use super::options::CaptureForm;
use super::{CaptureEnd, Live, filter, flight, messages};
use crate::failure::Failure;
use crate::report;

/// The result of a capture.
pub(crate) struct Finished {
    /// Whether everything succeeded.
    pub(crate) ok: bool,
    /// Pid and name of the processes that were captured to the end.
    pub(crate) still_running: Vec<(i32, String)>,
}

impl Live<'_> {
    pub(super) fn listener_ended(&self) -> CaptureEnd {
        match self.listener.progress().ended {
            Some(EndReason::MaxSize) => {
                CaptureEnd::new(EndReason::MaxSize, "the capture has its full size")
            }
            // The summary reports disk errors; a closed pipe is not an error.
            _ => CaptureEnd::new(EndReason::Failed, ""),
        }
    }

    /// Ends the capture.
    pub(crate) fn finish(mut self, end: Result<CaptureEnd, Failure>) -> Finished {
        let end = end.unwrap_or_else(|failure| {
            self.ok = false;
            CaptureEnd::new(EndReason::Failed, failure.message())
        });
        self.control_socket = None;
        self.report_unmatched();
        let mut members = std::mem::take(&mut self.members);
        members.iter_mut().for_each(|member| self.close(member));
        let kernel = self.end_kernel();
        self.status.clear();
        if !end.message.is_empty() && end.message != self.last_message && !self.options.quiet {
            report::note(&end.message);
        }
        let mut summary = self.listener.finish(end.reason, end.message, self.dropped);
        // No option sets the number of slots of ppt's own rings.
        kernel.into_iter().for_each(|feed| summary.feeds[feed].enough_slots = None);
        for message in filter::messages(&self.remarks) {
            report::warning(filter::code(), message);
        }
        let mut still_running = Vec::new();
        for member in members {
            let target = member.session.target();
            if !target.ended() {
                still_running.push((target.pid(), target.comm().to_owned()));
            }
            self.finished.push(member.session);
        }
        self.finished.into_iter().chain(self.draining).for_each(Session::close);
        still_running.dedup();
        let name = self.outputs.name();
        let astray = self.outputs.astray().filter(|_| summary.error.is_none());
        let news: Vec<_> = self.outputs.news().into_iter().chain(astray).collect();
        news.iter().for_each(|(code, message)| report::error(*code, message));
        let kept = self.outputs.kept();
        let ok = self.ok & news.is_empty() & messages::problems(&name, kept, &self.names, &summary);
        self.follow.iter_mut().for_each(Follow::report_missed);
        // For a single process, the end of the capture reports this.
        if self.kind == CaptureForm::Command || self.processes > 1 {
            self.detached.report();
        }
        let time = self.started.elapsed();
        if let Some(flight) = &self.flight {
            self.ok &= flight::report(flight, self.options.quiet);
            if !self.options.quiet {
                let destination = flight::destination(flight, &name);
                messages::summary(("recorded", &destination), &summary, time);
            }
        } else if !self.options.quiet {
            messages::summary(
                ("captured", &messages::destination(&name, kept, &summary)),
                &summary,
                time,
            );
        }
        let ok = ok && self.ok;
        Finished { ok, still_running }
    }

    /// Ends a capture without frames; it leaves no file.
    pub(crate) fn discard(mut self) -> bool {
        let _ = self.listener.finish(EndReason::Stopped, String::new(), Vec::new());
        self.follow.iter_mut().for_each(Follow::report_missed);
        self.ok
    }
}
