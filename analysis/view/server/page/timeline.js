// The timeline: rows on a canvas, their labels, the axis and the overview.

import { paintArrows } from './arrows.js';
import { theme } from './colours.js';
import { make } from './elements.js';
import { ROWS } from './glossary.js';
import { box, describe, paintCells, paintCounter, paintLosses, paintNames, paintUnknown, Pixels } from './paint.js';
import { grouped, moment, plain, tickStep, tickText } from './text.js';
import { paintWay } from './way.js';

const element = (id) => document.getElementById(id);
/** Pixels between two panes. */
const BETWEEN = 6;

export class Timeline {
  constructor(page) {
    this.page = page;
    this.scroller = element('scroller');
    this.labels = element('labels');
    this.axis = element('axis');
    this.overview = element('overview');
    this.selection = undefined;
    this.painted = false;
    new ResizeObserver(() => this.resize()).observe(this.scroller);
    this.scroller.addEventListener('scroll', () => this.refresh());
  }

  get labelWidth() {
    return Math.round(Math.min(240, this.scroller.clientWidth * 0.38));
  }

  /** The width of the cells of a pane in pixels of the page. */
  get width() {
    const count = this.page.panes.length;
    return Math.max(1, Math.floor((this.scroller.clientWidth - this.labelWidth - BETWEEN * (count - 1)) / count));
  }

  /** The left edge of a pane. */
  left(pane) {
    return this.labelWidth + pane.number * (this.width + BETWEEN);
  }

  /** Paints at once, because a canvas of another size would be stretched or cut. */
  resize() {
    this.refresh();
    cancelAnimationFrame(this.frame);
    this.frame = 0;
    this.paint();
  }

  /** Requests the visible rows, and draws those that have arrived. */
  refresh() {
    const { rows, panes } = this.page;
    element('space').style.height = `${rows.height}px`;
    const inSight = this.inSight().filter((row) => row.kind !== 'process');
    for (const pane of panes) {
      const ids = inSight.map((row) => row.ids[pane.number]).filter((id) => id !== undefined);
      pane.store.want(ids, this.width * this.ratio);
    }
    this.draw();
  }

  get ratio() {
    return Math.min(window.devicePixelRatio || 1, 2);
  }

  inSight() {
    return this.page.rows.inSight(this.scroller.scrollTop, this.scroller.clientHeight);
  }

  /** The top of a row, from the top of the cells. Pinned rows and heads do not scroll. */
  top(row) {
    const { rows } = this.page;
    return rows.isPinned(row) ? row.top : rows.stuck.get(row) ?? row.top - this.scroller.scrollTop;
  }

  /** The top of a row, and the bottom of the last row within it. */
  extent(row) {
    const { rows } = this.page;
    const bottom = rows.extent(row)[1];
    return [this.top(row), rows.isPinned(row) ? bottom : bottom - this.scroller.scrollTop];
  }

  /** The row at this height. */
  rowAt(y) {
    const { rows } = this.page;
    for (const [row, top] of rows.stuck) if (y >= top && y < top + row.height) return row;
    return rows.at(y < rows.pinnedHeight ? y : y + this.scroller.scrollTop);
  }

  draw() {
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      this.paint();
    });
  }

  paint() {
    const ratio = this.ratio;
    const colours = theme();
    const rows = this.inSight();
    for (const pane of this.page.panes) this.paintPane(pane, rows, colours, ratio);
    this.paintLabels(rows);
    this.paintAxis(colours, ratio);
    this.paintOverview(colours, ratio);
    this.painted = true;
    this.page.drawn();
  }

  paintPane(pane, rows, colours, ratio) {
    const { span } = this.page;
    const { canvas, names, causes } = pane;
    size(canvas, this.width, this.scroller.clientHeight, ratio);
    canvas.style.left = `${this.left(pane)}px`;
    const context = canvas.getContext('2d');
    const pixels = new Pixels(context, canvas.width, canvas.height);
    const scale = { from: span.from, factor: canvas.width / span.length, ratio };
    const wide = [];
    const place = (row) => [this.top(row) * ratio, (row.height - 1) * ratio];
    for (const row of rows) {
      const tile = pane.tile(row);
      if (tile?.cells) wide.push(...paintCells(pixels, tile, scale, ...place(row), names));
    }
    pixels.put();
    paintNames(context, wide, ratio);
    for (const row of rows) {
      const tile = pane.tile(row);
      const [top, tall] = place(row);
      if (row.kind === 'process' || row.ids[pane.number] === undefined) continue;
      if (!tile || tile.error || tile.built === false) paintUnknown(context, top, tall, colours, ratio);
      if (!tile || tile.error) continue;
      if (row.kind === 'counter') paintCounter(context, tile, scale, top, tall, colours);
      if (row.kind === 'thread') paintLosses(context, tile, scale, top, tall, causes, colours);
    }
    const { way } = this.page;
    const steps = way?.pane === pane ? paintWay(context, this, way, colours, ratio) : 0;
    this.paintRange(context, pane, colours, ratio);
    this.paintPick(context, pane, colours, ratio);
    // For scripts: the numbers of visible arrows and visible steps of a path.
    canvas.dataset.steps = String(steps);
    canvas.dataset.arrows = String(paintArrows(context, this, pane, colours, ratio));
  }

  x(offset, ratio = 1) {
    return ((offset - this.page.span.from) / this.page.span.length) * this.width * ratio;
  }

  /** The offset at a distance from the left edge of the cells. */
  offset(x) {
    return this.page.span.from + (x / this.width) * this.page.span.length;
  }

  paintRange(context, pane, colours, ratio) {
    const { range, hits } = this.page;
    context.save();
    if (range) {
      context.globalAlpha = 0.15;
      context.fillStyle = colours.accent;
      const [left, right] = [this.x(range[0], ratio), this.x(range[1], ratio)];
      context.fillRect(left, 0, Math.max(right - left, 1), context.canvas.height);
    }
    context.globalAlpha = 0.6;
    context.fillStyle = colours.accent;
    for (const hit of hits.pane === pane ? hits.list : []) {
      const x = this.x(hit.offset, ratio);
      if (x >= 0 && x <= context.canvas.width) context.fillRect(x, 0, ratio, 4 * ratio);
    }
    context.restore();
  }

  paintPick(context, pane, colours, ratio) {
    const { pick } = pane;
    if (!pick || pick.from === undefined) return;
    const row = this.page.rows.byId.get(pick.row);
    const left = this.x(pick.from, ratio);
    const right = Math.max(this.x(pick.to, ratio), left + 2 * ratio);
    const [top, height] = row && this.page.rows.isShown(row) ? [this.top(row) * ratio, row.height * ratio] : [0, context.canvas.height];
    context.strokeStyle = colours.text;
    context.lineWidth = 2 * ratio;
    context.strokeRect(left - ratio, top + ratio, right - left + 2 * ratio, height - 2 * ratio);
  }

  paintLabels(rows) {
    const { labels } = this;
    labels.style.width = `${this.labelWidth}px`;
    labels.style.height = `${this.scroller.clientHeight}px`;
    labels.setAttribute('aria-rowcount', String(this.page.rows.shown.length));
    const nodes = rows.map((row) => this.label(row));
    const picked = nodes.find((node) => node.classList.contains('picked'));
    if (picked) labels.setAttribute('aria-activedescendant', picked.id);
    else labels.removeAttribute('aria-activedescendant');
    labels.replaceChildren(...nodes);
  }

  label(row) {
    const node = make('div', `row ${row.kind}`);
    node.id = `row-${row.id}`;
    node.dataset.row = row.id;
    node.setAttribute('role', 'row');
    node.setAttribute('aria-level', String(row.level));
    node.setAttribute('aria-rowindex', String(row.place + 1));
    node.style.top = `${this.top(row)}px`;
    node.style.height = `${row.height}px`;
    node.style.paddingLeft = `${(row.level - 1) * 10}px`;
    if (row.id === this.page.row) node.classList.add('picked');
    if (this.page.rows.isPinned(row)) node.classList.add('pinned');
    if (this.page.rows.stuck.has(row)) node.classList.add('stuck');
    if (row.children > 0) {
      const isFolded = this.page.rows.folded.has(row.id);
      node.setAttribute('aria-expanded', String(!isFolded));
      const fold = make('button', '', isFolded ? '▸' : '▾');
      fold.type = 'button';
      fold.tabIndex = -1;
      fold.setAttribute('aria-label', isFolded ? 'Unfold' : 'Fold');
      node.append(fold);
    } else node.append(make('span', 'leaf', ' '));
    const parent = this.page.rows.pinned.has(row.id) && !['process', 'thread'].includes(row.kind) && this.page.rows.byId.get(row.parent);
    const cell = make('span', 'text', parent ? `${row.text}, ${parent.text}` : row.text);
    cell.setAttribute('role', 'gridcell');
    cell.title = ['spans', 'states'].includes(row.kind) ? row.text : `${row.text}: ${grouped(row.count)} ${row.kind === 'thread' || row.kind === 'process' ? 'frames' : row.kind === 'counter' ? 'readings' : ''}`;
    if (ROWS[row.kind]) cell.title += `\n${ROWS[row.kind]}`;
    node.append(cell);
    const isPinned = this.page.rows.pinned.has(row.id);
    const pin = make('button', isPinned ? 'pin on' : 'pin', isPinned ? '●' : '○');
    pin.type = 'button';
    pin.tabIndex = -1;
    pin.title = isPinned ? 'Let go of this row (p)' : 'Pin this row to the top (p)';
    pin.setAttribute('aria-label', pin.title);
    const matches = this.page.rows.only?.get(row.id);
    // The buttons are for pointers. Keys have the same actions.
    const remarks = [matches && `${grouped(matches)} match`, row.lost !== '0' && `${grouped(row.lost)} lost`].filter(Boolean);
    node.setAttribute('aria-label', [cell.textContent, ...remarks].join(', '));
    if (matches) node.append(make('span', 'count', `${grouped(matches)} match`));
    else if (row.lost !== '0') node.append(make('span', 'lost', `${grouped(row.lost)} lost`));
    else if (row.kind === 'counter') node.append(make('span', 'count', plain(row.unit)));
    node.append(pin);
    return node;
  }

  paintAxis(colours, ratio) {
    const { span, range, panes } = this.page;
    size(this.axis, this.axis.parentElement.clientWidth, 26, ratio);
    const context = this.axis.getContext('2d');
    context.clearRect(0, 0, this.axis.width, this.axis.height);
    context.font = `${11 * ratio}px system-ui, sans-serif`;
    context.textBaseline = 'middle';
    const step = tickStep(span.length, Math.max(2, this.width / 110));
    for (const pane of panes) {
      const left = this.left(pane) * ratio;
      context.save();
      context.beginPath();
      context.rect(left, 0, this.width * ratio, this.axis.height);
      context.clip();
      if (range) {
        context.globalAlpha = 0.3;
        context.fillStyle = colours.accent;
        const x = this.x(range[0], ratio);
        context.fillRect(left + x, 0, Math.max(this.x(range[1], ratio) - x, ratio), this.axis.height);
        context.globalAlpha = 1;
      }
      for (let tick = Math.ceil(span.from / step) * step; tick < span.to; tick += step) {
        const x = left + this.x(tick, ratio);
        context.fillStyle = colours.line;
        context.fillRect(x, 0, ratio, this.axis.height);
        context.fillStyle = colours.faint;
        context.fillText(tickText(tick, step), x + 4 * ratio, this.axis.height / 2);
      }
      context.restore();
    }
    context.fillStyle = colours.raised;
    context.fillRect(0, 0, this.labelWidth * ratio, this.axis.height);
    context.fillStyle = colours.text;
    context.fillText('since the first frame', 8 * ratio, this.axis.height / 2);
  }

  paintOverview(colours, ratio) {
    const { span, panes } = this.page;
    const { overview } = this;
    size(overview, overview.parentElement.clientWidth, 40, ratio);
    const context = overview.getContext('2d');
    context.fillStyle = colours.raised;
    context.fillRect(0, 0, overview.width, overview.height);
    const most = Math.max(1, ...panes.flatMap((pane) => pane.outline.counts));
    const high = overview.height / panes.length;
    for (const { number, outline } of panes) {
      const bars = outline.counts;
      const each = overview.width / Math.max(bars.length, 1);
      for (let at = 0; at < bars.length; at++) {
        const tall = bars[at] > 0 ? Math.max(2, (bars[at] / most) * (high - 6)) : 0;
        context.fillStyle = colours.faint;
        context.fillRect(at * each, (number + 1) * high - tall, Math.max(each, 1), tall);
        if (outline.losses[at] > 0) {
          context.fillStyle = colours.loss;
          context.fillRect(at * each, number * high, Math.max(each, 2 * ratio), 5 * ratio);
        }
      }
    }
    const x = (offset) => (offset / span.whole.to) * overview.width;
    context.strokeStyle = colours.accent;
    context.lineWidth = 2 * ratio;
    const [left, right] = [x(span.from), x(span.to)];
    context.strokeRect(left + ratio, ratio, Math.max(right - left, 3 * ratio) - 2 * ratio, overview.height - 2 * ratio);
    context.fillStyle = colours.accent;
    for (const hit of this.page.hits.list) context.fillRect(x(hit.offset), overview.height - 4 * ratio, ratio, 4 * ratio);
    overview.setAttribute('aria-valuetext', `${tickText(span.from, span.length / 100)} to ${tickText(span.to, span.length / 100)}`);
    overview.setAttribute('aria-valuemin', '0');
    overview.setAttribute('aria-valuemax', '100');
    overview.setAttribute('aria-valuenow', String(Math.round((100 * (span.from + span.to)) / 2 / span.whole.to)));
  }

  /** The cell under a point of the canvas of a pane. */
  hit(x, y, pane = this.page.pane) {
    const row = this.rowAt(y);
    const tile = pane.tile(row);
    if (!tile?.cells) return row && { row };
    const scale = { from: this.page.span.from, factor: this.width / this.page.span.length, ratio: 1 };
    const top = this.top(row);
    let best;
    for (let at = 0; at < tile.cells.count; at++) {
      const [left, right, upper, lower] = box(tile.cells, at, tile.shift, scale, top, row.height);
      // Narrow cells are hit from nearby pixels, too.
      const away = x < left ? left - x : x > right ? x - right : 0;
      if (away > 3) continue;
      const beside = y < upper - 1 || y > lower + 1 ? 2 : 0;
      if (best === undefined || away + beside < best.away) best = { row, tile, at, away: away + beside };
    }
    return best ?? { row, tile };
  }

  /** The content under a point in words. */
  words(x, y, pane) {
    const found = this.hit(x, y, pane);
    if (!found) return '';
    const { row, tile, at } = found;
    const lines = [];
    if (at !== undefined) lines.push(describe(tile.cells, at, pane.names));
    if (tile?.error) lines.push(plain(tile.error));
    if (tile?.counters?.count > 0) {
      const { counters } = tile;
      const offset = this.offset(x);
      let value;
      for (let i = 0; i < counters.count && counters.from[i] + tile.shift <= offset; i++) value = counters.last[i];
      if (value !== undefined) lines.push(`${row.text}: ${grouped(value)} ${plain(row.unit)}`);
    }
    if (tile?.losses) {
      const offset = this.offset(x);
      const near = (3 / this.width) * this.page.span.length;
      for (let i = 0; i < tile.losses.count; i++) {
        const [from, to] = [tile.losses.from[i] + tile.shift, tile.losses.to[i] + tile.shift];
        if (offset >= from - near && offset <= to + near) {
          lines.push(`${grouped(tile.losses.counts[i])} frames are missing: ${plain(pane.causes[tile.losses.cause[i]]).replace('_', ' ')}`);
        }
      }
    }
    if (lines.length === 0) return '';
    lines.push(moment(pane.time(this.offset(x))));
    return lines.join('\n');
  }
}

/** Sets the resolution of a canvas to that of the screen. */
function size(canvas, width, height, ratio) {
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const [wide, tall] = [Math.max(1, Math.round(width * ratio)), Math.max(1, Math.round(height * ratio))];
  if (canvas.width !== wide) canvas.width = wide;
  if (canvas.height !== tall) canvas.height = tall;
}
