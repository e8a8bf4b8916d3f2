//! The text of an experiment → [`LabPlan`].

use std::ops::Range;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use ppt_text::nearest;
use toml::de::{DeTable, DeValue};

use super::action::{ClockCondition, Stop};
use super::error::{Mistake, PlanError};
use super::matrix::{self, Axis, ParameterValue};
use super::table::{PlanEntry, PlanTable, UnreadKey, name, wrong};
use super::template::Template;
use super::types::{LabPlan, Phase, PlanStep, PlannedHost, ProgramEntry, Report, Via};
use super::when::When;

/// The most bytes of a file.
const MAX_BYTES: usize = 1 << 20;
const MAX_RUNS: u128 = 100_000;
/// Generated namespaces get the addresses 10.77.0.1 to 10.77.0.250.
const MAX_HOSTS: usize = 250;

impl LabPlan {
    /// Parses an experiment. Relative folders refer to `folder`.
    ///
    /// # Errors
    /// The first mistake and its location.
    pub fn parse(text: &str, folder: &Path) -> Result<LabPlan, PlanError> {
        plan(text, folder)
    }
}

fn plan(text: &str, folder: &Path) -> Result<LabPlan, PlanError> {
    if text.len() > MAX_BYTES {
        return wrong(Mistake::TooLong { bytes: text.len(), most: MAX_BYTES }, 0..0);
    }
    let root = DeTable::parse(text).map_err(|error| PlanError {
        mistake: Mistake::Toml { what: error.message().to_owned() },
        span: error.span().unwrap_or(0..0),
    })?;
    let mut file = PlanTable::new(root.get_ref(), "an experiment".to_owned(), 0..0);
    let title = file.require("name")?.name()?;
    let repeat = file.take("repeat").map_or(Ok(1), |file| file.integer_in(1, 10_000))? as u32;
    let retry = file.take("retry").map_or(Ok(0), |file| file.integer_in(0, 100))? as u32;
    let seed = file.take("seed").map_or(Ok(0), |file| file.integer_in(0, i64::MAX))? as u64;
    let timeout =
        file.take("timeout").map_or(Ok(Duration::from_secs(60)), |file| file.duration())?;
    let hosts = file.take("host").map_or(Ok(Vec::new()), |file| hosts(&file, folder))?;
    if hosts.is_empty() {
        return wrong(Mistake::NoHost, file.span());
    }
    let (matrix, cells) = match file.take("matrix") {
        Some(plan_entry) => {
            let matrix = axes(&plan_entry)?;
            let runs = matrix.iter().fold(u128::from(repeat), |product, axis| {
                product.saturating_mul(axis.values.len() as u128)
            });
            if runs > MAX_RUNS {
                return plan_entry.wrong(Mistake::TooMany { runs, most: MAX_RUNS });
            }
            let cells = matrix::cells(&matrix, repeat, seed);
            (matrix, cells)
        }
        None => (Vec::new(), matrix::cells(&[], repeat, seed)),
    };
    let checks = file.take("check").map_or(Ok(Vec::new()), |file| checks(&file))?;
    let (checks, places): (Vec<Template>, Vec<Range<usize>>) = checks.into_iter().unzip();
    let report = file.take("report").map(|file| report(&file, folder)).transpose()?;
    let mut plan = LabPlan {
        name: title,
        seed,
        retry,
        timeout,
        hosts,
        matrix,
        cells,
        report,
        phases: Vec::new(),
        checks,
    };
    for (check, place) in plan.checks.iter().zip(places) {
        // All cells have the same placeholders.
        if let Some(cell) = plan.cells.first()
            && let Err(mistake) = check.fill(&plan.values_everywhere(cell))
        {
            return wrong(mistake, place);
        }
    }
    let phases = file.require("phase")?.list()?;
    for entry in &phases {
        let (phase, places) = Reader { plan: &plan }.phase(entry)?;
        if plan.phases.iter().any(|other| other.name == phase.name) {
            return entry.wrong(Mistake::Twice { what: "phases", name: phase.name });
        }
        // Checks that every placeholder exists, in every cell and on every host.
        for cell in plan.cells.iter().filter(|cell| cell.repeat == 1) {
            for (host, step) in &phase.steps {
                let filled = step.fill(&plan.values(cell, *host));
                if let Err(mistake) = filled {
                    let place = places.iter().find(|place| place.0 == *host);
                    return wrong(mistake, place.map_or(0..0, |place| place.1.clone()));
                }
            }
        }
        plan.phases.push(phase);
    }
    file.deny_unread()?;
    Ok(plan)
}

fn hosts(entry: &PlanEntry<'_, '_>, folder: &Path) -> Result<Vec<PlannedHost>, PlanError> {
    let table = entry.table("host".to_owned())?;
    let mut hosts = Vec::new();
    for UnreadKey { name: key, span, entry } in table.unread() {
        if key == "all" {
            return wrong(Mistake::All, span);
        }
        if hosts.len() == MAX_HOSTS {
            let value = MAX_HOSTS as i64 + 1;
            let (least, most) = (1, MAX_HOSTS as i64);
            return wrong(Mistake::Range { key: "host".to_owned(), value, least, most }, span);
        }
        hosts.push(host(name(key, span)?, hosts.len(), &entry, folder)?);
    }
    if hosts.iter().all(|host| host.via == Via::Local) {
        let own = || Some("127.0.0.1".to_owned());
        hosts.iter_mut().for_each(|host| host.addr = host.addr.take().or_else(own));
    }
    Ok(hosts)
}

fn host(
    name: String,
    number: usize,
    entry: &PlanEntry<'_, '_>,
    folder: &Path,
) -> Result<PlannedHost, PlanError> {
    let mut table = entry.table(format!("host `{name}`"))?;
    let way = table.require("via")?;
    let via = via(&way)?;
    let checked = |entry: Option<PlanEntry<'_, '_>>, what, allowed| {
        entry.map(|entry| safe(&entry, what, entry.text()?, allowed)).transpose()
    };
    let given = table.take("addr");
    let addr = match (&via, given) {
        (Via::Made, Some(plan_entry)) => {
            return plan_entry.wrong(Mistake::OwnAddress { host: name });
        }
        (Via::Made, None) => Some(format!("10.77.0.{}", number + 1)),
        (Via::Ssh(to), None) => Some(to.rsplit('@').next().unwrap_or(to).to_owned()),
        (_, given) => checked(given, "the address", ".:-%")?,
    };
    let dir = table.take("dir").map(|table| table.text().map(PathBuf::from)).transpose()?;
    let dir = match (&via, dir) {
        (Via::Ssh(_), dir) => dir,
        (_, dir) => Some(dir.map_or(folder.to_owned(), |dir| folder.join(dir))),
    };
    let ppt = checked(table.take("ppt"), "the program", "/._-+")?;
    let helper = table.take("helper");
    if let (Some(plan_entry), false) = (&helper, matches!(via, Via::Ssh(_))) {
        return plan_entry.wrong(Mistake::NotHere { key: "helper", of: "ssh" });
    }
    let helper = checked(helper, "the program", "/._-+")?;
    let isolate = match table.take("isolate") {
        Some(plan_entry) if via == Via::Made => {
            return plan_entry
                .wrong(Mistake::NotHere { key: "isolate", of: "local, netns:NAME and ssh" });
        }
        pair => pair.map_or(Ok(true), |entry| entry.boolean())?,
    };
    table.deny_unread()?;
    Ok(PlannedHost { name, via, addr, dir, ppt, helper, isolate })
}

fn via(entry: &PlanEntry<'_, '_>) -> Result<Via, PlanError> {
    let text = entry.text()?;
    match text.split_once(':') {
        None if text == "local" => Ok(Via::Local),
        None if text == "netns" => Ok(Via::Made),
        Some(("netns", name)) => Ok(Via::Named(safe(entry, "the namespace", name, "._-")?)),
        Some(("ssh", to)) => Ok(Via::Ssh(safe(entry, "the host", to, "@.:_-%[]")?)),
        _ => entry.wrong(Mistake::Via { via: text.to_owned() }),
    }
}

/// A text that is passed to another program as an argument, and cannot be mistaken for an option.
fn safe(
    entry: &PlanEntry<'_, '_>,
    what: &'static str,
    text: &str,
    allowed: &'static str,
) -> Result<String, PlanError> {
    let good = |c: char| c.is_ascii_alphanumeric() || allowed.contains(c);
    let begins = text.starts_with(|c: char| c.is_ascii_alphanumeric() || "/:[_.".contains(c));
    if begins && text.len() <= 255 && text.chars().all(good) && ![".", ".."].contains(&text) {
        return Ok(text.to_owned());
    }
    entry.wrong(Mistake::Unsafe { what, text: text.to_owned(), allowed })
}

fn axes(entry: &PlanEntry<'_, '_>) -> Result<Vec<Axis>, PlanError> {
    let table = entry.table("matrix".to_owned())?;
    let mut axes = Vec::new();
    for UnreadKey { name: key, span, entry } in table.unread() {
        let name = name(key, span.clone())?;
        if ["host", "repeat", "seed"].contains(&&*name) {
            return wrong(Mistake::Taken { name }, span);
        }
        let mut values: Vec<ParameterValue> = Vec::new();
        for plan_entry in entry.list()? {
            let value = value(&plan_entry)?;
            if let Some(first) =
                values.first().filter(|parameter_value| !parameter_value.is_like(&value))
            {
                let (first, other) = (first.kind(), value.kind());
                return plan_entry.wrong(Mistake::MixedValues { axis: name, first, other });
            }
            if values.contains(&value) {
                return plan_entry
                    .wrong(Mistake::SameValue { axis: name, value: value.to_string() });
            }
            values.push(value);
        }
        if values.is_empty() {
            return entry.wrong(Mistake::NoValues { axis: name });
        }
        axes.push(Axis { name, values });
    }
    Ok(axes)
}

fn value(entry: &PlanEntry<'_, '_>) -> Result<ParameterValue, PlanError> {
    match entry.value() {
        DeValue::Boolean(boolean) => Ok(ParameterValue::Truth(*boolean)),
        DeValue::Integer(_) => entry.integer().map(ParameterValue::Whole),
        DeValue::String(cow) => Ok(ParameterValue::Text(cow.clone().into_owned())),
        DeValue::Float(float) => match float.as_str().replace('_', "").parse::<f64>() {
            Ok(number) if number.is_finite() => Ok(ParameterValue::Real(number)),
            _ => entry.mistyped("a number that is finite"),
        },
        _ => entry.mistyped("text, a number, true or false"),
    }
}

fn checks(entry: &PlanEntry<'_, '_>) -> Result<Vec<(Template, Range<usize>)>, PlanError> {
    let mut table = entry.table("check".to_owned())?;
    let queries = table.require("sql")?.one_or_many()?;
    let query = |entry: &PlanEntry<'_, '_>| match Template::parse(entry.text()?) {
        Ok(query) => Ok((query, entry.span())),
        Err(mistake) => entry.wrong(mistake),
    };
    let queries = queries.iter().map(query).collect();
    table.deny_unread()?;
    queries
}

fn report(entry: &PlanEntry<'_, '_>, folder: &Path) -> Result<Report, PlanError> {
    let mut table = entry.table("report".to_owned())?;
    let sql =
        table.take("sql").map(|table| table.text().map(|text| folder.join(text))).transpose()?;
    let html = table.take("html").map(|table| safe(&table, "the page", table.text()?, "._-"));
    let html = html.transpose()?;
    table.deny_unread()?;
    if sql.is_none() && html.is_none() {
        return entry.wrong(Mistake::NoReport);
    }
    Ok(Report { sql, html })
}

/// Reads the phases of a plan. Hosts and parameters are already known.
struct Reader<'p> {
    plan: &'p LabPlan,
}

/// The position of a host's step.
type StepPlaces = Vec<(usize, Range<usize>)>;

impl Reader<'_> {
    fn phase(&self, entry: &PlanEntry<'_, '_>) -> Result<(Phase, StepPlaces), PlanError> {
        let mut table = entry.table("phase".to_owned())?;
        let name = table.require("name")?.name()?;
        let mut table = entry.table(format!("phase `{name}`"))?;
        table.take("name");
        let timeout = table.take("timeout").map(|table| table.duration()).transpose()?;
        let when = table.take("when").map(|table| self.when(&table)).transpose()?;
        let all = table.take("all").map(|table| self.step(&table).map(|step| (step, table.span())));
        let all = all.transpose()?;
        let (mut steps, mut places) = (Vec::new(), Vec::new());
        for UnreadKey { name: key, span, entry } in table.unread() {
            let available = || self.plan.hosts.iter().map(|host| &*host.name);
            let Some(host) = available().position(|text| text == key) else {
                let name = key.to_owned();
                let words = ["name", "timeout", "when", "all"];
                let nearest = nearest(key, available().chain(words)).map(str::to_owned);
                let available = available().map(str::to_owned).collect();
                return wrong(Mistake::NoSuchHost { name, nearest, available }, span);
            };
            steps.push((host, self.step(&entry)?));
            places.push((host, entry.span()));
        }
        if let Some((all, span)) = all {
            for host in 0..self.plan.hosts.len() {
                match steps.iter_mut().find(|step| step.0 == host) {
                    Some((_, own)) => own.complete(&all),
                    None => {
                        steps.push((host, all.clone()));
                        places.push((host, span.clone()));
                    }
                }
            }
        }
        if steps.is_empty() {
            return entry.wrong(Mistake::Nothing);
        }
        self.clocks(&steps, &places)?;
        steps.sort_by_key(|step| step.0);
        Ok((Phase { name, when, timeout, steps }, places))
    }

    /// Hosts with measured clocks probe each other's addresses and do nothing else in the phase.
    fn clocks(&self, steps: &[(usize, PlanStep)], places: &StepPlaces) -> Result<(), PlanError> {
        for (host, step) in steps.iter().filter(|step| step.1.clock.is_some()) {
            let place =
                places.iter().find(|place| place.0 == *host).map_or(0..0, |place| place.1.clone());
            if step.program.is_some() {
                return wrong(Mistake::ClockAndProgram, place);
            }
            let host = &self.plan.hosts[*host];
            if host.addr.is_none() {
                return wrong(Mistake::NoAddress { host: host.name.clone() }, place);
            }
        }
        Ok(())
    }

    fn when(&self, entry: &PlanEntry<'_, '_>) -> Result<When, PlanError> {
        let text = entry.text()?;
        When::parse(text, &self.plan.matrix).map_err(|(mistake, within)| {
            let span = entry.span();
            // Skips the quote. If the text has escapes, the whole text is marked.
            let plain = span.len() == text.len() + 2;
            let inner = span.start + 1 + within.start..span.start + 1 + within.end;
            PlanError { mistake, span: if plain { inner } else { span } }
        })
    }

    fn step(&self, entry: &PlanEntry<'_, '_>) -> Result<PlanStep, PlanError> {
        let mut table = entry.table("a host in a phase".to_owned())?;
        let (start, run) = (table.take("start"), table.take("run"));
        let ready = table.take("ready");
        let capture = table.take("capture");
        let env = table.take("env");
        let stop = table.take("stop").map(|table| self.stop(&table)).transpose()?;
        let collect = table.take("collect").map_or(Ok(Vec::new()), |table| patterns(&table))?;
        let clock = table.take("clock").map(|table| clock(&table)).transpose()?;
        table.deny_unread()?;
        let program = match (start, run) {
            (Some(_), Some(run)) => return run.wrong(Mistake::StartAndRun),
            (None, None) => {
                let orphans = [("ready", ready), ("capture", capture), ("env", env)];
                for (key, pair) in orphans {
                    if let Some(plan_entry) = pair {
                        return plan_entry.wrong(Mistake::NoProgram { key });
                    }
                }
                None
            }
            (None, Some(words)) => {
                if let Some(plan_entry) = ready {
                    return plan_entry.wrong(Mistake::ReadyRun);
                }
                Some(program(&words, true, None, capture, env)?)
            }
            (Some(words), None) => Some(program(&words, false, ready, capture, env)?),
        };
        let step = PlanStep { program, stop: stop.flatten(), collect, clock };
        if step == PlanStep::default() {
            return entry.wrong(Mistake::Nothing);
        }
        Ok(step)
    }

    fn stop(&self, entry: &PlanEntry<'_, '_>) -> Result<Option<Stop>, PlanError> {
        if let DeValue::Boolean(_) = entry.value() {
            return Ok(entry.boolean()?.then_some(Stop::All));
        }
        let mut names = Vec::new();
        for plan_entry in entry.one_or_many()? {
            let name = plan_entry.text()?;
            let available = || self.plan.phases.iter().map(|phase| &*phase.name);
            if !available().any(|text| text == name) {
                let nearest = nearest(name, available()).map(str::to_owned);
                return plan_entry.wrong(Mistake::NoPhase { name: name.to_owned(), nearest });
            }
            names.push(name.to_owned());
        }
        Ok(Some(Stop::Phases(names)))
    }
}

impl PlanStep {
    /// Takes from `common`, the step of all hosts, what this step does not set.
    fn complete(&mut self, common: &PlanStep) {
        if self.program.is_none() {
            self.program.clone_from(&common.program);
        }
        if self.stop.is_none() {
            self.stop.clone_from(&common.stop);
        }
        if self.collect.is_empty() {
            self.collect.clone_from(&common.collect);
        }
        if self.clock.is_none() {
            self.clock.clone_from(&common.clock);
        }
    }
}

fn template(entry: &PlanEntry<'_, '_>) -> Result<Template, PlanError> {
    Template::parse(entry.text()?).or_else(|error| entry.wrong(error))
}

/// A number or a text with placeholders.
fn port(entry: &PlanEntry<'_, '_>) -> Result<Template, PlanError> {
    match entry.value() {
        DeValue::Integer(_) => {
            let port = entry.integer_in(1, 65_535)?.to_string();
            Template::parse(&port).or_else(|error| entry.wrong(error))
        }
        _ => template(entry),
    }
}

fn program(
    words: &PlanEntry<'_, '_>,
    ends: bool,
    ready: Option<PlanEntry<'_, '_>>,
    capture: Option<PlanEntry<'_, '_>>,
    env: Option<PlanEntry<'_, '_>>,
) -> Result<ProgramEntry, PlanError> {
    let list = words.list()?;
    let named = list.first().map(|list| list.text()).transpose()?;
    if named.is_none_or(str::is_empty) {
        return words.wrong(Mistake::NoWords);
    }
    let mut program = ProgramEntry {
        words: list.iter().map(template).collect::<Result<_, _>>()?,
        env: Vec::new(),
        ends,
        output: None,
        tcp: None,
        udp: None,
        file: None,
        capture: capture.map_or(Ok(false), |capture| capture.boolean())?,
    };
    match ready {
        Some(plan_entry) if plan_entry.value().as_str().is_some() => {
            program.output = Some(template(&plan_entry)?);
        }
        Some(plan_entry) => {
            let mut table = plan_entry.table("ready".to_owned())?;
            program.output = table.take("output").map(|table| template(&table)).transpose()?;
            program.tcp = table.take("tcp").map(|table| port(&table)).transpose()?;
            program.udp = table.take("udp").map(|table| port(&table)).transpose()?;
            program.file = table.take("file").map(|table| template(&table)).transpose()?;
            table.deny_unread()?;
        }
        None => {}
    }
    if let Some(env) = env {
        for UnreadKey { name: key, span, entry: plan_entry } in
            env.table("env".to_owned())?.unread()
        {
            let good = |c: char| c.is_ascii_alphanumeric() || c == '_';
            if key.is_empty() || !key.chars().all(good) || key.starts_with("PPT_") {
                return wrong(Mistake::Variable { name: key.to_owned() }, span);
            }
            program.env.push((key.to_owned(), template(&plan_entry)?));
        }
    }
    Ok(program)
}

fn patterns(entry: &PlanEntry<'_, '_>) -> Result<Vec<Template>, PlanError> {
    let mut patterns = Vec::new();
    for plan_entry in entry.one_or_many()? {
        let pattern = plan_entry.text()?;
        let inside = |component: Component<'_>| matches!(component, Component::Normal(_));
        if pattern.is_empty() || !Path::new(pattern).components().all(inside) {
            return plan_entry.wrong(Mistake::Outside { pattern: pattern.to_owned() });
        }
        if let Err(why) = glob::Pattern::new(pattern) {
            let (pattern, why) = (pattern.to_owned(), why.msg.to_owned());
            return plan_entry.wrong(Mistake::Pattern { pattern, why });
        }
        patterns.push(template(&plan_entry)?);
    }
    Ok(patterns)
}

fn clock(entry: &PlanEntry<'_, '_>) -> Result<ClockCondition, PlanError> {
    let mut table = entry.table("clock".to_owned())?;
    let until = table.require("until")?.duration()?;
    let give_up =
        table.take("give-up").map_or(Ok(Duration::from_secs(30)), |table| table.duration())?;
    table.deny_unread()?;
    Ok(ClockCondition { until, give_up })
}
