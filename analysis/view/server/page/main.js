// The page: what is seen, what is chosen, and what keys and pointers do to it.

import * as api from './api.js';
import { onThemeChange } from './colours.js';
import { KEYS, press } from './keys.js';
import { Panels } from './panels.js';
import { usePointers } from './pointer.js';
import { Rows } from './rows.js';
import { Span } from './span.js';
import { Store } from './store.js';
import { duration, grouped, plain, tickText } from './text.js';
import { describe } from './paint.js';
import { make, Timeline } from './timeline.js';
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
    this.hits = { list: [], at: -1 };
    this.outline = { counts: [], losses: [] };
    /** A live capture is followed until somebody moves. */
    this.follows = false;
    this.store = new Store(this.span, () => this.timeline.draw(), (error) => this.failed(error));
    this.timeline = new Timeline(this);
    this.panels = new Panels(this);
  }

  async open() {
    await this.refreshAbout(false);
    this.follows = this.about.live;
    usePointers(this);
    addEventListener('keydown', (event) => this.key(event));
    element('help-button').addEventListener('click', () => this.showKeys());
    element('labels').addEventListener('click', (event) => this.clickLabel(event));
    element('find-form').addEventListener('submit', (event) => {
      event.preventDefault();
      this.find(element('find').value, 1);
    });
    element('find').addEventListener('keydown', (event) => {
      if (event.key === 'Enter' && event.shiftKey) {
        event.preventDefault();
        this.find(event.target.value, -1);
      } else if (event.key === 'Escape') event.target.blur();
    });
    onThemeChange(() => this.timeline.draw());
    await this.panels.open();
    await this.openLink();
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
    this.rows.byId.has(this.row) || (this.row = this.rows.shown[1]?.id ?? this.rows.shown[0]?.id);
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
    if (document.body.dataset.ready !== '1' && this.store.waiting.size === 0 && this.about) {
      const first = this.timeline.inSight().find((row) => row.kind !== 'process');
      if (!first || this.store.get(first.id)) document.body.dataset.ready = '1';
    }
  }

  say(text) {
    element('live').textContent = text;
  }

  key(event) {
    if (event.target.closest('input, textarea, dialog, #tabs')) return;
    if (['Enter', ' '].includes(event.key) && event.target.closest('button, a')) return;
    if (event.target.id === 'panel' && event.key.startsWith('Arrow')) return;
    if (press(this, event)) event.preventDefault();
  }

  // What is seen.

  changed() {
    this.timeline.refresh();
    this.panels.moved();
    clearTimeout(this.linkTimer);
    this.linkTimer = setTimeout(() => history.replaceState(null, '', this.link()), 300);
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

  async chooseFrame(asked, row, span) {
    try {
      const answer = await api.frame(asked);
      const [from, to] = span || [this.span.offset(answer.from ?? this.about.from), this.span.offset(answer.to ?? this.about.from)];
      this.pick = { answer, row: row ?? answer.row, from, to };
      this.timeline.draw();
      this.panels.show('frame');
      this.linkTimer = setTimeout(() => history.replaceState(null, '', this.link()), 300);
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
    this.choosePlace(row, tile, at);
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

  // Finding.

  async find(text, by) {
    const wanted = text.trim();
    if (wanted === '') return this.letGo();
    if (wanted !== this.hits.text) {
      element('find-count').textContent = '…';
      try {
        const answer = await api.find({ text: wanted, from: this.span.time(0), to: this.span.time(this.span.whole.to) });
        const list = answer.hits.map((hit) => ({ ...hit, offset: this.span.offset(hit.from) }));
        this.hits = { text: wanted, list, at: by > 0 ? -1 : list.length, truncated: answer.truncated };
      } catch (error) {
        element('find-count').textContent = '';
        this.failed(error);
        return undefined;
      }
    }
    return this.stepHit(by);
  }

  async stepHit(by) {
    const { list } = this.hits;
    const count = element('find-count');
    if (list.length === 0) {
      count.textContent = this.hits.text ? 'nothing' : '';
      this.timeline.draw();
      return;
    }
    this.hits.at = (this.hits.at + by + list.length) % list.length;
    const hit = list[this.hits.at];
    count.textContent = `${this.hits.at + 1} of ${list.length}${this.hits.truncated ? '+' : ''}`;
    await this.goTo(hit.key, [hit.from, hit.to]);
  }

  /** Finds intervals of the chosen row's name that take at least so long. */
  findLonger(ns) {
    const name = this.pick?.answer && this.names.find((one) => one.name.startsWith(`${this.pick.answer.name}.`))?.name;
    const interval = name ?? this.commonName();
    if (!interval) return;
    element('find').value = `${interval} >= ${ns}ns`;
    this.find(element('find').value, 1);
  }

  /** The interval that most cells of the chosen row have. */
  commonName() {
    const row = this.rows.byId.get(this.row);
    const of = row?.kind === 'depth' ? row : this.rows.all.find((one) => one.kind === 'depth' && one.parent === row?.id);
    const cells = of && this.store.get(of.id)?.cells;
    const tally = new Map();
    for (let at = 0; at < (cells?.count ?? 0); at++) tally.set(cells.name[at], (tally.get(cells.name[at]) ?? 0) + cells.counts[at]);
    const [most] = [...tally].sort((one, other) => other[1] - one[1]);
    return (most && this.names[most[0]]?.name) ?? this.names.find((one) => one.name.includes('.'))?.name;
  }

  letGo() {
    this.range = undefined;
    this.pick = undefined;
    this.hits = { list: [], at: -1 };
    element('find-count').textContent = '';
    this.timeline.draw();
    if (this.panels.chosen === 'frame') this.panels.show('frame');
  }

  // Links and commands.

  paths() {
    return this.about.captures.map((capture) => quoted(plain(capture.path, 1000))).join(' ');
  }

  pathOf(id) {
    return quoted(plain(this.about.captures.find((capture) => capture.id === id)?.path ?? 'CAPTURE', 1000));
  }

  link() {
    const words = new URLSearchParams({ from: this.span.time(this.span.from), to: this.span.time(this.span.to) });
    if (this.row) words.set('row', this.row);
    const key = this.pick?.answer?.key;
    if (key) words.set('pick', [key.capture, key.buffer, key.segment, key.ring, key.seqno].join('/'));
    return `#${words}`;
  }

  /** Shows what the address names, as far as it is there. */
  async openLink() {
    const words = new URLSearchParams(location.hash.slice(1));
    const [from, to, row, pick] = ['from', 'to', 'row', 'pick'].map((name) => words.get(name));
    const isTime = (text) => /^-?\d{1,19}$/.test(text ?? '');
    if (isTime(from) && isTime(to)) this.span.show(this.span.offset(from), this.span.offset(to));
    if (row && this.rows.byId.has(row)) {
      this.rows.reveal(row);
      this.row = row;
    }
    const [capture, buffer, segment, ring, seqno] = pick?.split('/') ?? [];
    if (seqno) await this.chooseFrame({ capture, buffer, segment, ring: Number(ring), seqno });
  }

  async copy(text, what) {
    try {
      await navigator.clipboard.writeText(text);
      this.say(`${what} is copied`);
      this.notice('');
    } catch {
      this.notice(`The browser does not let the page copy. ${what}: ${text}`);
    }
  }

  copyLink() {
    this.copy(`${location.origin}/${this.link()}`, 'the link');
  }

  copyCommand() {
    const at = (offset) => `@${(BigInt(this.span.time(offset)) / 1000000000n)}.${String(BigInt(this.span.time(offset)) % 1000000000n).padStart(9, '0')}`;
    this.copy(`ppt stat ${this.paths()} --from ${at(this.span.from)} --to ${at(this.span.to)}`, 'the command');
  }

  // Dialogs.

  showKeys() {
    const dialog = element('keys');
    const title = make('h2', '', 'Keys');
    title.id = 'keys-title';
    const list = make('table');
    for (const [key, what] of KEYS) {
      const line = make('tr');
      const cell = make('td');
      cell.append(make('kbd', '', key));
      line.append(cell, make('td', '', what));
      list.append(line);
    }
    const mouse = make('p', '', 'Drag to move, turn the wheel to zoom, Shift and the wheel to move, double-click a bar to zoom to it, drag on the axis to mark a stretch of time.');
    const close = make('button', '', 'Close');
    close.type = 'button';
    close.addEventListener('click', () => dialog.close());
    dialog.replaceChildren(title, list, mouse, close);
    dialog.showModal();
  }

  /** What is visible, as a table for those who read or hear it. */
  asTable() {
    const dialog = element('keys');
    const title = make('h2', '', 'What is visible');
    title.id = 'keys-title';
    const list = make('table');
    const head = make('tr');
    for (const text of ['row', 'from', 'what']) head.append(make('th', '', text));
    list.append(head);
    let left = 500;
    for (const row of this.timeline.inSight()) {
      const tile = this.store.get(row.id);
      for (let at = 0; at < (tile?.cells?.count ?? 0) && left > 0; at++) {
        const [from, to] = [tile.cells.from[at] + tile.shift, tile.cells.to[at] + tile.shift];
        if (to < this.span.from || from >= this.span.to) continue;
        left -= 1;
        const line = make('tr');
        line.append(make('td', '', row.text), make('td', 'number', tickText(Math.round(from), this.span.length / 1000)),
          make('td', '', describe(tile.cells, at, this.names).replaceAll('\n', ', ')));
        list.append(line);
      }
    }
    const close = make('button', '', 'Close');
    close.type = 'button';
    close.addEventListener('click', () => dialog.close());
    dialog.replaceChildren(title, list, make('p', 'faint', left === 0 ? 'The first 500.' : ''), close);
    dialog.showModal();
  }
}

/** A word as a shell takes it. */
function quoted(word) {
  return /^[A-Za-z0-9_./:=@%+,-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
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
