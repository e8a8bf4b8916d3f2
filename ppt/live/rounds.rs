//! The feeds of an experiment: which interval had which speed, and the pauses of CPUs.

use std::sync::Arc;

use ppt_agent::Segment;
use ppt_kernel::{Builtin, RoundLog, VirtualClockLog};
use ppt_listener::Feed;

use super::{Live, feed};
use crate::failure::Failure;

impl Live<'_> {
    /// Also captures everything that is written into these logs.
    pub(crate) fn log_rounds(
        &mut self,
        log: &RoundLog,
        clock: Option<&VirtualClockLog>,
    ) -> Result<(), Failure> {
        self.has_experiment = true;
        self.add_builtin(Builtin::rounds(), log.segment())?;
        match clock {
            Some(clock) => self.add_builtin(Builtin::virtual_clock(), clock.segment()),
            None => Ok(()),
        }
    }

    fn add_builtin(
        &mut self,
        builtin: &'static Builtin,
        segment: Arc<Segment>,
    ) -> Result<(), Failure> {
        let Some(member) = self.members.first() else { return Ok(()) };
        let source = ppt_listener::Source {
            schema_json: builtin.json.clone(),
            schema_hash: builtin.hash,
            kind: builtin.buffer.into(),
            buffer: builtin.buffer.into(),
            process: ppt_listener::Process {
                // Its stamps are ppt's own.
                time_offsets: Vec::new(),
                ..feed::process(member.session.target())
            },
            ..Default::default()
        };
        let feed = Feed { populated: 1, ..Feed::starting_now(source, segment) };
        let name = self.outputs.name();
        self.listener.add(vec![feed]).map_err(|error| Failure::listener(&name, error))?;
        self.dropped.push(Default::default());
        self.names.push(builtin.buffer.to_owned());
        Ok(())
    }
}
