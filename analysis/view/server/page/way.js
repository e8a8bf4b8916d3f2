// Draws a path from one point to another: dims everything but its steps.

import { arrow, ends } from './arrows.js';

/** A path on the timeline: steps with offsets and rows. */
export function wayOf(pane, rows, hops) {
  const steps = hops.map((hop) => ({ from: pane.offset(hop.begin), to: pane.offset(hop.end), row: rows.named(pane.number, hop.row)?.id, isInThread: hop.place === 'thread' }));
  return { pane, steps };
}

/** Draws the path in its pane. Returns the number of visible steps. */
export function paintWay(context, timeline, way, colours, ratio) {
  const { rows, span } = timeline.page;
  const { width, height } = context.canvas;
  const place = (id) => {
    const row = rows.nearestShown(rows.byId.get(id));
    return row && timeline.extent(row).map((y) => y * ratio);
  };
  context.save();
  context.beginPath();
  context.rect(0, 0, width, height);
  const behind = new Map();
  let seen = 0;
  for (const step of way.steps) {
    if (step.to < span.from || step.from > span.to) continue;
    seen += 1;
    const extent = step.isInThread && place(step.row);
    if (!extent) continue;
    // The intersection of two rectangles would be dimmed.
    const left = Math.max(Math.floor(timeline.x(step.from, ratio)), behind.get(extent[0]) ?? -1);
    const right = Math.max(Math.ceil(timeline.x(step.to, ratio)), left + 2);
    behind.set(extent[0], right);
    context.rect(left, extent[0], right - left, extent[1] - extent[0]);
  }
  context.globalAlpha = 0.75;
  context.fillStyle = colours.ground;
  context.fill('evenodd');
  context.globalAlpha = 1;
  context.lineWidth = 1.5 * ratio;
  context.strokeStyle = colours.accent;
  context.fillStyle = colours.accent;
  way.steps.forEach((step, at) => {
    const [before, own] = [place(way.steps[at - 1]?.row), place(step.row)];
    if (step.isInThread || !before || !own) return;
    const middle = ([top, bottom]) => (top + bottom) / 2;
    const line = ends([timeline.x(step.from, ratio), middle(before)], [timeline.x(step.to, ratio), middle(own)], width, height);
    if (line) arrow(context, line, colours, ratio);
  });
  context.restore();
  return seen;
}
