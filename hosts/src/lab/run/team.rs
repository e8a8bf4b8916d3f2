//! All helpers of an experiment, and the channel that receives their messages.

use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::time::{Duration, Instant};

use super::link::{HelperLink, LinkEvent};
use super::options::LabOptions;
use super::via;
use crate::lab::error::CellFailure;
use crate::lab::plan::{LabPlan, Via};
use crate::lab::wire::{
    Facts, FileIdentity, HelperFailure, HelperMessage, HelperRequest, ProgramEnd, VERSION,
    WireFrame,
};

/// Time that a helper may take to start, possibly through ssh.
const BEGIN: Duration = Duration::from_secs(30);
/// Time that a helper may take to answer a request that involves no waiting.
const ANSWER: Duration = Duration::from_secs(10);
/// Unsolicited failures that a helper may report in one cell.
const MAX_FAILURES: usize = 10_000;

/// The name used for steps outside the plan's phases.
const SETUP: &str = "setup";

pub(super) struct Team {
    /// In the order of the plan's hosts, followed by the hub, if there is one.
    links: Vec<HelperLink>,
    names: Vec<String>,
    heard: Receiver<(usize, LinkEvent)>,
    pub(super) facts: Vec<Facts>,
    /// The running phase, for messages.
    pub(super) phase: String,
    /// Failures of programs that nothing waited for, by host.
    pub(super) failures: Vec<(usize, HelperFailure)>,
}

/// The state of the hosts' programs, and the hosts that do not answer.
type Unfinished = (Vec<(String, HelperFailure)>, Vec<String>);

/// The answer of one host.
pub(super) enum HostReply {
    Message(HelperMessage),
    Data(Vec<u8>),
}

impl Team {
    /// Starts all helpers, and connects the network namespaces that they create.
    pub(super) fn start(plan: &LabPlan, options: &LabOptions) -> Result<Self, CellFailure> {
        let (events, heard) = sync_channel(64);
        let mut team = Self {
            links: Vec::new(),
            names: plan.hosts.iter().map(|host| host.name.clone()).collect(),
            heard,
            facts: Vec::new(),
            phase: SETUP.to_owned(),
            failures: Vec::new(),
        };
        let mut commands: Vec<_> =
            plan.hosts.iter().map(|host| via::helper(host, options)).collect();
        let made = |index: &usize| plan.hosts[*index].via == Via::Made;
        let made: Vec<usize> = (0..plan.hosts.len()).filter(made).collect();
        if !made.is_empty() {
            commands.push(via::hub(options));
            team.names.push("the network between namespaces".to_owned());
        }
        for (number, command) in commands.into_iter().enumerate() {
            let program = command.get_program().to_string_lossy().into_owned();
            let link = HelperLink::start(command, number, events.clone());
            team.links.push(link.map_err(|cause| CellFailure::Gone {
                phase: SETUP.to_owned(),
                host: team.names[number].clone(),
                why: format!("cannot start {program}: {cause}"),
            })?);
        }
        let everybody: Vec<usize> = (0..team.links.len()).collect();
        team.facts = vec![Facts::default(); team.links.len()];
        let until = Instant::now() + BEGIN;
        let hellos = team.gather(&everybody, until, |message| match message {
            HelperMessage::Hello(facts) => Ok(facts),
            other => Err(other),
        })?;
        for (host, facts) in hellos {
            if facts.version != VERSION {
                let why = format!("its ppt speaks version {}, this one {VERSION}", facts.version);
                return Err(team.distrust(host, why));
            }
            team.facts[host] = *facts;
        }
        team.join(plan, &made)?;
        Ok(team)
    }

    /// Connects the network namespaces of these hosts.
    fn join(&mut self, plan: &LabPlan, made: &[usize]) -> Result<(), CellFailure> {
        if made.is_empty() {
            return Ok(());
        }
        let hub = self.links.len() - 1;
        let mut input = "link add lab type bridge\nlink set lab up\n".to_owned();
        for &host in made {
            let pid = self.links[host].pid();
            input += &format!("link add lab{host} type veth peer name eth0 netns {pid}\n");
            input += &format!("link set lab{host} master lab up\n");
        }
        self.tool(&[(hub, input)])?;
        let inputs = made.iter().map(|&host| {
            let addr = plan.hosts[host].addr.as_deref().unwrap_or_default();
            let lines = ["link set lo up", &format!("addr add {addr}/24 dev eth0")].join("\n");
            (host, lines + "\nlink set eth0 up\n")
        });
        self.tool(&inputs.collect::<Vec<_>>())
    }

    /// Runs `ip` on hosts with these lines.
    fn tool(&mut self, inputs: &[(usize, String)]) -> Result<(), CellFailure> {
        for (host, input) in inputs {
            let words = ["ip", "-batch", "-"].map(str::to_owned).to_vec();
            self.ask(*host, HelperRequest::Tool { words, input: input.clone() });
        }
        let hosts: Vec<usize> = inputs.iter().map(|input| input.0).collect();
        let done = self.gather(&hosts, Instant::now() + ANSWER, |message| match message {
            HelperMessage::Tool { end, output } => Ok((end, output)),
            other => Err(other),
        })?;
        match done.into_iter().find(|entry| entry.1.0 != ProgramEnd::Code(0)) {
            None => Ok(()),
            Some((host, (end, output))) => {
                let message = format!("ip {end}: {}", output.trim());
                Err(CellFailure::Network { host: self.names[host].clone(), message })
            }
        }
    }

    pub(super) fn ask(&self, host: usize, request: HelperRequest) {
        self.links[host].ask(request);
    }

    pub(super) fn name(&self, host: usize) -> &str {
        &self.names[host]
    }

    /// The files of each host's programs.
    pub(super) fn identify(
        &mut self,
        programs: &[Vec<String>],
    ) -> Result<Vec<(usize, Vec<FileIdentity>)>, CellFailure> {
        for (host, programs) in programs.iter().enumerate() {
            self.ask(host, HelperRequest::Identify { programs: programs.clone() });
        }
        let hosts: Vec<usize> = (0..programs.len()).collect();
        let found = self.gather(&hosts, Instant::now() + BEGIN, |message| match message {
            HelperMessage::Identified(found) => Ok(found),
            other => Err(other),
        })?;
        for (host, found) in &found {
            if found.len() != programs[*host].len() {
                return Err(self.distrust(*host, "it answers something else".to_owned()));
            }
        }
        Ok(found)
    }

    /// Waits for one answer from each of these hosts, and accepts no other.
    pub(super) fn gather<T>(
        &mut self,
        hosts: &[usize],
        until: Instant,
        take: impl Fn(HelperMessage) -> Result<T, HelperMessage>,
    ) -> Result<Vec<(usize, T)>, CellFailure> {
        let mut left = hosts.to_vec();
        let begun = Instant::now();
        let mut answers = Vec::new();
        while !left.is_empty() {
            let Some((host, answer)) = self.hear(until)? else {
                return Err(self.late(begun.elapsed(), &left));
            };
            let taken = match answer {
                HostReply::Message(message) if left.contains(&host) => take(message),
                HostReply::Message(message) => Err(message),
                HostReply::Data(_) => Err(HelperMessage::FileEnd),
            };
            match taken {
                Ok(answer) => answers.push((host, answer)),
                Err(HelperMessage::Failed(failure)) => {
                    self.note(host, *failure)?;
                    continue;
                }
                Err(_) => return Err(self.unasked(host)),
            }
            left.retain(|index| *index != host);
        }
        Ok(answers)
    }

    /// Notes that a program failed for which no request waits.
    pub(super) fn note(&mut self, host: usize, failure: HelperFailure) -> Result<(), CellFailure> {
        if self.failures.len() == MAX_FAILURES {
            return Err(
                self.distrust(host, "it reports more failures than it has programs".to_owned())
            );
        }
        self.failures.push((host, failure));
        Ok(())
    }

    /// The next message; None when the time is up.
    pub(super) fn hear(
        &mut self,
        until: Instant,
    ) -> Result<Option<(usize, HostReply)>, CellFailure> {
        let wait = until.saturating_duration_since(Instant::now());
        let (host, heard) = match self.heard.recv_timeout(wait) {
            Ok(heard) => heard,
            Err(RecvTimeoutError::Timeout) => return Ok(None),
            // Not while a helper has a reader, and its end comes before the reader's.
            Err(RecvTimeoutError::Disconnected) => return Ok(None),
        };
        match heard {
            LinkEvent::Frame(WireFrame::Message(message)) => {
                Ok(Some((host, HostReply::Message(message))))
            }
            LinkEvent::Frame(WireFrame::Data(data)) => Ok(Some((host, HostReply::Data(data)))),
            LinkEvent::Nonsense(why) => Err(self.distrust(host, why)),
            LinkEvent::Gone(why) => {
                let output = self.links[host].last_output();
                let why = if why.is_empty() { output } else { format!("{output} ({why})") };
                let (phase, host) = (self.phase.clone(), self.names[host].clone());
                Err(CellFailure::Gone { phase, host, why })
            }
        }
    }

    pub(super) fn distrust(&self, host: usize, why: String) -> CellFailure {
        let (phase, host) = (self.phase.clone(), self.names[host].clone());
        CellFailure::Distrust { phase, host, why }
    }

    pub(super) fn unasked(&self, host: usize) -> CellFailure {
        self.distrust(host, "it sent a message that answers no request".to_owned())
    }

    /// Handles a timeout of these hosts: finds those that answer, and the state of their programs.
    pub(super) fn late(&mut self, timeout: Duration, left: &[usize]) -> CellFailure {
        match self.give_up(left) {
            Ok((unfinished, silent)) => {
                CellFailure::Late { phase: self.phase.clone(), timeout, unfinished, silent }
            }
            Err(failure) => failure,
        }
    }

    /// Cancels the requests to these hosts. Returns the state of their programs, and the hosts that do not
    /// answer. Earlier messages of the hosts are dropped.
    pub(super) fn give_up(&mut self, hosts: &[usize]) -> Result<Unfinished, CellFailure> {
        for &host in hosts {
            self.ask(host, HelperRequest::GiveUp);
        }
        let until = Instant::now() + ANSWER;
        let (mut silent, mut unfinished) = (hosts.to_vec(), Vec::new());
        while !silent.is_empty() {
            match self.hear(until)? {
                Some((host, HostReply::Message(HelperMessage::Unfinished(programs)))) => {
                    silent.retain(|index| *index != host);
                    let name = self.names[host].clone();
                    unfinished.extend(programs.into_iter().map(|program| (name.clone(), program)));
                }
                Some(_) => {}
                None => break,
            }
        }
        Ok((unfinished, silent.into_iter().map(|index| self.names[index].clone()).collect()))
    }
}

impl Drop for Team {
    fn drop(&mut self) {
        // All helpers are asked to leave first, and then waited for. Messages of one that continues
        // are ignored.
        self.links.iter_mut().for_each(HelperLink::close);
        self.heard = sync_channel(0).1;
    }
}
