// Reads the rows of a window in the format of `row_bytes.rs`.

export const BEGINS_BEFORE = 1;
export const SINGLE = 2;
export const OVERLAP = 4;
export const BACKWARD = 8;
export const HEADS = 16;
export const NO_NAME = 0xffffffff;

const CELLS = [['from', Float64Array], ['to', Float64Array], ['busy', Float64Array], ['longest', Float64Array],
  ['count', Float64Array], ['chunk', Uint32Array], ['frame', Uint32Array], ['bestName', Uint32Array],
  ['name', Uint32Array], ['share', Uint16Array], ['flags', Uint16Array], ['lane', Uint16Array]];
const COUNTERS = ['from', 'to', 'first', 'min', 'max', 'last', 'count'].map((name) => [name, Float64Array]);
const LOSSES = [['from', Float64Array], ['to', Float64Array], ['count', Float64Array], ['cause', Uint32Array]];

/** Reads messages from pieces of any size. */
export class Tiles {
  constructor() {
    this.bytes = new Uint8Array(0);
  }

  /** Adds bytes. Returns the rows that are now complete. */
  add(piece) {
    const joined = new Uint8Array(this.bytes.length + piece.length);
    joined.set(this.bytes);
    joined.set(piece, this.bytes.length);
    let at = 0;
    const rows = [];
    const view = new DataView(joined.buffer);
    while (joined.length - at >= 8) {
      const head = view.getUint32(at, true);
      const columns = view.getUint32(at + 4, true);
      const end = at + 8 + head + columns;
      if (joined.length < end) break;
      rows.push(tile(joined.slice(at + 8, at + 8 + head), joined.slice(at + 8 + head, end)));
      at = end;
    }
    this.bytes = joined.slice(at);
    return rows;
  }
}

function tile(headBytes, columns) {
  const head = JSON.parse(new TextDecoder().decode(headBytes));
  if (head.error !== undefined) return head;
  let at = 0;
  const take = (layout, count) => {
    const found = { count };
    for (const [name, Column] of layout) {
      found[name === 'count' ? 'counts' : name] = new Column(columns.buffer, at, count);
      at += Math.ceil((count * Column.BYTES_PER_ELEMENT) / 8) * 8;
    }
    return found;
  };
  const { row, origin, built, more } = head;
  return { row, origin: BigInt(origin), built, more, cells: take(CELLS, head.cells),
    counters: take(COUNTERS, head.counters), losses: take(LOSSES, head.losses) };
}
