//! `model.toml`: resources and their components.

use serde::Deserialize;
use thiserror::Error;
use toml::Spanned;

use crate::error::FormulaError;
use crate::formula::Formula;

/// The content of `model.toml`.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelPlan {
    /// The column of the load in all queries, such as the number of users.
    pub load: String,
    /// The resources, in the order of the file.
    pub resources: Vec<PlannedResource>,
}

/// A resource.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedResource {
    /// The name: cpu, memory, net.
    pub name: String,
    /// The unit of its values, for people.
    pub unit: Option<String>,
    /// The largest possible use.
    pub limit: Option<f64>,
    /// The components.
    pub components: Vec<PlannedComponent>,
}

/// A component of a resource.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedComponent {
    /// The name: input, simulation, output.
    pub name: String,
    /// The query for the rows of the fit.
    pub sql: String,
    /// The column of the query with the run of each row, if there is one.
    pub run: Option<String>,
    /// The formula of its growth.
    pub formula: Formula,
}

/// Why a text is not a plan.
#[derive(Debug, Clone, PartialEq, Error, strum::IntoStaticStr, strum::VariantNames)]
#[strum(serialize_all = "kebab-case", prefix = "plan-")]
pub enum PlanError {
    /// The text is not TOML, or has unknown keys.
    #[error("line {line}: {mistake}")]
    Toml {
        /// The line, from 1.
        line: usize,
        /// The mistake.
        mistake: String,
    },
    /// A formula has a mistake.
    #[error("line {line}, formula of `{component}`: {error}")]
    Formula {
        /// The line, from 1.
        line: usize,
        /// The component.
        component: String,
        /// The text of the formula.
        text: String,
        /// The mistake.
        error: FormulaError,
    },
    /// Two resources or components have the same name.
    #[error("line {line}: there are two of the name `{name}`")]
    Twice {
        /// The line of the second, from 1.
        line: usize,
        /// The name.
        name: String,
    },
    /// A formula needs a column other than the load.
    #[error(
        "line {line}, formula of `{component}`: a model knows `{load}` alone, this needs `{other}`"
    )]
    NotTheLoad {
        /// The line, from 1.
        line: usize,
        /// The component.
        component: String,
        /// The load.
        load: String,
        /// The other column.
        other: String,
    },
    /// A resource has no component.
    #[error("line {line}: `{name}` has no component")]
    Empty {
        /// The line, from 1.
        line: usize,
        /// The resource.
        name: String,
    },
    /// A limit is not a number.
    #[error("line {line}: the limit of `{name}` is {limit}")]
    Limit {
        /// The line, from 1.
        line: usize,
        /// The resource.
        name: String,
        /// The limit.
        limit: f64,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PlanFile {
    load: String,
    #[serde(rename = "resource")]
    resources: Vec<FileResource>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileResource {
    name: Spanned<String>,
    unit: Option<String>,
    limit: Option<f64>,
    #[serde(rename = "component", default)]
    components: Vec<FileComponent>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileComponent {
    name: Spanned<String>,
    sql: String,
    run: Option<String>,
    formula: Spanned<String>,
}

impl ModelPlan {
    /// Parses the text of a file.
    ///
    /// # Errors
    /// The text has a mistake.
    pub fn parse(text: &str) -> Result<ModelPlan, PlanError> {
        let line = |at: usize| {
            1 + text.as_bytes()[..at.min(text.len())].iter().filter(|byte| **byte == b'\n').count()
        };
        let file: PlanFile = toml::from_str(text).map_err(|error| PlanError::Toml {
            line: line(error.span().map_or(0, |span| span.start)),
            mistake: error.message().to_owned(),
        })?;
        let mut resources: Vec<PlannedResource> = Vec::new();
        for found in file.resources {
            let at = line(found.name.span().start);
            let name = found.name.into_inner();
            if resources.iter().any(|resource| resource.name == name) {
                return Err(PlanError::Twice { line: at, name });
            }
            if found.components.is_empty() {
                return Err(PlanError::Empty { line: at, name });
            }
            if let Some(limit) = found.limit.filter(|limit| !limit.is_finite()) {
                return Err(PlanError::Limit { line: at, name, limit });
            }
            let mut components: Vec<PlannedComponent> = Vec::new();
            for file_component in found.components {
                let at = line(file_component.name.span().start);
                let name = file_component.name.into_inner();
                if components.iter().any(|component| component.name == name) {
                    return Err(PlanError::Twice { line: at, name });
                }
                let at = line(file_component.formula.span().start);
                let formula = formula(at, &name, &file.load, file_component.formula.as_ref())?;
                components.push(PlannedComponent {
                    name,
                    sql: file_component.sql,
                    run: file_component.run,
                    formula,
                });
            }
            let (unit, limit) = (found.unit, found.limit);
            resources.push(PlannedResource { name, unit, limit, components });
        }
        Ok(ModelPlan { load: file.load, resources })
    }
}

fn formula(line: usize, component: &str, load: &str, text: &str) -> Result<Formula, PlanError> {
    let component = component.to_owned();
    let formula: Formula = match text.parse() {
        Ok(formula) => formula,
        Err(error) => {
            return Err(PlanError::Formula { line, component, text: text.to_owned(), error });
        }
    };
    let other = formula.inputs().into_iter().find(|input| *input != load).map(str::to_owned);
    match other {
        Some(other) => Err(PlanError::NotTheLoad { line, component, load: load.to_owned(), other }),
        None => Ok(formula),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"
load = "n"

[[resource]]
name = "cpu"
unit = "of a core"
limit = 0.9

[[resource.component]]
name = "input"
sql = "SELECT n, busy, capture FROM input"
run = "capture"
formula = "busy ~ 0 + n"

[[resource.component]]
name = "simulation"
sql = "SELECT n, busy FROM simulation"
formula = "busy ~ n + n^2"

[[resource]]
name = "net"

[[resource.component]]
name = "all"
sql = "SELECT n, bytes FROM net"
formula = "bytes ~ n"
"#;

    #[test]
    fn resources_are_sums_of_components() {
        let plan = ModelPlan::parse(GOOD).unwrap();
        assert_eq!((&plan.load[..], plan.resources.len()), ("n", 2));
        let cpu = &plan.resources[0];
        assert_eq!((cpu.limit, cpu.components.len()), (Some(0.9), 2));
        assert_eq!(cpu.components[0].run.as_deref(), Some("capture"));
        assert_eq!(cpu.components[1].formula.to_string(), "busy ~ 1 + n + n^2");
    }

    #[test]
    fn mistakes_have_lines() {
        let message = |from: &str, to: &str| {
            assert!(GOOD.contains(from), "{from}");
            ModelPlan::parse(&GOOD.replacen(from, to, 1)).unwrap_err().to_string()
        };
        assert_eq!(
            message("n + n^2", "n + n^"),
            "line 18, formula of `simulation`: expected `-` or a term, found the end"
        );
        assert_eq!(
            message("0 + n", "0 + m"),
            "line 13, formula of `input`: a model knows `n` alone, this needs `m`"
        );
        assert_eq!(
            message("name = \"simulation\"", "name = \"input\""),
            "line 16: there are two of the name `input`"
        );
        assert_eq!(
            message("name = \"net\"", "name = \"cpu\""),
            "line 21: there are two of the name `cpu`"
        );
        assert_eq!(message("limit = 0.9", "limit = nan"), "line 5: the limit of `cpu` is NaN");
        assert!(
            message("limit = 0.9", "limits = 0.9").starts_with("line 7: unknown field `limits`")
        );
        assert!(message("load = \"n\"", "load = ").starts_with("line 2: "));
        let none = "load = \"n\"\n[[resource]]\nname = \"cpu\"\n";
        assert_eq!(
            ModelPlan::parse(none).unwrap_err().to_string(),
            "line 3: `cpu` has no component"
        );
    }
}
