//! The feed that says when an experiment slowed down what.

use ppt_kernel::{Builtin, ROUNDS_BUFFER, RoundLog};
use ppt_listener::Feed;

use super::{Live, feed};
use crate::failure::Failure;

impl Live<'_> {
    /// Also captures what is written into `log`.
    pub(crate) fn log_rounds(&mut self, log: &RoundLog) -> Result<(), Failure> {
        let Some(member) = self.members.first() else { return Ok(()) };
        self.has_experiment = true;
        let builtin = Builtin::rounds();
        let source = ppt_listener::Source {
            schema_json: builtin.json.clone(),
            schema_hash: builtin.hash,
            kind: ROUNDS_BUFFER.into(),
            buffer: ROUNDS_BUFFER.into(),
            process: ppt_listener::Process {
                // Its timestamps are ppt's own.
                time_offsets: Vec::new(),
                ..feed::process(member.session.target())
            },
            ..Default::default()
        };
        let feed = Feed { populated: 1, ..Feed::starting_now(source, log.segment()) };
        let name = self.outputs.name();
        self.listener.add(vec![feed]).map_err(|error| Failure::listener(&name, error))?;
        self.dropped.push(Default::default());
        self.names.push(ROUNDS_BUFFER.to_owned());
        Ok(())
    }
}
