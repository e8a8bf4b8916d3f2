//! `paths('a', 'b' [, 'all'])` and `critical_path('a', 'b')`: the paths that lead from one point to
//! another, and where their time goes.
//!
//! Both read the tables `points`, `edges`, `unmatched` and `gaps` as the session shows them, and keep the
//! graph in memory, about 80 bytes for each frame and 60 for each edge while it is built.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use datafusion::arrow::array::{
    ArrayRef, BooleanArray, Float64Array, Int32Array, Int64Array, RecordBatch, StringArray,
    TimestampNanosecondArray,
};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};
use datafusion::catalog::{Session, TableFunctionArgs, TableFunctionImpl, TableProvider};
use datafusion::common::{ScalarValue, internal_err, plan_err};
use datafusion::error::{DataFusionError, Result};
use datafusion::execution::memory_pool::MemoryConsumer;
use datafusion::execution::{SendableRecordBatchStream, SessionState, TaskContext};
use datafusion::logical_expr::{Expr, TableType};
use datafusion::physical_expr::{Distribution, EquivalenceProperties, Partitioning};
use datafusion::physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, InputDistributionRequirements, PlanProperties,
};
use futures::StreamExt;
use ppt_causality::{Mode, Path};
use ppt_stats::Budget;
use ppt_tables::{CaptureSet, Clocks};
use strum::IntoEnumIterator;

use super::named::table;
use crate::causality::{Causality, Input, Loader, place_word, step_word};
use crate::error::external;
use crate::exec::{plan_methods, projected};

/// How many paths to find at most, if all paths are requested.
const MAX_PATHS: usize = 10_000_000;
/// How many rows a batch has.
const ROWS_PER_BATCH: usize = 8192;

pub(super) fn paths(set: &Arc<CaptureSet>) -> Arc<dyn TableFunctionImpl> {
    Arc::new(Function { set: set.clone(), name: "paths" })
}

pub(super) fn critical_path(set: &Arc<CaptureSet>) -> Arc<dyn TableFunctionImpl> {
    Arc::new(Function { set: set.clone(), name: "critical_path" })
}

#[derive(Debug)]
struct Function {
    set: Arc<CaptureSet>,
    name: &'static str,
}

impl TableFunctionImpl for Function {
    fn call_with_args(&self, args: TableFunctionArgs) -> Result<Arc<dyn TableProvider>> {
        let name = self.name;
        let texts = args.exprs().iter().map(|expr| match expr {
            Expr::Literal(ScalarValue::Utf8(Some(text)), _)
            | Expr::Literal(ScalarValue::Utf8View(Some(text)), _) => Ok(text.clone()),
            other => plan_err!("{name} takes names of points as text, not {other}"),
        });
        let texts: Vec<String> = texts.collect::<Result<_>>()?;
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let (from, to, output) = match (name, &texts[..]) {
            ("paths", [from, to]) => (from, to, PathOutput::Paths(Mode::Nearest)),
            ("paths", [from, to, "all"]) => {
                (from, to, PathOutput::Paths(Mode::All { limit: MAX_PATHS }))
            }
            ("paths", _) => return plan_err!("paths takes two points: paths('a', 'b' [, 'all'])"),
            (_, [from, to]) => (from, to, PathOutput::Stages),
            _ => return plan_err!("critical_path takes two points: critical_path('a', 'b')"),
        };
        let Some(state) = args.session().as_any().downcast_ref::<SessionState>() else {
            return internal_err!("{name} is asked outside of a session");
        };
        let inputs = Input::iter().map(|input| table(state, input.table()));
        Ok(Arc::new(PathColumns {
            inputs: inputs.collect::<Result<_>>()?,
            request: Arc::new(PathRequest {
                from: (*from).to_owned(),
                to: (*to).to_owned(),
                output,
                schema: Arc::new(output.schema()),
                clocks: self.set.clocks().clone(),
            }),
        }))
    }
}

#[derive(Debug, Clone, Copy)]
enum PathOutput {
    Paths(Mode),
    Stages,
}

impl PathOutput {
    fn schema(self) -> Schema {
        let field = |name: &str, ty: DataType| Field::new(name, ty, true);
        let ns = |name: &str| {
            field(name, DataType::Int64).with_metadata([("unit".into(), "ns".into())].into())
        };
        let fields = match self {
            PathOutput::Paths(_) => {
                let ends = ["src", "dst"].into_iter().flat_map(|end| {
                    let own = move |name: &str, ty| Field::new(format!("{end}_{name}"), ty, true);
                    [
                        own("capture", DataType::Utf8),
                        own("buffer", DataType::Utf8),
                        own("segment", DataType::Utf8),
                        own("ring", DataType::Int32),
                        own("seqno", DataType::Int64),
                        own("pid", DataType::Int32),
                        own("tid", DataType::Int32),
                        own("point", DataType::Utf8),
                        own("ts", DataType::Timestamp(TimeUnit::Nanosecond, Some("UTC".into()))),
                    ]
                });
                let own = [
                    field("hops", DataType::Int64),
                    ns("latency"),
                    ns("latency_lo"),
                    ns("latency_hi"),
                    field("ambiguous", DataType::Boolean),
                    field("route", DataType::Utf8),
                ];
                ends.chain(own).collect::<Vec<_>>()
            }
            PathOutput::Stages => vec![
                field("stage", DataType::Utf8),
                field("kind", DataType::Utf8),
                field("place", DataType::Utf8),
                field("count", DataType::Int64),
                ns("time"),
                field("share", DataType::Float64),
                field("p50", DataType::Float64),
                field("p99", DataType::Float64),
            ],
        };
        Schema::new(fields)
    }
}

/// The paths to find, and the columns to return.
#[derive(Debug)]
struct PathRequest {
    from: String,
    to: String,
    output: PathOutput,
    schema: SchemaRef,
    clocks: Arc<Clocks>,
}

#[derive(Debug)]
struct PathColumns {
    inputs: Vec<Arc<dyn TableProvider>>,
    request: Arc<PathRequest>,
}

#[async_trait]
impl TableProvider for PathColumns {
    fn schema(&self) -> SchemaRef {
        self.request.schema.clone()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        _: &[Expr],
        _: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let mut inputs = Vec::new();
        for (input, table) in Input::iter().zip(&self.inputs) {
            let schema = table.schema();
            let columns = input.columns();
            let columns = columns.iter().map(|name| schema.index_of(name));
            let columns: Vec<usize> = columns.collect::<Result<_, _>>()?;
            inputs.push(table.scan(state, Some(&columns), &[], None).await?);
        }
        projected(Arc::new(PathsExec::new(inputs, self.request.clone())), projection)
    }
}

#[derive(Debug)]
struct PathsExec {
    inputs: Vec<Arc<dyn ExecutionPlan>>,
    request: Arc<PathRequest>,
    properties: Arc<PlanProperties>,
}

impl PathsExec {
    fn new(inputs: Vec<Arc<dyn ExecutionPlan>>, request: Arc<PathRequest>) -> PathsExec {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(request.schema.clone()),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Final,
            Boundedness::Bounded,
        );
        PathsExec { inputs, request, properties: Arc::new(properties) }
    }

    fn with_inputs(&self, inputs: Vec<Arc<dyn ExecutionPlan>>) -> Result<Arc<Self>> {
        if inputs.len() == self.inputs.len() {
            Ok(Arc::new(PathsExec::new(inputs, self.request.clone())))
        } else {
            internal_err!("paths have {} inputs", self.inputs.len())
        }
    }
}

impl DisplayAs for PathsExec {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Paths: from={}, to={}", self.request.from, self.request.to)
    }
}

impl ExecutionPlan for PathsExec {
    plan_methods!();

    fn name(&self) -> &'static str {
        "Paths"
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        self.inputs.iter().collect()
    }

    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        InputDistributionRequirements::new(vec![Distribution::SinglePartition; self.inputs.len()])
    }

    fn execute(&self, _: usize, context: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        let inputs = self.inputs.iter().map(|input| input.execute(0, context.clone()));
        let inputs: Vec<_> = inputs.collect::<Result<_>>()?;
        let request = self.request.clone();
        let answer = async move {
            let memory = MemoryConsumer::new("paths").register(context.memory_pool());
            let mut loader = Loader::new(request.clocks.clone());
            for (input, mut batches) in Input::iter().zip(inputs) {
                while let Some(batch) = batches.next().await.transpose()? {
                    loader.add_rows(input, &batch)?;
                    memory.try_resize(loader.bytes() * 2)?;
                }
            }
            let answer = request.answer(&loader.finish()?)?;
            drop(memory);
            Ok::<_, DataFusionError>(futures::stream::iter(answer.into_iter().map(Ok)))
        };
        let batches = futures::stream::once(answer);
        let batches = futures::TryStreamExt::try_flatten(batches);
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.request.schema.clone(), batches)))
    }
}

impl PathRequest {
    fn answer(&self, causality: &Causality) -> Result<Vec<RecordBatch>> {
        let (from, to) = (causality.points_named(&self.from), causality.points_named(&self.to));
        for (name, points) in [(&self.from, &from), (&self.to, &to)] {
            if points.is_empty() {
                return plan_err!("{}", causality.no_point(name));
            }
        }
        let mode = match self.output {
            PathOutput::Paths(mode) => mode,
            PathOutput::Stages => Mode::Nearest,
        };
        let paths = causality.graph.paths(&from, &to, mode).map_err(external)?;
        if let PathOutput::Stages = self.output {
            return Ok(vec![self.stages(causality, &paths)?]);
        }
        let (mut rows, mut batches, mut failed) = (Vec::new(), Vec::new(), None);
        paths.each(|path| {
            rows.push(path.clone());
            if rows.len() == ROWS_PER_BATCH {
                match self.rows(causality, &std::mem::take(&mut rows)) {
                    Ok(batch) => batches.push(batch),
                    Err(error) => failed = Some(error),
                }
            }
        });
        batches.push(self.rows(causality, &rows)?);
        failed.map_or(Ok(batches), Err)
    }

    fn rows(&self, causality: &Causality, paths: &[Path]) -> Result<RecordBatch> {
        let mut columns: Vec<ArrayRef> = Vec::new();
        for end in [|path: &Path| path.src, |path: &Path| path.dst] {
            let all = || paths.iter().map(end);
            let owner = || all().map(|number| causality.owner(number));
            let text = |value: fn(&crate::causality::FrameOwner) -> &str| -> ArrayRef {
                Arc::new(StringArray::from_iter_values(owner().map(value)))
            };
            let small = |value: fn(&crate::causality::FrameOwner) -> Option<i32>| -> ArrayRef {
                Arc::new(owner().map(value).collect::<Int32Array>())
            };
            let times = all()
                .map(|number| Some(causality.graph.ts(number)))
                .collect::<TimestampNanosecondArray>();
            columns.extend([
                text(|owner| &owner.capture),
                text(|owner| &owner.buffer),
                text(|owner| &owner.segment),
                small(|owner| owner.ring),
                Arc::new(all().map(|number| Some(causality.seqno(number))).collect::<Int64Array>()),
                small(|owner| owner.pid),
                small(|owner| owner.tid),
                Arc::new(StringArray::from_iter_values(
                    all().map(|number| causality.point(number)),
                )),
                Arc::new(times.with_timezone("UTC")),
            ]);
        }
        let long = |value: &dyn Fn(&Path) -> i64| -> ArrayRef {
            Arc::new(paths.iter().map(|path| Some(value(path))).collect::<Int64Array>())
        };
        columns.extend([
            long(&|path| path.route.len() as i64),
            long(&|path| path.latency(&causality.graph)),
            long(&|path| path.latency_lo(&causality.graph)),
            long(&|path| path.latency_hi(&causality.graph)),
            Arc::new(paths.iter().map(|path| Some(path.ambiguous)).collect::<BooleanArray>()),
            Arc::new(StringArray::from_iter_values(paths.iter().map(|path| causality.route(path)))),
        ]);
        Ok(RecordBatch::try_new(self.schema.clone(), columns)?)
    }

    fn stages(
        &self,
        causality: &Causality,
        paths: &ppt_causality::Paths<'_>,
    ) -> Result<RecordBatch> {
        let stages = paths.critical_path(&Budget::new(1 << 30));
        let text = |value: &dyn Fn(&ppt_causality::Stage) -> String| -> ArrayRef {
            Arc::new(StringArray::from_iter_values(stages.iter().map(value)))
        };
        let real = |value: fn(&ppt_causality::Stage) -> f64| -> ArrayRef {
            Arc::new(stages.iter().map(|stage| Some(value(stage))).collect::<Float64Array>())
        };
        let columns = vec![
            text(&|stage| causality.stage(stage)),
            text(&|stage| step_word(stage.by).to_owned()),
            text(&|stage| place_word(stage.place).to_owned()),
            Arc::new(
                stages.iter().map(|stage| i64::try_from(stage.count).ok()).collect::<Int64Array>(),
            ),
            Arc::new(
                stages.iter().map(|stage| i64::try_from(stage.time).ok()).collect::<Int64Array>(),
            ),
            real(|stage| stage.share),
            real(|stage| stage.p50),
            real(|stage| stage.p99),
        ];
        Ok(RecordBatch::try_new(self.schema.clone(), columns)?)
    }
}
