//! The process that answers statements typed at the prompt.
//!
//! Both sides speak JSON, a line each, over a pair of sockets. A request is the typed text. The reply
//! is the list of statements that changed the session, such as `CREATE VIEW`. If the process had to be
//! ended, another one replaces it, and repeats these statements.

use std::io::{self, BufRead, BufReader, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

use ppt_query::{QueryError, statements};
use ppt_signals::SignalPipe;
use signal_hook::consts::SIGINT;

use super::session::SqlSession;
use super::tables;
use crate::error::AnswerError;
use crate::memory::Memory;
use crate::message;
use crate::question_settings::QuestionSettings;
use crate::supervisor::{ChildEnd, ChildProcess, Waited, channel};

/// The supervisor's side.
pub(super) struct Answerer {
    memory: Memory,
    question: ChildProcess,
    replies: BufReader<UnixStream>,
    /// Statements that changed the session.
    changes: Vec<String>,
}

/// Result of a text.
pub(super) enum Answered {
    /// The question was answered or ended: the session continues.
    Done,
    /// The session is over.
    Ended(ChildEnd),
}

/// The reply of the process, or its end.
type Reply = Result<Vec<String>, ChildEnd>;

impl Answerer {
    /// Starts a process, which opens the captures. [`Answerer::opened`] waits for it.
    pub(super) fn start(memory: Memory) -> Result<Answerer, AnswerError> {
        let (question, replies) = begin(memory)?;
        Ok(Answerer { memory, question, replies, changes: Vec::new() })
    }

    /// Waits until the captures are open. If the process cannot open them, it reports why, and ends.
    pub(super) fn opened(&mut self, wakes: &SignalPipe) -> Answered {
        self.reply(wakes).map_or_else(Answered::Ended, |_| Answered::Done)
    }

    /// Lets the process answer a text.
    pub(super) fn answer(
        &mut self,
        text: &str,
        wakes: &SignalPipe,
    ) -> Result<Answered, AnswerError> {
        match self.ask(text, wakes) {
            Ok(changes) => {
                self.changes.extend(changes);
                // Ctrl-C ends only the question.
                match self.question.stopped().filter(|signal| *signal != SIGINT) {
                    Some(signal) => Ok(Answered::Ended(ChildEnd::Stopped(signal))),
                    None => Ok(Answered::Done),
                }
            }
            Err(end @ ChildEnd::Exited(_)) => Ok(Answered::Ended(end)),
            Err(end @ ChildEnd::Stopped(signal)) if signal != SIGINT => Ok(Answered::Ended(end)),
            Err(end) => {
                self.question.terminal.restore(false);
                end.print(self.memory);
                self.begin_again(wakes)
            }
        }
    }

    /// Ends the process, which reports missing frames.
    pub(super) fn finish(&mut self, wakes: &SignalPipe) -> ChildEnd {
        let _ = self.replies.get_ref().shutdown(std::net::Shutdown::Write);
        self.question.wait(wakes)
    }

    fn begin_again(&mut self, wakes: &SignalPipe) -> Result<Answered, AnswerError> {
        (self.question, self.replies) = begin(self.memory)?;
        if let Err(end) = self.reply(wakes) {
            return Ok(Answered::Ended(end));
        }
        for change in self.changes.clone() {
            if let Err(end) = self.ask(&change, wakes) {
                return Ok(Answered::Ended(end));
            }
        }
        message::note(match self.changes.len() {
            0 => "the question was ended",
            _ => "the question was ended; the views and settings of the session are there again",
        });
        Ok(Answered::Done)
    }

    fn ask(&mut self, text: &str, wakes: &SignalPipe) -> Reply {
        let line = serde_json::Value::from(text).to_string() + "\n";
        // If the process has ended, waiting for the reply reports it.
        let _ = self.replies.get_mut().write_all(line.as_bytes());
        self.reply(wakes)
    }

    fn reply(&mut self, wakes: &SignalPipe) -> Reply {
        let socket = self.replies.get_ref();
        if let Waited::Ended(end) = self.question.wait_or_read(wakes, Some(socket.as_fd())) {
            return Err(end);
        }
        let mut line = String::new();
        match self.replies.read_line(&mut line) {
            Ok(1..) => Ok(serde_json::from_str(&line).unwrap_or_default()),
            // The process has ended.
            Ok(0) | Err(_) => Err(self.question.wait(wakes)),
        }
    }
}

fn begin(memory: Memory) -> Result<(ChildProcess, BufReader<UnixStream>), AnswerError> {
    let (socket, stdin) = channel().map_err(|error| AnswerError::System("make a socket", error))?;
    let question = ChildProcess::start(QuestionSettings::new(memory, true), stdin)?;
    Ok((question, BufReader::new(socket)))
}

/// The process's side: answers until the supervisor closes its socket.
pub(super) fn serve(session: &SqlSession) -> Result<(), AnswerError> {
    let fail = |error| AnswerError::System("talk to the prompt", error);
    ppt_signals::end_nothing();
    let socket = io::stdin().as_fd().try_clone_to_owned().map_err(fail)?;
    let socket = UnixStream::from(socket);
    let mut replies = socket.try_clone().map_err(fail)?;
    let reply = |replies: &mut UnixStream, changes: &[String]| {
        let line = serde_json::Value::from(changes).to_string() + "\n";
        replies.write_all(line.as_bytes())
    };
    reply(&mut replies, &[]).map_err(fail)?;
    for line in BufReader::new(socket).lines() {
        let text: String = serde_json::from_str(&line.map_err(fail)?).unwrap_or_default();
        ppt_signals::end_work();
        let mut changes = Vec::new();
        answer(session, &text, &mut changes);
        ppt_signals::end_nothing();
        reply(&mut replies, &changes).map_err(fail)?;
    }
    Ok(())
}

fn print(error: &AnswerError) {
    message::error(error.code(), error.message());
}

/// Answers a text; prints errors, and continues.
fn answer(session: &SqlSession, text: &str, changes: &mut Vec<String>) {
    let mut out = io::stdout();
    if tables::is_request(text) {
        let _ = tables::answer(&session.engine, text, &mut out);
        return;
    }
    let all = match statements(text) {
        Ok(all) => all,
        Err(error) => return print(&error.into()),
    };
    let is_one = all.len() == 1;
    for statement in all {
        let change = if is_one { text.to_owned() } else { statement.to_string() };
        let done = session.one(statement, &mut out, "standard output");
        let _ = out.flush();
        match done {
            Ok(has_rows) => changes.extend((!has_rows).then_some(change)),
            Err(AnswerError::Query(QueryError::Cancelled)) => {
                // If a step does not end, the supervisor ends this process.
                session.wait_for_rest();
                return message::note("cancelled");
            }
            Err(failure) => return print(&failure),
        }
    }
}
