//! `ppt model model.toml CAPTURE…`: the load on resources, and the load at which they run out.

use std::io::{self, Write};

use ppt_models::{Component, Fit, Limit, ModelPlan, PlannedResource, Resource, ResourceUse};
use ppt_query::{Engine, plain, plain_json};
use ppt_report::Panel;
use ppt_text::exit::ExitStatus;
use serde_json::{Value, json};
use tokio::runtime::Runtime;

use super::fit::assessed::AssessedFit;
use super::fit::{json, left_out, picture, text};
use crate::args;
use crate::error::AnswerError;
use crate::{answer, numbers, open, run};

/// A resource, with the fits of its components.
struct ResourceModel {
    planned: PlannedResource,
    assessed: Vec<AssessedFit>,
    at: Option<(f64, ResourceUse)>,
    limit: Option<Limit>,
    /// Empty if no picture was requested.
    picture: Vec<[Panel; 2]>,
}

pub(crate) fn run(args: &args::ModelArgs) -> Result<ExitStatus, AnswerError> {
    let text = super::input::read_text(&args.model)?;
    let plan = ModelPlan::parse(&text).map_err(|error| AnswerError::plan(&args.model, &error))?;
    let engine = open::engine(&args.captures)?;
    ppt_signals::end_work();
    let output =
        open::output_distinct_from(&args.to.output, args.to.force, &engine, Some(&args.model))?;
    let drawing = picture::open(args.svg.as_deref(), &args.to, &engine)?;
    let runtime = run::runtime(engine.threads())?;
    let mut answers = Vec::new();
    for planned in plan.resources {
        answers.push(answer(args, &plan.load, planned, &engine, &runtime)?);
    }
    answer::publish(output, |out| write(args, &plan.load, &answers, out))?;
    if let Some(drawing) = drawing {
        let rows: Vec<[Panel; 2]> = answers.into_iter().flat_map(|model| model.picture).collect();
        picture::write(&rows, drawing)?;
    }
    Ok(open::report_faults(&engine))
}

fn answer(
    args: &args::ModelArgs,
    load: &str,
    planned: PlannedResource,
    engine: &Engine,
    runtime: &Runtime,
) -> Result<ResourceModel, AnswerError> {
    let (mut components, mut tables) = (Vec::new(), Vec::new());
    for planned_component in &planned.components {
        let work = numbers::select(engine, &planned_component.sql);
        let rows = runtime.block_on(run::question(engine.set().watch(), work))?;
        let table = left_out(
            Some(&planned_component.name),
            rows.table(planned_component.run.as_deref(), &planned_component.formula)?,
        );
        let fit = Fit::new(&planned_component.formula, &table, args.sure.options());
        let text = planned_component.formula.to_string();
        let fit =
            fit.map_err(|error| AnswerError::component(&planned_component.name, &error, &text))?;
        components.push(Component { name: planned_component.name.clone(), fit });
        tables.push(table);
    }
    let unit = planned.unit.clone().unwrap_or_default();
    let assessed = |component: &Component| {
        AssessedFit::new(Some(component.name.clone()), unit.clone(), component.fit.clone())
    };
    let assessed: Vec<AssessedFit> = components.iter().map(assessed).collect();
    let resource =
        Resource::new(load, components).map_err(|error| AnswerError::resource(&error))?;
    let at = match args.at {
        None => None,
        Some(at) => Some((at, resource.predict(at).map_err(|error| AnswerError::predict(&error))?)),
    };
    let limit = match planned.limit {
        None => None,
        Some(bound) => Some(resource.limit(bound).map_err(|error| AnswerError::predict(&error))?),
    };
    let mut picture = Vec::new();
    if args.svg.is_some() {
        let (until, bound) = (picture::until(args.at, limit.as_ref()), planned.limit);
        let loads: Vec<f64> =
            tables.iter().filter_map(|table| table.column(load)).flatten().copied().collect();
        let name = &planned.name;
        picture.push(picture::total(name, load, &unit, &resource, &loads, until, bound));
        picture.extend(
            assessed.iter().zip(&tables).map(|entry| picture::panels(entry.0, entry.1, until)),
        );
    }
    Ok(ResourceModel { planned, assessed, at, limit, picture })
}

fn write(
    args: &args::ModelArgs,
    load: &str,
    answers: &[ResourceModel],
    out: &mut impl Write,
) -> io::Result<()> {
    if args.format == args::TextOrJson::Json {
        let all: Vec<Value> = answers.iter().map(object).collect();
        let object = json!({"load": load, "resources": all});
        return writeln!(out, "{}", plain_json(&object.to_string()));
    }
    for (at, model) in answers.iter().enumerate() {
        if at > 0 {
            writeln!(out)?;
        }
        let unit = model.planned.unit.clone().unwrap_or_default();
        writeln!(out, "{}", plain(&model.planned.name))?;
        for assessed in &model.assessed {
            text::fit(assessed, out)?;
        }
        if let Some((at, total)) = &model.at {
            text::total(load, *at, total, &unit, out)?;
        }
        if let Some(limit) = &model.limit {
            text::limit(load, limit, &unit, out)?;
            text::parts(&limit.at_limit, &unit, out)?;
        }
    }
    Ok(())
}

fn object(model: &ResourceModel) -> Value {
    json!({
        "name": model.planned.name, "unit": model.planned.unit,
        "components": model.assessed.iter().map(json::fit).collect::<Vec<_>>(),
        "prediction": model.at.as_ref().map(|(_, total)| json::total(total)),
        "limit": model.limit.as_ref().map(json::limit),
    })
}
