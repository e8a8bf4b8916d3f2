'use strict';
(() => {
const $ = id => document.getElementById(id);
const ready = () => { document.body.dataset.ready = '1'; };
const make = (tag, text, name) => {
  const it = document.createElement(tag);
  if (text !== undefined) it.textContent = text;
  if (name) it.className = name;
  return it;
};

/* Numbers as people read them; the page's tables have them from the same rules. */
const grouped = n => Math.round(n).toString().replace(/\B(?=(\d{3})+$)/g, ',');
const span = ns => {
  const size = Math.abs(ns);
  for (const [each, unit] of [[1e9, 's'], [1e6, 'ms'], [1e3, 'µs']]) {
    if (size < each * 0.9995) continue;
    const v = ns / each, a = Math.abs(v);
    return (a >= 999.5 ? grouped(v) : v.toFixed(a >= 99.95 ? 0 : a >= 9.995 ? 1 : 2)) + ' ' + unit;
  }
  return (Number.isInteger(ns) ? ns : ns.toFixed(1)) + ' ns';
};
/* A moment, as fine as `step` asks. */
const moment = (ns, step) => {
  const digits = Math.max(0, Math.min(9, Math.ceil(-Math.log10(Math.max(step, 1) / 1e9))));
  return (ns / 1e9).toFixed(digits) + ' s';
};
const round = least => {
  const ten = Math.pow(10, Math.floor(Math.log10(least)));
  return [1, 2, 5, 10].find(it => it * ten >= least * 0.999999) * ten;
};

/* What hovers. */
const tip = make('div');
tip.id = 'tip';
tip.hidden = true;
document.body.append(tip);
const hover = (event, text) => {
  if (!text) { tip.hidden = true; return; }
  tip.textContent = text;
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  const left = event.clientX + 14 + box.width > innerWidth ? event.clientX - box.width - 14 : event.clientX + 14;
  const top = event.clientY + 14 + box.height > innerHeight ? event.clientY - box.height - 10 : event.clientY + 14;
  tip.style.left = Math.max(4, left) + 'px';
  tip.style.top = Math.max(4, top) + 'px';
};

/* Charts over time: what hovers is the row of the table below. */
for (const chart of document.querySelectorAll('[data-chart=time]')) {
  const figure = chart.closest('figure');
  const names = [...figure.querySelectorAll('thead th')].map(it => it.textContent);
  const rows = new Map([...figure.querySelectorAll('tr[data-i]')].map(it => [Number(it.dataset.i), it]));
  const mark = document.createElementNS(chart.namespaceURI, 'line');
  mark.setAttribute('class', 'a');
  mark.setAttribute('y1', 0);
  mark.setAttribute('y2', Number(chart.getAttribute('height')) - 20);
  chart.addEventListener('pointermove', event => {
    const box = chart.getBoundingClientRect();
    const slice = Math.floor((event.clientX - box.left) / box.width * Number(chart.dataset.slices));
    const row = rows.get(slice);
    if (!row) { mark.remove(); hover(event); return; }
    const x = (slice + 0.5) / Number(chart.dataset.slices) * 100 + '%';
    mark.setAttribute('x1', x);
    mark.setAttribute('x2', x);
    chart.append(mark);
    hover(event, [...row.cells].map((it, at) => names[at] + '  ' + it.textContent).join('\n'));
  });
  chart.addEventListener('pointerleave', event => { mark.remove(); hover(event); });
}

/* On paper everything is open that a click would open: nothing but tables is folded. */

const data = JSON.parse($('data').textContent);
if (!$('stage') || !data.lanes.length) { ready(); return; }
$('stage').hidden = false;
const reader = (text, type) => {
  if (!text) return null;
  const raw = atob(text), bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
  return new type(bytes.buffer);
};
const length = data.length, width = data.width;
const lanes = data.lanes.map((it, at) => ({
  at,
  spans: !!it.spans,
  name: it.spans ? 'spans of ' + it.spans : (it.name || 'thread') + ' ' + (it.tid || '?'),
  process: 'pid ' + it.pid + (it.host ? ' on ' + it.host : ''),
  look: reader(it.look, Uint16Array),
  count: reader(it.count, Uint32Array),
  longest: reader(it.longest, Float32Array),
  ticks: reader(it.ticks, Uint32Array),
  states: reader(it.states, Uint8Array),
  items: [], instants: [], depth: 1, gaps: [],
}));
const several = new Set(data.lanes.map(it => it.host + ' ' + it.pid)).size > 1;
for (const [lane, from, to, count, cause] of data.gaps)
  for (const it of lane === null ? lanes : [lanes[lane]]) it.gaps.push({ from, to, count, cause });

/* Single frames: slices and instants of their lanes. */
const kinds = data.frames ? data.frames.kinds : [];
const places = data.frames ? data.frames.places : [];
kinds.forEach(kind => {
  kind.lanes.forEach((at, row) => {
    if (at === null) return;
    const lane = lanes[at];
    let taken = false;
    for (const [name, start, long] of kind.intervals) {
      if (start === null || long === null) continue;
      const from = kind.fields[start].values[row], dur = kind.fields[long].values[row];
      if (typeof from !== 'number' || typeof dur !== 'number' || dur < 0) continue;
      lane.items.push({ from, to: from + dur, name, kind, row, depth: 0 });
      taken = true;
    }
    const time = kind.times[row];
    if (!taken && time !== null) lane.instants.push({ from: time, to: time, kind, row });
  });
});
for (const lane of lanes) {
  lane.items.sort((a, b) => a.from - b.from || b.to - a.to);
  lane.instants.sort((a, b) => a.from - b.from);
  const open = [];
  let reach = -Infinity;
  for (const it of lane.items) {
    while (open.length && open[open.length - 1] <= it.from) open.pop();
    it.depth = Math.min(open.length, 5);
    open.push(it.to);
    lane.depth = Math.max(lane.depth, it.depth + 1);
    /* How far anything reaches that began up to here: where a search must begin. */
    reach = Math.max(reach, it.to);
    it.reach = reach;
  }
}

const ROW = 15, HEAD = 20, FOOT = 9, AXIS = 24;
let y = AXIS;
for (const lane of lanes) {
  lane.top = y;
  lane.rows = lane.depth * ROW;
  lane.height = HEAD + lane.rows + FOOT;
  y += lane.height;
}
const high = y + 6;

let colours, stateColours, quiet;
const readColours = () => {
  const style = getComputedStyle(document.documentElement);
  const of = name => style.getPropertyValue(name).trim();
  stateColours = Array.from({ length: 4 }, (_, n) => of('--s' + n));
  colours = Array.from({ length: 9 }, (_, n) => of('--c' + n));
  quiet = { ink: of('--ink'), soft: of('--soft'), line: of('--line'), grid: of('--grid'), card: of('--card'), bad: of('--bad'), cx: of('--cx'), link: of('--link') };
};
const colour = name => colours[Math.min(name, 8)];
const STATES = ['running', 'runnable', 'blocked', 'unknown'];

const canvas = $('canvas'), strip = $('strip'), board = $('lanes');
const view = { from: 0, to: length };
let picked = null, marked = null;
const least = 50;
const show = (from, to) => {
  let wide = Math.max(least, Math.min(to - from, length));
  const middle = (from + to) / 2;
  from = Math.max(0, Math.min(middle - wide / 2, length - wide));
  view.from = from;
  view.to = from + wide;
  ask();
};
let asked = false;
const ask = () => {
  if (asked) return;
  asked = true;
  requestAnimationFrame(() => { asked = false; draw(); });
};
const zoom = (factor, at) => {
  const wide = view.to - view.from;
  const middle = at === undefined ? (view.from + view.to) / 2 : at;
  const next = Math.max(least, Math.min(wide * factor, length));
  const from = middle - (middle - view.from) * next / wide;
  show(from, from + next);
};
const move = share => show(view.from + (view.to - view.from) * share, view.to + (view.to - view.from) * share);

const fit = (it, tall) => {
  const ratio = window.devicePixelRatio || 1, wide = it.clientWidth;
  if (it.width !== Math.round(wide * ratio) || it.height !== Math.round(tall * ratio)) {
    it.width = Math.round(wide * ratio);
    it.height = Math.round(tall * ratio);
    it.style.height = tall + 'px';
  }
  const pen = it.getContext('2d');
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, wide, tall);
  pen.font = '11.5px system-ui, sans-serif';
  pen.textBaseline = 'alphabetic';
  return [pen, wide];
};
const hatch = (pen, x, y, wide, tall) => {
  pen.save();
  pen.beginPath();
  pen.rect(x, y, wide, tall);
  pen.clip();
  pen.globalAlpha = 0.13;
  pen.fillStyle = quiet.bad;
  pen.fillRect(x, y, wide, tall);
  pen.globalAlpha = 0.8;
  pen.strokeStyle = quiet.bad;
  pen.lineWidth = 1;
  pen.beginPath();
  const first = Math.floor((x - tall) / 6) * 6;
  for (let at = first; at < x + wide; at += 6) { pen.moveTo(at, y + tall); pen.lineTo(at + tall, y); }
  pen.stroke();
  pen.restore();
};
/* The first of `all` that may reach `time`. */
const search = (all, time, key) => {
  let low = 0, top = all.length;
  while (low < top) { const mid = (low + top) >> 1; if (all[mid][key] < time) low = mid + 1; else top = mid; }
  return low;
};
/* Whether single frames of these places are told: parts of what is shown. */
const told = wide => {
  const scale = wide / (view.to - view.from);
  if (data.all) return [[view.from, view.to]];
  return places.filter(([from, to]) => to > view.from && from < view.to && (to - from) * scale >= 40)
    .map(([from, to]) => [Math.max(from, view.from), Math.min(to, view.to)]);
};

const overview = (pen, lane, wide, from, to) => {
  const scale = wide / (view.to - view.from);
  const first = Math.max(0, Math.floor(from / width)), last = Math.floor(to / width);
  const top = lane.top + HEAD, tall = lane.rows;
  /* Several buckets a pixel: the fullest of them. */
  const each = Math.max(1, Math.floor(1 / (width * scale)));
  if (lane.look) for (let at = first; at <= last && at < lane.look.length; at += each) {
    let fill = 0, name = 0;
    for (let k = at; k < at + each && k < lane.look.length; k++) {
      if (lane.look[k] >> 8 > fill) { fill = lane.look[k] >> 8; name = lane.look[k] & 255; }
    }
    if (!name) continue;
    const x0 = Math.max((at * width - view.from) * scale, (from - view.from) * scale);
    const x1 = Math.min(((at + each) * width - view.from) * scale, (to - view.from) * scale);
    const h = Math.max(2, tall * fill / 255);
    pen.fillStyle = colour(name - 1);
    pen.globalAlpha = 0.85;
    pen.fillRect(x0, top + tall - h, Math.max(0.75, x1 - x0), h);
  }
  pen.globalAlpha = 0.8;
  pen.fillStyle = quiet.cx;
  if (lane.ticks) for (let at = first; at <= last && at < lane.ticks.length; at++) {
    if (lane.ticks[at]) pen.fillRect((at * width - view.from) * scale, top + tall + 1, Math.max(1, width * scale), 5);
  }
  pen.globalAlpha = 1;
};
/* What the kernel did with the thread: the state that took most of each pixel's time. */
const states = (pen, lane, wide) => {
  if (!lane.states) return;
  const scale = wide / (view.to - view.from), each = Math.max(1, Math.floor(1 / (width * scale)));
  const first = Math.max(0, Math.floor(view.from / width)), last = Math.floor(view.to / width);
  for (let at = first; at <= last && at < lane.states.length; at += each) {
    const counts = [0, 0, 0, 0, 0];
    for (let k = at; k < at + each && k < lane.states.length; k++) counts[lane.states[k]]++;
    counts[0] = 0;
    const most = Math.max(...counts);
    if (!most) continue;
    pen.fillStyle = stateColours[counts.indexOf(most) - 1];
    pen.fillRect((at * width - view.from) * scale, lane.top + 1, Math.max(1, each * width * scale), 4);
  }
};
const exact = (pen, lane, wide, from, to) => {
  const scale = wide / (view.to - view.from), top = lane.top + HEAD;
  const done = new Array(8).fill(-1);
  for (let at = search(lane.items, from, 'reach'); at < lane.items.length; at++) {
    const it = lane.items[at];
    if (it.from > to) break;
    if (it.to < from) continue;
    const x0 = Math.max(-2, (it.from - view.from) * scale), x1 = Math.min(wide + 2, (it.to - view.from) * scale);
    /* Pixels that are painted already are not painted again. */
    if (x1 <= done[it.depth] && it !== picked) continue;
    const w = Math.max(1, x1 - x0);
    done[it.depth] = Math.max(done[it.depth], Math.floor(x0 + w));
    pen.fillStyle = colour(it.name);
    pen.globalAlpha = picked && picked !== it ? 0.6 : 0.9;
    pen.fillRect(x0, top + it.depth * ROW, w > 3 ? w - 0.5 : w, ROW - 2);
    if (w > 44) {
      pen.globalAlpha = 1;
      pen.fillStyle = quiet.card;
      pen.save();
      pen.beginPath();
      pen.rect(x0, top + it.depth * ROW, w - 4, ROW);
      pen.clip();
      pen.fillText(data.names[it.name] + '  ' + span(it.to - it.from), Math.max(x0, 0) + 4, top + it.depth * ROW + 10.5);
      pen.restore();
    }
  }
  pen.globalAlpha = 0.9;
  pen.fillStyle = quiet.cx;
  for (let at = search(lane.instants, from, 'from'); at < lane.instants.length; at++) {
    const it = lane.instants[at];
    if (it.from > to) break;
    pen.fillRect((it.from - view.from) * scale - 0.5, top + lane.rows + 1, 1.5, 6);
  }
  pen.globalAlpha = 1;
};

const draw = () => {
  const [pen, wide] = fit(canvas, high);
  const range = view.to - view.from, scale = wide / range;
  const step = round(range / Math.max(2, Math.floor(wide / 130)));
  pen.fillStyle = quiet.soft;
  pen.strokeStyle = quiet.grid;
  pen.beginPath();
  for (let at = Math.ceil(view.from / step) * step; at <= view.to; at += step) {
    const x = Math.round((at - view.from) * scale) + 0.5;
    pen.moveTo(x, AXIS - 4);
    pen.lineTo(x, high);
    if (x < wide - 50) pen.fillText(moment(at, step), x + 4, AXIS - 8);
  }
  pen.stroke();
  const single = told(wide);
  for (const lane of lanes) {
    pen.strokeStyle = quiet.line;
    pen.beginPath();
    pen.moveTo(0, lane.top + 0.5);
    pen.lineTo(wide, lane.top + 0.5);
    pen.stroke();
    if (lane.spans) overview(pen, lane, wide, view.from, view.to);
    else if (!data.all) {
      /* What is told frame by frame is drawn so, the rest by buckets. */
      let from = view.from;
      for (const place of single) {
        overview(pen, lane, wide, from, place[0]);
        from = place[1];
      }
      overview(pen, lane, wide, from, view.to);
      for (const [from, to] of single) {
        pen.fillStyle = quiet.link;
        pen.globalAlpha = 0.05;
        pen.fillRect((from - view.from) * scale, lane.top, (to - from) * scale, lane.height);
        pen.globalAlpha = 1;
      }
    }
    states(pen, lane, wide);
    for (const [from, to] of single) exact(pen, lane, wide, from, to);
    for (const gap of lane.gaps) {
      if (gap.to < view.from || gap.from > view.to) continue;
      const x0 = Math.max(0, (gap.from - view.from) * scale), x1 = Math.min(wide, (gap.to - view.from) * scale);
      hatch(pen, x0, lane.top + 1, Math.max(3, x1 - x0), lane.height - 1);
    }
    pen.fillStyle = quiet.ink;
    const name = lane.name + (several ? ' · ' + lane.process : '');
    pen.lineWidth = 3;
    pen.lineJoin = 'round';
    pen.strokeStyle = quiet.card;
    pen.strokeText(name, 8, lane.top + 14);
    pen.lineWidth = 1;
    pen.fillText(name, 8, lane.top + 14);
  }
  pen.fillStyle = quiet.ink;
  for (const [at, says] of data.marks) {
    if (at < view.from || at > view.to) continue;
    const x = (at - view.from) * scale;
    pen.fillRect(x - 0.75, AXIS - 6, 1.5, high);
    pen.beginPath();
    pen.moveTo(x - 5, AXIS - 6);
    pen.lineTo(x + 5, AXIS - 6);
    pen.lineTo(x, AXIS + 2);
    pen.fill();
  }
  const mark = marked || picked;
  if (mark) {
    const lane = lanes[mark.lane];
    if (lane) {
      const x0 = (mark.from - view.from) * scale, x1 = (mark.to - view.from) * scale;
      pen.strokeStyle = quiet.ink;
      pen.lineWidth = 1.5;
      pen.strokeRect(x0 - 1.5, lane.top + HEAD + (mark.depth || 0) * ROW - 1.5, Math.max(3, x1 - x0) + 2, ROW + 1);
      pen.lineWidth = 1;
    }
  }
  const where = moment(view.from, range / 100) + ' – ' + moment(view.to, range / 100) + ', ' + span(range) + ' of ' + span(length);
  const blind = !data.all && !single.length && width * scale > 40;
  below();
  $('where').textContent = where + (blind ? ' — finer than this page holds here: ppt report --from … --to …' : '');
  drawStrip();
};
/* How many rows are further down. */
const below = () => {
  const seen = board.scrollTop + board.clientHeight;
  const more = lanes.filter(it => it.top + HEAD > seen).length;
  $('below').hidden = !more;
  $('below').firstChild.textContent = '↓ ' + grouped(more) + (more === 1 ? ' more row' : ' more rows');
};
board.addEventListener('scroll', () => below());
const total = (() => {
  const count = Math.ceil(length / width) + 1, all = new Float64Array(count);
  for (const lane of lanes) if (!lane.spans) for (const of of [lane.count, lane.ticks])
    if (of) for (let at = 0; at < of.length && at < count; at++) all[at] += of[at];
  return all;
})();
const drawStrip = () => {
  const [pen, wide] = fit(strip, 52);
  const sums = new Float64Array(wide);
  /* A bucket belongs to each pixel for as long as both last: none gets two buckets and its neighbour one. */
  const scale = wide / length;
  for (let at = 0; at < total.length; at++) if (total[at]) {
    const x0 = Math.min(at * width * scale, wide - 0.001), x1 = Math.max(Math.min((at + 1) * width * scale, wide), x0 + 0.001);
    for (let x = Math.floor(x0); x < x1 && x < wide; x++) {
      sums[x] += total[at] * (Math.min(x + 1, x1) - Math.max(x, x0)) / (x1 - x0);
    }
  }
  const most = sums.reduce((a, b) => Math.max(a, b), 0) || 1;
  pen.fillStyle = quiet.cx;
  pen.globalAlpha = 0.75;
  for (let x = 0; x < wide; x++) if (sums[x]) {
    const h = Math.max(1.5, 40 * sums[x] / most);
    pen.fillRect(x, 50 - h, 1, h);
  }
  pen.globalAlpha = 1;
  for (const lane of lanes) for (const gap of lane.gaps) {
    const x = gap.from / length * wide;
    pen.fillStyle = quiet.bad;
    pen.fillRect(x, 46, Math.max(2, (gap.to - gap.from) / length * wide), 5);
    pen.globalAlpha = 1;
  }
  pen.fillStyle = quiet.ink;
  for (const [at] of data.marks) pen.fillRect(at / length * wide - 0.75, 0, 2, 52);
  if (!data.all) for (const [from, to] of places) {
    pen.fillStyle = quiet.link;
    pen.fillRect(from / length * wide, 0, Math.max(2, (to - from) / length * wide), 4);
  }
  const x0 = view.from / length * wide, x1 = view.to / length * wide;
  if (x1 - x0 < wide - 1) {
    pen.fillStyle = quiet.ink;
    pen.globalAlpha = 0.13;
    pen.fillRect(0, 0, x0, 52);
    pen.fillRect(x1, 0, wide - x1, 52);
    pen.globalAlpha = 1;
    pen.strokeStyle = quiet.ink;
    pen.lineWidth = 1.5;
    pen.strokeRect(Math.min(x0, wide - 3) + 0.75, 0.75, Math.max(3, x1 - x0) - 1.5, 50.5);
    pen.lineWidth = 1;
  }
};

/* What is under the pointer. */
const under = event => {
  const box = canvas.getBoundingClientRect();
  const x = event.clientX - box.left, y = event.clientY - box.top;
  const time = view.from + x / box.width * (view.to - view.from);
  const slack = 3 * (view.to - view.from) / box.width;
  const lane = lanes.find(it => y >= it.top && y < it.top + it.height);
  if (!lane) return { time };
  const depth = Math.floor((y - lane.top - HEAD) / ROW);
  const within = told(box.width).some(([from, to]) => time >= from - slack && time <= to + slack);
  let item = null;
  if (within) {
    for (let at = search(lane.items, time - slack, 'reach'); at < lane.items.length; at++) {
      const it = lane.items[at];
      if (it.from > time + slack) break;
      if (it.to < time - slack || it.depth !== Math.min(Math.max(depth, 0), lane.depth - 1)) continue;
      if (!item || it.to - it.from < item.to - item.from || it.from <= time && time <= it.to) item = it;
    }
    if (!item || depth >= lane.depth) {
      const at = search(lane.instants, time - slack, 'from'), it = lane.instants[at];
      if (it && it.from <= time + slack) item = it;
    }
  }
  const gap = lane.gaps.find(it => time >= it.from - slack && time <= it.to + slack);
  const mark = data.marks.find(([at]) => Math.abs(time - at) <= slack);
  return { time, lane, item, gap, within, mark };
};
const told_of = ({ time, lane, item, gap, within, mark }) => {
  if (!lane) return '';
  const lines = [];
  if (item) {
    const kind = item.kind;
    lines.push(item.name === undefined ? kind.label : data.names[item.name] + '  ' + span(item.to - item.from));
    lines.push('at ' + moment(item.from, 1000));
    for (const field of kind.fields) {
      if (lines.length > 7 || ['start', 'end', 'at'].includes(field.role) || field.time) continue;
      if (['capture', 'segment', 'ring', 'seqno'].includes(field.name)) continue;
      lines.push(field.name + '  ' + shown(field, item.row));
    }
  } else if (!within || lane.spans) {
    const at = Math.floor(time / width);
    const look = lane.look ? lane.look[at] : 0;
    if (look) {
      const share = (look >> 8) / 255 * 100;
      lines.push('mostly ' + data.names[(look & 255) - 1] + ', ' + share.toFixed(share < 10 ? 1 : 0) + ' % of ' + span(width));
      if (lane.count[at]) lines.push(grouped(lane.count[at]) + ' began, the longest ' + span(lane.longest[at]));
    }
    if (lane.ticks && lane.ticks[at]) lines.push(grouped(lane.ticks[at]) + ' instants');
    if (lines.length) lines.push('at ' + moment(time, width));
  }
  const state = lane.states ? lane.states[Math.floor(time / width)] : 0;
  if (state) lines.push('by the kernel mostly ' + STATES[state - 1] + ', for ' + span(width));
  if (mark) lines.push('trigger: ' + mark[1]);
  if (gap) lines.push(grouped(gap.count) + ' frames are missing here: ' + gap.cause);
  if (lines.length) lines.push(lane.name + ' · ' + lane.process);
  return lines.join('\n');
};
const shown = (field, row) => {
  const value = field.values[row];
  if (value === null || value === undefined) return '–';
  if (field.words) return field.words[value];
  if (field.time) return moment(value, 1);
  if (field.unit === 'ns' && typeof value === 'number') return span(value);
  return value + (field.unit ? ' ' + field.unit : '');
};
const pick = (lane, item) => {
  const box = $('picked');
  picked = item ? Object.assign(item, { lane: lane.at }) : null;
  marked = null;
  box.hidden = !item;
  box.replaceChildren();
  if (item) {
    box.append(make('h3', item.kind.label + ' · ' + lane.name + ' · ' + lane.process));
    const list = make('dl');
    for (const field of item.kind.fields) {
      const pair = make('div');
      pair.append(make('dt', field.name), make('dd', shown(field, item.row)));
      list.append(pair);
    }
    box.append(list);
  }
  ask();
};

/* Pointers: one drags, two pinch; the strip selects. */
const pointers = new Map();
let dragged = false, pinch = null;
const timeAt = (it, x) => { const box = it.getBoundingClientRect(); return (x - box.left) / box.width; };
canvas.addEventListener('pointerdown', event => {
  pointers.set(event.pointerId, { x: event.clientX, from: view.from });
  dragged = false;
  if (event.pointerType !== 'touch') canvas.setPointerCapture(event.pointerId);
});
canvas.addEventListener('pointermove', event => {
  const start = pointers.get(event.pointerId);
  if (!start) { hover(event, told_of(under(event))); return; }
  if (pointers.size === 2) {
    start.now = event.clientX;
    const [a, b] = [...pointers.values()].map(it => it.now === undefined ? it.x : it.now);
    const gap = Math.abs(a - b) || 1;
    if (pinch) zoom(pinch / gap, view.from + timeAt(canvas, (a + b) / 2) * (view.to - view.from));
    pinch = gap;
    dragged = true;
    return;
  }
  const by = event.clientX - start.x;
  if (Math.abs(by) > 3) { dragged = true; board.classList.add('moving'); hover(event); }
  if (dragged) {
    const wide = view.to - view.from;
    show(start.from - by / canvas.clientWidth * wide, start.from - by / canvas.clientWidth * wide + wide);
  }
});
const up = event => {
  pointers.delete(event.pointerId);
  pinch = null;
  board.classList.remove('moving');
};
canvas.addEventListener('pointerup', event => {
  const was = pointers.has(event.pointerId);
  up(event);
  if (was && !dragged) { const it = under(event); pick(it.lane, it.item); board.focus({ preventScroll: true }); }
});
canvas.addEventListener('pointercancel', up);
canvas.addEventListener('pointerleave', event => hover(event));
canvas.addEventListener('dblclick', event => zoom(0.25, under(event).time));
board.addEventListener('wheel', event => {
  const out = event.deltaY > 0, whole = view.to - view.from >= length;
  if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
    event.preventDefault();
    move((event.deltaX || event.deltaY) / 1000);
    return;
  }
  /* The whole is shown: whoever scrolls on reads on. */
  if (out && whole) return;
  event.preventDefault();
  zoom(Math.exp(Math.max(-1, Math.min(1, event.deltaY / 300))), under(event).time);
  hover(event);
}, { passive: false });
let brush = null;
strip.addEventListener('pointerdown', event => {
  const at = timeAt(strip, event.clientX) * length;
  const inside = at >= view.from && at <= view.to && view.to - view.from < length * 0.98;
  brush = inside ? { by: at - view.from } : { from: at };
  strip.setPointerCapture(event.pointerId);
});
strip.addEventListener('pointermove', event => {
  if (!brush) return;
  const at = timeAt(strip, event.clientX) * length, wide = view.to - view.from;
  if (brush.by !== undefined) { show(at - brush.by, at - brush.by + wide); return; }
  if (Math.abs(at - brush.from) > length / 300) {
    brush.used = true;
    show(Math.max(0, Math.min(at, brush.from)), Math.min(length, Math.max(at, brush.from)));
  }
});
strip.addEventListener('pointerup', () => {
  if (brush && brush.from !== undefined && !brush.used) {
    const wide = Math.min(view.to - view.from, length / 10);
    show(brush.from - wide / 2, brush.from + wide / 2);
  }
  brush = null;
});
strip.addEventListener('pointercancel', () => { brush = null; });
const does = {
  in: () => zoom(0.5), out: () => zoom(2), left: () => move(-0.25), right: () => move(0.25),
  all: () => { show(0, length); pick(); },
};
const keys = {
  w: 'in', s: 'out', a: 'left', d: 'right', 0: 'all', '+': 'in', '-': 'out',
  ArrowLeft: 'left', ArrowRight: 'right', Escape: 'all',
};
board.addEventListener('keydown', event => {
  const what = keys[event.key.length === 1 ? event.key.toLowerCase() : event.key];
  if (!what || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  does[what]();
});
for (const button of document.querySelectorAll('[data-do]')) button.addEventListener('click', () => does[button.dataset.do]());

/* Ways into the timeline. */
document.addEventListener('click', event => {
  const link = event.target.closest ? event.target.closest('a.go') : null;
  if (!link) return;
  const from = Number(link.dataset.at), long = Number(link.dataset.for), lane = lanes[Number(link.dataset.lane)];
  const around = Math.max(long * 1.5, least);
  const place = places.find(it => it[0] <= from + long && it[1] >= from);
  const wide = data.all || place ? around : Math.max(around, width * 20);
  show(from + long / 2 - wide, from + long / 2 + wide);
  const item = lane && lane.items.find(it => it.from === from && Math.abs(it.to - it.from - long) < 1);
  if (item) pick(lane, item);
  else { picked = null; marked = lane ? { lane: lane.at, from, to: from + long } : null; }
  if (lane) board.scrollTop = Math.max(0, lane.top - 120);
  board.focus({ preventScroll: true });
});

readColours();
draw();
const again = () => { readColours(); draw(); };
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', again);
/* Also where a bar to scroll takes some of the width. */
new ResizeObserver(ask).observe(canvas);
addEventListener('beforeprint', again);
ready();
})();
