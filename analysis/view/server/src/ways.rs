//! `/v1/points` and `/v1/ways`: the paths from one point to another, as `ppt graph --from A --to B` prints them.

use ppt_query::graph::{GraphPath, Hop, Stage, Ways};
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
pub(crate) struct WaysAsked {
    from: String,
    to: String,
}

/// `stages` are the stages of all paths, as in `critical_path`. `slowest` are single paths.
#[derive(Debug, Serialize)]
pub(crate) struct WaysAnswer {
    ends: u64,
    reached: u64,
    stages: Vec<StageAnswer>,
    slowest: Vec<WayAnswer>,
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
struct WayAnswer {
    latency: String,
    ambiguous: bool,
    hops: Vec<HopAnswer>,
}

/// `row` is the row of the thread where the hop ends.
#[derive(Debug, Serialize)]
struct HopAnswer {
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
pub(crate) async fn ways(
    session: &ViewSession,
    asked: &WaysAsked,
) -> Result<WaysAnswer, HttpRefusal> {
    let about = session.view().1.about();
    let engine = session.engine()?;
    let Ways { ends, reached, stages, slowest, .. } =
        engine.ways(&asked.from, &asked.to, MAX_SLOWEST).await?;
    Ok(WaysAnswer {
        ends,
        reached,
        stages: stages.iter().map(stage).collect(),
        slowest: slowest.iter().map(|path| way(path, &about)).collect(),
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

fn way(path: &GraphPath, about: &About) -> WayAnswer {
    let mut end = path.ts;
    let hop = |hop: &Hop| {
        let begin = end;
        end = end.saturating_add(hop.ns);
        HopAnswer {
            from: escaped(&hop.from),
            to: escaped(&hop.to),
            place: hop.place,
            begin: begin.to_string(),
            end: end.to_string(),
            row: row(hop, about).map(|row| row.to_string()),
        }
    };
    let hops = path.hops.iter().map(hop).collect();
    WayAnswer { latency: path.latency.to_string(), ambiguous: path.ambiguous, hops }
}

/// The row of the thread where a hop ends.
fn row(hop: &Hop, about: &About) -> Option<RowId> {
    let tid = Some(i64::from(hop.tid?));
    thread_row(about, hop.host.as_deref(), hop.pid.map(i64::from), tid)
}
