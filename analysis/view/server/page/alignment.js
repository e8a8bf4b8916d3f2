// The alignment of two sets of captures, and the set that answers are about.

import { plain } from './text.js';
import { make } from './elements.js';

const element = (id) => document.getElementById(id);

const WAYS = [
  ['begin', 'by their beginnings'],
  ['clock', 'by the clock'],
  ['trigger', 'by their first triggers'],
  ['chosen', 'by the chosen frames'],
];

export class Alignment {
  constructor(page) {
    this.page = page;
    this.way = 'begin';
    /** The aligned moment of each set; undefined for its beginning. */
    this.moments = undefined;
  }

  /** Aligns the moments of both sets. Nothing lies before offset 0. */
  apply() {
    const { panes } = this.page;
    if (panes.length === 1) {
      panes[0].setZero(panes[0].from);
      return;
    }
    const moments = this.moments ?? panes.map((pane) => pane.from);
    const before = panes.map((pane, at) => moments[at] - pane.from).reduce((one, other) => (one > other ? one : other));
    panes.forEach((pane, at) => pane.setZero(moments[at] - before));
  }

  /** Chooses the alignment. */
  async choose(way) {
    const { page } = this;
    try {
      this.moments = await this.found(way);
      this.way = way;
    } catch (error) {
      page.notice(plain(error.message, 500));
    }
    page.finder.clear();
    page.range = undefined;
    page.arrange(false);
    page.changed();
  }

  async found(way) {
    const { panes } = this.page;
    if (way === 'clock') return panes.map(() => panes[0].from);
    if (way === 'chosen') {
      if (!panes.every((pane) => pane.pick)) throw new Error('Choose a frame in each set first: click a bar in both.');
      return panes.map((pane) => BigInt(pane.time(pane.pick.from)));
    }
    if (way === 'trigger') {
      const asked = panes.map((pane) => pane.api.sql('SELECT min(ts) AS ts FROM triggers'));
      const times = (await Promise.all(asked)).map((answer) => answer.rows[0]?.[0]);
      if (times.some((time) => !time)) throw new Error('A set has no trigger: the flight recorder writes them.');
      return times.map(BigInt);
    }
    return undefined;
  }

  /** Shows the sets above their panes. */
  show() {
    const { page } = this;
    const place = element('sets');
    place.hidden = page.panes.length === 1;
    if (place.hidden) return;
    if (place.childElementCount === 0) this.build(place);
    for (const pane of page.panes) {
      const button = element(`set-${pane.number}`);
      button.textContent = `${pane.number === 0 ? 'before' : 'after'}: ${pane.files}, ${pane.glance}`;
      button.title = button.textContent;
      button.setAttribute('aria-pressed', String(pane === page.pane));
    }
    element('align').value = this.way;
  }

  build(place) {
    const { page } = this;
    const select = make('select');
    select.id = 'align';
    select.setAttribute('aria-label', 'How the two sets are aligned');
    for (const [way, text] of WAYS) {
      const option = make('option', '', text);
      option.value = way;
      select.append(option);
    }
    select.addEventListener('change', () => this.choose(select.value));
    place.append(select);
    for (const pane of page.panes) {
      const button = make('button');
      button.type = 'button';
      button.id = `set-${pane.number}`;
      button.addEventListener('click', () => page.activate(pane));
      place.append(button);
    }
  }
}
