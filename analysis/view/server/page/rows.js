// The rows: their tree, the shown ones, and their positions.

import { paired } from './pairs.js';
import { plain } from './text.js';

/** The number of levels whose heads stay at the top while their rows are scrolled: processes and threads. */
const STICKING = 2;
const HEIGHTS = { process: 24, spans: 40, thread: 24, states: 14, depth: 24, moments: 18, counter: 44 };

/** A tree of rows, some of which are folded. Only shown rows have a position. */
export class Rows {
  constructor() {
    this.all = [];
    this.byId = new Map();
    this.bySet = [];
    this.folded = new Set();
    /** The number of matches of each thread. Only these threads are shown. */
    this.only = undefined;
    /** The ids of pinned rows, which stay at the top, in the order of pinning. */
    this.pinned = new Set();
    this.shown = [];
    /** The number and the height of the pinned rows that are shown. */
    this.pins = 0;
    this.pinnedHeight = 0;
    /** The heads of visible rows that are scrolled away, with their positions at the top. */
    this.stuck = new Map();
    this.height = 0;
  }

  /** Takes `rows` and `processes` of `/v1/about` of each set. Folded rows stay folded. */
  set(sets) {
    const own = sets.map((about) => this.own(about));
    this.all = own.length === 1 ? own[0] : paired(...own);
    const before = this.byId;
    this.byId = new Map(this.all.map((row) => [row.id, row]));
    this.bySet = sets.map((_, set) => new Map(this.all.map((row) => [row.ids[set], row])));
    for (const row of this.all) {
      const parent = this.byId.get(row.parent);
      if (parent) parent.children += 1;
      row.level = parent ? parent.level + 1 : 1;
    }
    for (const row of this.all) {
      row.height = HEIGHTS[row.kind] ?? 24;
    }
    // Many threads are folded at first, so that all of them are visible.
    const threads = this.all.filter((row) => row.kind === 'thread');
    if (threads.length > 64) {
      for (const row of threads) if (!before.has(row.id)) this.folded.add(row.id);
    }
    this.place();
  }

  /** The rows of one set. */
  own({ rows, processes }) {
    const several = new Set(processes.map((process) => process.host)).size > 1;
    return rows.map((row) => {
      const [kind, first, second] = row.id.split('.');
      const own = { ...row, ids: [row.id], kind, first: Number(first), second: Number(second), children: 0, level: 1, label: plain(row.label) };
      own.text = this.text(own, processes, several);
      return own;
    });
  }

  /** The row with this id in a set. */
  named(set, id) {
    return this.bySet[set]?.get(id);
  }

  text(row, processes, several) {
    if (row.kind === 'process') {
      const process = processes[row.first];
      const name = plain(row.label).split('/').pop() || 'process';
      // The host comes first, because it differs.
      return `${several ? `${plain(process?.host)}: ` : ''}${name} (${process?.pid ?? '?'})`;
    }
    if (row.kind === 'thread') return threadText(row.label, processes[Number(row.parent?.split('.')[1])]);
    if (row.kind === 'depth') return row.second === 0 ? 'intervals' : `within, ${row.second} deep`;
    return row.label;
  }

  place() {
    this.shown = [];
    let top = 0;
    const isHidden = (row) => {
      for (let parent = this.byId.get(row.parent); parent; parent = this.byId.get(parent.parent)) {
        if (this.folded.has(parent.id)) return true;
      }
      return false;
    };
    const isLeftOut = this.leftOut();
    const pinned = this.withPinned(isHidden);
    const isElsewhere = new Set(pinned);
    const others = this.all.filter((row) => !isElsewhere.has(row) && !isHidden(row) && !isLeftOut(row));
    this.pins = pinned.length;
    this.pinnedHeight = pinned.reduce((sum, row) => sum + row.height, 0);
    for (const row of [...pinned, ...others]) {
      row.top = top;
      row.place = this.shown.length;
      this.shown.push(row);
      top += row.height;
    }
    this.height = top;
    this.measure();
  }

  /** Finds the bottom of the rows below each head. */
  measure() {
    const open = [];
    const close = (level, at) => { while (open.length > 0 && open.at(-1).level >= level) open.pop().end = at; };
    for (const row of this.shown) {
      close(row.place === this.pins ? 0 : row.level, row.top);
      open.push(row);
    }
    close(0, this.height);
  }

  /** The rows outside threads with matches. */
  leftOut() {
    const { only, byId } = this;
    if (!only) return () => false;
    const parents = new Set([...only.keys()].map((id) => byId.get(id)?.parent));
    return (row) => !only.has(row.id) && !only.has(row.parent) && !parents.has(row.id);
  }

  /** Shows only these threads. Shows all without an argument. */
  keepOnly(only) {
    this.only = only;
    this.place();
  }

  /** The pinned rows. The rows of a pinned thread are pinned, too. */
  withPinned(isHidden) {
    const found = new Set();
    for (const id of this.pinned) {
      const row = this.byId.get(id);
      if (!row) continue;
      found.add(row);
      if (row.kind === 'thread') for (const own of this.all) if (own.parent === id && !isHidden(own)) found.add(own);
    }
    return [...found];
  }

  isPinned(row) {
    return row.place < this.pins && this.isShown(row);
  }

  /** Pins a row to the top, or unpins it. */
  pin(id) {
    if (!this.pinned.delete(id)) this.pinned.add(id);
    this.place();
  }

  /** The visible rows: pinned rows, the heads below them, and the rows between the heads and the bottom. */
  inSight(scrolled, height) {
    const pinned = this.shown.slice(0, this.pins);
    this.stick(scrolled, height);
    const heads = [...this.stuck.keys()];
    const first = scrolled + heads.reduce((sum, row) => sum + row.height, this.pinnedHeight);
    const others = this.between(first, scrolled + height);
    if (pinned.length + heads.length === 0) return others;
    // Rows that the heads cover in part are left out.
    return [...pinned, ...heads, ...others.filter((row) => !this.isPinned(row) && !this.stuck.has(row) && row.top >= first)];
  }

  /** Keeps the process and the thread of the visible rows at the top, while there is room and more of their rows below. */
  stick(scrolled, height) {
    this.stuck.clear();
    let top = this.pinnedHeight;
    for (let level = 1; level <= STICKING; level++) {
      let head = this.at(scrolled + top);
      while (head && head.level > level) head = this.byId.get(head.parent);
      if (!head || head.level !== level || head.children === 0 || !this.isShown(head) || this.isPinned(head)) return;
      if (head.top >= scrolled + top || top + head.height > height / 2) return;
      const below = scrolled + top + head.height;
      const next = this.at(below);
      const whole = next && next.top < below ? this.shown[next.place + 1] : next;
      if (!whole || whole.top >= head.end) return;
      this.stuck.set(head, top);
      top += head.height;
    }
  }

  /** The height above a row that is scrolled to the top. */
  heightAbove(row, height) {
    let above = 0;
    for (let head = this.byId.get(row.parent); head; head = this.byId.get(head.parent)) {
      if (head.level <= STICKING && !this.isPinned(head)) above += head.height;
    }
    return this.pinnedHeight + (this.pinnedHeight + above > height / 2 ? 0 : above);
  }

  fold(id) {
    if (!this.folded.delete(id)) this.folded.add(id);
    this.place();
  }

  /** Unfolds the rows that contain a row. */
  reveal(id) {
    for (let row = this.byId.get(this.byId.get(id)?.parent); row; row = this.byId.get(row.parent)) this.folded.delete(row.id);
    this.place();
  }

  /** Whether a row has a position. */
  isShown(row) {
    return this.shown[row.place] === row;
  }

  /** A row, or its nearest ancestor with a position. */
  nearestShown(row) {
    let shown = row;
    while (shown && !this.isShown(shown)) shown = this.byId.get(shown.parent);
    return shown;
  }

  /** The top of a row, and the bottom of the last row within it. */
  extent(row) {
    let last = row.place;
    const end = this.isPinned(row) ? this.pins : this.shown.length;
    while (last + 1 < end && this.shown[last + 1].level > row.level) last += 1;
    return [row.top, this.shown[last].top + this.shown[last].height];
  }

  /** The rows between two heights, by binary search, because there may be very many. */
  between(top, bottom) {
    let low = 0;
    let high = this.shown.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.shown[middle].top + this.shown[middle].height <= top) low = middle + 1;
      else high = middle;
    }
    const rows = [];
    for (; low < this.shown.length && this.shown[low].top < bottom; low++) rows.push(this.shown[low]);
    return rows;
  }

  at(height) {
    return this.between(height, height + 1)[0];
  }
}

/** The label of a thread: its number, and its name if it differs from the name of its program, which the row above shows. */
function threadText(label, process) {
  if (label === '?') return 'frames of no thread';
  const [, number, name] = /^(\d+) \((.*)\)$/.exec(label) ?? [];
  // The kernel keeps 15 bytes of a name.
  const isOfProgram = name && plain(process?.exe).split('/').pop().slice(0, 15) === name;
  return `thread ${isOfProgram ? number : label}`;
}
