// The page: its parts, and its reactions to events and keys.

import { Alignment } from './alignment.js';
import { onThemeChange } from './colours.js';
import { showKeys, showTable } from './dialogs.js';
import { RowCursor } from './cursor.js';
import { Differences } from './differences.js';
import { Filter } from './filter.js';
import { Finder } from './finder.js';
import { press } from './keys.js';
import { copy, link, openLink, statCommand } from './links.js';
import { listen } from './news.js';
import { Navigation } from './navigation.js';
import { Pane } from './pane.js';
import { Panels } from './panels.js';
import { usePointers } from './pointer.js';
import { Rows } from './rows.js';
import { showSaving } from './saving.js';
import { Selection } from './selection.js';
import { Span } from './span.js';
import { plain } from './text.js';
import { Timeline } from './timeline.js';
import { wayOf } from './way.js';

const element = (id) => document.getElementById(id);

export class Page {
  constructor() {
    this.span = new Span();
    this.rows = new Rows();
    /** The alignment of the sets, and the set that answers are about. */
    this.pane = new Pane(this, 0, element('cells'));
    this.panes = [this.pane];
    /** The chosen row. */
    this.row = undefined;
    /** The path from one point to another that is shown. */
    this.way = undefined;
    /** The marked time. */
    this.range = undefined;
    /** Whether everything but the cells has arrived. */
    this.isOpen = false;
    /** Whether the window follows a live capture. Moving it ends this. */
    this.follows = false;
    this.navigation = new Navigation(this);
    this.cursor = new RowCursor(this);
    this.selection = new Selection(this);
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

  /** The chosen frame of the pane that answers are about. */
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
    element('labels').addEventListener('click', (event) => this.cursor.clickLabel(event));
    onThemeChange(() => this.timeline.draw());
    await this.panels.open();
    await openLink(this);
    this.isOpen = true;
    this.timeline.refresh();
    this.differences.moved();
    for (const pane of this.panes) listen(this, pane);
  }

  /** Loads the content of a set. With `keep`, the visible time stays. */
  async refreshAbout(pane) {
    await pane.refresh();
    this.arrange(true);
  }

  /** Updates the rows and times of all sets. */
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

  /** Chooses the set that answers are about. */
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
    // `listen` reports the end of the connection.
    if (error instanceof TypeError) return;
    this.notice(plain(error.message, 500));
  }

  /** Handles the first complete picture. */
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

  changed() {
    this.timeline.refresh();
    this.panels.moved();
    this.differences.moved();
    this.keepLink();
  }

  /** Updates the address a moment later. */
  keepLink() {
    clearTimeout(this.linkTimer);
    this.linkTimer = setTimeout(() => history.replaceState(null, '', link(this)), 300);
  }

  /** Shows a path from one point to another, and dims everything else. */
  showWay(hops) {
    this.way = wayOf(this.pane, this.rows, hops);
    const { steps } = this.way;
    for (const { row } of steps) if (row) this.rows.reveal(row);
    const first = this.rows.byId.get(steps[0]?.row);
    if (first) this.cursor.bring(first);
    if (steps.length > 0) this.navigation.showTimes([steps[0].from, steps.at(-1).to]);
  }

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
