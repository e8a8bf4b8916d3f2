// The panels with answers next to the timeline.

import { bars } from './lengths.js';
import { pathOf, paths, range as timeRange } from './links.js';
import { Paths } from './paths.js';
import { Start, swatch } from './start.js';
import { command, fieldTable, table } from './tables.js';
import { duration, grouped, plain } from './text.js';
import { make } from './elements.js';
import { whyNodes } from './why.js';

const START = [
  ['start', 'Start', 'What there is, and what to look at first'],
  ['frame', 'Frame', 'The fields of the frame that was clicked'],
];
const END = [
  ['why', 'Why', 'What the slowest in the time that is marked or visible consist of'],
  ['paths', 'Paths', 'What leads from one point to another, and where the time goes'],
  ['lengths', 'Lengths', 'How long the intervals of the chosen row take'],
  ['sql', 'SQL', 'Questions in SQL'],
];

export class Panels {
  constructor(page) {
    this.page = page;
    this.tabs = document.getElementById('tabs');
    this.panel = document.getElementById('panel');
    this.chosen = 'start';
    this.asking = undefined;
    this.paths = new Paths(page);
    this.start = new Start(page);
    this.sqlText = "SELECT name, count(*), max(dur) FROM slices GROUP BY name ORDER BY 3 DESC";
  }

  async open() {
    const asked = (await this.page.pane.api.panels()).map(({ id, title, why }) => [id, plain(title), plain(why)]);
    this.asked = new Set(asked.map(([id]) => id));
    this.tabs.replaceChildren(...[...START, ...asked, ...END].map(([id, title, why]) => {
      const tab = make('button', '', title);
      tab.type = 'button';
      tab.id = `tab-${id}`;
      tab.title = why;
      tab.setAttribute('role', 'tab');
      tab.addEventListener('click', () => this.show(id));
      return tab;
    }));
    this.tabs.addEventListener('keydown', (event) => {
      const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!by) return;
      event.preventDefault();
      event.stopPropagation();
      const all = [...this.tabs.children];
      const next = all[(all.indexOf(document.activeElement) + by + all.length) % all.length];
      next.focus();
      next.click();
    });
    this.show('start');
  }

  async show(id) {
    this.chosen = id;
    for (const tab of this.tabs.children) {
      const isIt = tab.id === `tab-${id}`;
      tab.setAttribute('aria-selected', String(isIt));
      tab.tabIndex = isIt ? 0 : -1;
    }
    this.panel.setAttribute('aria-labelledby', `tab-${id}`);
    this.asking?.abort();
    const asking = (this.asking = new AbortController());
    this.panel.setAttribute('aria-busy', 'true');
    try {
      const nodes = await this.content(id, asking.signal);
      if (!asking.signal.aborted && nodes) this.panel.replaceChildren(...nodes);
    } catch (error) {
      if (error.name !== 'AbortError') this.panel.replaceChildren(make('p', 'bad', plain(error.message, 2000)));
    } finally {
      if (!asking.signal.aborted) this.panel.removeAttribute('aria-busy');
    }
  }

  /** Requests the answers about the visible or marked time again, a moment later. */
  moved() {
    const { range } = this.page;
    // The account is about everything, or about the marked time.
    const isOfRange = ['time', 'slowest', 'lengths', 'why'].includes(this.chosen) || (this.chosen === 'account' && range !== this.told);
    if (!isOfRange) return;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.show(this.chosen), 400);
  }

  content(id, signal) {
    if (id === 'start') return this.start.nodes(signal);
    if (id === 'frame') return this.frame();
    if (id === 'lengths') return this.lengths();
    if (id === 'sql') return this.sql();
    if (id === 'why') return this.why(signal);
    if (id === 'paths') return this.paths.nodes(signal);
    this.panel.replaceChildren(make('p', 'faint', 'Reading …'));
    return this.answer(id, signal);
  }

  async answer(id, signal) {
    const { pane, span, range } = this.page;
    const { from, to, isMarked } = span.chosen(range);
    this.told = range;
    const isOfTime = id !== 'account' || isMarked;
    const asked = isOfTime ? { id, from: pane.time(from), to: pane.time(to) } : { id };
    const answer = await pane.api.panel(asked, signal);
    const nodes = [make('h2', '', plain(answer.title)), ...this.about(isOfTime)];
    if (answer.note) nodes.push(make('p', '', plain(answer.note, 500)));
    if (answer.rows.length > 0) {
      const heads = answer.columns.map((column) => ({ name: column.name, content: column.content }));
      const mark = ['time', 'slowest'].includes(id) && ((row) => swatch(row.cells[0]));
      const rows = answer.rows.map((row) => ({ cells: row.cells, mark: mark && mark(row), go: row.frame && (() => this.page.selection.goTo(row.frame, row.span)) }));
      nodes.push(table(heads, rows));
    }
    nodes.push(command(answer.command.replace('CAPTURE', paths(this.page))));
    return nodes;
  }

  async why(signal) {
    const { page } = this;
    const { pane, span, range } = page;
    this.panel.replaceChildren(make('p', 'faint', 'Reading …'));
    const { from, to } = span.chosen(range);
    const nodes = [make('h2', '', 'Why the slowest took so long'), ...this.about(true)];
    const answer = await pane.api.why({ from: pane.time(from), to: pane.time(to) }, signal);
    const show = (times) => page.navigation.showTimes(times.map((time) => pane.offset(time)));
    return [...nodes, ...whyNodes(answer, `ppt why ${paths(page)} --slowest 20 ${timeRange(page)}`, (key, times) => page.selection.goTo(key, times), show)];
  }

  /** The set and the time that an answer is about. */
  about(isOfTime) {
    const { pane, panes, span, range } = this.page;
    const { from, to, isMarked } = span.chosen(range);
    const set = panes.length > 1 ? `${pane.files}: ` : '';
    const line = make('p', 'faint', isOfTime ? `${set}${duration(to - from)} that ${isMarked ? 'are marked' : 'are visible'}` : `${set}everything`);
    if (!isMarked) return panes.length > 1 || isOfTime ? [line] : [];
    const go = make('button', '', 'Unmark');
    go.type = 'button';
    go.addEventListener('click', () => this.page.navigation.unmark());
    line.append(' ', go);
    return [line];
  }

  frame() {
    const { pick } = this.page;
    if (pick?.entry) return this.entry(pick.entry);
    if (!pick?.answer) return [make('p', 'faint', 'Click a bar: its fields are shown here.')];
    const { answer } = pick;
    const nodes = [make('h2', '', `${plain(answer.name)} of ${plain(answer.buffer)}`)];
    const where = `process ${answer.process}, ${answer.thread === null ? 'no thread' : `thread ${answer.thread}`}`;
    nodes.push(make('p', 'faint', `${where}, number ${grouped(answer.key.seqno)}`));
    nodes.push(fieldTable(answer.fields));
    const ends = make('div');
    nodes.push(make('h3', '', 'Cause and effect'), ends);
    this.edges(pick, ends);
    nodes.push(command(answer.command.replace('CAPTURE', pathOf(this.page, answer.key.capture))));
    return nodes;
  }

  /** Shows a span, a chain or a state. */
  entry(entry) {
    const nodes = [make('h2', '', plain(entry.name)), fieldTable(entry.fields)];
    if (entry.key) {
      const go = make('button', '', 'Go to the frame that began it');
      go.type = 'button';
      go.addEventListener('click', () => this.page.selection.goTo(entry.key));
      nodes.push(go);
    }
    nodes.push(command(entry.command.replace('CAPTURE', paths(this.page))));
    return nodes;
  }

  async edges(pick, place) {
    place.replaceChildren(make('p', 'faint', 'Reading …'));
    try {
      await this.page.selection.learnEdges(pick);
    } catch (error) {
      place.replaceChildren(make('p', 'bad', plain(error.message, 500)));
      return;
    }
    const { causes, effects, isCut } = pick.web;
    let number = 0;
    const lines = (title, edges, side, key) => {
      if (edges.length === 0) return [];
      const rows = edges.map((edge) => ({
        cells: [`${(number += 1) < 10 ? `${number}. ` : ''}${plain(edge[side].name)}`, plain(edge.relation), plain(edge.certainty), edge.latency ?? ''],
        go: () => this.page.selection.goToEnd(edge[side]),
      }));
      const heads = [['point', 'text'], ['relation', 'text'], ['certainty', 'text'], ['later by', 'duration']];
      return [make('p', '', `${title} (${key})`), table(heads.map(([name, content]) => ({ name, content })), rows)];
    };
    const nodes = [...lines('It follows from', causes, 'cause', '['), ...lines('It leads to', effects, 'effect', ']')];
    if (isCut) nodes.push(make('p', 'faint', 'There are more edges: SQL shows all (table edges).'));
    place.replaceChildren(...(nodes.length ? nodes : [make('p', 'faint', 'No edge begins or ends here. Edges come from points, spans and what the kernel saw.')]));
  }

  async lengths() {
    const { row, rows, span, pane, range } = this.page;
    const chosen = rows.byId.get(row);
    const all = rows.all.filter((one) => one.kind === 'depth' && one.ids[pane.number] !== undefined);
    const of = all.includes(chosen) ? chosen : all.find((one) => one.parent === chosen?.id) ?? all[0];
    if (!of) return [make('p', 'faint', 'There are no intervals.')];
    const { from, to } = span.chosen(range);
    const asked = { row: of.ids[pane.number], from: pane.time(from), to: pane.time(to) };
    const buckets = (await pane.api.lengths(asked)).buckets.map(Number);
    const thread = rows.byId.get(of.parent);
    const nodes = [make('h2', '', 'Lengths'), make('p', '', `${thread?.text ?? ''}, ${of.text}`), ...this.about(true)];
    if (!buckets.some((count) => count > 0)) return [...nodes, make('p', 'faint', 'There is none.')];
    const name = this.page.finder.commonName(of);
    const shown = bars(buckets, (least, most) => name && this.page.filter.set(`${name} BETWEEN ${least}ns AND ${most}ns`));
    const first = shown.firstChild.getAttribute('aria-label').split(': ')[0];
    const last = shown.lastChild.getAttribute('aria-label').split(': ')[0];
    nodes.push(shown, make('p', 'faint', `From ${first}, doubling, up to ${last}. Drag over bars, or press Enter and Shift-Enter on them: only the rows of threads that have such intervals stay.`));
    return nodes;
  }

  sql() {
    const form = make('form');
    form.style.display = 'block';
    const text = make('textarea');
    text.value = this.sqlText;
    text.setAttribute('aria-label', 'A statement in SQL');
    text.spellcheck = false;
    const run = make('button', '', 'Ask');
    const place = make('div');
    form.append(text, run);
    form.addEventListener('submit', async (event) => {
      event.preventDefault();
      this.sqlText = text.value;
      place.replaceChildren(make('p', 'faint', 'Reading …'));
      try {
        const answer = await this.page.pane.api.sql(text.value);
        const heads = answer.columns.map((column) => ({ name: plain(column.name), content: column.type === 'number' ? 'count' : column.type }));
        const rows = answer.rows.map((cells) => ({ cells: cells.map((cell) => cell ?? '') }));
        place.replaceChildren(table(heads, rows), make('p', 'faint', answer.truncated ? 'The first 500 rows.' : `${grouped(rows.length)} rows.`));
      } catch (error) {
        place.replaceChildren(make('p', 'bad', plain(error.message, 2000)));
      }
    });
    return [make('h2', '', 'SQL'), form, place, command(`ppt sql ${paths(this.page)} '…'`)];
  }
}
