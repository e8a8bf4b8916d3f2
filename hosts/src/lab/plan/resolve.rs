//! The actions of a cell, with every placeholder filled in.

use std::path::{Path, PathBuf};

use super::action::{Action, Readiness, Resolved, ShellCommand};
use super::error::Mistake;
use super::matrix::Cell;
use super::template::{PlaceholderValues, Template};
use super::types::{LabPlan, PlanStep, ProgramEntry};

impl LabPlan {
    /// The actions of a cell.
    pub fn resolve(&self, cell: &Cell) -> Vec<Resolved> {
        // Parsing the plan checked every placeholder against the first cell.
        self.resolved(cell).unwrap_or_default()
    }

    /// The actions of a cell.
    ///
    /// # Errors
    /// A placeholder does not exist.
    pub(super) fn resolved(&self, cell: &Cell) -> Result<Vec<Resolved>, Mistake> {
        let mut phases = Vec::new();
        for phase in &self.phases {
            if phase.when.as_ref().is_some_and(|when| !when.holds(&cell.parameters)) {
                continue;
            }
            let mut actions = Vec::new();
            for (host, step) in &phase.steps {
                actions.push((*host, step.fill(&self.values(cell, *host))?));
            }
            let timeout = phase.timeout.unwrap_or(self.timeout);
            phases.push(Resolved { name: phase.name.clone(), timeout, actions });
        }
        Ok(phases)
    }

    /// Whether captures are asked, for checks or for the report.
    pub(in crate::lab) fn needs_answers(&self) -> bool {
        !self.checks.is_empty() || self.report.is_some()
    }

    /// Queries that must hold for the captures of a cell.
    pub fn checks(&self, cell: &Cell) -> Vec<String> {
        let values = self.values_everywhere(cell);
        self.checks.iter().filter_map(|check| check.fill(&values).ok()).collect()
    }

    /// The values of placeholders on a host.
    pub(super) fn values(&self, cell: &Cell, host: usize) -> PlaceholderValues {
        let mut values = self.values_everywhere(cell);
        values.insert("host".to_owned(), Some(self.hosts[host].name.clone()));
        values
    }

    /// The values of placeholders outside of a host.
    pub(super) fn values_everywhere(&self, cell: &Cell) -> PlaceholderValues {
        let mut values = PlaceholderValues::new();
        for (name, value) in self.parameters(cell) {
            values.insert(name.to_owned(), Some(value.to_string()));
        }
        let text = |path: &Path| path.to_string_lossy().into_owned();
        for host in &self.hosts {
            values.insert(format!("{}.addr", host.name), host.addr.clone());
            values.insert(format!("{}.dir", host.name), host.dir.as_deref().map(text));
        }
        values.insert("repeat".to_owned(), Some(cell.repeat.to_string()));
        values.insert("seed".to_owned(), Some(self.seed.to_string()));
        values
    }
}

impl PlanStep {
    pub(super) fn fill(&self, values: &PlaceholderValues) -> Result<Action, Mistake> {
        let fill = |template: &Template| template.fill(values);
        Ok(Action {
            stop: self.stop.clone(),
            clock: self.clock.clone(),
            command: self.program.as_ref().map(|program| program.fill(values)).transpose()?,
            collect: self.collect.iter().map(fill).collect::<Result<_, _>>()?,
        })
    }
}

impl ProgramEntry {
    fn fill(&self, values: &PlaceholderValues) -> Result<ShellCommand, Mistake> {
        let fill = |template: &Option<Template>| {
            template.as_ref().map(|template| template.fill(values)).transpose()
        };
        let port = |key: &'static str, template: &Option<Template>| match fill(template)? {
            None => Ok(None),
            Some(text) => match text.parse() {
                Ok(port) if port > 0 => Ok(Some(port)),
                _ => Err(Mistake::Type {
                    key: key.to_owned(),
                    found: "something else",
                    wanted: "a port from 1 to 65535",
                }),
            },
        };
        let env =
            self.env.iter().map(|(name, template)| Ok((name.clone(), template.fill(values)?)));
        Ok(ShellCommand {
            words: self
                .words
                .iter()
                .map(|template| template.fill(values))
                .collect::<Result<_, _>>()?,
            env: env.collect::<Result<_, Mistake>>()?,
            ends: self.ends,
            ready: Readiness {
                output: fill(&self.output)?,
                tcp: port("tcp", &self.tcp)?,
                udp: port("udp", &self.udp)?,
                file: fill(&self.file)?.map(PathBuf::from),
            },
            capture: self.capture,
        })
    }
}
