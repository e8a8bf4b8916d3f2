//! Endpoints: data that enters or leaves points, as rows of a scan. A pass groups them by hash type and
//! value.

use std::sync::Arc;

use arrow_array::StringArray;
use arrow_schema::{DataType, Field, Schema, SchemaRef};

use super::point_directory::{DataIdentity, PointDirectory, PointForm, WIDEST};
use crate::bounds::Bounds;
use crate::builder::Builder;
use crate::chunk_scan::{ChunkRowSource, Ts, Wanted, kind_bit};
use crate::rows::RowsInChunk;
use crate::standard::{ChunkRows, Standard};

/// Size of a key in bytes: the number of the hash type, followed by the identity.
pub(crate) const KEY_BYTES: usize = 4 + WIDEST;

/// The key of an identity of this type.
pub(crate) fn key_of(hash_type: usize, bytes: [u8; WIDEST]) -> [u8; KEY_BYTES] {
    let mut key = [0; KEY_BYTES];
    key[..4].copy_from_slice(&(hash_type as u32).to_be_bytes());
    key[4..].copy_from_slice(&bytes);
    key
}

/// A column of endpoints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EndpointColumn {
    /// [`KEY_BYTES`] bytes.
    Key,
    /// The earliest possible time if data leaves, the latest if it enters, ns since the epoch.
    When,
    Direction,
    /// Number of the owner of its ring in [`PointDirectory::owners`].
    Owner,
    Seqno,
    Point,
    Drained,
    /// ns since the epoch.
    Ts,
}

/// The columns, in the order of their indices.
pub(crate) const COLUMNS: [EndpointColumn; 8] = [
    EndpointColumn::Key,
    EndpointColumn::When,
    EndpointColumn::Direction,
    EndpointColumn::Owner,
    EndpointColumn::Seqno,
    EndpointColumn::Point,
    EndpointColumn::Drained,
    EndpointColumn::Ts,
];

/// The direction of data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DataDirection {
    /// The identity leaves; the point states this.
    Out,
    In,
    /// The identity leaves; this is implied, because it entered.
    ImpliedOut,
    /// The identity enters and leaves, at the same time.
    Through,
}

impl DataDirection {
    const ALL: [DataDirection; 4] =
        [DataDirection::Out, DataDirection::In, DataDirection::ImpliedOut, DataDirection::Through];

    /// The direction with this number.
    pub fn numbered(number: i32) -> DataDirection {
        DataDirection::ALL.get(number as usize).copied().unwrap_or(DataDirection::Out)
    }
}

impl PointForm {
    /// Passes each identity and its direction to `take`. `exact`: times are exact, so data that leaves as
    /// it entered is a single endpoint.
    pub fn each_endpoint(&self, exact: bool, mut take: impl FnMut(&DataIdentity, DataDirection)) {
        match (self.has_implied_outs(), exact) {
            (true, true) => {
                self.ins.iter().for_each(|identity| take(identity, DataDirection::Through));
            }
            (true, false) => self.ins.iter().for_each(|identity| {
                take(identity, DataDirection::In);
                take(identity, DataDirection::ImpliedOut);
            }),
            (false, _) => {
                self.ins.iter().for_each(|identity| take(identity, DataDirection::In));
                self.outs.iter().for_each(|identity| take(identity, DataDirection::Out));
            }
        }
    }
}

/// The number of the hash type in a key.
pub(crate) fn type_of(key: &[u8]) -> usize {
    key.first_chunk().map_or(0, |&number| u32::from_be_bytes(number) as usize)
}

/// The identity in a key as hex digits; `width`: size of the identity in bytes.
pub(crate) fn hex_of(key: &[u8], width: usize) -> String {
    hex::encode(key.get(4..4 + width).unwrap_or_default())
}

/// Makes rows of endpoints.
#[derive(Debug)]
pub(crate) struct Endpoints {
    pub directory: Arc<PointDirectory>,
    schema: SchemaRef,
}

impl Endpoints {
    pub fn new(directory: Arc<PointDirectory>) -> Endpoints {
        let field = |column: EndpointColumn| {
            let ty = match column {
                EndpointColumn::Key => DataType::FixedSizeBinary(KEY_BYTES as i32),
                EndpointColumn::When
                | EndpointColumn::Seqno
                | EndpointColumn::Drained
                | EndpointColumn::Ts => DataType::Int64,
                EndpointColumn::Direction | EndpointColumn::Owner | EndpointColumn::Point => {
                    DataType::Int32
                }
            };
            Field::new(format!("{column:?}").to_lowercase(), ty, true)
        };
        let schema = Arc::new(Schema::new(COLUMNS.map(field).to_vec()));
        Endpoints { directory, schema }
    }
}

impl ChunkRowSource for Endpoints {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn dictionary(&self, _: usize) -> Option<Arc<StringArray>> {
        None
    }

    fn wanted(&self, capture: usize, source: u16, _: &Bounds) -> Wanted {
        let multi = self.directory.multi(capture, source);
        let kinds = self
            .directory
            .forms(capture, source)
            .fold(0, |kinds, (id, _)| kinds | if multi { kind_bit(id) } else { u64::MAX });
        Wanted { kinds, frame_is_row: false, ts: Ts::Other }
    }

    fn append(&self, chunk: &ChunkRows<'_>, columns: &[usize], to: &mut [Builder]) -> usize {
        let directory = &self.directory;
        let exact = directory.clocks.are_exact();
        let values = chunk.values(chunk.rows);
        let (mut rows, mut keys, mut times) = (Vec::new(), Vec::new(), Vec::new());
        let (mut stamps, mut directions, mut points) = (Vec::new(), Vec::new(), Vec::new());
        directory.each(chunk, |row, frame, form| {
            let ts = form.at.and_then(|at| values.epoch(at, frame));
            let bounds = ts.and_then(|ts| directory.clocks.around(chunk.capture, ts));
            form.each_endpoint(exact, |identity, direction| {
                let Some(bytes) = identity.bytes(frame) else { return };
                rows.push(row);
                keys.push(key_of(identity.hash_type, bytes));
                times.push(
                    bounds.map(|(lo, hi)| if direction == DataDirection::In { hi } else { lo }),
                );
                stamps.push(ts);
                directions.push(direction as i32);
                points.push(form.point);
            });
        });
        let taken = RowsInChunk { selected: Some(&rows), ..chunk.rows };
        let count = rows.len();
        for (&column, builder) in columns.iter().zip(to) {
            match COLUMNS[column] {
                EndpointColumn::Key => {
                    let mut keys = keys.iter();
                    builder.fixed(taken, |_, to| {
                        if let Some(key) = keys.next() {
                            to.copy_from_slice(key);
                        }
                    });
                }
                EndpointColumn::When => {
                    let mut times = times.iter();
                    builder.each(taken, |_| times.next().copied().flatten());
                }
                EndpointColumn::Direction => builder.extend(directions.iter().copied()),
                EndpointColumn::Owner => builder.repeat(Some(directory.owner(chunk)), count),
                EndpointColumn::Seqno => chunk.standard(Standard::Seqno, taken, builder),
                EndpointColumn::Point => builder.extend(points.iter().copied()),
                EndpointColumn::Drained => chunk.standard(Standard::Drained, taken, builder),
                EndpointColumn::Ts => {
                    let mut stamps = stamps.iter();
                    builder.each(taken, |_| stamps.next().copied().flatten());
                }
            }
        }
        count
    }
}
