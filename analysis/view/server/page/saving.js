// Saves the visible or marked time: a trace and a table from the server, a picture from the page.

import { colour, theme } from './colours.js';
import { open } from './dialogs.js';
import { paths, timeOptions } from './links.js';
import { box, describe } from './paint.js';
import { svg } from './svg.js';
import { duration, plain, tickStep, tickText } from './text.js';
import { make } from './elements.js';
import { HEADS, SINGLE } from './tile_bytes.js';

/** The height of the axis of a picture. */
const AXIS = 22;
/** The width from which a bar shows its name. */
const NAMED = 60;
/** The approximate width of a character. */
const CHARACTER = 7;

/** Shows a dialog, and saves the chosen format. */
export function showSaving(page) {
  const { pane } = page;
  const { from, to, isMarked } = page.span.chosen(page.range);
  const said = make('p', 'faint');
  said.setAttribute('role', 'status');
  const button = (text, save) => {
    const node = make('button', '', text);
    node.type = 'button';
    node.addEventListener('click', async () => {
      said.textContent = 'Making the file …';
      try {
        const { name, blob } = await save();
        download(name, blob);
        said.textContent = `${name}: ${blob.size.toLocaleString('en')} bytes`;
      } catch (error) {
        said.textContent = plain(error.message, 500);
      }
    });
    return node;
  };
  const asked = { from: pane.time(from), to: pane.time(to) };
  const table = make('select');
  table.id = 'save-table';
  for (const name of page.about.tables) {
    const option = make('option', '', plain(name));
    option.value = name;
    table.append(option);
  }
  const label = make('label', '', 'Rows of ');
  label.append(table);
  const line = (...nodes) => {
    const node = make('p');
    node.append(...nodes);
    return node;
  };
  const stretch = isMarked ? 'what is marked' : 'what is seen';
  const lines = [line(`Saves ${stretch}: ${duration(to - from)}. The browser keeps the file; the server writes none.`),
    line(button('Trace for Perfetto (.pftrace)', () => fetched(pane, { ...asked, format: 'perfetto' }, 'pftrace')))];
  if (page.about.tables.length > 0) {
    lines.push(line(label, ' ', button('as Parquet', () => fetched(pane, { ...asked, format: 'parquet', table: table.value }, 'parquet'))));
  }
  lines.push(line(button('Picture of the rows in sight (.svg)', () => ({ name: 'selection.svg', blob: picture(page) }))), said);
  const command = `ppt export ${paths(page)} ${timeOptions(pane, from, to - 1)} --format perfetto -o selection.pftrace`;
  lines.push(line('In a terminal, of any size:'), make('pre', '', command));
  open('Save', ...lines);
}

async function fetched(pane, asked, ending) {
  return { name: `selection.${ending}`, blob: await pane.api.saved(asked) };
}

function download(name, blob) {
  const link = make('a');
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

const rgb = ([red, green, blue]) => `rgb(${red},${green},${blue})`;

/** The visible rows, as they are drawn. */
export function picture(page) {
  const { timeline, span, pane, names, causes } = page;
  const { labelWidth, width: across } = timeline;
  const colours = theme();
  const scale = { from: span.from, factor: across / span.length, ratio: 1 };
  const shown = timeline.inSight();
  let below = AXIS;
  const rows = shown.map((row) => {
    const top = below;
    below += row.height;
    const tile = pane.tile(row);
    return { label: row.text, top, height: row.height,
      bars: tile ? [...bars(tile, scale, top, row.height, names, labelWidth, across), ...gaps(tile, scale, top, row.height, causes, colours, labelWidth)] : [] };
  });
  const height = below + 4;
  const ticks = [];
  const step = tickStep(span.length, Math.max(2, across / 110));
  for (let tick = Math.ceil(span.from / step) * step; tick < span.to; tick += step) {
    ticks.push({ x: labelWidth + (tick - span.from) * scale.factor, label: tickText(tick, step) });
  }
  const title = page.about.captures.map((capture) => plain(capture.path)).join(', ');
  return new Blob([svg({ title, width: labelWidth + across, labelWidth, height, rows, ticks, colours })], { type: 'image/svg+xml' });
}

function bars({ cells, shift }, scale, top, height, names, labelWidth, across) {
  const list = [];
  for (let at = 0; at < (cells?.count ?? 0); at++) {
    const [left, right, upper, lower] = box(cells, at, shift, scale, top, height);
    if (right < 0 || left > across) continue;
    const isSingle = (cells.flags[at] & SINGLE) !== 0;
    const name = cells.flags[at] & HEADS ? undefined : names[isSingle ? cells.bestName[at] : cells.name[at]];
    const tone = colour(name?.name, name?.buffer);
    const [red, green, blue] = tone;
    const room = Math.floor((right - Math.max(left, 0) - 8) / CHARACTER);
    const fits = isSingle && right - left >= NAMED && lower - upper >= 12;
    list.push({ left: labelWidth + Math.max(left, 0), right: labelWidth + right, top: upper, bottom: lower, fill: rgb(tone),
      title: describe(cells, at, names), name: fits ? plain(name?.name ?? '?', 80).slice(0, room) : undefined,
      ink: red * 0.3 + green * 0.6 + blue * 0.1 > 140 ? '#000' : '#fff' });
  }
  return list;
}

function gaps({ losses, shift }, scale, top, height, causes, colours, labelWidth) {
  const list = [];
  for (let at = 0; at < (losses?.count ?? 0); at++) {
    const left = labelWidth + Math.max((losses.from[at] + shift - scale.from) * scale.factor, 0);
    const right = Math.max(labelWidth + (losses.to[at] + shift - scale.from) * scale.factor, left + 3);
    const title = `${losses.counts[at]} missing: ${plain(causes[losses.cause[at]])}`;
    list.push({ left, right, top, bottom: top + height, fill: colours.loss, title });
  }
  return list;
}
