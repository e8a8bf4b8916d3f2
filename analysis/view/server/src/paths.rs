//! `/v1/points` and `/v1/paths`: the paths from one point to another, as `ppt graph --from A --to B` prints them.

use ppt_query::graph::{GraphPath, GraphPaths, PathStep, Stage};
use ppt_text::escaped;
use ppt_view::{About, RowId};
use serde::{Deserialize, Serialize};

use crate::error::HttpRefusal;
use crate::session::ViewSession;
use crate::table::{MAX_ROWS, ask};
use crate::threads::thread_row;

/// The number of slowest paths.
const MAX_SLOWEST: usize = 20;

#[derive(Debug, Deserialize)]
pub(crate) struct PathsQuery {
    from: String,
    to: String,
}

/// `stages` are the stages of all paths, as in `critical_path`. `slowest` are single paths.
#[derive(Debug, Serialize)]
pub(crate) struct PathsAnswer {
    ends: u64,
    reached: u64,
    stages: Vec<StageAnswer>,
    slowest: Vec<PathAnswer>,
}

#[derive(Debug, Serialize)]
struct StageAnswer {
    stage: String,
    place: &'static str,
    count: String,
    time: String,
    share: f64,
}

#[derive(Debug, Serialize)]
struct PathAnswer {
    latency: String,
    ambiguous: bool,
    hops: Vec<StepAnswer>,
}

/// `row` is the row of the thread in which the step ends.
#[derive(Debug, Serialize)]
struct StepAnswer {
    from: String,
    to: String,
    place: &'static str,
    begin: String,
    end: String,
    row: Option<String>,
}

/// The names of all points, also those of edges alone.
pub(crate) async fn points(session: &ViewSession) -> Result<Vec<String>, HttpRefusal> {
    let engine = session.engine()?;
    let sql = "SELECT point FROM points UNION SELECT src_point FROM edges \
               UNION SELECT dst_point FROM edges ORDER BY 1";
    let table = ask(&engine, sql, MAX_ROWS).await?;
    Ok(table.rows.into_iter().filter_map(|mut row| row.pop()?).collect())
}

/// The paths from one point to another.
pub(crate) async fn paths(
    session: &ViewSession,
    asked: &PathsQuery,
) -> Result<PathsAnswer, HttpRefusal> {
    let about = session.view().1.about();
    let engine = session.engine()?;
    let GraphPaths { ends, reached, stages, slowest, .. } =
        engine.paths(&asked.from, &asked.to, MAX_SLOWEST).await?;
    Ok(PathsAnswer {
        ends,
        reached,
        stages: stages.iter().map(stage).collect(),
        slowest: slowest.iter().map(|path| answer(path, &about)).collect(),
    })
}

fn stage(stage: &Stage) -> StageAnswer {
    StageAnswer {
        stage: escaped(&stage.stage),
        place: stage.place,
        count: stage.count.to_string(),
        time: stage.time.to_string(),
        share: stage.share,
    }
}

fn answer(path: &GraphPath, about: &About) -> PathAnswer {
    let mut end = path.ts;
    let step = |step: &PathStep| {
        let begin = end;
        end = end.saturating_add(step.ns);
        StepAnswer {
            from: escaped(&step.from),
            to: escaped(&step.to),
            place: step.place,
            begin: begin.to_string(),
            end: end.to_string(),
            row: row(step, about).map(|row| row.to_string()),
        }
    };
    let hops = path.steps.iter().map(step).collect();
    PathAnswer { latency: path.latency.to_string(), ambiguous: path.ambiguous, hops }
}

/// The row of the thread in which a step ends.
fn row(step: &PathStep, about: &About) -> Option<RowId> {
    let tid = Some(i64::from(step.tid?));
    thread_row(about, step.host.as_deref(), step.pid.map(i64::from), tid)
}
