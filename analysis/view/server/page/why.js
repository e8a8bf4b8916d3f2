// The parts and causes of the slowest intervals.

import { command } from './tables.js';
import { duration, grouped, plain } from './text.js';
import { make } from './elements.js';

/** The answer of `/v1/why` as nodes. `go(key, times)` moves to an interval, `show(times)` to a range of time. */
export function whyNodes({ slowest }, commandText, go, show) {
  if (slowest.length === 0) return [make('p', 'faint', 'No interval is in that time.'), command(commandText)];
  const list = make('ol', 'why');
  for (const slow of slowest) list.append(interval(slow, go, show));
  return [list, command(commandText)];
}

function interval(slow, go, show) {
  const item = make('li');
  const times = [slow.from, slow.to];
  const whole = Number(BigInt(slow.to) - BigInt(slow.from));
  const title = `${plain(slow.name)} ${duration(whole)}`;
  const head = slow.key ? button(title, () => go(slow.key, times)) : make('strong', '', title);
  head.classList.add('head');
  item.append(head);
  if (slow.request) item.append(' ', make('span', 'faint', plain(slow.request)));
  const bar = make('div', 'shares');
  bar.setAttribute('aria-hidden', 'true');
  const parts = make('table');
  for (const part of slow.parts) {
    const share = whole > 0 ? Number(part.ns) / whole : 0;
    const kind = causeClass(part.cause);
    const piece = make('span', kind);
    piece.style.flexGrow = String(Math.max(share, 0.0001));
    bar.append(piece);
    const line = make('tr');
    const cause = make('td');
    cause.append(make('span', `swatch ${kind}`), button(plain(part.cause), () => show([part.from, part.to])));
    const often = make('td', 'number faint', part.times > 1 ? `${grouped(part.times)} ×` : '');
    line.append(cause, often, make('td', 'number', duration(part.ns)), make('td', 'number', `${(100 * share).toFixed(1)} %`));
    // For scripts: exact numbers.
    line.dataset.ns = part.ns;
    parts.append(line);
  }
  item.dataset.ns = String(whole);
  item.append(bar, parts);
  return item;
}

/** The style of a cause, by its first word. */
function causeClass(cause) {
  if (cause.startsWith('running')) return 'running';
  if (cause.startsWith('waiting for a CPU')) return 'runnable';
  return cause.startsWith('unknown') ? 'unknown' : 'blocked';
}

function button(text, act) {
  const node = make('button', '', text);
  node.type = 'button';
  node.addEventListener('click', act);
  return node;
}
