//! A plot of one query's answer, for print.

use std::fmt::Write;
use std::str::FromStr;

use futures::StreamExt;
use ppt_query::arrow::array::{Array, AsArray, RecordBatch};
use ppt_query::arrow::compute::cast;
use ppt_query::arrow::datatypes::{DataType, Float64Type, Int64Type, Schema};
use ppt_query::arrow::util::display::{ArrayFormatter, FormatOptions};
use ppt_query::stats::{Histogram, Sketch};
use ppt_query::{Engine, parsed, prepared};

use crate::axis::Axis;
use crate::error::ReportError;
use crate::print_svg::Picture;

/// The form of a plot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlotForm {
    /// Lines over the first column.
    Line,
    /// Points over the first column.
    Points,
    /// A bar for each value of the first column, which is text.
    Bars,
    /// A histogram of the only column.
    Histogram,
}

impl PlotForm {
    /// All forms, by the names that select them.
    pub const ALL: [(&'static str, PlotForm); 4] = [
        ("line", PlotForm::Line),
        ("points", PlotForm::Points),
        ("bars", PlotForm::Bars),
        ("histogram", PlotForm::Histogram),
    ];
}

impl FromStr for PlotForm {
    type Err = String;

    fn from_str(word: &str) -> Result<PlotForm, String> {
        let found = PlotForm::ALL.into_iter().find(|(known, _)| *known == word);
        let words = || PlotForm::ALL.map(|(known, _)| known).join(", ");
        found.map(|(_, kind)| kind).ok_or_else(|| format!("expected one of {}", words()))
    }
}

/// A requested plot.
#[derive(Debug, Clone)]
pub struct Plot {
    /// None: chosen by the columns.
    pub kind: Option<PlotForm>,
    /// Title above the plot.
    pub title: String,
    /// Width in pixels.
    pub width: u32,
    /// Height in pixels.
    pub height: u32,
    /// Bytes of points that are kept in memory; a line with more points is drawn by its extremes.
    pub points: usize,
}

impl Default for Plot {
    fn default() -> Self {
        Plot { kind: None, title: String::new(), width: 720, height: 400, points: 20_000 }
    }
}

/// Maximum number of lines in a plot.
const SERIES: usize = 8;
/// Maximum number of bars in a plot.
const BARS: usize = 60;

/// Draws the answer to `sql`, a SELECT.
///
/// # Errors
/// `sql` is not one SELECT, its columns do not fit the kind of plot, or the query failed.
pub async fn plot(engine: &Engine, sql: &str, plot: &Plot) -> Result<String, ReportError> {
    let not = |why: &str| Err(ReportError::NotDrawn(why.to_owned()));
    let sql = &prepared(sql)?;
    let mut statements = parsed(sql)?;
    let (Some(statement), None) = (statements.pop_front(), statements.pop_front()) else {
        return not("a plot is of one SELECT");
    };
    let planned = engine.logical_plan(statement).await?;
    crate::views::read_only(&planned, sql)?;
    let rows = engine.execute(planned).await?;
    let schema = rows.schema().as_arrow().clone();
    let shape = PlotColumns::choose(&schema, plot.kind)?;
    let mut stream = rows.execute_stream().await?;
    let mut data = Data::new(&shape, plot.points);
    while let Some(batch) = stream.next().await {
        data.add(&batch?, &shape)?;
    }
    data.svg(&schema, &shape, plot)
}

/// The columns of a plot, by role.
struct PlotColumns {
    kind: PlotForm,
    ys: Vec<usize>,
}

fn is_time(ty: &DataType) -> bool {
    matches!(ty, DataType::Timestamp(..))
}

impl PlotColumns {
    fn choose(schema: &Schema, kind: Option<PlotForm>) -> Result<PlotColumns, ReportError> {
        let not = |why: &str| Err(ReportError::NotDrawn(why.to_owned()));
        let ty = |at: usize| schema.field(at).data_type();
        let count = schema.fields().len();
        let is_number = |at: &usize| ty(*at).is_numeric();
        let numbers: Vec<usize> = (0..count).filter(is_number).collect();
        let kind = match kind {
            Some(kind) => kind,
            None if count == 0 => return not("a plot needs a SELECT with columns"),
            None if count == 1 && numbers.len() == 1 => PlotForm::Histogram,
            None if is_time(ty(0)) || numbers.first() == Some(&0) => PlotForm::Line,
            None => PlotForm::Bars,
        };
        let shape = match kind {
            PlotForm::Histogram => PlotColumns { kind, ys: numbers.into_iter().take(1).collect() },
            PlotForm::Bars => {
                PlotColumns { kind, ys: (1..count).filter(is_number).take(1).collect() }
            }
            PlotForm::Line | PlotForm::Points if is_time(ty(0)) || is_number(&0) => {
                let ys = (1..count).filter(is_number).take(SERIES).collect();
                PlotColumns { kind, ys }
            }
            _ => return not("lines and points need a time or a number in the first column"),
        };
        if shape.ys.is_empty() {
            return not(
                "a plot needs numbers: SELECT a time, a number or a word first, and numbers behind \
                 it; or one column of numbers for a histogram",
            );
        }
        Ok(shape)
    }
}

/// The names and units of the columns of an answer.
struct ColumnLabels<'a>(&'a Schema);

impl ColumnLabels<'_> {
    fn name(&self, at: usize) -> String {
        self.0.field(at).name().clone()
    }

    fn unit(&self, at: usize) -> String {
        self.0.field(at).metadata().get("unit").cloned().unwrap_or_default()
    }

    fn is_time(&self, at: usize) -> bool {
        is_time(self.0.field(at).data_type())
    }
}

fn no_values() -> ReportError {
    ReportError::NotDrawn("there are no values to draw".to_owned())
}

/// The data of a plot that can be drawn.
struct Data {
    words: Vec<(String, f64)>,
    more: usize,
    sketch: Sketch,
    series: Vec<Thinned>,
}

/// Points of a line; if there are too many, the minimum and the maximum of each run.
struct Thinned {
    points: Vec<(f64, f64)>,
    most: usize,
    /// Number of points that two points replace.
    each: usize,
    run: Vec<(f64, f64)>,
}

impl Thinned {
    fn new(most: usize) -> Thinned {
        Thinned { points: Vec::new(), most: most.max(16), each: 1, run: Vec::new() }
    }

    fn add(&mut self, point: (f64, f64)) {
        if self.each == 1 {
            self.points.push(point);
        } else {
            self.run.push(point);
            if self.run.len() == self.each {
                self.close();
            }
        }
        if self.points.len() > self.most {
            self.each *= 4;
            let points = std::mem::take(&mut self.points);
            for run in points.chunks(8) {
                extremes(run, &mut self.points);
            }
        }
    }

    fn close(&mut self) {
        let run = std::mem::take(&mut self.run);
        extremes(&run, &mut self.points);
    }
}

/// Appends the minimum and the maximum of a run, in their order.
fn extremes(run: &[(f64, f64)], out: &mut Vec<(f64, f64)>) {
    let by = |a: &&(f64, f64), b: &&(f64, f64)| a.1.total_cmp(&b.1);
    let (Some(&low), Some(&high)) = (run.iter().min_by(by), run.iter().max_by(by)) else { return };
    let (first, last) = if low.0 <= high.0 { (low, high) } else { (high, low) };
    out.push(first);
    if last != first {
        out.push(last);
    }
}

impl Data {
    fn new(shape: &PlotColumns, points: usize) -> Data {
        let series = shape.ys.iter().map(|_| Thinned::new(points)).collect();
        Data { words: Vec::new(), more: 0, sketch: Sketch::default(), series }
    }

    fn add(&mut self, batch: &RecordBatch, shape: &PlotColumns) -> Result<(), ReportError> {
        let floats = |at: usize| cast(batch.column(at), &DataType::Float64);
        match shape.kind {
            PlotForm::Histogram => {
                let values = floats(shape.ys[0])?;
                let values = values.as_primitive::<Float64Type>();
                values.iter().flatten().for_each(|value| self.sketch.add(value));
            }
            PlotForm::Bars => {
                let options = FormatOptions::new();
                let words = ArrayFormatter::try_new(batch.column(0).as_ref(), &options)?;
                let values = floats(shape.ys[0])?;
                let values = values.as_primitive::<Float64Type>();
                for row in 0..batch.num_rows() {
                    if self.words.len() == BARS {
                        self.more += 1;
                        continue;
                    }
                    let value = if values.is_null(row) { f64::NAN } else { values.value(row) };
                    self.words.push((words.value(row).to_string(), value));
                }
            }
            PlotForm::Line | PlotForm::Points => {
                let x = batch.column(0);
                let x = match is_time(x.data_type()) {
                    // Integers in ns, because a float cannot hold ns since the epoch; later, ns since
                    // the first time.
                    true => cast(x, &DataType::Int64)?,
                    false => x.clone(),
                };
                let whole = x.data_type() == &DataType::Int64;
                let int = whole.then(|| x.as_primitive::<Int64Type>().clone());
                let real = cast(&x, &DataType::Float64)?;
                let real = real.as_primitive::<Float64Type>();
                for (series, &column) in self.series.iter_mut().zip(&shape.ys) {
                    let values = cast(batch.column(column), &DataType::Float64)?;
                    let values = values.as_primitive::<Float64Type>();
                    for row in 0..batch.num_rows() {
                        if x.is_null(row) || values.is_null(row) || !values.value(row).is_finite() {
                            continue;
                        }
                        let x = int.as_ref().map_or(real.value(row), |int| int.value(row) as f64);
                        series.add((x, values.value(row)));
                    }
                }
            }
        }
        Ok(())
    }

    fn svg(
        mut self,
        schema: &Schema,
        shape: &PlotColumns,
        plot: &Plot,
    ) -> Result<String, ReportError> {
        let labels = ColumnLabels(schema);
        let mut picture = Picture::new(&plot.title, plot.width, plot.height);
        match shape.kind {
            PlotForm::Histogram => self.draw_histogram(&labels, shape, &mut picture)?,
            PlotForm::Bars => self.draw_bars(&labels, shape, &mut picture)?,
            PlotForm::Line | PlotForm::Points => self.draw_series(&labels, shape, &mut picture)?,
        }
        Ok(picture.finish())
    }

    fn draw_histogram(
        &self,
        labels: &ColumnLabels<'_>,
        shape: &PlotColumns,
        picture: &mut Picture,
    ) -> Result<(), ReportError> {
        let Some(histogram) = Histogram::from_sketch(&self.sketch, 60, None) else {
            return Err(no_values());
        };
        let bins = &histogram.bins;
        let highest = bins.iter().map(|bin| bin.count).max().unwrap_or(0) as f64;
        let y = Axis::linear(0.0, highest);
        let (first, last) = (bins[0].from, bins[bins.len() - 1].to);
        let x = match histogram.scale {
            ppt_query::stats::BinScale::Logarithmic => Axis::log(first, last),
            ppt_query::stats::BinScale::Linear => Axis::linear(first, last),
        };
        picture.axes(&x, &y, &labels.unit(shape.ys[0]), "");
        for bin in bins.iter().filter(|bin| bin.count > 0) {
            let (from, to) = (x.place(bin.from), x.place(bin.to));
            picture.bar(from, to - from, y.place(bin.count as f64), 0);
        }
        let count = match histogram.infinite {
            0 => "count".to_owned(),
            infinite => format!("count ({infinite} infinite not drawn)"),
        };
        picture.names(&scaled(labels.name(shape.ys[0]), &x), &count);
        Ok(())
    }

    fn draw_bars(
        &self,
        labels: &ColumnLabels<'_>,
        shape: &PlotColumns,
        picture: &mut Picture,
    ) -> Result<(), ReportError> {
        let values = || self.words.iter().map(|entry| entry.1).filter(|value| value.is_finite());
        if values().next().is_none() {
            return Err(no_values());
        }
        let y = Axis::linear(values().fold(0.0, f64::min), values().fold(0.0, f64::max));
        picture.left_axis(&y, &labels.unit(shape.ys[0]));
        let each = 1.0 / self.words.len() as f64;
        for (at, (word, value)) in self.words.iter().enumerate() {
            if value.is_finite() {
                picture.bar(each * (at as f64 + 0.1), each * 0.8, y.place(*value), 0);
            }
            picture.word(each * (at as f64 + 0.5), word, self.words.len());
        }
        let mut below = labels.name(0);
        if self.more > 0 {
            let _ = write!(below, " ({} more are not drawn)", self.more);
        }
        picture.names(&below, &labels.name(shape.ys[0]));
        Ok(())
    }

    /// Draws lines or points over the first column.
    fn draw_series(
        &mut self,
        labels: &ColumnLabels<'_>,
        shape: &PlotColumns,
        picture: &mut Picture,
    ) -> Result<(), ReportError> {
        self.series.iter_mut().for_each(Thinned::close);
        let points = || self.series.iter().flat_map(|thinned| &thinned.points);
        let Some(first) = points().map(|point| point.0).reduce(f64::min) else {
            return Err(no_values());
        };
        let is_over_time = labels.is_time(0);
        // Times are relative to the first one.
        let origin = if is_over_time { first } else { 0.0 };
        let last = points().map(|point| point.0).fold(first, f64::max);
        let x = Axis::linear(first - origin, last - origin);
        let y = Axis::covering(points().map(|point| point.1).collect::<Vec<_>>().into_iter());
        let x_unit = if is_over_time { "ns".to_owned() } else { labels.unit(0) };
        picture.axes(&x, &y, &x_unit, &labels.unit(shape.ys[0]));
        for (at, series) in self.series.iter().enumerate() {
            let place = |entry: &(f64, f64)| (x.place(entry.0 - origin), y.place(entry.1));
            let places: Vec<_> = series.points.iter().map(place).collect();
            match shape.kind {
                PlotForm::Line => picture.line(&places, at),
                _ => picture.points(&places, at),
            }
        }
        let name = labels.name(0);
        let below = if is_over_time { format!("{name} (since the first)") } else { name };
        let names = shape.ys.iter().map(|&index| scaled(labels.name(index), &y));
        let names: Vec<String> = names.collect();
        match &names[..] {
            [name] => picture.names(&below, name),
            names => {
                picture.names(&below, "");
                picture.legend(names);
            }
        }
        Ok(())
    }
}

/// The title of an axis, which mentions a logarithmic scale.
fn scaled(name: String, axis: &Axis) -> String {
    if axis.is_log() { format!("{name} (logarithmic)") } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_of_many_points_keeps_its_extremes() {
        let mut thinned = Thinned::new(100);
        for at in 0..10_000 {
            let value = if at == 7_777 { 99.0 } else { f64::from(at % 3) };
            thinned.add((f64::from(at), value));
        }
        thinned.close();
        assert!(thinned.points.len() <= 110, "{}", thinned.points.len());
        assert!(thinned.points.contains(&(7_777.0, 99.0)));
        assert!(thinned.points.windows(2).all(|pair| pair[0].0 <= pair[1].0), "in their order");
    }
}
