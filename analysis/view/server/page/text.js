// Formats texts, numbers and times for people. Texts of programs stay plain text.

const UNSAFE = /[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

/** A text of a program without control characters, at most `most` long. */
export function plain(text, most = 200) {
  const clean = String(text ?? '').replace(UNSAFE, '\ufffd');
  const letters = Array.from(clean);
  return letters.length > most ? letters.slice(0, most - 1).join('') + '…' : clean;
}

/** 1234567 as 1,234,567. Takes numbers, BigInts and decimal strings. */
export function grouped(number) {
  const text = typeof number === 'number' ? String(Math.round(number)) : String(number);
  return text.replace(/\B(?=(\d{3})+(?!\d))/g, ',');
}

/** A number with its noun: `1 frame`, `2,000 frames`. */
export function counted(count, one, several) {
  return `${grouped(count)} ${String(count) === '1' ? one : several}`;
}

const UNITS = [[1e9, 's'], [1e6, 'ms'], [1e3, 'µs'], [1, 'ns']];

/** Nanoseconds as 12.3 ms, and from a minute on as 1 min 5 s. */
export function duration(ns) {
  const value = Number(ns);
  if (!Number.isFinite(value)) return '';
  const size = Math.abs(value);
  if (size >= 3600e9) return `${Math.floor(value / 3600e9)} h ${Math.round((value % 3600e9) / 60e9)} min`;
  if (size >= 60e9) return `${Math.floor(value / 60e9)} min ${Math.round((value % 60e9) / 1e9)} s`;
  const [unit, name] = UNITS.find(([unit]) => size >= unit) ?? UNITS[3];
  const scaled = value / unit;
  const digits = name === 'ns' ? 0 : Math.max(0, 2 - Math.floor(Math.log10(Math.abs(scaled) || 1)));
  return `${scaled.toFixed(digits)} ${name}`;
}

/** Nanoseconds since the epoch, as UTC with all nine digits. */
export function moment(ns) {
  const whole = BigInt(ns);
  const part = ((whole % 1000000000n) + 1000000000n) % 1000000000n;
  const date = new Date(Number((whole - part) / 1000000n));
  if (Number.isNaN(date.getTime())) return String(ns);
  return `${date.toISOString().slice(0, 19).replace('T', ' ')}.${String(part).padStart(9, '0')}`;
}

/** The steps between ticks, ns: 1, 2 and 5 of each power of ten, and parts of minutes, hours and days. */
const STEPS = [];
for (let power = 1; power < 1e10; power *= 10) STEPS.push(power, 2 * power, 5 * power);
STEPS.splice(STEPS.findIndex((step) => step > 1e10));
for (const seconds of [20, 30, 60, 120, 300, 600, 1800, 3600, 7200, 21600, 43200, 86400]) STEPS.push(seconds * 1e9);

/** The smallest step with at most `most` ticks in `span` nanoseconds. */
export function tickStep(span, most) {
  const step = STEPS.find((step) => span / step <= most);
  return step ?? Math.ceil(span / most / 86400e9) * 86400e9;
}

/** A time after the start, with the digits that ticks of `step` need. */
export function tickText(offset, step) {
  if (offset === 0) return '0';
  if (step >= 60e9) return duration(offset);
  const [unit, name] = UNITS.find(([unit]) => Math.abs(offset) >= unit) ?? UNITS[3];
  const digits = Math.min(9, Math.max(0, -Math.floor(Math.log10(step / unit) + 1e-9)));
  return `${(offset / unit).toFixed(digits)} ${name}`;
}
