// Draws rows. It sets the pixels of cells, because filling single rectangles takes ten times as long without a GPU.

import { colour, pixel } from './colours.js';
import { duration, grouped, plain } from './text.js';
import { BACKWARD, HEADS, NO_NAME, OVERLAP, SINGLE } from './tile_bytes.js';

/** The free part of a row above its cells. */
const AIR = 2;
/** The width from which a single slice shows its name. */
const NAMED = 34;

/** The height of states in which a thread does not run. */
const STATE_HEIGHTS = { runnable: 0.7, blocked: 0.3 };

/** The number of lanes of the slices in a tile. */
function lanes(cells) {
  if (cells.lanes === undefined) {
    let most = 0;
    for (let at = 0; at < cells.count; at++) if (cells.flags[at] & SINGLE) most = Math.max(most, cells.lane[at]);
    cells.lanes = Math.min(most + 1, 8);
  }
  return cells.lanes;
}

/** The left, right, top and bottom of a cell in pixels of the canvas. */
export function box(cells, at, shift, scale, top, height) {
  const left = (cells.from[at] + shift - scale.from) * scale.factor;
  const right = (cells.to[at] + shift - scale.from) * scale.factor;
  const isSingle = (cells.flags[at] & SINGLE) !== 0;
  const all = lanes(cells);
  if (isSingle && all > 1) {
    const lane = Math.min(cells.lane[at], all - 1);
    const each = (height - AIR) / all;
    return [left, right, top + AIR + lane * each, top + AIR + (lane + 1) * each];
  }
  if (isSingle) return [left, right, top + AIR, top + height];
  const width = cells.to[at] - cells.from[at];
  const busy = width > 0 ? Math.min(cells.busy[at] / width, 1) : 1;
  const isHeads = (cells.flags[at] & HEADS) !== 0;
  const part = isHeads ? 0.25 : cells.busy[at] === 0 ? 0.5 : Math.max(busy, 0.12);
  return [left, right, top + AIR + (1 - part) * (height - AIR), top + height];
}

/** A picture made of pixels. */
export class Pixels {
  constructor(context, width, height) {
    this.context = context;
    this.image = context.createImageData(Math.max(width, 1), Math.max(height, 1));
    this.words = new Uint32Array(this.image.data.buffer);
    this.width = this.image.width;
    this.height = this.image.height;
  }

  fill(left, right, top, bottom, word) {
    const first = Math.max(0, Math.floor(left));
    const last = Math.min(this.width, Math.max(Math.ceil(right), Math.floor(left) + 1));
    if (last <= first) return;
    const end = Math.min(this.height, Math.max(Math.round(bottom), Math.round(top) + 1));
    for (let line = Math.max(0, Math.round(top)); line < end; line++) {
      this.words.fill(word, line * this.width + first, line * this.width + last);
    }
  }

  put() {
    this.context.putImageData(this.image, 0, 0);
  }
}

/** Draws the cells of a row. Returns the single slices with room for their names. */
export function paintCells(pixels, tile, scale, top, height, names) {
  const { cells } = tile;
  const wide = [];
  for (let at = 0; at < cells.count; at++) {
    const [left, right, upper, lower] = box(cells, at, tile.shift, scale, top, height);
    if (right < 0 || left > pixels.width) continue;
    const isSingle = (cells.flags[at] & SINGLE) !== 0;
    const name = cells.flags[at] & HEADS ? undefined : names[isSingle ? cells.bestName[at] : cells.name[at]];
    const tone = colour(name?.name, name?.buffer);
    const isWide = right - left >= 3;
    // States in which a thread runs are higher than those in which it waits.
    const high = (name?.buffer === 'kernel' && STATE_HEIGHTS[name.name]) || 1;
    pixels.fill(left, isWide && isSingle ? right - 1 : right, lower - high * (lower - upper), lower, pixel(tone, isSingle ? 255 : 215));
    if (isSingle && right - left >= NAMED * scale.ratio) wide.push([left, right, upper, lower, name?.name ?? '?', tone]);
    // Overlapping and backward slices have a mark besides their colour.
    if (!isSingle && cells.flags[at] & OVERLAP) pixels.fill(left, right, upper, upper + 1, pixel([0, 0, 0], 120));
    if (cells.flags[at] & BACKWARD) pixels.fill(left, left + 2, top, top + height, pixel([200, 0, 0]));
  }
  return wide;
}

/** Writes names into slices with room for them. */
export function paintNames(context, wide, ratio) {
  context.font = `${12 * ratio}px system-ui, sans-serif`;
  context.textBaseline = 'middle';
  for (const [left, right, upper, lower, name, [red, green, blue]] of wide) {
    if (lower - upper < 12 * ratio) continue;
    const first = Math.max(left, 0) + 4 * ratio;
    const room = Math.min(right, context.canvas.width) - first - 4 * ratio;
    if (room < 14 * ratio) continue;
    context.fillStyle = red * 0.3 + green * 0.6 + blue * 0.1 > 140 ? '#000' : '#fff';
    context.fillText(shortened(context, plain(name, 80), room), first, (upper + lower) / 2);
  }
}

function shortened(context, text, room) {
  if (context.measureText(text).width <= room) return text;
  let low = 0;
  let high = text.length;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (context.measureText(`${text.slice(0, middle)}…`).width <= room) low = middle;
    else high = middle - 1;
  }
  return low === 0 ? '' : `${text.slice(0, low)}…`;
}

/** Draws a counter: the range of values in each pixel, and a line through the last values. */
export function paintCounter(context, tile, scale, top, height, theme) {
  const { counters } = tile;
  if (counters.count === 0) return;
  let least = Infinity;
  let most = -Infinity;
  for (let at = 0; at < counters.count; at++) {
    least = Math.min(least, counters.min[at]);
    most = Math.max(most, counters.max[at]);
  }
  least = Math.min(least, 0);
  const size = most - least || 1;
  const y = (value) => top + height - 3 - ((value - least) / size) * (height - 8);
  context.strokeStyle = theme.accent;
  context.fillStyle = theme.accent;
  context.lineWidth = scale.ratio;
  context.beginPath();
  let last;
  for (let at = 0; at < counters.count; at++) {
    const x = (counters.from[at] + tile.shift - scale.from) * scale.factor;
    if (last !== undefined) context.lineTo(x, y(last));
    else context.moveTo(x, y(counters.first[at]));
    context.lineTo(x, y(counters.last[at]));
    if (counters.min[at] < counters.max[at]) context.fillRect(x, y(counters.max[at]), scale.ratio, y(counters.min[at]) - y(counters.max[at]));
    last = counters.last[at];
  }
  if (last !== undefined) context.lineTo(context.canvas.width, y(last));
  context.stroke();
}

/** Hatches the times with missing frames, and writes their number and cause. */
export function paintLosses(context, tile, scale, top, height, causes, theme) {
  const { losses } = tile;
  if (losses.count === 0) return;
  const hatch = hatching(context, theme.loss, scale.ratio);
  context.font = `${11 * scale.ratio}px system-ui, sans-serif`;
  context.textBaseline = 'middle';
  for (let at = 0; at < losses.count; at++) {
    const left = (losses.from[at] + tile.shift - scale.from) * scale.factor;
    const right = Math.max((losses.to[at] + tile.shift - scale.from) * scale.factor, left + 3 * scale.ratio);
    if (right < 0 || left > context.canvas.width) continue;
    context.fillStyle = hatch;
    context.fillRect(left, top, right - left, height);
    const text = `${grouped(losses.counts[at])} ${plain(causes[losses.cause[at]]).replace('_', ' ')}`;
    const room = context.measureText(text).width + 8 * scale.ratio;
    if (right - left > room) {
      const first = Math.max(left, 0) + 4 * scale.ratio;
      context.fillStyle = theme.ground;
      context.fillRect(first - 2, top + height / 2 - 7 * scale.ratio, room - 4 * scale.ratio, 14 * scale.ratio);
      context.fillStyle = theme.loss;
      context.fillText(text, first, top + height / 2);
    }
  }
}

const hatchings = new Map();

function hatching(context, tone, ratio) {
  const key = `${tone} ${ratio}`;
  if (!hatchings.has(key)) {
    const size = Math.round(6 * ratio);
    const canvas = new OffscreenCanvas(size, size);
    const pen = canvas.getContext('2d');
    pen.strokeStyle = tone;
    pen.lineWidth = 1.5 * ratio;
    for (const shift of [-size, 0, size]) {
      pen.moveTo(shift, size);
      pen.lineTo(shift + size, 0);
    }
    pen.stroke();
    hatchings.set(key, context.createPattern(canvas, 'repeat'));
  }
  return hatchings.get(key);
}

/** Draws dots where cells have not arrived. */
export function paintUnknown(context, top, height, theme, ratio) {
  context.fillStyle = theme.line;
  for (let x = 4 * ratio; x < context.canvas.width; x += 10 * ratio) context.fillRect(x, top + height / 2, ratio, ratio);
}

/** The content of a cell in words. */
export function describe(cells, at, names) {
  const count = cells.counts[at];
  const name = (number) => (number === NO_NAME ? 'unknown' : plain(names[number]?.name ?? '?'));
  if (cells.flags[at] & HEADS) return `${grouped(count)} frames`;
  if (cells.flags[at] & SINGLE) {
    const length = cells.flags[at] & BACKWARD ? 'its end is before its start' : duration(cells.to[at] - cells.from[at]);
    return cells.busy[at] === 0 && cells.to[at] === cells.from[at] ? name(cells.bestName[at]) : `${name(cells.bestName[at])}, ${length}`;
  }
  const width = cells.to[at] - cells.from[at];
  const lines = [`${grouped(count)} in ${duration(width)}`];
  if (cells.busy[at] > 0) {
    lines.push(`busy ${Math.min(100, (100 * cells.busy[at]) / (width || 1)).toFixed(1)} %, most of it ${name(cells.name[at])}`);
    lines.push(`the longest: ${name(cells.bestName[at])}, ${duration(cells.longest[at])}`);
  } else lines.push(`most of it ${name(cells.name[at])}`);
  return lines.join('\n');
}
