// The changes from one set to the other, in the marked or visible time.

import { command, table } from './tables.js';
import { duration, grouped, plain } from './text.js';
import { make } from './elements.js';
import { paths } from './links.js';

/** The time without a change of the window before a request. */
const PATIENCE = 400;

export class Differences {
  constructor(page) {
    this.page = page;
    this.place = document.getElementById('differences');
    this.timer = 0;
    this.asking = undefined;
  }

  /** Handles a change of the visible or marked time. */
  moved() {
    if (this.page.panes.length === 1) return;
    this.place.hidden = false;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.ask(), PATIENCE);
  }

  async ask() {
    const { page, place } = this;
    this.asking?.abort();
    const asking = (this.asking = new AbortController());
    const { from, to, isMarked } = page.span.chosen(page.range);
    const [first, second] = page.panes.map((pane) => ({ from: pane.time(from), to: pane.time(to) }));
    place.setAttribute('aria-busy', 'true');
    try {
      const answer = await page.panes[0].api.compare({ first, second }, asking.signal);
      place.replaceChildren(make('h2', '', `What differs, in ${duration(to - from)} that ${isMarked ? 'are marked' : 'are visible'}`),
        ...this.answer(answer));
    } catch (error) {
      if (error.name !== 'AbortError') place.replaceChildren(make('p', 'bad', plain(error.message, 500)));
    } finally {
      if (!asking.signal.aborted) place.removeAttribute('aria-busy');
    }
  }

  answer({ rows, names, note, commands }) {
    if (rows.length === 0) return [make('p', 'faint', 'No interval begins in that time, in neither set.')];
    const heads = [['name', 'text'], ['before', 'count'], ['after', 'count'], ['total before', 'duration'], ['total after', 'duration'],
      ['difference', 'change'], ['mean', 'text'], ['p50', 'text'], ['p99', 'text']];
    const lines = rows.map(({ name, first, second, difference, changes }) => {
      const change = (statistic) => changed(changes.find((one) => one.statistic === statistic));
      return {
        cells: [name, first?.count ?? '0', second?.count ?? '0', first?.total ?? '0', second?.total ?? '0', difference,
          change('mean'), change('p50'), change('p99')],
        go: () => this.page.find(name, 1),
      };
    });
    const nodes = [table(heads.map(([name, content]) => ({ name, content })), lines)];
    if (names > rows.length) nodes.push(make('p', 'faint', `${grouped(names - rows.length)} more names differ less.`));
    if (note) nodes.push(make('p', 'faint', plain(note, 500)));
    commands.forEach((text, set) => nodes.push(command(text.replace('CAPTURE', paths(this.page.panes[set])))));
    return nodes;
  }
}

/** A change of a statistic in a few words, with the verdict of `ppt compare`. */
function changed(change) {
  if (!change) return '';
  const [one, other] = change.values;
  const part = `${(Math.abs(other / one - 1) * 100).toFixed(1)} %`;
  const verdict = { higher: `▲ ${part} higher`, lower: `▼ ${part} lower`, same: '= the same' }[change.verdict] ?? 'nothing shown';
  return `${duration(one)} → ${duration(other)}, ${verdict}`;
}
