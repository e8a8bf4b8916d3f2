// The visible range of time, as offsets in nanoseconds from the first frame.

const LEAST = 10;

/** Offsets are numbers, exact to a nanosecond up to 104 days. Times are BigInts and exact. */
export class Span {
  constructor() {
    this.origin = 0n;
    this.whole = { from: 0, to: 1 };
    this.from = 0;
    this.to = 1;
    this.before = [];
  }

  /** Sets the whole range. With `keep`, the visible range stays. */
  setWhole(from, to, keep) {
    const first = BigInt(from ?? 0);
    const shift = Number(this.origin - first);
    const isNew = this.whole.to === 1;
    this.origin = first;
    const length = Math.max(Number(BigInt(to ?? from ?? 0) - first) + 1, 1);
    this.whole = { from: 0, to: length };
    if (keep && !isNew) [this.from, this.to] = [this.from + shift, this.to + shift];
    else this.show(0, length);
  }

  get length() {
    return this.to - this.from;
  }

  /** The time at an offset, as the decimal string of requests. */
  time(offset) {
    return String(this.origin + BigInt(Math.round(offset)));
  }

  offset(time) {
    return Number(BigInt(time) - this.origin);
  }

  /** Shows another range, within the whole range and a small margin. */
  show(from, to, remember = false) {
    if (!(to > from)) return;
    const room = this.whole.to * 0.05 + LEAST;
    const length = Math.min(Math.max(to - from, LEAST), this.whole.to + 2 * room);
    let first = (from + to) / 2 - length / 2;
    first = Math.max(-room, Math.min(first, this.whole.to + room - length));
    if (remember) this.remember();
    [this.from, this.to] = [first, first + length];
  }

  /** The range that answers are about: the marked one, else the visible one. */
  chosen(range) {
    const [from, to] = range ?? [this.from, this.to];
    return { from, to: Math.max(to, from + 1), isMarked: range !== undefined };
  }

  remember() {
    const last = this.before[this.before.length - 1];
    if (!last || last[0] !== this.from || last[1] !== this.to) this.before.push([this.from, this.to]);
    if (this.before.length > 100) this.before.shift();
  }

  back() {
    const last = this.before.pop();
    if (last) [this.from, this.to] = last;
    return Boolean(last);
  }

  zoom(factor, at = (this.from + this.to) / 2) {
    this.show(at - (at - this.from) * factor, at + (this.to - at) * factor);
  }

  move(part) {
    const by = this.length * part;
    this.show(this.from + by, this.to + by);
  }
}
