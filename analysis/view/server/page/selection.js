// The chosen frame: choosing it, and moving from it to others.

import { describe } from './paint.js';
import { grouped } from './text.js';
import { EdgeWeb } from './web.js';

export class Selection {
  constructor(page) {
    this.page = page;
  }

  click(x, y) {
    const found = this.page.timeline.hit(x, y);
    if (!found?.row) return;
    this.page.cursor.choose(found.row.id);
    if (found.at === undefined || found.row.kind === 'thread') return;
    if (['spans', 'states'].includes(found.row.kind)) {
      this.chooseEntry(found.row, found.tile, found.at);
      return;
    }
    this.choosePlace(found.row, found.tile, found.at);
  }

  /** Chooses the frame of a cell, or the longest of several. */
  async choosePlace(row, tile, at) {
    const { cells } = tile;
    const place = { view: this.page.about.view, chunk: cells.chunk[at], frame: cells.frame[at] };
    const isSingle = (cells.flags[at] & 2) !== 0;
    this.page.say(describe(cells, at, this.page.names).replaceAll('\n', ', '));
    await this.chooseFrame(place, row.id, isSingle && [cells.from[at] + tile.shift, cells.to[at] + tile.shift]);
  }

  /** Chooses a span, a chain or a state. A cell with several becomes the place to zoom to. */
  async chooseEntry(row, tile, at) {
    const { cells } = tile;
    const [from, to] = [cells.from[at] + tile.shift, cells.to[at] + tile.shift];
    this.page.say(describe(cells, at, this.page.names).replaceAll('\n', ', '));
    this.page.pick = { row: row.id, from, to };
    this.page.timeline.draw();
    if ((cells.flags[at] & 2) === 0) return;
    try {
      this.page.pick.entry = await this.page.pane.api.entry({ row: row.ids[this.page.pane.number], at: this.page.pane.time(from) });
      this.page.panels.show('frame');
    } catch (error) {
      this.page.failed(error);
    }
  }

  async chooseFrame(asked, row, span) {
    const { pane } = this.page;
    try {
      const answer = await pane.api.frame(asked);
      const [from, to] = span || [answer.from, answer.to].map((time) => pane.offset(time ?? pane.about.from));
      pane.pick = { answer, row: row ?? this.page.rows.named(pane.number, answer.row)?.id, from, to };
      this.page.timeline.draw();
      await this.page.panels.show('frame');
      // For scripts: the chosen frame.
      document.body.dataset.pick = answer.key.seqno;
      this.page.keepLink();
    } catch (error) {
      if (error.status === 409) {
        pane.store.clear();
        await this.page.refreshAbout(pane);
        this.page.timeline.refresh();
      } else this.page.failed(error);
    }
  }

  /** Moves to a frame in a panel. */
  async goTo(key, times) {
    await this.chooseFrame(key, undefined, times && times.map((time) => this.page.pane.offset(time)));
    const { pick } = this.page;
    if (!pick) return;
    const { rows } = this.page;
    const thread = rows.byId.get(pick.row);
    if (thread) {
      rows.folded.delete(thread.id);
      rows.reveal(thread.id);
      this.page.cursor.bring(thread);
      this.page.row = thread.id;
    }
    this.showPick();
  }

  showPick() {
    if (this.page.pick) this.page.navigation.showTimes([this.page.pick.from, this.page.pick.to]);
  }

  /** The cell before or after the chosen one, in the chosen row. */
  step(by) {
    const { navigation, pane, pick, rows, span } = this.page;
    const row = rows.byId.get(this.page.row);
    const tile = pane.tile(row);
    if (!tile?.cells?.count) return navigation.move(by * 0.2);
    const { cells } = tile;
    const now = pick && pick.row === row.id ? pick.from : by > 0 ? span.from - 1 : span.to;
    let at = -1;
    for (let cell = 0; cell < cells.count; cell++) {
      const from = cells.from[cell] + tile.shift;
      if (by > 0 && from > now) {
        at = cell;
        break;
      }
      if (by < 0 && from < now) at = cell;
    }
    if (at < 0 || row.kind === 'thread') return navigation.move(by * 0.2);
    const [from, to] = [cells.from[at] + tile.shift, cells.to[at] + tile.shift];
    if (to < span.from || from > span.to) navigation.show(from - span.length / 2, from + span.length / 2);
    this.page.pick = { row: row.id, from, to };
    if (['spans', 'states'].includes(row.kind)) this.chooseEntry(row, tile, at);
    else this.choosePlace(row, tile, at);
    return undefined;
  }

  /** Loads the edges of a chosen frame, and shows them. */
  async learnEdges(pick) {
    pick.web ??= new EdgeWeb(pick.answer.key);
    await (pick.learning ??= pick.web.grow(this.page.pane.api));
    this.page.timeline.draw();
  }

  async follow(direction) {
    const { pick } = this.page;
    if (!pick?.answer) return;
    try {
      await this.learnEdges(pick);
      const [side, none] = direction === 'causes' ? ['cause', 'no cause is known'] : ['effect', 'no effect is known'];
      const all = pick.web[direction];
      if (all.length === 0) {
        this.page.say(none);
        return;
      }
      await this.goToEnd(all[0][side]);
      if (all.length > 1) this.page.say(`the first of ${grouped(all.length)}`);
    } catch (error) {
      this.page.failed(error);
    }
  }

  /** Moves to a cause or an effect by its number in the list of the chosen frame. */
  async followNumber(number) {
    const { pick } = this.page;
    if (!pick?.answer) return;
    try {
      await this.learnEdges(pick);
      const { listed } = pick.web;
      const edge = listed[number - 1];
      if (edge) await this.goToEnd(pick.web.farEnd(edge));
      else this.page.say(`there are ${grouped(listed.length)} causes and effects`);
    } catch (error) {
      this.page.failed(error);
    }
  }

  goToEnd(end) {
    return this.goTo(end.key, end.at && [end.at, end.at]);
  }

  /** Shows the arrows of another hop. */
  async hop() {
    const { pick } = this.page;
    if (!pick?.answer) return;
    try {
      await this.learnEdges(pick);
      const more = await pick.web.grow(this.page.pane.api);
      this.page.say(more > 0 ? `${grouped(more)} more edges` : 'there are no more edges');
      this.page.timeline.draw();
    } catch (error) {
      this.page.failed(error);
    }
  }
}
