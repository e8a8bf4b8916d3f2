//! One cell: its phases in order, and the files fetched.

use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::options::LabOptions;
use super::receive::{FileRefusal, Receiver};
use super::team::{HostReply, Team};
use super::via;
use crate::lab::error::CellFailure;
use crate::lab::manifest::{CellPrograms, RanCommand, RanEnd, RanPhase};
use crate::lab::plan::{Cell, ClockCondition, LabPlan, Resolved, Stop};
use crate::lab::progress::{LabEvent, Progress};
use crate::lab::wire::{
    CaptureRequest, ClockRole, Ended, HelperFailure, HelperMessage, HelperRequest,
};

/// Time limits for stopping and sending: in total, and without any message.
const END: Duration = Duration::from_secs(3600);
const STALL: Duration = Duration::from_secs(30);
/// Interval at which interruption is checked.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Least delay between the controller's request and the start of a phase.
const LEAD: Duration = Duration::from_millis(2);

pub(super) struct CellRun<'a> {
    pub(super) team: &'a mut Team,
    pub(super) plan: &'a LabPlan,
    pub(super) options: &'a LabOptions,
    pub(super) progress: &'a mut dyn Progress,
    /// The programs that phases started on hosts and did not stop.
    started: Vec<(String, Vec<usize>)>,
    /// The phase that measures clocks, and the host that probes the others.
    clock: Option<(String, usize)>,
    /// The longest response time of a helper.
    round: Duration,
    files: Receiver,
}

impl<'a> CellRun<'a> {
    pub(super) fn new(
        team: &'a mut Team,
        plan: &'a LabPlan,
        options: &'a LabOptions,
        progress: &'a mut dyn Progress,
        folder: &Path,
    ) -> Self {
        let files = Receiver::new(folder, plan.hosts.iter().map(|host| host.name.clone()));
        let round = Duration::ZERO;
        let (started, clock) = (Vec::new(), None);
        Self { team, plan, options, progress, started, clock, round, files }
    }

    /// Runs a cell. In every case its programs end, and their output is fetched from the hosts that
    /// still answer and are trusted.
    pub(super) fn run(mut self, cell: &Cell) -> (CellPrograms, Result<(), CellFailure>) {
        let mut ran = CellPrograms::default();
        let phases = self.plan.resolve(cell);
        let mut failure = self.begin().err();
        for phase in &phases {
            if failure.is_some() {
                break;
            }
            failure = self.phase(phase, &mut ran).err();
        }
        if failure.as_ref().is_none_or(CellFailure::keeps_helpers)
            && let Err(later) = self.end(&mut ran)
            && (failure.is_none() || !later.keeps_helpers())
        {
            // A host that no longer answers is reported before a program that failed.
            failure = Some(later);
        }
        if let Some(failure) = failure.as_ref().filter(|failure| !failure.keeps_helpers()) {
            self.salvage(failure, &mut ran);
        }
        ran.outputs = self.files.outputs();
        (ran, failure.map_or(Ok(()), Err))
    }

    fn everybody(&self) -> Vec<usize> {
        (0..self.plan.hosts.len()).collect()
    }

    fn begin(&mut self) -> Result<(), CellFailure> {
        "begin".clone_into(&mut self.team.phase);
        self.team.failures.clear();
        let begun = Instant::now();
        for host in self.everybody() {
            self.team.ask(host, HelperRequest::Begin);
        }
        let until = begun + STALL;
        self.team.gather(&self.everybody(), until, |message| match message {
            HelperMessage::Begun => Ok(()),
            other => Err(other),
        })?;
        self.round = begun.elapsed();
        Ok(())
    }

    fn phase(&mut self, phase: &Resolved, ran: &mut CellPrograms) -> Result<(), CellFailure> {
        self.team.phase.clone_from(&phase.name);
        self.progress.report(&LabEvent::Phase(&phase.name));
        let begun = Instant::now();
        let until = begun + phase.timeout;
        let timed = |failure| match failure {
            // Reports the limit of the phase, not the time left.
            CellFailure::Late { phase: name, unfinished, silent, .. } => {
                CellFailure::Late { phase: name, timeout: phase.timeout, unfinished, silent }
            }
            other => other,
        };
        self.stop(phase, until).map_err(timed)?;
        self.measure(phase, until).map_err(timed)?;
        let began = self.instants(until).map_err(timed)?;
        let starts = self.start(phase, until, &began, ran).map_err(timed)?;
        self.collect(phase, until).map_err(timed)?;
        if !starts.is_empty() {
            let hosts: Vec<usize> = starts.iter().map(|start| start.0).collect();
            let continues = |index: &&usize| {
                let action = phase.actions.iter().find(|action| action.0 == **index);
                action
                    .and_then(|action| action.1.command.as_ref())
                    .is_some_and(|command| !command.ends)
            };
            let continuing: Vec<usize> = hosts.iter().filter(continues).copied().collect();
            self.started.push((phase.name.clone(), continuing));
        }
        let name = |index: usize| self.team.name(index).to_owned();
        let starts = starts.into_iter().map(|(host, at)| (name(host), at)).collect();
        let took_ns = begun.elapsed().as_nanos() as u64;
        let began = self.clock.as_ref().map(|_| began);
        ran.phases.push(RanPhase { name: phase.name.clone(), took_ns, started: starts, began });
        Ok(())
    }

    /// Fails if a program has failed for which no request waited.
    fn unhurt(&self) -> Result<(), CellFailure> {
        match self.team.failures.first() {
            None => Ok(()),
            Some((host, failure)) => Err(self.failed(*host, failure.clone())),
        }
    }

    fn failed(&self, host: usize, failure: HelperFailure) -> CellFailure {
        let phase = self.team.phase.clone();
        let host = self.team.name(host).to_owned();
        CellFailure::Program { phase, host, failure: Box::new(failure) }
    }

    /// Programs that a phase stops end in reverse order of the phases that started them.
    fn stop(&mut self, phase: &Resolved, until: Instant) -> Result<(), CellFailure> {
        let stops = |host: usize, started: &str| {
            let action = phase.actions.iter().find(|action| action.0 == host);
            match action.and_then(|action| action.1.stop.as_ref()) {
                None => false,
                Some(Stop::All) => true,
                Some(Stop::Phases(names)) => names.iter().any(|name| name == started),
            }
        };
        let started = self.started.clone();
        for (at, (name, hosts)) in started.iter().enumerate().rev() {
            let (now, later): (Vec<usize>, Vec<usize>) =
                hosts.iter().partition(|host| stops(**host, name));
            self.stop_started(name, &now, until)?;
            if self.clock.as_ref().is_some_and(|(phase, host)| phase == name && now.contains(host))
            {
                self.clock = None;
            }
            self.started[at].1 = later;
        }
        self.unhurt()
    }

    fn stop_started(
        &mut self,
        phase: &str,
        hosts: &[usize],
        until: Instant,
    ) -> Result<(), CellFailure> {
        for &host in hosts {
            self.team.ask(host, HelperRequest::Stop { phase: phase.to_owned() });
        }
        self.team.gather(hosts, until, |message| match message {
            HelperMessage::Stopped => Ok(()),
            other => Err(other),
        })?;
        Ok(())
    }

    /// Starts a phase's programs on all hosts at the same time, and waits until all are ready or
    /// have ended. Returns each host's start time, by its own clock.
    fn start(
        &mut self,
        phase: &Resolved,
        until: Instant,
        began: &[(String, i64, i64)],
        ran: &mut CellPrograms,
    ) -> Result<Vec<(usize, i64)>, CellFailure> {
        let until = until + self.ahead();
        let mut left = Vec::new();
        for (host, action) in &phase.actions {
            let Some(command) = &action.command else { continue };
            let own = &self.plan.hosts[*host];
            let mut command = command.clone();
            command.words[0] = via::program(own, &command.words[0]);
            let capture = command.capture.then(|| CaptureRequest {
                ppt: via::ppt(own, self.options),
                file: format!("{}.{}.bin", phase.name, own.name),
            });
            let at = began.iter().find(|entry| entry.0 == own.name).map_or(0, |began| began.1);
            self.files.expect(*host, &phase.name, capture.is_some().then_some("bin"));
            ran.commands.push(RanCommand {
                host: own.name.clone(),
                phase: phase.name.clone(),
                words: command.words.clone(),
                env: command.env.clone(),
            });
            self.team.ask(
                *host,
                HelperRequest::Start { phase: phase.name.clone(), command, capture, at },
            );
            left.push(*host);
        }
        self.done(phase.timeout, until, &left)
    }

    /// Waits until these hosts have started their programs. Returns their start times.
    fn done(
        &mut self,
        timeout: Duration,
        until: Instant,
        hosts: &[usize],
    ) -> Result<Vec<(usize, i64)>, CellFailure> {
        let mut left = hosts.to_vec();
        let mut starts = Vec::new();
        while !left.is_empty() {
            if self.progress.is_interrupted() {
                let phase = self.team.phase.clone();
                return Err(self.instead(CellFailure::Interrupted { phase }, &left));
            }
            let now = Instant::now();
            let Some((host, answer)) = self.team.hear(until.min(now + POLL_INTERVAL))? else {
                if now < until {
                    continue;
                }
                return Err(self.team.late(timeout, &left));
            };
            match answer {
                HostReply::Message(HelperMessage::Done { started }) if left.contains(&host) => {
                    left.retain(|index| *index != host);
                    starts.push((host, started));
                }
                HostReply::Message(HelperMessage::Failed(failure)) => {
                    let failure = self.failed(host, *failure);
                    return Err(self.instead(failure, &left));
                }
                _ => return Err(self.team.unasked(host)),
            }
        }
        self.unhurt()?;
        Ok(starts)
    }

    /// A phase fails while these hosts are still awaited. A host that no longer answers is reported
    /// before the failure.
    fn instead(&mut self, failure: CellFailure, left: &[usize]) -> CellFailure {
        match self.team.give_up(left) {
            Ok((_, silent)) if silent.is_empty() => failure,
            Ok((unfinished, silent)) => {
                let (phase, timeout) = (self.team.phase.clone(), Duration::ZERO);
                CellFailure::Late { phase, timeout, unfinished, silent }
            }
            Err(worse) => worse,
        }
    }

    /// Starts clock measurement: the first host probes all others. It continues after the phase.
    fn measure(&mut self, phase: &Resolved, until: Instant) -> Result<(), CellFailure> {
        let measured =
            phase.actions.iter().filter_map(|action| Some((action.0, action.1.clock.clone()?)));
        let measured: Vec<(usize, ClockCondition)> = measured.collect();
        let [(first, clock), others @ ..] = &measured[..] else { return Ok(()) };
        if others.is_empty() {
            return Ok(());
        }
        let (name, others): (_, Vec<usize>) =
            (&phase.name, others.iter().map(|entry| entry.0).collect());
        let mut key = vec![0; 32];
        let filled = rustix::rand::getrandom(&mut key, rustix::rand::GetRandomFlags::empty());
        if filled != Ok(key.len()) {
            let (phase, path) = (name.clone(), "a key".into());
            return Err(CellFailure::Write {
                phase,
                path,
                cause: std::io::ErrorKind::Other.into(),
            });
        }
        self.started.push((name.clone(), measured.iter().map(|entry| entry.0).collect()));
        let addr = |host: usize| self.plan.hosts[host].addr.clone().unwrap_or_default();
        for &host in &others {
            self.part(name, host, &key, ClockRole::Answer(addr(host)), None);
        }
        self.done(phase.timeout, until, &others)?;
        let named =
            others.iter().map(|index| format!("{}={}", self.plan.hosts[*index].name, addr(*index)));
        let part = ClockRole::Ask { clock: clock.clone(), others: named.collect() };
        self.part(name, *first, &key, part, Some("sync"));
        self.done(phase.timeout, until, &[*first])?;
        self.clock = Some((name.clone(), *first));
        Ok(())
    }

    fn part(&mut self, phase: &str, host: usize, key: &[u8], part: ClockRole, file: Option<&str>) {
        self.files.expect(host, phase, file);
        let (phase, name) = (phase.to_owned(), self.plan.hosts[host].name.clone());
        self.team.ask(host, HelperRequest::Measure { phase, name, key: key.to_vec(), part });
    }

    /// The delay until a phase starts, long enough for every host to receive the request.
    fn ahead(&self) -> Duration {
        LEAD + 2 * self.round
    }

    /// The start time of a phase by REALTIME of each host, and its uncertainty, in ns. Clocks that
    /// were not measured are assumed equal.
    fn instants(&mut self, until: Instant) -> Result<Vec<(String, i64, i64)>, CellFailure> {
        let names = self.plan.hosts.iter().map(|host| host.name.clone());
        let ahead = self.ahead().as_nanos() as i64;
        let Some((phase, host)) = self.clock.clone() else {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            let at = (now.as_nanos() as i64).saturating_add(ahead);
            return Ok(names.map(|name| (name, at, 0)).collect());
        };
        self.team.ask(host, HelperRequest::Offsets { phase });
        let mut answer = self.team.gather(&[host], until, |message| match message {
            HelperMessage::Offsets { now, others } => Ok((now, others)),
            other => Err(other),
        })?;
        let (now, others) = answer.pop().map(|entry| entry.1).unwrap_or_default();
        let at = now.saturating_add(ahead);
        let instant = |name: String| {
            let found = others.iter().find(|entry| entry.0 == name);
            let (offset, half) = found.map_or((0, 0), |found| (found.1, found.2));
            (name, at.saturating_add(offset), half)
        };
        Ok(names.map(instant).collect())
    }

    fn collect(&mut self, phase: &Resolved, until: Instant) -> Result<(), CellFailure> {
        let mut asked = Vec::new();
        for (host, action) in &phase.actions {
            if !action.collect.is_empty() {
                self.team.ask(*host, HelperRequest::Collect { patterns: action.collect.clone() });
                asked.push(*host);
            }
        }
        self.files.collecting(true);
        self.fetch(&asked, until, None)?;
        self.unhurt()
    }

    /// Stops everything in reverse order of the phases, and fetches the files that ppt wrote.
    fn end(&mut self, ran: &mut CellPrograms) -> Result<(), CellFailure> {
        "end".clone_into(&mut self.team.phase);
        let until = Instant::now() + END;
        for (name, hosts) in std::mem::take(&mut self.started).into_iter().rev() {
            self.stop_started(&name, &hosts, Instant::now() + STALL)?;
        }
        for host in self.everybody() {
            self.team.ask(host, HelperRequest::End);
        }
        self.files.collecting(false);
        self.fetch(&self.everybody(), until, Some(ran))
    }

    /// Receives files until all of these hosts have sent theirs.
    fn fetch(
        &mut self,
        hosts: &[usize],
        until: Instant,
        mut ran: Option<&mut CellPrograms>,
    ) -> Result<(), CellFailure> {
        let mut left = hosts.to_vec();
        while !left.is_empty() {
            let stalled = until.min(Instant::now() + STALL);
            let Some((host, answer)) = self.team.hear(stalled)? else {
                let silent = left.iter().map(|index| self.team.name(*index).to_owned()).collect();
                let (phase, unfinished) = (self.team.phase.clone(), Vec::new());
                return Err(CellFailure::Late { phase, timeout: STALL, unfinished, silent });
            };
            if !left.contains(&host)
                && !matches!(answer, HostReply::Message(HelperMessage::Failed(_)))
            {
                return Err(self.team.unasked(host));
            }
            if self.take(host, answer, ran.as_deref_mut())? {
                left.retain(|index| *index != host);
            }
        }
        Ok(())
    }

    /// Handles a message with files of a host. Returns whether it was the last.
    fn take(
        &mut self,
        host: usize,
        answer: HostReply,
        ran: Option<&mut CellPrograms>,
    ) -> Result<bool, CellFailure> {
        let mut is_all = false;
        let taken = match answer {
            HostReply::Data(data) => self.files.data(host, &data),
            HostReply::Message(HelperMessage::File { name }) => self.files.begin(host, &name),
            HostReply::Message(HelperMessage::FileEnd) => self.files.end(host),
            HostReply::Message(HelperMessage::Failed(failure)) => {
                return self.team.note(host, *failure).map(|()| false);
            }
            HostReply::Message(HelperMessage::Collected { unmatched, left_out, ends }) => {
                let name = self.team.name(host);
                for pattern in &unmatched {
                    self.progress.report(&LabEvent::Unmatched { host: name, pattern });
                }
                for file in &left_out {
                    self.progress.report(&LabEvent::LeftOut { host: name, name: file });
                }
                for ended in ends.iter().filter(|ended| ended.left_out > 0) {
                    let Ended { phase, left_out, .. } = ended;
                    self.progress.report(&LabEvent::Printed {
                        host: name,
                        phase,
                        left_out: *left_out,
                    });
                }
                if let Some(ran) = ran {
                    let ends = ends.into_iter();
                    ran.ends.extend(ends.map(|ended| RanEnd { host: name.to_owned(), ended }));
                }
                is_all = true;
                self.files.is_whole(host)
            }
            HostReply::Message(_) => return Err(self.team.unasked(host)),
        };
        match taken {
            Ok(()) => Ok(is_all),
            Err(FileRefusal::Distrust(why)) => Err(self.team.distrust(host, why)),
            Err(FileRefusal::Write(path, cause)) => {
                let phase = self.team.phase.clone();
                Err(CellFailure::Write { phase, path, cause })
            }
        }
    }

    /// Ends the programs on the hosts that remain after a failure, and fetches their output. A host
    /// that fails now is skipped, because the cell has already failed.
    fn salvage(&mut self, failure: &CellFailure, ran: &mut CellPrograms) {
        if matches!(failure, CellFailure::Write { .. }) {
            return;
        }
        let mut left = self.everybody();
        self.forget(failure, &mut left);
        for &host in &left {
            self.team.ask(host, HelperRequest::GiveUp);
        }
        // Messages before this answer belong to earlier requests.
        let is_last =
            |answer: &HostReply| matches!(answer, HostReply::Message(HelperMessage::Unfinished(_)));
        let mut quiet = Vec::new();
        while let Some((host, answer)) = self.hear_of(&mut left) {
            if is_last(&answer) {
                left.retain(|index| *index != host);
                quiet.push(host);
            } else if matches!(
                answer,
                HostReply::Data(_)
                    | HostReply::Message(HelperMessage::File { .. } | HelperMessage::FileEnd)
            ) && let Err(failure) = self.take(host, answer, None)
            {
                self.forget(&failure, &mut left);
            }
        }
        "end".clone_into(&mut self.team.phase);
        self.files.collecting(false);
        for &host in &quiet {
            self.team.ask(host, HelperRequest::End);
        }
        while let Some((host, answer)) = self.hear_of(&mut quiet) {
            match self.take(host, answer, Some(ran)) {
                Ok(false) => {}
                Ok(true) => quiet.retain(|index| *index != host),
                Err(failure) => {
                    self.forget(&failure, &mut quiet);
                    quiet.retain(|index| *index != host);
                }
            }
        }
    }

    /// The next answer of these hosts; None if no host is left, or none answers. Skips hosts that
    /// are gone.
    fn hear_of(&mut self, hosts: &mut Vec<usize>) -> Option<(usize, HostReply)> {
        while !hosts.is_empty() {
            match self.team.hear(Instant::now() + STALL) {
                Ok(Some((host, answer))) if hosts.contains(&host) => return Some((host, answer)),
                Ok(Some(_)) => {}
                Ok(None) => return None,
                Err(failure) => self.forget(&failure, hosts),
            }
        }
        None
    }

    /// Removes the hosts that a failure concerns.
    fn forget(&self, failure: &CellFailure, hosts: &mut Vec<usize>) {
        let lost = failure.lost_hosts();
        hosts.retain(|host| !lost.contains(&self.team.name(*host)));
    }
}
