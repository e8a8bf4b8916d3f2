// The rows: which there are, which are shown, and where.

import { paired } from './pairs.js';
import { plain } from './text.js';

/** Rows of so many levels stay at the top while what lies in them is scrolled: processes and threads. */
const STICKING = 2;
const HEIGHTS = { process: 24, spans: 40, thread: 24, states: 14, depth: 24, moments: 18, counter: 44 };

/** A tree of rows, of which some are folded. Only what is shown has a place. */
export class Rows {
  constructor() {
    this.all = [];
    this.byId = new Map();
    this.bySet = [];
    this.folded = new Set();
    /** How often threads have what is looked for: only these are shown. */
    this.only = undefined;
    /** Rows that stay at the top, by their ids, in the order in which they were pinned. */
    this.pinned = new Set();
    this.shown = [];
    /** How many of those that are shown are pinned, and how tall they are. */
    this.pins = 0;
    this.pinnedHeight = 0;
    /** Heads of what is in sight that are scrolled away, and where they are instead. */
    this.stuck = new Map();
    this.height = 0;
  }

  /** Takes what `/v1/about` says of each set: `rows` and `processes`. What was folded stays so. */
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
    // Of many threads one wants to see which there are before what each did.
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

  /** The row that a set calls so. */
  named(set, id) {
    return this.bySet[set]?.get(id);
  }

  text(row, processes, several) {
    if (row.kind === 'process') {
      const process = processes[row.first];
      const name = plain(row.label).split('/').pop() || 'process';
      // The host first: that is what differs.
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

  /** How far down the rows below each head reach. */
  measure() {
    const open = [];
    const close = (level, at) => { while (open.length > 0 && open.at(-1).level >= level) open.pop().end = at; };
    for (const row of this.shown) {
      close(row.place === this.pins ? 0 : row.level, row.top);
      open.push(row);
    }
    close(0, this.height);
  }

  /** Which rows do not belong to threads that have what is looked for. */
  leftOut() {
    const { only, byId } = this;
    if (!only) return () => false;
    const parents = new Set([...only.keys()].map((id) => byId.get(id)?.parent));
    return (row) => !only.has(row.id) && !only.has(row.parent) && !parents.has(row.id);
  }

  /** Shows these threads and no others; without an argument, all. */
  keepOnly(only) {
    this.only = only;
    this.place();
  }

  /** The pinned rows; those of a thread come with it. */
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

  /** Pins a row to the top, or lets go of it. */
  pin(id) {
    if (!this.pinned.delete(id)) this.pinned.add(id);
    this.place();
  }

  /** What is in sight: the pinned rows, the heads of what lies below them, and what lies between those and the bottom. */
  inSight(scrolled, height) {
    const pinned = this.shown.slice(0, this.pins);
    this.stick(scrolled, height);
    const heads = [...this.stuck.keys()];
    const first = scrolled + heads.reduce((sum, row) => sum + row.height, this.pinnedHeight);
    const others = this.between(first, scrolled + height);
    if (pinned.length + heads.length === 0) return others;
    // What would lie below them in part is left out.
    return [...pinned, ...heads, ...others.filter((row) => !this.isPinned(row) && !this.stuck.has(row) && row.top >= first)];
  }

  /** The process and the thread of what is in sight stay at the top, as long as there is room and more of them below. */
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

  /** How much is above a row, if it is scrolled to the top. */
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

  /** Makes a row visible: unfolds what it lies in. */
  reveal(id) {
    for (let row = this.byId.get(this.byId.get(id)?.parent); row; row = this.byId.get(row.parent)) this.folded.delete(row.id);
    this.place();
  }

  /** Whether a row has a place. */
  isShown(row) {
    return this.shown[row.place] === row;
  }

  /** A row, or the nearest around it that has a place. */
  nearestShown(row) {
    let shown = row;
    while (shown && !this.isShown(shown)) shown = this.byId.get(shown.parent);
    return shown;
  }

  /** From the top of a row to the bottom of the last one within it. */
  extent(row) {
    let last = row.place;
    const end = this.isPinned(row) ? this.pins : this.shown.length;
    while (last + 1 < end && this.shown[last + 1].level > row.level) last += 1;
    return [row.top, this.shown[last].top + this.shown[last].height];
  }

  /** The rows between two heights, by halves: there may be very many. */
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

/** A thread, by its number and its name, which often is the one of its program: that stands above it. */
function threadText(label, process) {
  if (label === '?') return 'frames of no thread';
  const [, number, name] = /^(\d+) \((.*)\)$/.exec(label) ?? [];
  // The kernel keeps 15 bytes of a name.
  const isOfProgram = name && plain(process?.exe).split('/').pop().slice(0, 15) === name;
  return `thread ${isOfProgram ? number : label}`;
}
