// Changes of the visible and the marked time.

import { BARS } from './pane.js';
import { duration } from './text.js';

export class Navigation {
  constructor(page) {
    this.page = page;
  }

  show(from, to, remember) {
    this.page.follows = false;
    this.page.span.show(from, to, remember);
    this.page.changed();
  }

  zoom(factor, at) {
    this.page.follows = false;
    this.page.span.zoom(factor, at);
    this.page.changed();
  }

  move(part) {
    this.page.follows = false;
    this.page.span.move(part);
    this.page.changed();
  }

  showAll() {
    this.show(0, this.page.span.whole.to, true);
  }

  back() {
    if (this.page.span.back()) this.page.changed();
  }

  mark(first, last) {
    this.page.range = [Math.min(first, last), Math.max(first, last)];
    this.page.say(`marked ${duration(this.page.range[1] - this.page.range[0])}`);
    this.page.changed();
  }

  unmark() {
    this.page.range = undefined;
    this.page.changed();
  }

  zoomToRange() {
    const { range } = this.page;
    if (!range) return;
    this.page.range = undefined;
    this.show(...range, true);
  }

  zoomTo(x, y) {
    const found = this.page.timeline.hit(x, y);
    if (found?.at === undefined) return;
    const { cells } = found.tile;
    const [from, to] = [cells.from[found.at] + found.tile.shift, cells.to[found.at] + found.tile.shift];
    const room = Math.max((to - from) * 0.2, 10);
    this.show(from - room, to + room, true);
  }

  /** Shows a range of time with a margin. */
  showTimes([from, to]) {
    const room = Math.max((to - from) * 0.5, this.page.span.whole.to / 1e5, 500);
    this.show(from - room, to + room, true);
  }

  /** Jumps to the nearest cells outside the window, in any loaded row. */
  jump(direction) {
    const counts = this.page.panes.map((pane) => pane.outline.counts).reduce((one, other) => one.map((count, at) => count + (other[at] ?? 0)));
    const each = this.page.span.whole.to / BARS;
    let at = Math.floor((direction > 0 ? this.page.span.to : this.page.span.from) / each) + (direction > 0 ? 0 : -1);
    while (at >= 0 && at < BARS && counts[at] === 0) at += direction;
    if (at < 0 || at >= BARS) {
      this.page.say('there is nothing further');
      return;
    }
    const middle = (at + 0.5) * each;
    this.show(middle - this.page.span.length / 2, middle + this.page.span.length / 2, true);
  }
}
