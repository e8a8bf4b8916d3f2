// The page: what is seen, what is chosen, and what keys and pointers do to it.

import * as api from './api.js';
import { onThemeChange } from './colours.js';
import { showKeys, showTable } from './dialogs.js';
import { Finder } from './finder.js';
import { press } from './keys.js';
import { copy, link, openLink, statCommand } from './links.js';
import { Panels } from './panels.js';
import { usePointers } from './pointer.js';
import { Rows } from './rows.js';
import { showSaving } from './saving.js';
import { Span } from './span.js';
import { Store } from './store.js';
import { duration, grouped, plain } from './text.js';
import { describe } from './paint.js';
import { Timeline } from './timeline.js';
import { Tiles } from './tiles.js';

const element = (id) => document.getElementById(id);
/** Bars of the overview, and most rows that it adds up. */
const BARS = 400;
const OUTLINED = 200;

class Page {
  constructor() {
    this.span = new Span();
    this.rows = new Rows();
    this.names = [];
    this.causes = [];
    this.about = undefined;
    /** The chosen row, and the chosen frame. */
    this.row = undefined;
    this.pick = undefined;
    this.range = undefined;
    this.outline = { counts: [], losses: [] };
    /** A live capture is followed until somebody moves. */
    this.follows = false;
    this.store = new Store(this.span, () => this.timeline.draw(), (error) => this.failed(error));
    this.timeline = new Timeline(this);
    this.panels = new Panels(this);
    this.finder = new Finder(this);
  }

  async open() {
    await this.refreshAbout(false);
    this.follows = this.about.live;
    usePointers(this);
    addEventListener('keydown', (event) => this.key(event));
    element('help-button').addEventListener('click', () => this.showKeys());
    element('save-button').addEventListener('click', () => this.save());
    element('labels').addEventListener('click', (event) => this.clickLabel(event));
    onThemeChange(() => this.timeline.draw());
    await this.panels.open();
    await openLink(this);
    this.timeline.refresh();
    this.listen();
  }

  /** Takes what there is. `keep`: what is seen stays. */
  async refreshAbout(keep) {
    const about = await api.about();
    this.about = about;
    this.names = about.names;
    this.causes = about.causes;
    const atEnd = this.span.to >= this.span.whole.to * 0.999;
    const length = this.span.length;
    this.rows.set(about.rows, about.processes);
    this.span.setWhole(about.from, about.to, keep);
    if (keep && this.follows && atEnd) {
      const whole = this.span.whole.to;
      if (length >= whole * 0.5) this.span.show(0, whole);
      else this.span.show(whole - length, whole);
    }
    this.rows.byId.has(this.row) || (this.row = (this.rows.shown.find((row) => row.kind === 'thread') ?? this.rows.shown[0])?.id);
    const captured = about.captures.reduce((all, capture) => all + BigInt(capture.captured), 0n);
    document.body.dataset.frames = String(captured);
    this.glance(captured);
    element('empty').hidden = about.from !== null;
    element('empty').textContent = about.live
      ? 'No frame has come yet. The page shows the first one as soon as it is there.'
      : 'There is no frame in this capture. Start says what was captured, and what is missing.';
    this.loadOutline();
  }

  glance(captured) {
    const { about } = this;
    const lost = about.captures.reduce((all, capture) => all + BigInt(capture.lost) + BigInt(capture.dropped), 0n);
    const { done, total } = about.progress;
    const threads = about.rows.filter((row) => row.id.startsWith('thread.')).length;
    const parts = [`${grouped(captured)} frames of ${grouped(threads)} ${threads === 1 ? 'thread' : 'threads'}`];
    if (about.from !== null) parts.push(`in ${duration(this.span.whole.to)}`);
    parts.push(lost > 0n ? `${grouped(lost)} missing` : 'nothing missing');
    if (!about.built && total > 0) parts.push(`indexed ${Math.floor((100 * done) / total)} %`);
    if (about.live) parts.push('live');
    element('glance').textContent = parts.join(', ');
    document.title = `${about.captures.map((capture) => plain(capture.path).split('/').pop()).slice(0, 3).join(', ')} – ppt view`;
  }

  /** How many frames there are over the whole time, from heads of chunks. */
  async loadOutline() {
    if (this.about.from === null) return;
    const threads = this.rows.all.filter((row) => row.kind === 'thread').slice(0, OUTLINED).map((row) => row.id);
    const counts = new Array(BARS).fill(0);
    const losses = new Array(BARS).fill(0);
    const { whole } = this.span;
    const tiles = new Tiles();
    const spread = (list, from, to, count) => {
      const first = Math.max(0, Math.min(BARS - 1, Math.floor((from / whole.to) * BARS)));
      const last = Math.max(first, Math.min(BARS - 1, Math.floor((to / whole.to) * BARS)));
      for (let at = first; at <= last; at++) list[at] += count / (last - first + 1);
    };
    const asked = { from: this.span.time(0), to: this.span.time(whole.to), px: BARS, rows: threads, phase: 'index' };
    try {
      await api.window(asked, undefined, (bytes) => {
        for (const { cells, losses: lost } of tiles.add(bytes)) {
          for (let at = 0; at < (cells?.count ?? 0); at++) spread(counts, cells.from[at], cells.to[at], cells.counts[at]);
          for (let at = 0; at < (lost?.count ?? 0); at++) spread(losses, lost.from[at], lost.to[at], lost.counts[at]);
        }
      });
      this.outline = { counts, losses };
      this.timeline.draw();
    } catch (error) {
      this.failed(error);
    }
  }

  /** Listens for as long as the page is open; asks again if the server is gone. */
  async listen() {
    for (;;) {
      try {
        await api.events((name, data) => this.event(name, data));
      } catch (error) {
        if (error.status === 401) {
          this.notice(plain(error.message));
          return;
        }
      }
      this.notice('The server has ended, or cannot be reached. This page shows what it has, and asks again.');
      await new Promise((done) => setTimeout(done, 2000));
    }
  }

  async event(name, data) {
    this.notice('');
    try {
      if (name === 'progress') {
        this.about.progress = data;
        this.glance(BigInt(document.body.dataset.frames));
      } else if (name === 'trouble') {
        this.about.troubles.push(data.text);
        this.notice(plain(data.text, 500));
      } else if (name === 'built' || name === 'grown' || name === 'ended') {
        if (name === 'built' && this.about.built && this.about.view === data.view) return;
        this.store.clear();
        await this.refreshAbout(true);
        this.timeline.refresh();
        if (this.panels.chosen === 'start') this.panels.show('start');
      }
    } catch (error) {
      this.failed(error);
    }
  }

  notice(text) {
    element('notice').hidden = text === '';
    element('notice').textContent = text;
  }

  failed(error) {
    if (error.name === 'AbortError') return;
    // The connection is gone: `listen` says so.
    if (error instanceof TypeError) return;
    this.notice(plain(error.message, 500));
  }

  /** The first picture is there. */
  drawn() {
    if (document.body.dataset.ready !== '1' && this.about) {
      const first = this.timeline.inSight().find((row) => !['process', 'spans', 'states'].includes(row.kind));
      if (!first || this.store.get(first.id)) document.body.dataset.ready = '1';
    }
  }

  get hits() {
    return this.finder.hits;
  }

  say(text) {
    element('live').textContent = text;
  }

  key(event) {
    if (event.target.closest('input, textarea, dialog[open], #tabs')) return;
    if (['Enter', ' '].includes(event.key) && event.target.closest('button, a')) return;
    if (event.target.id === 'panel' && event.key.startsWith('Arrow')) return;
    if (press(this, event)) event.preventDefault();
  }

  // What is seen.

  changed() {
    this.timeline.refresh();
    this.panels.moved();
    clearTimeout(this.linkTimer);
    this.linkTimer = setTimeout(() => history.replaceState(null, '', link(this)), 300);
  }

  show(from, to, remember) {
    this.follows = false;
    this.span.show(from, to, remember);
    this.changed();
  }

  zoom(factor, at) {
    this.follows = false;
    this.span.zoom(factor, at);
    this.changed();
  }

  move(part) {
    this.follows = false;
    this.span.move(part);
    this.changed();
  }

  showAll() {
    this.show(0, this.span.whole.to, true);
  }

  back() {
    if (this.span.back()) this.changed();
  }

  mark(first, last) {
    this.range = [Math.min(first, last), Math.max(first, last)];
    this.say(`marked ${duration(this.range[1] - this.range[0])}`);
    this.timeline.draw();
  }

  unmark() {
    this.range = undefined;
    this.timeline.draw();
  }

  zoomToRange() {
    if (!this.range) return;
    this.show(...this.range, true);
    this.range = undefined;
  }

  zoomTo(x, y) {
    const found = this.timeline.hit(x, y);
    if (found?.at === undefined) return;
    const { cells } = found.tile;
    const [from, to] = [cells.from[found.at] + found.tile.shift, cells.to[found.at] + found.tile.shift];
    const room = Math.max((to - from) * 0.2, 10);
    this.show(from - room, to + room, true);
  }

  /** Jumps to the nearest cells that are out of sight, in any row that has been loaded. */
  jump(direction) {
    const { counts } = this.outline;
    const each = this.span.whole.to / BARS;
    let at = Math.floor((direction > 0 ? this.span.to : this.span.from) / each) + (direction > 0 ? 0 : -1);
    while (at >= 0 && at < BARS && counts[at] === 0) at += direction;
    if (at < 0 || at >= BARS) {
      this.say('there is nothing further');
      return;
    }
    const middle = (at + 0.5) * each;
    this.show(middle - this.span.length / 2, middle + this.span.length / 2, true);
  }

  // Rows.

  choose(id) {
    this.row = id;
    this.timeline.draw();
    if (this.panels.chosen === 'lengths') this.panels.show('lengths');
  }

  clickLabel(event) {
    const id = event.target.closest('.row')?.dataset.row;
    if (!id) return;
    if (event.target.closest('button')) {
      this.rows.fold(id);
      this.timeline.refresh();
    } else this.choose(id);
  }

  stepRow(by) {
    const at = this.rows.byId.get(this.row)?.place ?? -1;
    const next = this.rows.shown[Math.max(0, Math.min(this.rows.shown.length - 1, at + by))];
    if (!next) return;
    this.bring(next);
    this.choose(next.id);
    this.say(`${next.text}, ${grouped(next.count)}`);
  }

  /** Scrolls so that a row can be seen. */
  bring(row) {
    const { scroller } = this.timeline;
    if (row.top < scroller.scrollTop) scroller.scrollTop = row.top;
    const bottom = row.top + row.height;
    if (bottom > scroller.scrollTop + scroller.clientHeight) scroller.scrollTop = bottom - scroller.clientHeight;
  }

  foldRow() {
    if (!this.rows.byId.get(this.row)?.children) return;
    this.rows.fold(this.row);
    this.timeline.refresh();
  }

  // Frames.

  click(x, y) {
    const found = this.timeline.hit(x, y);
    if (!found?.row) return;
    this.choose(found.row.id);
    if (found.at === undefined || found.row.kind === 'thread') return;
    if (['spans', 'states'].includes(found.row.kind)) {
      this.chooseEntry(found.row, found.tile, found.at);
      return;
    }
    this.choosePlace(found.row, found.tile, found.at);
  }

  /** Chooses the frame of a cell; of several, the longest. */
  async choosePlace(row, tile, at) {
    const { cells } = tile;
    const place = { view: this.about.view, chunk: cells.chunk[at], frame: cells.frame[at] };
    const isSingle = (cells.flags[at] & 2) !== 0;
    this.say(describe(cells, at, this.names).replaceAll('\n', ', '));
    await this.chooseFrame(place, row.id, isSingle && [cells.from[at] + tile.shift, cells.to[at] + tile.shift]);
  }

  /** Chooses a span, a chain or a state; of several, the place to zoom to. */
  async chooseEntry(row, tile, at) {
    const { cells } = tile;
    const [from, to] = [cells.from[at] + tile.shift, cells.to[at] + tile.shift];
    this.say(describe(cells, at, this.names).replaceAll('\n', ', '));
    this.pick = { row: row.id, from, to };
    this.timeline.draw();
    if ((cells.flags[at] & 2) === 0) return;
    try {
      this.pick.entry = await api.entry({ row: row.id, at: this.span.time(from) });
      this.panels.show('frame');
    } catch (error) {
      this.failed(error);
    }
  }

  async chooseFrame(asked, row, span) {
    try {
      const answer = await api.frame(asked);
      const [from, to] = span || [this.span.offset(answer.from ?? this.about.from), this.span.offset(answer.to ?? this.about.from)];
      this.pick = { answer, row: row ?? answer.row, from, to };
      this.timeline.draw();
      await this.panels.show('frame');
      // For scripts: which frame is shown.
      document.body.dataset.pick = answer.key.seqno;
      this.linkTimer = setTimeout(() => history.replaceState(null, '', link(this)), 300);
    } catch (error) {
      if (error.status === 409) {
        this.store.clear();
        await this.refreshAbout(true);
        this.timeline.refresh();
      } else this.failed(error);
    }
  }

  /** Goes to a frame that a panel names. */
  async goTo(key, times) {
    await this.chooseFrame(key, undefined, times && times.map((time) => this.span.offset(time)));
    const { pick } = this;
    if (!pick) return;
    const thread = this.rows.byId.get(pick.row);
    if (thread) {
      this.rows.folded.delete(thread.id);
      this.rows.reveal(thread.id);
      this.bring(thread);
      this.row = thread.id;
    }
    this.showPick();
  }

  showPick() {
    if (!this.pick) return;
    const { from, to } = this.pick;
    const room = Math.max((to - from) * 0.5, this.span.whole.to / 1e5, 500);
    this.show(from - room, to + room, true);
  }

  /** The cell before or after the chosen one, in the chosen row. */
  step(by) {
    const row = this.rows.byId.get(this.row);
    const tile = row && this.store.get(row.id);
    if (!tile?.cells?.count) return this.move(by * 0.2);
    const { cells } = tile;
    const now = this.pick && this.pick.row === row.id ? this.pick.from : by > 0 ? this.span.from - 1 : this.span.to;
    let at = -1;
    for (let cell = 0; cell < cells.count; cell++) {
      const from = cells.from[cell] + tile.shift;
      if (by > 0 && from > now) {
        at = cell;
        break;
      }
      if (by < 0 && from < now) at = cell;
    }
    if (at < 0 || row.kind === 'thread') return this.move(by * 0.2);
    const [from, to] = [cells.from[at] + tile.shift, cells.to[at] + tile.shift];
    if (to < this.span.from || from > this.span.to) this.show(from - this.span.length / 2, from + this.span.length / 2);
    this.pick = { row: row.id, from, to };
    if (['spans', 'states'].includes(row.kind)) this.chooseEntry(row, tile, at);
    else this.choosePlace(row, tile, at);
    return undefined;
  }

  async follow(direction) {
    const { pick } = this;
    if (!pick?.answer) return;
    try {
      pick.edges ??= await api.edges(pick.answer.key);
      const ends = pick.edges[direction];
      if (ends.length === 0) this.say(direction === 'causes' ? 'no cause is known' : 'no effect is known');
      else await this.goTo(ends[0].key, ends[0].at && [ends[0].at, ends[0].at]);
    } catch (error) {
      this.failed(error);
    }
  }

  // What other modules do.

  find(text, by) {
    return this.finder.find(text, by);
  }

  stepHit(by) {
    return this.finder.step(by);
  }

  letGo() {
    this.range = undefined;
    this.pick = undefined;
    delete document.body.dataset.pick;
    this.finder.clear();
    this.timeline.draw();
    if (this.panels.chosen === 'frame') this.panels.show('frame');
  }

  copyLink() {
    copy(this, `${location.origin}/${link(this)}`, 'the link');
  }

  copyCommand() {
    copy(this, statCommand(this), 'the command');
  }

  save() {
    showSaving(this);
  }

  showKeys() {
    showKeys();
  }

  asTable() {
    showTable(this);
  }
}

const token = api.takeToken();
if (token) {
  const page = new Page();
  page.open().catch((error) => {
    element('glance').textContent = '';
    page.notice(plain(error.message, 500));
  });
} else {
  element('glance').textContent = '';
  element('notice').hidden = false;
  element('notice').textContent = 'This address has no token: open the one that `ppt view` printed.';
}
