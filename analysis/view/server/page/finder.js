// Finds frames by a part of a name, or by an expression.

const element = (id) => document.getElementById(id);

/** The last search, its matches, and the chosen match. */
export class Finder {
  constructor(page) {
    this.page = page;
    this.hits = { list: [], at: -1 };
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
  }

  clear() {
    this.hits = { list: [], at: -1 };
    element('find-count').textContent = '';
  }

  async find(text, by) {
    const wanted = text.trim();
    if (wanted === '') return this.page.letGo();
    if (wanted !== this.hits.text || this.hits.pane !== this.page.pane) {
      element('find-count').textContent = '…';
      try {
        const { pane, span } = this.page;
        const answer = await pane.api.find({ text: wanted, from: pane.time(0), to: pane.time(span.whole.to) });
        const list = answer.hits.map((hit) => ({ ...hit, offset: pane.offset(hit.from) }));
        this.hits = { text: wanted, list, at: by > 0 ? -1 : list.length, truncated: answer.truncated, pane };
      } catch (error) {
        element('find-count').textContent = '';
        this.page.failed(error);
        return undefined;
      }
    }
    return this.step(by);
  }

  async step(by) {
    const { list } = this.hits;
    const count = element('find-count');
    if (list.length === 0) {
      count.textContent = this.hits.text ? 'nothing' : '';
      this.page.timeline.draw();
      return;
    }
    this.hits.at = (this.hits.at + by + list.length) % list.length;
    const hit = list[this.hits.at];
    count.textContent = `${this.hits.at + 1} of ${list.length}${this.hits.truncated ? '+' : ''}`;
    await this.page.selection.goTo(hit.key, [hit.from, hit.to]);
  }

  /** The most frequent name in the cells of a row. */
  commonName(row) {
    const { names, pane } = this.page;
    const cells = pane.tile(row)?.cells;
    const tally = new Map();
    for (let at = 0; at < (cells?.count ?? 0); at++) tally.set(cells.name[at], (tally.get(cells.name[at]) ?? 0) + cells.counts[at]);
    const [most] = [...tally].sort((one, other) => other[1] - one[1]);
    return (most && names[most[0]]?.name) ?? names.find((one) => one.name.includes('.'))?.name;
  }
}
