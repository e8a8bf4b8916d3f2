//! Answers other commands' requests to this session.

use ppt_listener::TriggerCause;

use super::control_socket::ControlSocket;
use super::{Live, Outputs};
use crate::session::{self, Ask, Captured, Recorder, SessionReply, SessionRequest, VERSION};

impl Live<'_> {
    /// Answers clients. The capturing threads do not wait for this.
    pub(super) fn answer_requests(&mut self) {
        let requests =
            self.control_socket.as_mut().map(ControlSocket::requests).unwrap_or_default();
        for (mut stream, request) in requests {
            let answer = match request {
                Ok(SessionRequest { v: VERSION, ask }) => self.answer(ask),
                Ok(_) => self.refusal("it speaks another version"),
                Err(error) => self.refusal(&error.to_string()),
            };
            // Errors are ignored: the client has left or does not read.
            let _ = session::write(&mut stream, &answer);
        }
    }

    fn answer(&mut self, ask: Ask) -> SessionReply {
        match ask {
            Ask::List => SessionReply {
                ok: true,
                processes: self.captured(),
                output: self.outputs.full_name(),
                flight: self.flight.as_ref().map(|flight| {
                    let progress = flight.progress();
                    let folder = match &self.outputs {
                        Outputs::Windows(windows) => windows.full_name(),
                        Outputs::Files(_) => String::new(),
                    };
                    Recorder { folder, written: progress.written, waiting: progress.waiting }
                }),
                ..self.refusal("")
            },
            Ask::Trigger { pid, .. } | Ask::Enable { pid, .. } | Ask::Disable { pid, .. }
                if !self.has(pid) =>
            {
                self.refusal(&format!("process {pid} is not captured any more"))
            }
            Ask::Trigger { note, .. } => match &self.flight {
                Some(flight) => {
                    flight.trigger(TriggerCause::Hand, None, note);
                    SessionReply { ok: true, ..self.refusal("") }
                }
                None => self.refusal("it has no flight recorder"),
            },
            Ask::Enable { .. } | Ask::Disable { .. } if self.has_experiment => SessionReply {
                experiment: true,
                ..self.refusal("its rounds need everything as it is; wait until it has ended")
            },
            Ask::Enable { pid, names } => self.choose_and_answer(pid, &names, true),
            Ask::Disable { pid, names } => self.choose_and_answer(pid, &names, false),
        }
    }

    /// The captured processes without duplicates; a process that loads libraries is several
    /// members.
    fn captured(&self) -> Vec<Captured> {
        let mut processes: Vec<Captured> = Vec::new();
        for member in &self.members {
            let target = member.session.target();
            let buffers = member.session.attached().iter().map(|buffer| buffer.buffer.name.clone());
            match processes.iter_mut().find(|process| process.pid == target.pid()) {
                Some(process) => process.buffers.extend(buffers),
                None => processes.push(Captured {
                    pid: target.pid(),
                    program: target.comm().into(),
                    buffers: buffers.collect(),
                    names: self.choosable(target.pid()),
                }),
            }
        }
        processes
    }

    fn choose_and_answer(&mut self, pid: i32, names: &[String], enabled: bool) -> SessionReply {
        match self.choose(pid, names, enabled) {
            Ok(changed) => SessionReply { ok: true, changed, ..self.refusal("") },
            Err(why) => self.refusal(&why),
        }
    }

    fn refusal(&self, error: &str) -> SessionReply {
        let ppt = std::process::id();
        SessionReply { v: VERSION, error: error.into(), ppt, ..SessionReply::default() }
    }
}
