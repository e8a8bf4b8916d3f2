//! Chooses the processes of a command.

use std::collections::BTreeSet;
use std::os::fd::AsFd;
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::Signal;
use ppt_agent::{AgentError, Buffer, Searcher, System, Target, Unsearched, escaped, may_be_of};

use crate::args::ProcessChoice;
use crate::code::Code;
use crate::descriptors::{self, Room};
use crate::failure::{Failure, failed};
use crate::live::timer;
use crate::report;
use crate::signals::Signals;
use crate::wording;

/// The interval of `--wait-for`. The kernel reports new processes only to root.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// A process, and the chosen ones of its buffers.
pub(crate) struct Chosen {
    pub(crate) target: Target,
    pub(crate) buffers: Vec<Buffer>,
}

impl Chosen {
    /// Each buffer with its process.
    pub(crate) fn buffers(&self) -> impl Iterator<Item = (&Target, &Buffer)> {
        self.buffers.iter().map(|buffer| (&self.target, buffer))
    }
}

/// Opens the processes that `which` names; at least one. `may_lack_buffers`: a process that is named by
/// its pid needs none.
pub(crate) fn processes(
    which: ProcessChoice<'_>,
    buffers: &[String],
    may_lack_buffers: bool,
) -> Result<Vec<Chosen>, Failure> {
    let system = System::default();
    match which {
        ProcessChoice::Pid(pid) => {
            let found = Target::with_buffers(&system, pid, buffers);
            if matches!(found, Err(AgentError::NoBuffers { .. })) && may_lack_buffers {
                let target = Target::open(&system, pid)?;
                return Ok(vec![Chosen { target, buffers: Vec::new() }]);
            }
            let (target, chosen, remarks) = found?;
            if buffers.is_empty() {
                remarks.refused.iter().for_each(|text| report::warning(Code::BufferRefused, text));
                if let Some(unsearched) =
                    remarks.unsearched.filter(|unsearched| unsearched.of_objects)
                {
                    not_searched(pid, &unsearched);
                }
            }
            Ok(vec![Chosen { target, buffers: chosen }])
        }
        ProcessChoice::Name(name) | ProcessChoice::WaitFor(name) => {
            let found = SearchResult::search(&system, ppt_agent::named(&system, name), buffers);
            let without = found.without.join("\n  ");
            let name = escaped(name);
            match (found.only(&name)?, without.is_empty()) {
                (Some(chosen), _) => Ok(vec![chosen]),
                (None, true) => Err(Failure::failed(
                    Code::NoSuchName,
                    format!(
                        "no process is called {name} (by short name, or by file name of the \
                         program); `ppt list` shows all processes with buffers, `--wait-for \
                         {name}` waits for one"
                    ),
                )),
                (None, false) => Err(Failure::failed(
                    Code::NoSuchName,
                    format!("no process called {name} has {}:\n  {without}", wanted(buffers)),
                )),
            }
        }
        ProcessChoice::All => {
            descriptors::raise_limit();
            let found = SearchResult::search(&system, ppt_agent::processes(&system), buffers);
            match (found.chosen.is_empty(), found.no_room) {
                (true, Some(error)) => Err(error.into()),
                (false, _) => {
                    report_left_out(&found.left_out, buffers);
                    Ok(found.chosen)
                }
                (true, None) => {
                    let in_part = match found.in_part {
                        0 => String::new(),
                        count => format!("\n  {count} processes were not searched completely"),
                    };
                    Err(Failure::failed(
                        Code::NothingToAttach,
                        format!(
                            "no process that you may read has {}; `ppt list` shows all buffers{in_part}",
                            wanted(buffers)
                        ),
                    ))
                }
            }
        }
    }
}

/// The children of `chosen` that have the same buffers and are not chosen themselves.
pub(crate) fn children_of(chosen: &[Chosen], wanted: &[String]) -> Vec<Chosen> {
    let system = System::default();
    let mut seen: BTreeSet<i32> = chosen.iter().map(|chosen| chosen.target.pid()).collect();
    let (mut children, mut room, mut left) = (Vec::new(), Room::default(), Vec::new());
    for Chosen { target, buffers } in chosen {
        let Some(origin) = target.origin() else { continue };
        for pid in ppt_agent::descendants(&system, target.pid()) {
            if seen.contains(&pid) || !may_be_of(&system, pid, [origin].iter()) {
                continue;
            }
            if !room.for_one_more() {
                left.extend(seen.insert(pid).then_some(pid));
                continue;
            }
            // Processes that have ended since, and other programs, are left out.
            let Ok(child) = Target::open(&system, pid) else { continue };
            let is_copy = child.origin() == Some(origin);
            let buffers =
                if is_copy { child.copies_of(buffers).unwrap_or_default() } else { vec![] };
            if !buffers.is_empty() && seen.insert(pid) {
                children.push(Chosen { target: child, buffers });
            }
        }
    }
    report_left_out(&left, wanted);
    children
}

/// Waits for the only process with the name `name`, or for a signal that arrives first.
pub(crate) fn wait_for(
    name: &str,
    buffers: &[String],
    signals: &Signals,
    quiet: bool,
) -> Result<Result<Vec<Chosen>, Signal>, Failure> {
    let system = System::default();
    let ticks = timer(POLL_INTERVAL, Some(POLL_INTERVAL))?;
    let shown = escaped(name);
    let mut reported = false;
    loop {
        let found = SearchResult::search(&system, ppt_agent::named(&system, name), buffers);
        if let Some(chosen) = found.only(&shown)? {
            return Ok(Ok(vec![chosen]));
        }
        if !std::mem::replace(&mut reported, true) && !quiet {
            report::note(format_args!(
                "waiting for a process called {shown} that has {}",
                wanted(buffers)
            ));
        }
        let watch = |fd| PollFd::new(fd, PollFlags::POLLIN);
        let mut fds = [watch(signals.as_fd()), watch(ticks.as_fd())];
        match poll(&mut fds, PollTimeout::NONE) {
            Ok(_) | Err(nix::Error::EINTR) => {}
            Err(error) => return Err(failed("wait")(error)),
        }
        let received = signals.next();
        if let Some(signal) = received.and_then(|it| Signal::try_from(it.number).ok()) {
            return Ok(Err(signal));
        }
        let _ = ticks.wait();
    }
}

/// The message that a signal ended the wait for a process.
pub(crate) fn wait_ended(name: &str, buffers: &[String], signal: Signal) -> String {
    format!(
        "{signal} ended the wait; no process called {} with {} was there, and nothing was captured",
        escaped(name),
        wanted(buffers)
    )
}

/// The result of a search over several processes.
#[derive(Default)]
struct SearchResult {
    chosen: Vec<Chosen>,
    /// Why the other processes were not chosen.
    without: Vec<String>,
    /// The number of those that were not searched completely.
    in_part: usize,
    /// Processes that would take more file descriptors than ppt may have.
    left_out: Vec<i32>,
    /// The first error because of that limit.
    no_room: Option<AgentError>,
}

impl SearchResult {
    fn search(system: &System, pids: Vec<i32>, buffers: &[String]) -> Self {
        let mut result = Self::default();
        let mut searcher = Searcher::of_many();
        let mut room = Room::default();
        for pid in pids {
            match choose(system, pid, buffers, &mut searcher) {
                Ok(chosen) if room.for_one_more() => result.chosen.push(chosen),
                Ok(_) => {
                    result.no_room.get_or_insert_with(|| descriptors::no_room(pid));
                    result.left_out.push(pid);
                }
                Err(error @ AgentError::TooManyFiles { .. }) => {
                    result.no_room.get_or_insert(error);
                }
                Err(error) => {
                    let is_cut = |unsearched: &String| !unsearched.is_empty();
                    result.in_part += usize::from(matches!(&error,
                        AgentError::NoBuffers { unsearched, .. } if is_cut(unsearched)));
                    result.without.push(wording::message(&error));
                }
            }
        }
        result
    }

    /// The only chosen process. If there are several, the error lists them.
    fn only(mut self, name: &str) -> Result<Option<Chosen>, Failure> {
        if self.chosen.len() < 2 {
            return Ok(self.chosen.pop());
        }
        let lines = self.chosen.iter().map(|chosen| {
            let names: Vec<_> = chosen.buffers.iter().map(|buffer| buffer.name.as_str()).collect();
            let (pid, exe) = (chosen.target.pid(), chosen.target.exe());
            format!("\n  {pid}  {exe}  ({})", names.join(", "))
        });
        Err(Failure::failed(
            Code::AmbiguousName,
            format!(
                "{} processes are called {name}; choose one by its pid:{}",
                self.chosen.len(),
                lines.collect::<String>()
            ),
        ))
    }
}

/// The chosen buffers of process `pid`.
fn choose(
    system: &System,
    pid: i32,
    buffers: &[String],
    searcher: &mut Searcher,
) -> Result<Chosen, AgentError> {
    let target = Target::open(system, pid)?;
    let found = searcher.buffers(&target)?;
    let chosen = target.choose(found, buffers)?;
    Ok(Chosen { target, buffers: chosen })
}

/// Reports the processes that would take more file descriptors than ppt may have.
fn report_left_out(pids: &[i32], buffers: &[String]) {
    if pids.is_empty() {
        return;
    }
    let numbers: Vec<String> = pids.iter().map(ToString::to_string).collect();
    let (count, wanted, limit) = (pids.len(), wanted(buffers), descriptors::limit());
    report::warning(
        descriptors::no_room(pids[0]).code(),
        format_args!(
            "{count} more processes have {wanted} and are left out, because at most {limit} files \
             may be open (ulimit -n): {}",
            numbers.join(", ")
        ),
    );
}

/// Reports that a process may have more buffers than ppt found.
pub(crate) fn not_searched(pid: i32, unsearched: &Unsearched) {
    report::warning(
        Code::NotSearched,
        format_args!(
            "process {pid} was not searched completely; left out to limit the cost: \
                      {unsearched}"
        ),
    );
}

fn wanted(buffers: &[String]) -> String {
    match buffers {
        [] => "ppt buffers".into(),
        names => {
            let names: Vec<_> = names.iter().map(|name| escaped(name)).collect();
            format!("buffer {}", names.join(", "))
        }
    }
}
