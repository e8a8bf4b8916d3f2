// A pane shows a set of captures on the timeline. Two sets have two panes.

import { Api } from './api.js';
import { counted, duration, grouped, plain } from './text.js';
import { Tiles } from './tile_bytes.js';
import { Store } from './tile_requests.js';

/** The number of bars of the overview. */
export const BARS = 400;
/** The number of rows of one request. */
const TOGETHER = 256;

export class Pane {
  /** Cells are drawn on `canvas`. */
  constructor(page, number, canvas) {
    this.page = page;
    this.number = number;
    this.canvas = canvas;
    this.api = new Api(number === 0 ? '/v1/' : '/v1/second/');
    this.about = undefined;
    this.names = [];
    this.causes = [];
    /** The time at offset 0. */
    this.zero = 0n;
    /** The chosen frame. */
    this.pick = undefined;
    this.outline = { counts: [], losses: [] };
    this.store = new Store(this, () => page.timeline.draw(), (error) => page.failed(error));
  }

  /** Takes the answer of `/v1/about`. */
  async refresh() {
    this.about = await this.api.about();
    this.names = this.about.names;
    this.causes = this.about.causes;
  }

  /** Moves a time to offset 0. The chosen frame stays at its time. */
  setZero(zero) {
    const shift = Number(this.zero - zero);
    this.zero = zero;
    // For scripts: the time at offset 0.
    this.canvas.dataset.zero = String(zero);
    if (shift === 0) return;
    this.store.forget();
    if (this.pick) [this.pick.from, this.pick.to] = [this.pick.from + shift, this.pick.to + shift];
  }

  /** The time at an offset, as the decimal string of requests. */
  time(offset) {
    return String(this.zero + BigInt(Math.round(offset)));
  }

  offset(time) {
    return Number(BigInt(time) - this.zero);
  }

  /** The first time, and the last. */
  get from() {
    return BigInt(this.about.from ?? 0);
  }

  get to() {
    return BigInt(this.about.to ?? this.about.from ?? 0);
  }

  get captured() {
    return this.about.captures.reduce((all, capture) => all + BigInt(capture.captured), 0n);
  }

  /** The names of its files without folders. */
  get files() {
    return this.about.captures.map((capture) => plain(capture.path).split('/').pop()).slice(0, 3).join(', ');
  }

  /** A short description of the set. */
  get glance() {
    const { about } = this;
    const lost = about.captures.reduce((all, capture) => all + BigInt(capture.lost) + BigInt(capture.dropped), 0n);
    const { done, total } = about.progress;
    const threads = about.rows.filter((row) => row.id.startsWith('thread.')).length;
    const parts = [`${counted(this.captured, 'frame', 'frames')} of ${counted(threads, 'thread', 'threads')}`];
    if (about.from !== null) parts.push(`in ${duration(this.to - this.from + 1n)}`);
    parts.push(lost > 0n ? `${grouped(lost)} missing` : 'nothing missing');
    if (!about.built && total > 0) parts.push(`indexed ${Math.floor((100 * done) / total)} %`);
    if (about.live) parts.push('live');
    return parts.join(', ');
  }

  /** The tiles of a row, if this set has it. */
  tile(row) {
    const id = row?.ids[this.number];
    return id === undefined ? undefined : this.store.get(id);
  }

  /** Requests the numbers of frames over the whole time. They come from heads of chunks and do not need the index. */
  async loadOutline() {
    if (this.about.from === null) return;
    const whole = this.page.span.whole.to;
    const asked = `${this.about.view} ${this.zero} ${whole}`;
    if (this.outlined === asked) return;
    // Only the last request counts.
    this.outlined = asked;
    try {
      const outline = await this.readOutline(whole, () => this.outlined === asked);
      if (outline) this.outline = outline;
    } catch (error) {
      this.outlined = undefined;
      throw error;
    }
  }

  /** The numbers of frames and losses of each bar. Undefined once they are not `wanted` any more. */
  async readOutline(whole, wanted) {
    const threads = this.about.rows.filter((row) => row.id.startsWith('thread.')).map((row) => row.id);
    const counts = new Array(BARS).fill(0);
    const losses = new Array(BARS).fill(0);
    const asked = { from: this.time(0), to: this.time(whole), px: BARS, phase: 'index' };
    const spread = (list, from, to, count) => {
      const first = Math.max(0, Math.min(BARS - 1, Math.floor((from / whole) * BARS)));
      const last = Math.max(first, Math.min(BARS - 1, Math.floor((to / whole) * BARS)));
      for (let at = first; at <= last; at++) list[at] += count / (last - first + 1);
    };
    for (let first = 0; first < threads.length; first += TOGETHER) {
      const tiles = new Tiles();
      await this.api.window({ ...asked, rows: threads.slice(first, first + TOGETHER) }, undefined, (bytes) => {
        for (const { cells, losses: lost } of tiles.add(bytes)) {
          for (let at = 0; at < (cells?.count ?? 0); at++) spread(counts, cells.from[at], cells.to[at], cells.counts[at]);
          for (let at = 0; at < (lost?.count ?? 0); at++) spread(losses, lost.from[at], lost.to[at], lost.counts[at]);
        }
      });
      if (!wanted()) return undefined;
    }
    return { counts, losses };
  }
}
