// The tiles of rows that have arrived. Requests missing tiles, and drops tiles that are far away.

import { Tiles } from './tile_bytes.js';

const PATIENCE = 40;
const ROWS = 200;
const KEPT = 600;

/** Tiles by row. Calls `changed` when tiles change. */
export class Store {
  constructor(pane, changed, failed) {
    this.pane = pane;
    this.changed = changed;
    this.failed = failed;
    this.tiles = new Map();
    this.timer = 0;
    this.asking = undefined;
    this.waiting = new Set();
  }

  clear() {
    this.asking?.abort();
    this.asking = undefined;
    // Old tiles are shown until new ones arrive.
    for (const tile of this.tiles.values()) tile.isOld = true;
  }

  /** Drops all tiles, after the positions of times changed. */
  forget() {
    this.clear();
    this.tiles.clear();
  }

  /** The tiles of a row. */
  get(id) {
    return this.tiles.get(id);
  }

  /** Whether a tile covers this range with the resolution of `pixels`. */
  covers(tile, from, to, pixels) {
    if (!tile || tile.isOld) return false;
    const scale = (tile.to - tile.from) / tile.px;
    const wanted = (to - from) / pixels;
    return tile.from <= from && tile.to >= to && scale <= wanted * 1.01 && (scale >= wanted / 4 || !tile.isCoarse);
  }

  /** Requests rows a moment after the last call. */
  want(rows, pixels) {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.ask(rows, pixels), PATIENCE);
  }

  async ask(rows, pixels) {
    const { pane } = this;
    const { from, to } = pane.page.span;
    const missing = rows.filter((id) => !this.covers(this.tiles.get(id), from, to, pixels)).slice(0, ROWS);
    if (missing.length === 0) return;
    this.asking?.abort();
    const asking = (this.asking = new AbortController());
    this.waiting = new Set(missing);
    // Half a window more on each side has the tiles that become visible next.
    const margin = (to - from) / 2;
    const px = Math.min(4096, Math.max(2, Math.round(pixels * 2)));
    const asked = { from: pane.time(from - margin), to: pane.time(to + margin), px, where: pane.page.filter.where };
    const range = { from: pane.offset(asked.from), to: pane.offset(asked.to), px };
    const isOfTable = (id) => /^(spans|states)\./.test(id);
    const tables = missing.filter(isOfTable);
    try {
      await Promise.all([
        this.loadFinely({ ...asked, rows: missing.filter((id) => !isOfTable(id)) }, range, asking),
        tables.length > 0 && this.load({ ...asked, rows: tables, phase: 'index' }, range, asking),
      ]);
    } catch (error) {
      if (error.name !== 'AbortError') this.failed(error);
    } finally {
      if (this.asking === asking) {
        this.asking = undefined;
        this.waiting.clear();
        this.changed();
        // One request may not name all rows.
        if (missing.length === ROWS) this.want(rows, pixels);
      }
    }
  }

  /** Loads rows from the index, and then the frames of wide cells. */
  async loadFinely(asked, range, asking) {
    if (asked.rows.length === 0) return;
    const wide = await this.load({ ...asked, phase: 'index' }, range, asking);
    if (wide.length > 0) await this.load({ ...asked, rows: wide, phase: 'frames' }, range, asking);
  }

  /** Loads rows. Returns the rows with wide cells. */
  async load(asked, range, asking) {
    const tiles = new Tiles();
    const wide = [];
    await this.pane.api.window(asked, asking.signal, (bytes) => {
      for (const tile of tiles.add(bytes)) {
        this.waiting.delete(tile.row);
        if (tile.error === undefined) {
          if (tile.more) wide.push(tile.row);
          const isCoarse = Boolean(tile.more) || asked.phase === 'frames';
          this.put(tile.row, { ...tile, ...range, shift: Number(tile.origin - this.pane.zero), isCoarse });
        } else {
          this.put(tile.row, { ...range, row: tile.row, error: tile.error });
          this.failed(new Error(tile.error));
        }
      }
      this.changed();
    });
    return wide;
  }

  put(id, tile) {
    this.tiles.delete(id);
    this.tiles.set(id, tile);
    if (this.tiles.size > KEPT) this.tiles.delete(this.tiles.keys().next().value);
  }
}
