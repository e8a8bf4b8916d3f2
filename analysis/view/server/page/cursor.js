// The chosen row, and the actions of keys and labels on rows.

import { grouped } from './text.js';

export class RowCursor {
  constructor(page) {
    this.page = page;
  }

  choose(id) {
    this.page.row = id;
    this.page.timeline.draw();
    if (this.page.panels.chosen === 'lengths') this.page.panels.show('lengths');
  }

  clickLabel(event) {
    const id = event.target.closest('.row')?.dataset.row;
    if (!id) return;
    if (event.target.closest('.pin')) this.pinRow(id);
    else if (event.target.closest('button')) {
      this.page.rows.fold(id);
      this.page.timeline.refresh();
    } else this.choose(id);
  }

  stepRow(by) {
    const { byId, shown } = this.page.rows;
    const at = byId.get(this.page.row)?.place ?? -1;
    const next = shown[Math.max(0, Math.min(shown.length - 1, at + by))];
    if (!next) return;
    this.bring(next);
    this.choose(next.id);
    this.page.say(`${next.text}, ${grouped(next.count)}`);
  }

  /** Scrolls until a row is visible. */
  bring(row) {
    const { scroller } = this.page.timeline;
    const { rows } = this.page;
    if (rows.isPinned(row)) return;
    const above = rows.heightAbove(row, scroller.clientHeight);
    if (row.top < scroller.scrollTop + above) scroller.scrollTop = row.top - above;
    const bottom = row.top + row.height;
    if (bottom > scroller.scrollTop + scroller.clientHeight) scroller.scrollTop = bottom - scroller.clientHeight;
  }

  /** Pins the chosen row to the top, or unpins it. */
  pinRow(id = this.page.row) {
    if (!this.page.rows.byId.has(id)) return;
    this.page.rows.pin(id);
    this.page.say(this.page.rows.pinned.has(id) ? 'pinned to the top' : 'not pinned any more');
    this.page.changed();
  }

  foldRow() {
    if (!this.page.rows.byId.get(this.page.row)?.children) return;
    this.page.rows.fold(this.page.row);
    this.page.timeline.refresh();
  }
}
