// Tests of the modules of the page that need no browser.
import assert from 'node:assert/strict';
import test from 'node:test';

import { ends } from './arrows.js';
import { Rows } from './rows.js';
import { Span } from './span.js';
import { escaped, svg } from './svg.js';
import { duration, grouped, moment, plain, tickStep, tickText } from './text.js';
import { Tiles } from './tile_bytes.js';
import { EdgeWeb } from './web.js';

test('text of programs is made plain', () => {
  assert.equal(plain('a\u202eb\u0007'), 'a\ufffdb\ufffd');
  assert.equal(plain('x'.repeat(300)).length, 200);
  assert.equal(plain(undefined), '');
});

test('numbers and times are as people read them', () => {
  assert.equal(grouped('1234567'), '1,234,567');
  assert.equal(grouped(-12345n), '-12,345');
  assert.deepEqual([0, 999, 1500, 39_900_000, 65e9, 7300e9].map(duration),
    ['0 ns', '999 ns', '1.50 µs', '39.9 ms', '1 min 5 s', '2 h 2 min']);
  assert.equal(moment('1795707393108163224'), '2026-11-26 15:36:33.108163224');
  assert.equal(moment('-1'), '1969-12-31 23:59:59.999999999');
});

test('ticks are whole steps, and no two have the same text', () => {
  for (let power = 1; power < 15; power++) {
    const span = 3.7 * 10 ** power;
    const step = tickStep(span, 8);
    assert.ok(span / step <= 8 && span / step >= 1, `${span} ${step}`);
    const texts = [1, 2, 3, 4].map((tick) => tickText(tick * step, step));
    assert.equal(new Set(texts).size, 4, texts.join());
  }
});

test('a stretch of time keeps every nanosecond', () => {
  const span = new Span();
  span.setWhole('1795707393108163224', '1795707393118163223', false);
  assert.equal(span.length, 10_000_000);
  assert.equal(span.time(1), '1795707393108163225');
  assert.equal(span.offset('1795707393108163230'), 6);
  span.show(10, 20);
  assert.deepEqual([span.from, span.to], [10, 20]);
  span.zoom(1e-9);
  assert.equal(span.length, 10);
  span.show(-1e12, 1e12);
  assert.ok(span.from <= 0 && span.to >= 10_000_000 && span.length < 12_000_000);
  span.remember();
  span.show(5, 50);
  assert.ok(span.back() && span.length > 10_000_000);
  // The capture turns out to begin earlier. The visible times stay.
  const seen = (span.show(100, 200), span.time(150));
  span.setWhole('1795707393108163124', '1795707393118163223', true);
  assert.equal(span.time((span.from + span.to) / 2), seen);
});

test('tiles come in pieces of any size', () => {
  const head = new TextEncoder().encode('{"row":"depth.0.0","origin":"5","cells":1,"counters":0,"losses":1,"built":true,"more":false}  ');
  const padded = new Uint8Array(Math.ceil(head.length / 8) * 8).fill(32);
  padded.set(head);
  const columns = new ArrayBuffer(40 + 4 * 8 + 3 * 8 + 24 + 8);
  const view = new DataView(columns);
  [1, 2, 3, 4, 5].forEach((value, at) => view.setFloat64(at * 8, value, true));
  [6, 7, 8, 9].forEach((value, at) => view.setUint32(40 + at * 8, value, true));
  [10, 2, 12].forEach((value, at) => view.setUint16(72 + at * 8, value, true));
  [13, 14, 15].forEach((value, at) => view.setFloat64(96 + at * 8, value, true));
  view.setUint32(120, 3, true);
  const message = new Uint8Array(8 + padded.length + columns.byteLength);
  const lengths = new DataView(message.buffer);
  lengths.setUint32(0, padded.length, true);
  lengths.setUint32(4, columns.byteLength, true);
  message.set(padded, 8);
  message.set(new Uint8Array(columns), 8 + padded.length);
  const twice = new Uint8Array([...message, ...message]);
  for (const size of [1, 7, 100, 1000]) {
    const tiles = new Tiles();
    const rows = [];
    for (let at = 0; at < twice.length; at += size) rows.push(...tiles.add(twice.slice(at, at + size)));
    assert.equal(rows.length, 2);
    const { cells, losses, origin } = rows[1];
    assert.equal(origin, 5n);
    assert.deepEqual([cells.from[0], cells.to[0], cells.busy[0], cells.longest[0], cells.counts[0]], [1, 2, 3, 4, 5]);
    assert.deepEqual([cells.chunk[0], cells.frame[0], cells.bestName[0], cells.name[0]], [6, 7, 8, 9]);
    assert.deepEqual([cells.share[0], cells.flags[0], cells.lane[0]], [10, 2, 12]);
    assert.deepEqual([losses.from[0], losses.to[0], losses.counts[0], losses.cause[0]], [13, 14, 15, 3]);
  }
});

test('rows fold, and are found by their height', () => {
  const rows = new Rows();
  const row = (id, parent) => ({ id, parent, label: id, count: '1', lost: '0' });
  const all = [row('process.0', null)];
  for (let thread = 0; thread < 3; thread++) {
    all.push(row(`thread.${thread}`, 'process.0'), row(`depth.${thread}.0`, `thread.${thread}`));
  }
  rows.set([{ rows: all, processes: [{ pid: 1, host: 'a' }] }]);
  assert.equal(rows.shown.length, 7);
  assert.equal(rows.at(0).id, 'process.0');
  assert.equal(rows.at(rows.height - 1).id, 'depth.2.0');
  assert.equal(rows.at(rows.height), undefined);
  rows.fold('thread.1');
  assert.equal(rows.shown.length, 6);
  rows.reveal('depth.1.0');
  assert.equal(rows.shown.length, 7);
  const many = [row('process.0', null)];
  for (let thread = 0; thread < 10000; thread++) many.push(row(`thread.${thread}`, 'process.0'), row(`depth.${thread}.0`, `thread.${thread}`));
  rows.set([{ rows: many, processes: [{ pid: 1, host: 'a' }] }]);
  // Old rows stay as they were.
  assert.equal(rows.shown.length, 10001 + 3);
  assert.equal(rows.between(100_000, 100_500).length, 21 + (100_000 % 24 > 4 ? 1 : 0));
});

test('rows of two sets belong together by their names', () => {
  const row = (id, parent, label = id) => ({ id, parent, label, count: '2', lost: '1' });
  const processes = (...pids) => pids.map((pid) => ({ pid, host: 'a' }));
  const before = { processes: processes(10), rows: [row('process.0', null, '/bin/server'), row('thread.0', 'process.0', '11 (worker)'),
    row('depth.0.0', 'thread.0'), row('thread.1', 'process.0', '12'), row('counter.0', 'process.0', 'shop.bytes')] };
  const after = { processes: processes(70, 71), rows: [row('process.0', null, '/usr/bin/client'), row('process.1', null, '/opt/server'),
    row('thread.0', 'process.1', '72'), row('thread.1', 'process.1', '73 (worker)'), row('depth.1.0', 'thread.1'),
    row('depth.1.1', 'thread.1'), row('counter.4', 'process.1', 'shop.bytes')] };
  const rows = new Rows();
  rows.set([before, after]);
  const actual = rows.shown.map(({ text, ids, level }) => [text, ...ids, level]);
  assert.deepEqual(actual, [
    ['server (10 · 71)', 'process.0', 'process.1', 1],
    ['thread 11 · 73 (worker)', 'thread.0', 'thread.1', 2],
    ['intervals', 'depth.0.0', 'depth.1.0', 3],
    ['within, 1 deep (only after)', undefined, 'depth.1.1', 3],
    ['thread 12 · 72', 'thread.1', 'thread.0', 2],
    ['shop.bytes', 'counter.0', 'counter.4', 2],
    ['client (70) (only after)', undefined, 'process.0', 1],
  ]);
  assert.equal(rows.named(1, 'depth.1.0'), rows.byId.get('depth.0.0'));
  assert.equal(rows.byId.get('thread.0').count, '4');
  // A program with another name is the same program.
  rows.set([{ ...before, rows: before.rows.slice(0, 1) }, { ...after, rows: after.rows.slice(0, 1) }]);
  assert.deepEqual(rows.shown.map(({ text }) => text), ['server (10) · client (70)']);
  rows.set([before, after]);
  // Each row of each set occurs once.
  assert.equal(new Set(rows.all.map((one) => one.id)).size, 7);
  // A folded row is folded in both sets.
  rows.fold('thread.0');
  assert.equal(rows.shown.length, 5);
});

test('answers are about what is marked, or else about what is seen', () => {
  const span = new Span();
  span.setWhole('1000', '1999', false);
  assert.deepEqual(span.chosen(undefined), { from: 0, to: 1000, isMarked: false });
  assert.deepEqual(span.chosen([5, 9]), { from: 5, to: 9, isMarked: true });
  assert.deepEqual(span.chosen([5, 5]), { from: 5, to: 6, isMarked: true });
});

test('a picture is XML, whatever programs call things', () => {
  assert.equal(escaped('<a b="c">&\u0000\u001b\'\ud800'), '&lt;a b=&quot;c&quot;&gt;&amp;&#39;\ufffd');
  const hostile = '</svg><script>alert(1)</script>';
  const bar = { left: 100, right: 150, top: 20, bottom: 40, fill: 'rgb(1,2,3)', title: hostile, name: hostile, ink: '#000' };
  const colours = { ground: '#fff', line: '#ccc', faint: '#666', text: '#000' };
  const text = svg({ title: hostile, width: 400, labelWidth: 100, height: 60, colours,
    rows: [{ label: hostile, top: 20, height: 20, bars: [bar, { ...bar, name: undefined, right: 100 }] }],
    ticks: [{ x: 120, label: '1 ms' }] });
  assert.equal(text.match(/<svg/g).length, 1);
  assert.equal(text.match(/<\/svg>/g).length, 1);
  assert.doesNotMatch(text, /<script|NaN|undefined/);
  assert.equal(text.match(/<rect x=/g).length, 3);
  assert.match(text, /<rect x="100" y="20" width="0.5" height="20"/);
});

test('an arrow ends at the edge of the window, and says which way its end is', () => {
  assert.deepEqual(ends([10, 20], [90, 40], 100, 50), [[10, 20, undefined], [90, 40, undefined]]);
  assert.deepEqual(ends([-7, 20], [90, 40], 100, 50)[0], [0, 20, Math.PI]);
  assert.deepEqual(ends([10, 20], [900, 40], 100, 50)[1], [100, 40, 0]);
  assert.deepEqual(ends([10, 20], [90, 60], 100, 50)[1], [90, 50, Math.PI / 2]);
  assert.deepEqual(ends([10, -20], [90, 40], 100, 50)[0], [10, 0, -Math.PI / 2]);
  assert.ok(ends([-5, 20], [105, 20], 100, 50));
  for (const by of [[[-9, 2], [-1, 4]], [[101, 2], [120, 4]], [[3, -5], [4, -1]], [[3, 51], [4, 60]]]) assert.equal(ends(...by, 100, 50), undefined);
});

test('edges are asked hop by hop, each once', async () => {
  const key = (seqno) => ({ capture: 'c', buffer: 'b', segment: '1', ring: 0, seqno: String(seqno) });
  const all = [[1, 2], [2, 3], [3, 4]].map(([from, to]) => ({ cause: { key: key(from) }, effect: { key: key(to) }, relation: 'hash' }));
  const asked = [];
  const api = {
    edges: async ({ frames }) => {
      asked.push(frames.map(({ seqno }) => seqno).join());
      const is = (end) => frames.some(({ seqno }) => seqno === end.key.seqno);
      return { edges: all.filter((edge) => is(edge.cause) || is(edge.effect)), truncated: false };
    },
  };
  const web = new EdgeWeb(key(2));
  assert.equal(await web.grow(api), 2);
  assert.deepEqual([web.causes, web.effects], [[all[0]], [all[1]]]);
  assert.equal(await web.grow(api), 1);
  assert.equal(await web.grow(api), 0);
  assert.equal(await web.grow(api), 0);
  assert.deepEqual(asked, ['2', '1,3', '4']);
});

test('a pinned thread takes its rows along, and nothing is left without its head', () => {
  const rows = new Rows();
  const row = (id, parent) => ({ id, parent, label: id, unit: '', count: '1', lost: '0', from: null, to: null });
  const all = [row('process.0'), row('thread.0', 'process.0'), row('depth.0.0', 'thread.0'), row('thread.1', 'process.0'), row('depth.1.0', 'thread.1')];
  rows.set([{ rows: all, processes: [{ pid: 1, host: 'h', exe: 'e' }] }]);
  const ids = () => rows.shown.map(({ id }) => id).join(' ');
  const before = ids();
  rows.pin('thread.1');
  assert.equal(ids(), 'thread.1 depth.1.0 process.0 thread.0 depth.0.0');
  assert.equal(rows.pins, 2);
  assert.deepEqual(rows.extent(rows.byId.get('thread.1')), [0, 48]);
  assert.deepEqual(rows.inSight(24, 200).map(({ id }) => id).join(' '), 'thread.1 depth.1.0 process.0 depth.0.0');
  rows.fold('thread.1');
  assert.equal(ids(), 'thread.1 process.0 thread.0 depth.0.0');
  rows.fold('thread.1');
  rows.keepOnly(new Map([['thread.0', '5']]));
  assert.equal(ids(), 'thread.1 depth.1.0 process.0 thread.0 depth.0.0');
  rows.pin('thread.1');
  assert.equal(ids(), 'process.0 thread.0 depth.0.0');
  rows.keepOnly(undefined);
  assert.equal(ids(), before);
});

test('heads stay at the top as long as more of them lies below', () => {
  const rows = new Rows();
  const row = (id, parent) => ({ id, parent, label: id, unit: '', count: '1', lost: '0', from: null, to: null });
  const thread = (number) => [row(`thread.${number}`, 'process.0'), row(`depth.${number}.0`, `thread.${number}`), row(`depth.${number}.1`, `thread.${number}`)];
  rows.set([{ rows: [row('process.0'), ...thread(0), ...thread(1), row('process.1')], processes: [{ pid: 1, host: 'h', exe: 'e' }, { pid: 2, host: 'h', exe: 'e' }] }]);
  const seen = (scrolled) => rows.inSight(scrolled, 120).map(({ id }) => `${id}@${rows.stuck.get(rows.byId.get(id)) ?? rows.byId.get(id).top - scrolled}`).join(' ');
  assert.equal(seen(0), 'process.0@0 thread.0@24 depth.0.0@48 depth.0.1@72 thread.1@96');
  // The process is scrolled away, followed by its first thread.
  assert.equal(seen(24), 'process.0@0 thread.0@24 depth.0.1@48 thread.1@72 depth.1.0@96');
  assert.equal(seen(48), 'process.0@0 depth.0.1@24 thread.1@48 depth.1.0@72 depth.1.1@96');
  assert.equal(seen(72), 'process.0@0 thread.1@24 depth.1.0@48 depth.1.1@72 process.1@96');
  assert.equal(seen(96), 'process.0@0 thread.1@24 depth.1.1@48 process.1@72');
  // A head disappears with the last of its rows.
  assert.equal(seen(144), 'depth.1.1@0 process.1@24');
  // A row that is scrolled to has its heads above it.
  assert.equal(rows.heightAbove(rows.byId.get('depth.1.1'), 120), 48);
  assert.equal(rows.heightAbove(rows.byId.get('thread.1'), 120), 24);
  // There is no room for heads.
  assert.equal(rows.inSight(96, 40).map(({ id }) => id).join(' '), 'thread.1 depth.1.0');
  rows.fold('process.0');
  assert.equal(rows.inSight(0, 120).map(({ id }) => id).join(' '), 'process.0 process.1');
});

test('causes and effects have numbers, causes first', async () => {
  const key = (seqno) => ({ capture: 'c', buffer: 'b', segment: '1', ring: 0, seqno: String(seqno) });
  const edges = [[2, 5], [2, 6], [1, 2], [0, 2]].map(([from, to]) => ({ cause: { key: key(from) }, effect: { key: key(to) }, relation: 'hash' }));
  const web = new EdgeWeb(key(2));
  await web.grow({ edges: async () => ({ edges, truncated: false }) });
  assert.deepEqual(web.listed.map((edge) => web.farEnd(edge).key.seqno), ['1', '0', '5', '6']);
});
