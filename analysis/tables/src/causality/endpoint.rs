//! What enters and leaves points, as rows that a pass brings together: those of one hash type and
//! value, in the order of time.

use std::sync::Arc;

use arrow_array::StringArray;
use arrow_schema::{DataType, Field, Schema, SchemaRef};

use super::known::{DataIdentity, PointDirectory, PointForm, WIDEST};
use crate::bounds::Bounds;
use crate::builder::Builder;
use crate::of_chunks::{OfChunks, Ts, Wanted, kind_bit};
use crate::rows::RowsInChunk;
use crate::standard::{ChunkRows, Standard};

/// Bytes of a key: the number of the hash type, and the identity.
pub(crate) const KEY_BYTES: usize = 4 + WIDEST;

/// The key of an identity of this type.
pub(crate) fn key_of(of: usize, bytes: [u8; WIDEST]) -> [u8; KEY_BYTES] {
    let mut key = [0; KEY_BYTES];
    key[..4].copy_from_slice(&(of as u32).to_be_bytes());
    key[4..].copy_from_slice(&bytes);
    key
}

/// A column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EndpointColumn {
    /// [`KEY_BYTES`] bytes.
    Key,
    /// When it may have been at the earliest if it leaves, at the latest if it enters, ns since the
    /// epoch.
    When,
    Way,
    /// Number of the owner of its ring in [`PointDirectory::owners`].
    Owner,
    Seqno,
    Point,
    Drained,
    /// ns since the epoch.
    Ts,
}

/// All of them, by their numbers.
pub(crate) const COLUMNS: [EndpointColumn; 8] = [
    EndpointColumn::Key,
    EndpointColumn::When,
    EndpointColumn::Way,
    EndpointColumn::Owner,
    EndpointColumn::Seqno,
    EndpointColumn::Point,
    EndpointColumn::Drained,
    EndpointColumn::Ts,
];

/// Which way data goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DataDirection {
    /// It leaves, as the point says.
    Out,
    In,
    /// It leaves as it entered.
    ImpliedOut,
    /// It enters, and leaves as it is.
    Through,
}

impl DataDirection {
    const ALL: [DataDirection; 4] =
        [DataDirection::Out, DataDirection::In, DataDirection::ImpliedOut, DataDirection::Through];

    /// The one of this number.
    pub fn numbered(number: i32) -> DataDirection {
        DataDirection::ALL.get(number as usize).copied().unwrap_or(DataDirection::Out)
    }
}

impl PointForm {
    /// Gives all that enters and leaves to `take`. `exact`: times leave no doubt, so that what enters and
    /// leaves as it is does both at one time.
    pub fn ways(&self, exact: bool, mut take: impl FnMut(&DataIdentity, DataDirection)) {
        match (self.implied(), exact) {
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

/// The type of the identity of a key.
pub(crate) fn type_of(key: &[u8]) -> usize {
    key.first_chunk().map_or(0, |&number| u32::from_be_bytes(number) as usize)
}

/// What identifies it: hex digits as many as the type has.
pub(crate) fn hex_of(key: &[u8], width: usize) -> String {
    hex::encode(key.get(4..4 + width).unwrap_or_default())
}

/// Everything that enters or leaves points.
#[derive(Debug)]
pub(crate) struct Endpoints {
    pub known: Arc<PointDirectory>,
    schema: SchemaRef,
}

impl Endpoints {
    pub fn new(known: Arc<PointDirectory>) -> Endpoints {
        let field = |column: EndpointColumn| {
            let ty = match column {
                EndpointColumn::Key => DataType::FixedSizeBinary(KEY_BYTES as i32),
                EndpointColumn::When
                | EndpointColumn::Seqno
                | EndpointColumn::Drained
                | EndpointColumn::Ts => DataType::Int64,
                EndpointColumn::Way | EndpointColumn::Owner | EndpointColumn::Point => {
                    DataType::Int32
                }
            };
            Field::new(format!("{column:?}").to_lowercase(), ty, true)
        };
        let schema = Arc::new(Schema::new(COLUMNS.map(field).to_vec()));
        Endpoints { known, schema }
    }
}

impl OfChunks for Endpoints {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn dictionary(&self, _: usize) -> Option<Arc<StringArray>> {
        None
    }

    fn wanted(&self, capture: usize, source: u16, _: &Bounds) -> Wanted {
        let multi = self.known.multi(capture, source);
        let kinds = self
            .known
            .forms(capture, source)
            .fold(0, |kinds, (id, _)| kinds | if multi { kind_bit(id) } else { u64::MAX });
        Wanted { kinds, each: false, ts: Ts::Other }
    }

    fn append(&self, chunk: &ChunkRows<'_>, columns: &[usize], to: &mut [Builder]) -> usize {
        let known = &self.known;
        let exact = known.clocks.are_exact();
        let from = chunk.from(chunk.rows);
        let (mut rows, mut keys, mut times) = (Vec::new(), Vec::new(), Vec::new());
        let (mut stamps, mut ways, mut points) = (Vec::new(), Vec::new(), Vec::new());
        known.each(chunk, |row, frame, form| {
            let ts = form.at.and_then(|at| from.epoch(at, frame));
            let bounds = ts.and_then(|ts| known.clocks.around(chunk.capture, ts));
            form.ways(exact, |identity, way| {
                let Some(bytes) = identity.bytes(frame) else { return };
                rows.push(row);
                keys.push(key_of(identity.of, bytes));
                times.push(bounds.map(|(lo, hi)| if way == DataDirection::In { hi } else { lo }));
                stamps.push(ts);
                ways.push(way as i32);
                points.push(form.point);
            });
        });
        let taken = RowsInChunk { which: Some(&rows), ..chunk.rows };
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
                EndpointColumn::Way => builder.extend(ways.iter().copied()),
                EndpointColumn::Owner => builder.repeat(Some(known.owner(chunk)), count),
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
