// Links to the visible content, and commands with the same answers in a terminal.

import { plain } from './text.js';

/** The most folded rows in a link. */
const FOLDED = 100;
/** The most pinned rows in a link. */
const PINNED = 20;

/** The captures, as arguments of a command. */
export function paths({ about }) {
  return about.captures.map((capture) => quoted(plain(capture.path, 1000))).join(' ');
}

/** The file of a capture, as an argument of a command. */
export function pathOf({ about }, id) {
  return quoted(plain(about.captures.find((capture) => capture.id === id)?.path ?? 'CAPTURE', 1000));
}

/** The visible content as the end of an address, with names and times, without pixels and without the token. */
export function link({ panes, pane, span, range: marked, row, rows, pick, filter }) {
  const [first] = panes;
  const words = new URLSearchParams({ from: first.time(span.from), to: first.time(span.to) });
  if (marked) words.set('marked', marked.map((offset) => first.time(offset)).join('/'));
  if (pane.number > 0) words.set('set', String(pane.number));
  if (row) words.set('row', row);
  if (rows.folded.size > 0 && rows.folded.size <= FOLDED) words.set('folded', [...rows.folded].join(' '));
  if (rows.pinned.size > 0 && rows.pinned.size <= PINNED) words.set('pinned', [...rows.pinned].join(' '));
  if (filter.text) words.set('where', filter.text);
  const key = pick?.answer?.key;
  if (key) words.set('pick', [key.capture, key.buffer, key.segment, key.ring, key.seqno].join('/'));
  return `#${words}`;
}

/** Shows the content that the address names, if the captures have it. */
export async function openLink(page) {
  const words = new URLSearchParams(location.hash.slice(1));
  const [from, to, row, folded, pick, marked, set] = ['from', 'to', 'row', 'folded', 'pick', 'marked', 'set'].map((name) => words.get(name));
  const isTime = (text) => /^-?\d{1,19}$/.test(text ?? '');
  const [first] = page.panes;
  if (isTime(from) && isTime(to)) page.span.show(first.offset(from), first.offset(to));
  const ends = marked?.split('/') ?? [];
  if (ends.length === 2 && ends.every(isTime)) page.navigation.mark(...ends.map((time) => first.offset(time)));
  if (set === '1' && page.panes[1]) page.activate(page.panes[1]);
  const ids = (folded ?? '').split(' ').filter((id) => page.rows.byId.has(id));
  if (ids.length > 0) {
    page.rows.folded = new Set(ids);
    page.rows.place();
  }
  for (const id of (words.get('pinned') ?? '').split(' ').slice(0, PINNED)) if (page.rows.byId.has(id)) page.rows.pin(id);
  if (row && page.rows.byId.has(row)) {
    page.rows.reveal(row);
    page.row = row;
  }
  const where = words.get('where');
  if (where) await page.filter.set(where.slice(0, 1000));
  const [capture, buffer, segment, ring, seqno] = pick?.split('/') ?? [];
  if (seqno) await page.selection.chooseFrame({ capture, buffer, segment, ring: Number(ring), seqno });
}

/** The command for the visible content. */
export function statCommand(page) {
  return `ppt stat ${paths(page)} ${range(page)}`;
}

/** The options for the marked or visible time. `--to` is included in it. */
export function range({ pane, span, range: marked }) {
  const { from, to } = span.chosen(marked);
  return timeOptions(pane, from, to - 1);
}

/** The options for a range of time. */
export function timeOptions(pane, from, to) {
  const at = (offset) => {
    const time = BigInt(pane.time(offset));
    return `@${time / 1000000000n}.${String(time % 1000000000n).padStart(9, '0')}`;
  };
  return `--from ${at(from)} --to ${at(to)}`;
}

/** Copies a text, or shows it if the browser does not allow copying. */
export async function copy(page, text, what) {
  try {
    await navigator.clipboard.writeText(text);
    page.say(`${what} is copied`);
    page.notice('');
  } catch {
    page.notice(`The browser does not let the page copy. ${what}: ${text}`);
  }
}

/** A word, quoted for a shell if necessary. */
function quoted(word) {
  return /^[A-Za-z0-9_./:=@%+,-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}
