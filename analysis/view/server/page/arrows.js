// Draws edges between frames as arrows from row to row.

import { SINGLE } from './tile_bytes.js';
import { keyText } from './web.js';

/** The bend of arrows in pixels of the page. */
const BEND = [12, 60];

/** The ends of the visible part of an arrow: `[x, y, out]`. `out` is the angle towards an end that is outside the
 * window. Undefined if no part is visible. */
export function ends(from, to, width, height) {
  const within = ([x, y]) => {
    const out = x < 0 ? Math.PI : x > width ? 0 : y < 0 ? -Math.PI / 2 : y > height ? Math.PI / 2 : undefined;
    return [Math.max(0, Math.min(width, x)), Math.max(0, Math.min(height, y)), out];
  };
  const found = [within(from), within(to)];
  return found[0][2] !== undefined && found[0][2] === found[1][2] ? undefined : found;
}

/** Draws the edges of the chosen frame of a pane. Returns the number of visible edges. */
export function paintArrows(context, timeline, pane, colours, ratio) {
  const { web } = pane.pick ?? {};
  if (!web) return 0;
  const { width, height } = context.canvas;
  let seen = 0;
  const { listed } = web;
  context.save();
  context.lineWidth = 1.5 * ratio;
  context.font = `bold ${11 * ratio}px system-ui, sans-serif`;
  context.textBaseline = 'middle';
  context.strokeStyle = colours.text;
  context.fillStyle = colours.text;
  for (const edge of web.edges.values()) {
    const [from, to] = [edge.cause, edge.effect].map((end) => middle(timeline, pane, end, ratio));
    const line = from && to && ends(from, to, width, height);
    if (!line) continue;
    seen += 1;
    context.setLineDash(edge.certainty === 'possible' ? [4 * ratio, 3 * ratio] : []);
    arrow(context, line, colours, ratio);
    const number = listed.indexOf(edge) + 1;
    if (listed.length > 1 && number > 0 && number < 10) digit(context, number, web.farEnd(edge) === edge.cause ? line[0] : line[1], colours, ratio);
    const bounds = bounded(edge, web, pane);
    if (bounds) whisker(context, bounds.map((at) => timeline.x(at, ratio)), (bounds.isOfEffect ? to : from)[1], ratio);
  }
  context.restore();
  return seen;
}

/** The point of an end: the middle of its row at its time, in pixels of the canvas. */
function middle(timeline, pane, end, ratio) {
  if (end.at === null) return undefined;
  const { rows, span } = timeline.page;
  const at = pane.offset(end.at);
  const thread = rows.named(pane.number, end.row);
  const isInSight = at >= span.from && at <= span.to;
  let row = keyText(end.key) === pane.pick.web.key ? rows.byId.get(pane.pick.row) : undefined;
  row ??= (isInSight && ownRow(timeline, pane, thread, end.place)) || thread;
  row = rows.nearestShown(row);
  if (!row) return undefined;
  return [timeline.x(at, ratio), (timeline.top(row) + row.height / 2) * ratio];
}

/** The row within a thread that has the bar of a frame. */
function ownRow(timeline, pane, thread, place) {
  if (!thread || !place) return undefined;
  const [chunk, frame] = place;
  return timeline.inSight().find((row) => {
    const cells = row.parent === thread.id ? pane.tile(row)?.cells : undefined;
    for (let at = 0; at < (cells?.count ?? 0); at++) {
      if (cells.frame[at] === frame && cells.chunk[at] === chunk && cells.flags[at] & SINGLE) return true;
    }
    return false;
  });
}

/** Draws an arrow with a dot at its beginning and a head at its end. An open head points to an end outside the window. */
export function arrow(context, [first, last], colours, ratio) {
  const [[x1, y1], [x2, y2]] = [first, last];
  const [least, most] = BEND.map((pixels) => pixels * ratio);
  const bend = Math.max(least, Math.min(most, Math.abs(x2 - x1) / 2));
  context.beginPath();
  context.moveTo(x1, y1);
  context.bezierCurveTo(x1 + bend, y1, x2 - bend, y2, x2, y2);
  // A rim separates the arrow from bars of its colour.
  context.save();
  context.setLineDash([]);
  context.lineWidth = 4.5 * ratio;
  context.strokeStyle = colours.ground;
  context.stroke();
  context.restore();
  context.stroke();
  context.setLineDash([]);
  for (const [x, y, out] of [first, last]) if (out !== undefined) head(context, x, y, out, ratio, 'stroke');
  if (last[2] === undefined) head(context, x2, y2, 0, ratio, 'fill');
  if (first[2] !== undefined) return;
  context.beginPath();
  context.arc(x1, y1, 2.5 * ratio, 0, 2 * Math.PI);
  context.fill();
}

function head(context, x, y, angle, ratio, way) {
  const size = 7 * ratio;
  context.beginPath();
  context.moveTo(x, y);
  for (const by of [2.7, -2.7]) context.lineTo(x + size * Math.cos(angle + by), y + size * Math.sin(angle + by));
  context.closePath();
  context[way]();
}

/** The bounds of the far end of an edge, by the error of the clocks. Undefined if the time is exact. */
function bounded(edge, web, pane) {
  const isOfEffect = keyText(edge.cause.key) === web.key;
  const near = isOfEffect ? edge.cause : edge.effect;
  if (edge.lo === null || edge.hi === null || edge.lo === edge.hi || near.at === null) return undefined;
  const bounds = [edge.lo, edge.hi].map((ns) => pane.offset(near.at) + (isOfEffect ? Number(ns) : -Number(ns)));
  return Object.assign(bounds, { isOfEffect });
}

/** Draws the key that leads to an end next to it. */
function digit(context, number, [x, y], colours, ratio) {
  const place = [Math.min(x + 6 * ratio, context.canvas.width - 10 * ratio), y - 8 * ratio];
  context.save();
  context.setLineDash([]);
  context.lineWidth = 4 * ratio;
  context.strokeStyle = colours.ground;
  context.strokeText(String(number), ...place);
  context.fillText(String(number), ...place);
  context.restore();
}

/** Draws a bar with two ends. */
function whisker(context, bounds, y, ratio) {
  const [left, right] = bounds.map((x) => Math.max(-10, Math.min(context.canvas.width + 10, x)));
  const tall = 5 * ratio;
  context.beginPath();
  context.moveTo(left, y);
  context.lineTo(right, y);
  for (const x of [left, right]) {
    context.moveTo(x, y - tall);
    context.lineTo(x, y + tall);
  }
  context.stroke();
}
