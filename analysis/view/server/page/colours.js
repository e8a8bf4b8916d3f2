// Colours of names: the same name has the same colour on every page.

// People who cannot distinguish red and green can distinguish these. Text on them is readable.
const LIGHT = [[58, 110, 165], [196, 120, 24], [46, 132, 110], [150, 86, 160], [120, 130, 36], [190, 84, 84],
  [70, 140, 170], [130, 105, 80], [92, 92, 180], [40, 120, 60], [176, 92, 130], [100, 110, 120]];
const DARK = [[110, 168, 230], [232, 166, 84], [92, 190, 165], [200, 142, 212], [180, 190, 88], [236, 140, 140],
  [120, 195, 225], [190, 165, 138], [150, 150, 235], [105, 185, 120], [228, 150, 186], [165, 175, 188]];
const NOBODY = [150, 150, 150];
/** The colours of the states of threads. */
const STATES = { running: [46, 150, 80], runnable: [214, 140, 30], blocked: [170, 100, 110], unknown: [150, 150, 150] };

const dark = matchMedia('(prefers-color-scheme: dark)');

function hash(text) {
  let value = 2166136261;
  for (let at = 0; at < text.length; at++) value = Math.imul(value ^ text.charCodeAt(at), 16777619);
  return (value ^ (value >>> 15)) >>> 0;
}

/** The red, green and blue values of a name. */
export function colour(name, buffer) {
  if (buffer === 'kernel' && Object.hasOwn(STATES, name)) return STATES[name];
  const palette = dark.matches ? DARK : LIGHT;
  return name === undefined ? NOBODY : palette[hash(name) % palette.length];
}

/** A pixel in the format of ImageData. */
export function pixel([red, green, blue], alpha = 255) {
  return ((alpha << 24) | (blue << 16) | (green << 8) | red) >>> 0;
}

/** The current colours of the page. */
export function theme() {
  const style = getComputedStyle(document.documentElement);
  const get = (name) => style.getPropertyValue(name).trim();
  return { ground: get('--ground'), raised: get('--raised'), line: get('--line'), text: get('--text'),
    faint: get('--faint'), accent: get('--accent'), loss: get('--loss') };
}

/** Reports changes of the colours of the page. */
export function onThemeChange(tell) {
  dark.addEventListener('change', tell);
  matchMedia('(forced-colors: active)').addEventListener('change', tell);
}
