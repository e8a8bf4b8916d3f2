// Dialogs: the keys, and a table of the visible rows.

import { GLOSSARY } from './glossary.js';
import { KEYS } from './keys.js';
import { describe } from './paint.js';
import { tickText } from './text.js';
import { make } from './elements.js';

/** The most lines of the table. */
const LINES = 500;

/** Shows nodes below a heading. */
export function open(heading, ...nodes) {
  const dialog = document.getElementById('keys');
  const title = make('h2', '', heading);
  title.id = 'keys-title';
  const close = make('button', '', 'Close');
  close.type = 'button';
  close.addEventListener('click', () => dialog.close());
  dialog.replaceChildren(title, close, ...nodes);
  dialog.showModal();
}

/** Shows all keys with their actions. */
export function showKeys() {
  const list = make('table');
  for (const [key, what] of KEYS) {
    const line = make('tr');
    const cell = make('td');
    cell.append(make('kbd', '', key));
    line.append(cell, make('td', '', what));
    list.append(line);
  }
  const words = make('dl');
  for (const [word, meaning] of GLOSSARY) words.append(make('dt', '', word), make('dd', '', meaning));
  open('Keys', list, make('p', '', 'Drag to move, turn the wheel to zoom, Shift and the wheel to move, double-click a bar to zoom to it, drag on the axis, or press Shift and drag over the rows, to mark a stretch of time: answers are about it.'), make('h3', '', 'Words'), words);
}

/** Shows the visible content as a table, also for screen readers. */
export function showTable({ timeline, pane, span, names }) {
  const list = make('table');
  const head = make('tr');
  for (const text of ['row', 'from', 'what']) head.append(make('th', '', text));
  list.append(head);
  let left = LINES;
  for (const row of timeline.inSight()) {
    const tile = pane.tile(row);
    for (let at = 0; at < (tile?.cells?.count ?? 0) && left > 0; at++) {
      const [from, to] = [tile.cells.from[at] + tile.shift, tile.cells.to[at] + tile.shift];
      if (to < span.from || from >= span.to) continue;
      left -= 1;
      const line = make('tr');
      line.append(make('td', '', row.text), make('td', 'number', tickText(Math.round(from), span.length / 1000)),
        make('td', '', describe(tile.cells, at, names).replaceAll('\n', ', ')));
      list.append(line);
    }
  }
  open('What is visible', list, make('p', 'faint', left === 0 ? `The first ${LINES}.` : ''));
}
