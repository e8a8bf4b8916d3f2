//! What `ppt stat` says, as values: of each kind of frames, of each of its fields, by groups and by
//! slices of time. One pass, as many parts as there are threads.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray, DictionaryArray, Int32Array, Int64Array, PrimitiveArray, RecordBatch,
};
use datafusion::arrow::compute::{cast, max, min};
use datafusion::arrow::datatypes::{
    ArrowPrimitiveType, DataType, Field, Float64Type, Int32Type, Int64Type, UInt64Type,
};
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::common::runtime::JoinSet;
use datafusion::common::{DFSchema, ScalarValue, TableReference};
use datafusion::execution::SendableRecordBatchStream;
use datafusion::functions::core::expr_fn::coalesce;
use datafusion::logical_expr::{Expr, lit};
use datafusion::prelude::ident;
use futures::StreamExt;
use ppt_stats::{Budget, Samples, Sketch, Summary, Value};
use ppt_tables::{Bounded, Number, Table, Word};

use crate::engine::{Engine, FrameTable};
use crate::error::QueryError;
use crate::nearest::nearest;

/// What is asked.
#[derive(Debug, Clone)]
pub struct Ask {
    /// Only this kind of frames.
    pub frame: Option<String>,
    /// Columns by which rows are grouped.
    pub by: Vec<String>,
    /// Slices of time so wide, in ns.
    pub every: Option<i64>,
    /// An expression that is true of the rows that count.
    pub filter: Option<String>,
    /// Whether intervals are told without what lies in them, too. That takes a sort of all slices.
    pub self_time: bool,
    /// Bytes for values; what does not fit is told by a sketch.
    pub memory: usize,
    /// Of this field, how its values are spread.
    pub spread: Option<String>,
}

impl Default for Ask {
    fn default() -> Self {
        Ask {
            frame: None,
            by: Vec::new(),
            every: None,
            filter: None,
            self_time: false,
            memory: 1 << 30,
            spread: None,
        }
    }
}

/// What is said of a kind of frames.
#[derive(Debug, Clone)]
pub struct FrameSummary {
    /// Its buffer.
    pub buffer: String,
    /// Its name.
    pub frame: String,
    /// By group and slice, in their order; one where nothing is grouped.
    pub groups: Vec<Group>,
}

/// What is said of some frames of a kind.
#[derive(Debug, Clone)]
pub struct Group {
    /// What they have in common: by each column of [`Ask::by`], as text.
    pub by: Vec<Option<String>>,
    /// The beginning of their slice of time, ns since the epoch; None also where that is not known.
    pub slice: Option<i64>,
    /// How many there are.
    pub count: u64,
    /// When the first and the last of them were, ns since the epoch.
    pub time: Option<(i64, i64)>,
    /// Threads that wrote them.
    pub threads: u64,
    /// Their fields.
    pub fields: Vec<FieldSummary>,
}

impl Group {
    /// Frames a second; None where no time has passed.
    pub fn rate(&self, every: Option<i64>) -> Option<f64> {
        let wall = match (every, self.time) {
            (Some(every), _) => every,
            (None, Some((first, last))) => last.checked_sub(first)?,
            (None, None) => return None,
        };
        (wall > 0).then(|| self.count as f64 * 1e9 / wall as f64)
    }
}

/// What is said of a field.
#[derive(Debug, Clone)]
pub struct FieldSummary {
    /// Its name.
    pub name: String,
    /// What it is measured in; may be empty.
    pub unit: String,
    /// Its values.
    pub values: Values,
}

/// The values of a field.
#[derive(Debug, Clone)]
pub enum Values {
    /// Numbers.
    Numbers {
        /// What is said of them.
        summary: Box<Summary>,
        /// Of an interval of time: the sum of lengths over the time that passed; 1 is one thread at it
        /// all the time.
        busy: Option<f64>,
        /// How they are spread, if that was asked for.
        spread: Option<Box<Sketch>>,
    },
    /// Words, the most frequent first.
    Words {
        /// How often each is there.
        counts: Vec<(String, u64)>,
        /// Rows without one.
        nulls: u64,
    },
}

impl Engine {
    /// What is asked, of every kind of frames that has the columns for it.
    ///
    /// # Errors
    /// See [`QueryError`].
    pub async fn summary(&self, ask: &Ask) -> Result<Vec<FrameSummary>, QueryError> {
        let budget = Budget::new(ask.memory);
        let mut all = Vec::new();
        let mut refused = None;
        for table in self.frames(ask.frame.as_deref())? {
            match Plan::new(self, ask, &table) {
                Ok(plan) => all.push(plan.run(self, ask, &budget).await?),
                // Another kind may have that column.
                Err(error @ QueryError::NoColumn { .. }) => refused = refused.or(Some(error)),
                Err(error) => return Err(error),
            }
        }
        match refused {
            Some(error) if all.is_empty() => Err(error),
            _ => Ok(all),
        }
    }
}

/// What is done with a field.
#[derive(Debug, Clone)]
struct Role {
    field: Arc<Field>,
    kind: Kind,
    /// Columns of what is read: the values, and of an interval of time its ends.
    column: usize,
    ends: Option<(usize, usize)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Signed,
    Unsigned,
    Real,
    Words,
}

fn kind(ty: &DataType) -> Option<Kind> {
    match ty {
        DataType::UInt64 => Some(Kind::Unsigned),
        ty if ty.is_integer() => Some(Kind::Signed),
        ty if ty.is_floating() => Some(Kind::Real),
        DataType::Boolean | DataType::Dictionary(..) => Some(Kind::Words),
        _ => None,
    }
}

/// How a kind of frames is read.
struct Plan {
    buffer: String,
    frame: String,
    table: TableReference,
    filter: Option<Expr>,
    select: Vec<Expr>,
    roles: Vec<Role>,
    /// Columns of what is read.
    by: Vec<usize>,
    time: usize,
    thread: [usize; 3],
}

impl Plan {
    fn new(engine: &Engine, ask: &Ask, table: &FrameTable) -> Result<Plan, QueryError> {
        let schema = table.table.schema();
        let mut select = Vec::new();
        let mut read = |expr: Expr| {
            select.push(expr.alias(format!("c{}", select.len())));
            select.len() - 1
        };
        let column = |index: usize| ident(schema.field(index).name().as_str());
        let standard = |what| find(table.table.as_ref(), what).map(column);
        let number = |number| standard(Bounded::Number(number)).unwrap_or_else(null);
        let time = read(coalesce(vec![number(Number::Ts), number(Number::Drained)]));
        let host = standard(Bounded::Word(Word::Host)).unwrap_or_else(null);
        let thread = [read(host), read(number(Number::Pid)), read(number(Number::Tid))];

        let by_name = |name: &str| schema.index_of(name).ok();
        let by = ask.by.iter().map(|name| match by_name(name) {
            Some(index) => Ok(read(column(index))),
            None => Err(no_column(name, schema.fields().iter().map(|it| it.name()))),
        });
        let by = by.collect::<Result<Vec<_>, _>>()?;
        let mut roles = Vec::new();
        for (index, field) in schema.fields().iter().enumerate() {
            let role = field.metadata().get("role").map_or("", String::as_str);
            let Some(kind) = kind(field.data_type()) else { continue };
            let is_end = ["at", "start", "end"].contains(&role);
            if table.table.bounded(index).is_some() || is_end || ask.by.contains(field.name()) {
                continue;
            }
            let ends = (role == "length").then(|| ends(schema, field)).flatten();
            let column = read(column(index));
            let ends = ends.map(|(start, end)| {
                (read(self::column(schema, start)), read(self::column(schema, end)))
            });
            roles.push(Role { field: field.clone(), kind, column, ends });
        }
        if let Some(name) = &ask.spread {
            let is_it = |it: &Role| it.field.name() == name && it.kind != Kind::Words;
            if !roles.iter().any(is_it) {
                return Err(no_column(name, roles.iter().map(|it| it.field.name())));
            }
            roles.retain(is_it);
        }
        let filter = match &ask.filter {
            None => None,
            Some(text) => {
                let known = DFSchema::try_from(schema.as_ref().clone())?;
                Some(engine.context().parse_sql_expr(text, &known)?)
            }
        };
        Ok(Plan {
            buffer: table.buffer.clone(),
            frame: table.frame.clone(),
            table: table.name.clone(),
            filter,
            select,
            roles,
            by,
            time,
            thread,
        })
    }

    async fn run(
        self,
        engine: &Engine,
        ask: &Ask,
        budget: &Budget,
    ) -> Result<FrameSummary, QueryError> {
        let mut rows = engine.context().table(self.table.clone()).await?;
        if let Some(filter) = &self.filter {
            rows = rows.filter(filter.clone())?;
        }
        let streams = rows.select(self.select.clone())?.execute_stream_partitioned().await?;
        let plan = Arc::new(self);
        let mut parts = JoinSet::new();
        for stream in streams {
            let (plan, budget, every) = (plan.clone(), budget.clone(), ask.every);
            parts.spawn(async move { Part::new(plan, every, budget).read(stream).await });
        }
        let mut all: Option<Part> = None;
        while let Some(part) = parts.join_next().await {
            let part = part.map_err(|error| QueryError::Failed(error.to_string()))??;
            match &mut all {
                None => all = Some(part),
                Some(all) => all.join(part),
            }
        }
        let groups = match all {
            Some(all) => all.finish(ask),
            None => Vec::new(),
        };
        let (buffer, frame) = (plan.buffer.clone(), plan.frame.clone());
        let mut summary = FrameSummary { buffer, frame, groups };
        if ask.self_time {
            plan.add_self_time(engine, ask, budget, &mut summary).await?;
        }
        Ok(summary)
    }

    /// Adds what slices do not share with those in them.
    async fn add_self_time(
        &self,
        engine: &Engine,
        ask: &Ask,
        budget: &Budget,
        summary: &mut FrameSummary,
    ) -> Result<(), QueryError> {
        if !ask.by.is_empty() || ask.every.is_some() || ask.filter.is_some() {
            let why = "self time is of whole captures: without --by, --every and --where";
            return Err(QueryError::NotHere(why.to_owned()));
        }
        let Some(group) = summary.groups.first_mut() else { return Ok(()) };
        for role in self.roles.iter().filter(|it| it.ends.is_some()) {
            let name = format!("{}.{}", self.frame, role.field.name());
            let is_it = ident("name").eq(lit(name)).and(ident("buffer").eq(lit(&*self.buffer)));
            let slices = engine.context().table(TableReference::bare("slices")).await?;
            let rows = slices.filter(is_it)?.select(vec![ident("self")])?;
            let mut stream = rows.execute_stream().await?;
            let mut samples = Samples::<i64>::new(budget);
            while let Some(batch) = stream.next().await {
                signed(&batch?.column(0).clone(), |it| extend(&mut samples, it))?;
            }
            let summary = Box::new(samples.finish());
            group.fields.push(FieldSummary {
                name: format!("{}.self", role.field.name()),
                unit: "ns".to_owned(),
                values: Values::Numbers { summary, busy: None, spread: None },
            });
        }
        Ok(())
    }
}

fn null() -> Expr {
    Expr::Literal(ScalarValue::Null, None)
}

fn column(schema: &datafusion::arrow::datatypes::Schema, index: usize) -> Expr {
    ident(schema.field(index).name().as_str())
}

fn find(table: &dyn Table, what: Bounded) -> Option<usize> {
    (0..table.schema().fields().len()).find(|&it| table.bounded(it) == Some(what))
}

fn no_column<'a>(name: &str, there: impl Iterator<Item = &'a String>) -> QueryError {
    let there: Vec<String> = there.cloned().collect();
    QueryError::NoColumn { name: name.to_owned(), nearest: nearest(name, &there), there }
}

/// The columns that hold the ends of an interval of time, if its clock has a place in time.
pub fn ends(
    schema: &datafusion::arrow::datatypes::Schema,
    length: &Field,
) -> Option<(usize, usize)> {
    let interval = length.metadata().get("interval")?;
    let place = |role: &str| {
        schema.fields().iter().position(|field| {
            let said = |key: &str| field.metadata().get(key).map(String::as_str);
            said("role") == Some(role)
                && said("interval") == Some(interval)
                && matches!(field.data_type(), DataType::Timestamp(..))
        })
    };
    // One of them, mostly the end, may be when the frame was.
    let end = |role| place(role).or_else(|| place("at"));
    Some((end("start")?, end("end")?)).filter(|(start, end)| start != end)
}

/// What is known of some rows.
struct Rows {
    by: Vec<Option<String>>,
    slice: Option<i64>,
    count: u64,
    time: Option<(i64, i64)>,
    threads: HashSet<[i32; 3]>,
    fields: Vec<Gathered>,
}

enum Gathered {
    Signed(Samples<i64>, Option<(i64, i64)>),
    Unsigned(Samples<u64>),
    Real(Samples<f64>),
    Words(HashMap<String, u64>, u64),
}

impl Gathered {
    fn join(&mut self, other: Gathered) {
        match (self, other) {
            (Gathered::Signed(one, ends), Gathered::Signed(other, theirs)) => {
                one.join(other);
                *ends = reach(*ends, theirs);
            }
            (Gathered::Unsigned(one), Gathered::Unsigned(other)) => one.join(other),
            (Gathered::Real(one), Gathered::Real(other)) => one.join(other),
            (Gathered::Words(one, nulls), Gathered::Words(other, theirs)) => {
                other.into_iter().for_each(|(word, count)| *one.entry(word).or_default() += count);
                *nulls += theirs;
            }
            _ => {}
        }
    }
}

fn reach(one: Option<(i64, i64)>, other: Option<(i64, i64)>) -> Option<(i64, i64)> {
    match (one, other) {
        (Some(one), Some(other)) => Some((one.0.min(other.0), one.1.max(other.1))),
        (one, other) => one.or(other),
    }
}

/// A part of the rows.
struct Part {
    plan: Arc<Plan>,
    every: Option<i64>,
    budget: Budget,
    groups: Vec<Rows>,
    /// By the words of each column, and the slice.
    known: HashMap<(Vec<u32>, Option<i64>), usize>,
    /// The words of each column; the first is NULL.
    words: Vec<Interner>,
}

#[derive(Default)]
struct Interner {
    words: Vec<String>,
    keys: HashMap<String, u32>,
}

impl Interner {
    fn key(&mut self, word: &str) -> u32 {
        if let Some(&key) = self.keys.get(word) {
            return key;
        }
        self.words.push(word.to_owned());
        let key = self.words.len() as u32;
        self.keys.insert(word.to_owned(), key);
        key
    }
}

/// Which group each row of a batch is in.
enum Members {
    All(usize),
    Each(Vec<u32>),
}

impl Part {
    fn new(plan: Arc<Plan>, every: Option<i64>, budget: Budget) -> Part {
        let words = plan.by.iter().map(|_| Interner::default()).collect();
        Part { plan, every, budget, groups: Vec::new(), known: HashMap::new(), words }
    }

    async fn read(mut self, mut rows: SendableRecordBatchStream) -> Result<Part, QueryError> {
        while let Some(batch) = rows.next().await {
            let batch = batch?;
            if batch.num_rows() > 0 {
                self.batch(&batch)?;
            }
        }
        Ok(self)
    }

    fn group(&mut self, by: &[u32], slice: Option<i64>) -> usize {
        if let Some(&known) = self.known.get(&(by.to_vec(), slice)) {
            return known;
        }
        let field = |role: &Role| match role.kind {
            Kind::Signed => Gathered::Signed(Samples::new(&self.budget), None),
            Kind::Unsigned => Gathered::Unsigned(Samples::new(&self.budget)),
            Kind::Real => Gathered::Real(Samples::new(&self.budget)),
            Kind::Words => Gathered::Words(HashMap::new(), 0),
        };
        let word = |(&key, words): (&u32, &Interner)| {
            key.checked_sub(1).map(|key| words.words[key as usize].clone())
        };
        self.groups.push(Rows {
            by: by.iter().zip(&self.words).map(word).collect(),
            slice,
            count: 0,
            time: None,
            threads: HashSet::new(),
            fields: self.plan.roles.iter().map(field).collect(),
        });
        self.known.insert((by.to_vec(), slice), self.groups.len() - 1);
        self.groups.len() - 1
    }

    /// The words of a column of a batch, by row.
    fn keys(&mut self, which: usize, column: &ArrayRef) -> Result<Vec<u32>, QueryError> {
        let words = &mut self.words[which];
        if let Some(column) = column.as_any().downcast_ref::<DictionaryArray<Int32Type>>() {
            let values = column.values().as_string::<i32>();
            let mut known: Vec<Option<u32>> = vec![None; values.len()];
            let key = |key: Option<i32>| {
                let Some(at) = key.map(|key| key as usize) else { return 0 };
                *known[at].get_or_insert_with(|| words.key(values.value(at)))
            };
            return Ok(column.keys().iter().map(key).collect());
        }
        let options = FormatOptions::default();
        let text = ArrayFormatter::try_new(column.as_ref(), &options).map_err(arrow)?;
        let key = |row| match column.is_null(row) {
            true => 0,
            false => words.key(&text.value(row).to_string()),
        };
        Ok((0..column.len()).map(key).collect())
    }

    fn members(&mut self, batch: &RecordBatch, times: &Int64Array) -> Result<Members, QueryError> {
        let plan = self.plan.clone();
        let mut keys = Vec::new();
        for (which, &column) in plan.by.iter().enumerate() {
            keys.push(self.keys(which, batch.column(column))?);
        }
        if keys.is_empty() && self.every.is_none() {
            return Ok(Members::All(self.group(&[], None)));
        }
        let every = self.every;
        let slice = |row: usize| {
            let every = every?;
            let time = times.is_valid(row).then(|| times.value(row))?;
            time.div_euclid(every).checked_mul(every)
        };
        let mut last: Option<(Vec<u32>, Option<i64>, u32)> = None;
        // Of one column of few words, each group is found in one step.
        let mut direct: Vec<u32> = Vec::new();
        let mut each = Vec::with_capacity(batch.num_rows());
        for row in 0..batch.num_rows() {
            if let ([keys], None) = (&keys[..], every) {
                let key = keys[row] as usize;
                if direct.len() <= key {
                    direct.resize(key + 1, u32::MAX);
                }
                if direct[key] == u32::MAX {
                    direct[key] = self.group(&[keys[row]], None) as u32;
                }
                each.push(direct[key]);
                continue;
            }
            let slice = slice(row);
            let same = |it: &(Vec<u32>, Option<i64>, u32)| {
                it.1 == slice && it.0.iter().zip(&keys).all(|(key, keys)| *key == keys[row])
            };
            let group = match last.as_ref().filter(|it| same(it)) {
                Some(it) => it.2,
                None => {
                    let by: Vec<u32> = keys.iter().map(|keys| keys[row]).collect();
                    let group = self.group(&by, slice) as u32;
                    last = Some((by, slice, group));
                    group
                }
            };
            each.push(group);
        }
        Ok(Members::Each(each))
    }

    fn batch(&mut self, batch: &RecordBatch) -> Result<(), QueryError> {
        let plan = self.plan.clone();
        let int = |column: usize| cast(batch.column(column), &DataType::Int64).map_err(arrow);
        let times = int(plan.time)?;
        let times = times.as_primitive::<Int64Type>();
        let members = self.members(batch, times)?;
        match &members {
            Members::All(group) => {
                let rows = &mut self.groups[*group];
                rows.count += batch.num_rows() as u64;
                rows.time = reach(rows.time, min(times).zip(max(times)));
            }
            Members::Each(each) => {
                for (row, &group) in each.iter().enumerate() {
                    let rows = &mut self.groups[group as usize];
                    rows.count += 1;
                    if times.is_valid(row) {
                        let time = times.value(row);
                        rows.time = reach(rows.time, Some((time, time)));
                    }
                }
            }
        }
        self.threads(batch, &members)?;
        for (at, role) in plan.roles.iter().enumerate() {
            self.field(batch, &members, at, role)?;
        }
        Ok(())
    }

    /// Threads come in runs.
    fn threads(&mut self, batch: &RecordBatch, members: &Members) -> Result<(), QueryError> {
        let [host, pid, tid] = self.plan.thread;
        let host = batch.column(host);
        let host = host.as_any().downcast_ref::<DictionaryArray<Int32Type>>();
        let int = |column: usize| cast(batch.column(column), &DataType::Int32).map_err(arrow);
        let (pid, tid) = (int(pid)?, int(tid)?);
        let (pid, tid) = (pid.as_primitive::<Int32Type>(), tid.as_primitive::<Int32Type>());
        let value =
            |array: &Int32Array, row| if array.is_null(row) { -1 } else { array.value(row) };
        let mut last = None;
        for row in 0..batch.num_rows() {
            let group = match members {
                Members::All(group) => *group,
                Members::Each(each) => each[row] as usize,
            };
            let host = host.map_or(-1, |it| value(it.keys(), row));
            let thread = [host, value(pid, row), value(tid, row)];
            if last != Some((group, thread)) {
                self.groups[group].threads.insert(thread);
                last = Some((group, thread));
            }
        }
        Ok(())
    }

    fn field(
        &mut self,
        batch: &RecordBatch,
        members: &Members,
        at: usize,
        role: &Role,
    ) -> Result<(), QueryError> {
        let column = batch.column(role.column);
        match role.kind {
            Kind::Signed => {
                signed(column, |it| self.numbers(members, at, it, Gathered::signed))?;
                if let Some((start, end)) = role.ends {
                    self.ends(members, at, column, batch.column(start), batch.column(end))?;
                }
            }
            Kind::Unsigned => {
                let values = column.as_primitive::<UInt64Type>();
                self.numbers(members, at, values, Gathered::unsigned);
            }
            Kind::Real => {
                let values = cast(column, &DataType::Float64).map_err(arrow)?;
                self.numbers(members, at, values.as_primitive::<Float64Type>(), Gathered::real);
            }
            Kind::Words => self.words(members, at, column)?,
        }
        Ok(())
    }

    fn numbers<T: ArrowPrimitiveType<Native: Value>>(
        &mut self,
        members: &Members,
        at: usize,
        values: &PrimitiveArray<T>,
        of: fn(&mut Gathered) -> Option<&mut Samples<T::Native>>,
    ) {
        match members {
            Members::All(group) => {
                if let Some(samples) = of(&mut self.groups[*group].fields[at]) {
                    extend(samples, values);
                }
            }
            Members::Each(each) => {
                for (row, &group) in each.iter().enumerate() {
                    let Some(samples) = of(&mut self.groups[group as usize].fields[at]) else {
                        continue;
                    };
                    match values.is_null(row) {
                        true => samples.push_nulls(1),
                        false => samples.push(values.value(row)),
                    }
                }
            }
        }
    }

    /// From when to when intervals were.
    fn ends(
        &mut self,
        members: &Members,
        at: usize,
        length: &ArrayRef,
        start: &ArrayRef,
        end: &ArrayRef,
    ) -> Result<(), QueryError> {
        let int = |column: &ArrayRef| cast(column, &DataType::Int64).map_err(arrow);
        let (start, end) = (int(start)?, int(end)?);
        let (start, end) = (start.as_primitive::<Int64Type>(), end.as_primitive::<Int64Type>());
        let mut reached = |group: usize, span| {
            if let Gathered::Signed(_, ends) = &mut self.groups[group].fields[at] {
                *ends = reach(*ends, span);
            }
        };
        match members {
            Members::All(group) if length.null_count() == 0 => {
                reached(*group, min(start).zip(max(end)));
            }
            _ => {
                for row in 0..length.len() {
                    if length.is_null(row) || start.is_null(row) || end.is_null(row) {
                        continue;
                    }
                    let group = match members {
                        Members::All(group) => *group,
                        Members::Each(each) => each[row] as usize,
                    };
                    reached(group, Some((start.value(row), end.value(row))));
                }
            }
        }
        Ok(())
    }

    fn words(&mut self, members: &Members, at: usize, column: &ArrayRef) -> Result<(), QueryError> {
        // A bool is a word, too.
        let column = match column.data_type() {
            DataType::Boolean => {
                let ty = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
                &cast(&cast(column, &DataType::Utf8).map_err(arrow)?, &ty).map_err(arrow)?
            }
            _ => column,
        };
        let Some(column) = column.as_any().downcast_ref::<DictionaryArray<Int32Type>>() else {
            return Ok(());
        };
        let words = column.values().as_string::<i32>();
        let mut counts: HashMap<(usize, Option<i32>), u64> = HashMap::new();
        match members {
            Members::All(group) => {
                let mut by_key = vec![0u64; words.len()];
                column.keys().iter().flatten().for_each(|key| by_key[key as usize] += 1);
                counts.insert((*group, None), column.null_count() as u64);
                let some = by_key.iter().enumerate().filter(|it| *it.1 > 0);
                counts.extend(some.map(|(key, &count)| ((*group, Some(key as i32)), count)));
            }
            Members::Each(each) => {
                for (key, &group) in column.keys().iter().zip(each) {
                    *counts.entry((group as usize, key)).or_default() += 1;
                }
            }
        }
        for ((group, key), count) in counts {
            if let Gathered::Words(known, nulls) = &mut self.groups[group].fields[at] {
                match key {
                    None => *nulls += count,
                    Some(key) => {
                        let word = words.value(key as usize).to_owned();
                        *known.entry(word).or_default() += count;
                    }
                }
            }
        }
        Ok(())
    }

    fn join(&mut self, other: Part) {
        for theirs in other.groups {
            let keys = theirs.by.iter().zip(&mut self.words);
            let by: Vec<u32> =
                keys.map(|(word, words)| word.as_ref().map_or(0, |it| words.key(it))).collect();
            let group = self.group(&by, theirs.slice);
            let ours = &mut self.groups[group];
            ours.count += theirs.count;
            ours.time = reach(ours.time, theirs.time);
            ours.threads.extend(theirs.threads);
            let fields = ours.fields.iter_mut().zip(theirs.fields);
            fields.for_each(|(ours, theirs)| ours.join(theirs));
        }
    }

    fn finish(self, ask: &Ask) -> Vec<Group> {
        let roles = &self.plan.roles;
        let mut groups: Vec<Group> = self
            .groups
            .into_iter()
            .map(|rows| Group {
                by: rows.by,
                slice: rows.slice,
                count: rows.count,
                time: rows.time,
                threads: rows.threads.len() as u64,
                fields: roles
                    .iter()
                    .zip(rows.fields)
                    .map(|(role, gathered)| gathered.finish(role, ask))
                    .collect(),
            })
            .collect();
        groups.sort_by(|a, b| (&a.by, a.slice).cmp(&(&b.by, b.slice)));
        groups
    }
}

impl Gathered {
    fn signed(&mut self) -> Option<&mut Samples<i64>> {
        if let Gathered::Signed(samples, _) = self { Some(samples) } else { None }
    }

    fn unsigned(&mut self) -> Option<&mut Samples<u64>> {
        if let Gathered::Unsigned(samples) = self { Some(samples) } else { None }
    }

    fn real(&mut self) -> Option<&mut Samples<f64>> {
        if let Gathered::Real(samples) = self { Some(samples) } else { None }
    }

    fn finish(self, role: &Role, ask: &Ask) -> FieldSummary {
        let asked = ask.spread.as_ref() == Some(role.field.name());
        fn numbers<T: Value>(samples: Samples<T>, asked: bool, wall: Option<i64>) -> Values {
            let spread = asked.then(|| Box::new(samples.sketch()));
            let summary = Box::new(samples.finish());
            let wall = wall.filter(|&wall| wall > 0);
            let busy = wall.map(|wall| summary.sum.float() / wall as f64);
            Values::Numbers { summary, busy, spread }
        }
        let values = match self {
            Gathered::Signed(samples, ends) => {
                let span = ends.and_then(|(first, last)| last.checked_sub(first));
                let wall = if role.ends.is_some() { ask.every.or(span) } else { None };
                numbers(samples, asked, wall)
            }
            Gathered::Unsigned(samples) => numbers(samples, asked, None),
            Gathered::Real(samples) => numbers(samples, asked, None),
            Gathered::Words(counts, nulls) => {
                let sorted: BTreeMap<_, _> = counts.into_iter().collect();
                let mut counts: Vec<(String, u64)> = sorted.into_iter().collect();
                counts.sort_by_key(|it| std::cmp::Reverse(it.1));
                Values::Words { counts, nulls }
            }
        };
        let unit = role.field.metadata().get("unit").cloned().unwrap_or_default();
        FieldSummary { name: role.field.name().clone(), unit, values }
    }
}

fn extend<T: ArrowPrimitiveType<Native: Value>>(
    samples: &mut Samples<T::Native>,
    values: &PrimitiveArray<T>,
) {
    if values.null_count() == 0 {
        samples.extend(values.values());
        return;
    }
    samples.push_nulls(values.null_count() as u64);
    values.iter().flatten().for_each(|value| samples.push(value));
}

/// Whole numbers of any width as those of 64 bits.
fn signed(column: &ArrayRef, take: impl FnOnce(&Int64Array)) -> Result<(), QueryError> {
    let column = cast(column, &DataType::Int64).map_err(arrow)?;
    take(column.as_primitive::<Int64Type>());
    Ok(())
}

fn arrow(error: datafusion::arrow::error::ArrowError) -> QueryError {
    QueryError::Failed(error.to_string())
}
