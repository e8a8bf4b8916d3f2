// A histogram of the lengths of intervals in a row. A part of it becomes the filter.

import { duration, grouped } from './text.js';
import { make } from './elements.js';

/** The smallest and the largest length of a bucket, ns. */
const least = (bucket) => (bucket === 0 ? 0 : 2 ** (bucket - 1));
const most = (bucket) => (bucket === 0 ? 0 : 2 ** bucket - 1);

/** The bars of buckets. Calls `choose(least, most)` with the chosen lengths. */
export function bars(buckets, choose) {
  const first = buckets.findIndex((count) => count > 0);
  const last = buckets.findLastIndex((count) => count > 0);
  const highest = Math.max(...buckets);
  const place = make('div', 'bars');
  place.setAttribute('role', 'group');
  place.setAttribute('aria-label', 'Lengths');
  let anchor;
  const mark = (from, to) => {
    for (const bar of place.children) {
      const bucket = Number(bar.dataset.bucket);
      bar.setAttribute('aria-pressed', String(bucket >= Math.min(from, to) && bucket <= Math.max(from, to)));
    }
  };
  const take = (from, to) => {
    mark(from, to);
    choose(least(Math.min(from, to)), most(Math.max(from, to)));
  };
  for (let bucket = first; bucket <= last; bucket++) {
    const bar = make('button');
    const fill = make('span');
    bar.type = 'button';
    bar.dataset.bucket = String(bucket);
    fill.style.height = `${Math.max(1, (100 * buckets[bucket]) / highest)}%`;
    bar.append(fill);
    const text = `${duration(least(bucket))} to ${duration(2 ** bucket)}: ${grouped(buckets[bucket])}`;
    bar.title = text;
    bar.setAttribute('aria-label', text);
    // The keyboard chooses one bar, or with Shift all bars from the last chosen one.
    bar.addEventListener('click', (event) => {
      if (event.detail !== 0) return;
      if (!event.shiftKey || anchor === undefined) anchor = bucket;
      take(anchor, bucket);
    });
    place.append(bar);
  }
  brush(place, mark, take, (bucket) => { anchor = bucket; });
  return place;
}

/** Chooses bars by dragging. */
function brush(place, mark, take, begin) {
  let from;
  const under = (event) => {
    const box = place.getBoundingClientRect();
    const count = place.children.length;
    const at = Math.floor(((event.clientX - box.left) / box.width) * count);
    return Number(place.children[Math.max(0, Math.min(count - 1, at))].dataset.bucket);
  };
  place.addEventListener('pointerdown', (event) => {
    if (event.button !== 0) return;
    place.setPointerCapture(event.pointerId);
    from = under(event);
    begin(from);
    mark(from, from);
  });
  place.addEventListener('pointermove', (event) => {
    if (from !== undefined) mark(from, under(event));
  });
  place.addEventListener('pointerup', (event) => {
    if (from === undefined) return;
    take(from, under(event));
    from = undefined;
  });
  place.addEventListener('pointercancel', () => { from = undefined; });
}
