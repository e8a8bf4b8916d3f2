// Tables of answers, and commands with the same answers in a terminal.

import { term } from './glossary.js';
import { duration, grouped, moment, plain } from './text.js';
import { make } from './elements.js';

export function fieldTable(fields) {
  const list = make('table');
  for (const field of fields) {
    const row = make('tr');
    const name = make('th', '', plain(field.name));
    name.scope = 'row';
    row.append(name, make('td', field.type === 'number' || field.type === 'duration' ? 'number' : '', fieldText(field)));
    list.append(row);
  }
  return list;
}

function fieldText({ name, type, text, unit }) {
  if (type === 'none') return '–';
  if (type === 'duration') return duration(text);
  if (type === 'time') return moment(text);
  if (type === 'number' && /id$|pid|tid|ring|seqno/.test(name)) return text;
  if (type === 'number') return `${/^-?\d+$/.test(text) ? grouped(text) : text}${unit ? ` ${plain(unit)}` : ''}`;
  return plain(text, 2000);
}

/** The kinds of content that are aligned to the right. */
const NUMBERS = ['count', 'duration', 'change', 'share'];

const SHOWN = {
  count: (text) => (/^-?\d+$/.test(text) ? grouped(text) : plain(text, 2000)),
  change: (text) => (/^-?\d+$/.test(text) ? `${text.startsWith('-') ? '−' : '+'}${duration(text.replace('-', ''))}` : ''),
  duration: (text) => (text === '' ? '' : duration(text)),
  time: (text) => (/^-?\d+$/.test(text) ? moment(text) : plain(text)),
  text: (text) => plain(text, 2000),
};

/** A table. A row with a link has a button in its first cell. */
export function table(heads, rows) {
  const node = make('table');
  const head = make('tr');
  for (const { name, content } of heads) {
    const cell = make('th', NUMBERS.includes(content) ? 'number' : '');
    cell.scope = 'col';
    cell.append(term(name));
    head.append(cell);
  }
  node.append(head);
  for (const { cells, go, mark } of rows) {
    const line = make('tr');
    cells.forEach((text, at) => {
      const content = heads[at]?.content ?? 'text';
      const cell = make('td', NUMBERS.includes(content) ? 'number' : '');
      if (at === 0 && mark) cell.append(mark);
      const shown = (SHOWN[content] ?? SHOWN.text)(String(text));
      if (at === 0 && go) {
        const button = make('button', '', shown);
        button.type = 'button';
        button.addEventListener('click', go);
        cell.append(button);
      } else cell.append(shown);
      line.append(cell);
    });
    node.append(line);
  }
  return node;
}

/** The command with the same answer in a terminal. */
export function command(text) {
  const line = make('p', 'faint', 'In a terminal: ');
  line.append(make('code', '', text));
  return line;
}
