// The page: what is seen, what is chosen, and what keys and pointers do to it.

import { takeToken } from './api.js';
import { Alignment } from './alignment.js';
import { onThemeChange } from './colours.js';
import { showKeys, showTable } from './dialogs.js';
import { Differences } from './differences.js';
import { Filter } from './filter.js';
import { Finder } from './finder.js';
import { press } from './keys.js';
import { copy, link, openLink, statCommand } from './links.js';
import { listen } from './news.js';
import { BARS, Pane } from './pane.js';
import { Panels } from './panels.js';
import { usePointers } from './pointer.js';
import { Rows } from './rows.js';
import { showSaving } from './saving.js';
import { Span } from './span.js';
import { duration, grouped, plain } from './text.js';
import { describe } from './paint.js';
import { Timeline } from './timeline.js';
import { wayOf } from './way.js';
import { EdgeWeb } from './web.js';

const element = (id) => document.getElementById(id);

class Page {
  constructor() {
    this.span = new Span();
    this.rows = new Rows();
    /** The sets that are shown, and the one that answers are about. */
    this.pane = new Pane(this, 0, element('cells'));
    this.panes = [this.pane];
    /** The chosen row. */
    this.row = undefined;
    /** The way from one point to another that is shown. */
    this.way = undefined;
    /** What is marked. */
    this.range = undefined;
    /** Everything is there but the cells. */
    this.isOpen = false;
    /** A live capture is followed until somebody moves. */
    this.follows = false;
    this.timeline = new Timeline(this);
    this.panels = new Panels(this);
    this.finder = new Finder(this);
    this.filter = new Filter(this);
    this.alignment = new Alignment(this);
    this.differences = new Differences(this);
  }

  get about() { return this.pane.about; }
  get names() { return this.pane.names; }
  get causes() { return this.pane.causes; }

  /** The chosen frame, of the pane that answers are about. */
  get pick() {
    return this.pane.pick;
  }

  set pick(pick) {
    this.pane.pick = pick;
  }

  async open() {
    await this.pane.refresh();
    if (this.about.sets > 1) {
      const canvas = element('cells').cloneNode();
      canvas.id = 'cells-second';
      element('cells').after(canvas);
      this.panes.push(new Pane(this, 1, canvas));
      await this.panes[1].refresh();
    }
    this.arrange(false);
    this.follows = this.panes.some((pane) => pane.about.live);
    usePointers(this);
    addEventListener('keydown', (event) => this.key(event));
    element('help-button').addEventListener('click', () => this.showKeys());
    element('save-button').addEventListener('click', () => this.save());
    element('labels').addEventListener('click', (event) => this.clickLabel(event));
    onThemeChange(() => this.timeline.draw());
    await this.panels.open();
    await openLink(this);
    this.isOpen = true;
    this.timeline.refresh();
    this.differences.moved();
    for (const pane of this.panes) listen(this, pane);
  }

  /** Takes what there is in a set. `keep`: what is seen stays. */
  async refreshAbout(pane) {
    await pane.refresh();
    this.arrange(true);
  }

  /** Puts rows and times of all sets where they belong. */
  arrange(keep) {
    const { panes } = this;
    const atEnd = this.span.to >= this.span.whole.to * 0.999;
    const length = this.span.length;
    this.rows.set(panes.map((pane) => pane.about));
    this.alignment.apply();
    const ends = panes.map((pane) => pane.to - pane.zero);
    const last = ends.reduce((one, other) => (one > other ? one : other));
    this.span.setWhole(panes[0].time(0), String(panes[0].zero + last), keep);
    if (keep && this.follows && atEnd) {
      const whole = this.span.whole.to;
      if (length >= whole * 0.5) this.span.show(0, whole);
      else this.span.show(whole - length, whole);
    }
    this.rows.byId.has(this.row) || (this.row = (this.rows.shown.find((row) => row.kind === 'thread') ?? this.rows.shown[0])?.id);
    this.glance();
    const isEmpty = panes.every((pane) => pane.about.from === null);
    element('empty').hidden = !isEmpty;
    element('empty').textContent = panes.some((pane) => pane.about.live)
      ? 'No frame has come yet. The page shows the first one as soon as it is there.'
      : 'There is no frame in this capture. Start says what was captured, and what is missing.';
    for (const pane of panes) pane.loadOutline().then(() => this.timeline.draw(), (error) => this.failed(error));
  }

  glance() {
    document.body.dataset.frames = String(this.pane.captured);
    element('glance').textContent = this.pane.glance;
    document.title = `${this.panes.map((pane) => pane.files).join(' – ')} – ppt view`;
    this.alignment.show();
  }

  /** Answers are about this set from now on. */
  activate(pane) {
    if (pane === this.pane) return;
    this.pane = pane;
    this.glance();
    this.say(`${pane.number === 0 ? 'before' : 'after'}: ${pane.files}`);
    this.panels.show(this.panels.chosen);
    this.timeline.draw();
  }

  turn() {
    this.activate(this.panes[(this.pane.number + 1) % this.panes.length]);
  }

  async event(pane, name, data) {
    this.notice('');
    try {
      if (name === 'progress') {
        pane.about.progress = data;
        this.glance();
      } else if (name === 'trouble') {
        pane.about.troubles.push(data.text);
        this.notice(plain(data.text, 500));
      } else if (name === 'built' || name === 'grown' || name === 'ended') {
        if (name === 'built' && pane.about.built && pane.about.view === data.view) return;
        pane.store.clear();
        await this.refreshAbout(pane);
        this.timeline.refresh();
        this.differences.moved();
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
    if (document.body.dataset.ready !== '1' && this.isOpen) {
      const first = this.timeline.inSight().find((row) => !['process', 'spans', 'states'].includes(row.kind));
      if (!first || this.panes.some((pane) => pane.tile(first))) document.body.dataset.ready = '1';
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
    this.differences.moved();
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
    this.changed();
  }

  unmark() {
    this.range = undefined;
    this.changed();
  }

  zoomToRange() {
    const { range } = this;
    if (!range) return;
    this.range = undefined;
    this.show(...range, true);
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
    const counts = this.panes.map((pane) => pane.outline.counts).reduce((one, other) => one.map((count, at) => count + (other[at] ?? 0)));
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
    if (event.target.closest('.pin')) this.pinRow(id);
    else if (event.target.closest('button')) {
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
    const { pinnedHeight } = this.rows;
    if (this.rows.isPinned(row)) return;
    if (row.top < scroller.scrollTop + pinnedHeight) scroller.scrollTop = row.top - pinnedHeight;
    const bottom = row.top + row.height;
    if (bottom > scroller.scrollTop + scroller.clientHeight) scroller.scrollTop = bottom - scroller.clientHeight;
  }

  /** Pins the chosen row to the top, or lets go of it. */
  pinRow(id = this.row) {
    if (!this.rows.byId.has(id)) return;
    this.rows.pin(id);
    this.say(this.rows.pinned.has(id) ? 'pinned to the top' : 'not pinned any more');
    this.changed();
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
      this.pick.entry = await this.pane.api.entry({ row: row.ids[this.pane.number], at: this.pane.time(from) });
      this.panels.show('frame');
    } catch (error) {
      this.failed(error);
    }
  }

  async chooseFrame(asked, row, span) {
    const { pane } = this;
    try {
      const answer = await pane.api.frame(asked);
      const [from, to] = span || [answer.from, answer.to].map((time) => pane.offset(time ?? pane.about.from));
      pane.pick = { answer, row: row ?? this.rows.named(pane.number, answer.row)?.id, from, to };
      this.timeline.draw();
      await this.panels.show('frame');
      // For scripts: which frame is shown.
      document.body.dataset.pick = answer.key.seqno;
      this.linkTimer = setTimeout(() => history.replaceState(null, '', link(this)), 300);
    } catch (error) {
      if (error.status === 409) {
        pane.store.clear();
        await this.refreshAbout(pane);
        this.timeline.refresh();
      } else this.failed(error);
    }
  }

  /** Goes to a frame that a panel names. */
  async goTo(key, times) {
    await this.chooseFrame(key, undefined, times && times.map((time) => this.pane.offset(time)));
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
    if (this.pick) this.showTimes([this.pick.from, this.pick.to]);
  }

  /** Shows a stretch of time, and what is around it. */
  showTimes([from, to]) {
    const room = Math.max((to - from) * 0.5, this.span.whole.to / 1e5, 500);
    this.show(from - room, to + room, true);
  }

  /** The cell before or after the chosen one, in the chosen row. */
  step(by) {
    const row = this.rows.byId.get(this.row);
    const tile = this.pane.tile(row);
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

  /** Takes the edges of a chosen frame, and shows them. */
  async learnEdges(pick) {
    pick.web ??= new EdgeWeb(pick.answer.key);
    await (pick.learning ??= pick.web.grow(this.pane.api));
    this.timeline.draw();
  }

  async follow(direction) {
    const { pick } = this;
    if (!pick?.answer) return;
    try {
      await this.learnEdges(pick);
      const [side, none] = direction === 'causes' ? ['cause', 'no cause is known'] : ['effect', 'no effect is known'];
      const [first] = pick.web[direction];
      if (!first) this.say(none);
      else await this.goTo(first[side].key, first[side].at && [first[side].at, first[side].at]);
    } catch (error) {
      this.failed(error);
    }
  }

  /** Shows a way from one point to another; all else is dimmed. */
  showWay(hops) {
    this.way = wayOf(this.pane, this.rows, hops);
    const { steps } = this.way;
    for (const { row } of steps) if (row) this.rows.reveal(row);
    const first = this.rows.byId.get(steps[0]?.row);
    if (first) this.bring(first);
    if (steps.length > 0) this.showTimes([steps[0].from, steps.at(-1).to]);
  }

  /** Shows the arrows of one hop more. */
  async hop() {
    const { pick } = this;
    if (!pick?.answer) return;
    try {
      await this.learnEdges(pick);
      const more = await pick.web.grow(this.pane.api);
      this.say(more > 0 ? `${grouped(more)} more edges` : 'there are no more edges');
      this.timeline.draw();
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
    this.way = undefined;
    this.range = undefined;
    for (const pane of this.panes) pane.pick = undefined;
    delete document.body.dataset.pick;
    this.finder.clear();
    this.filter.clear();
    this.changed();
    if (this.panels.chosen === 'frame') this.panels.show('frame');
  }

  copyLink() {
    copy(this, `${location.origin}/${link(this)}`, 'the link');
  }

  copyCommand() {
    copy(this, this.filter.text ? this.filter.statCommand : statCommand(this), 'the command');
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

const token = takeToken();
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
