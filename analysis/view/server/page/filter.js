// The filter: shows only threads with matches of the Find field, and only bars that match.

import { paths, range } from './links.js';
import { grouped } from './text.js';

const element = (id) => document.getElementById(id);

export class Filter {
  constructor(page) {
    this.page = page;
    this.text = '';
    this.command = '';
    element('filter-button').addEventListener('click', () => this.toggle());
  }

  /** Filters by the text of the field. Shows all rows if it is empty. */
  toggle() {
    const text = element('find').value.trim();
    if (text === this.text) this.clear();
    else this.set(text);
  }

  /** Shows only the rows of threads with matches. */
  async set(text) {
    const { page } = this;
    if (text === '') return this.clear();
    element('find').value = text;
    element('find-count').textContent = '…';
    const { pane, rows, span } = page;
    try {
      const answer = await pane.api.filter({ text, from: pane.time(0), to: pane.time(span.whole.to) });
      const counts = answer.rows.map(({ row, count }) => [rows.named(pane.number, row)?.id, count]);
      page.notice('');
      this.text = text;
      this.command = answer.command;
      rows.keepOnly(new Map(counts.filter(([id]) => id !== undefined)));
      const threads = rows.only.size;
      element('find-count').textContent = `${grouped(answer.count)} in ${grouped(threads)} ${threads === 1 ? 'thread' : 'threads'}`;
      page.say(`${element('find-count').textContent}: ${text}`);
      this.changed();
    } catch (error) {
      element('find-count').textContent = '';
      page.failed(error);
    }
    return undefined;
  }

  clear() {
    if (this.text === '') return;
    this.text = '';
    element('find-count').textContent = '';
    this.page.rows.keepOnly(undefined);
    this.changed();
  }

  /** The condition for bars. */
  get where() {
    return this.text || undefined;
  }

  changed() {
    for (const pane of this.page.panes) pane.store.clear();
    element('filter-button').setAttribute('aria-pressed', String(this.text !== ''));
    this.page.changed();
  }

  /** The command for the same frames in a terminal. */
  get statCommand() {
    const isOfSql = this.command.startsWith('ppt sql');
    return `${this.command.replace('CAPTURE', paths(this.page))}${isOfSql ? '' : ` ${range(this.page)}`}`;
  }
}
