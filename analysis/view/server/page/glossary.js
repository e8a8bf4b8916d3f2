// The meanings of the terms of the page.

import { make } from './elements.js';

const WORDS = {
  frame: 'A record of one event that the program wrote, with its fields.',
  interval: 'A frame that says when something began and when it ended.',
  name: 'What the intervals are called: the frame and the field, as the program names them.',
  count: 'How many there are.',
  longest: 'The longest of all intervals of this name.',
  own: 'The time of an interval without the intervals that lie within it.',
  total: 'The sum of the lengths of all intervals of this name.',
  median: 'Half of the intervals are shorter, half are longer.',
  lost: 'The program wrote these frames, but the collector came too late or could not keep them. ppt counts each.',
  dropped: 'The program could not write these frames: there was no room for its thread, for example.',
  overrun: 'Lost: the program overwrote the frame before it was collected.',
  captured: 'Frames that are in the capture.',
  thread: 'A thread of the program. Its intervals lie below it, each row one deeper.',
  busy: 'The part of the time in which an interval of the row was under way. The height of a bar shows it.',
  buffer: 'Where frames of one frame file are written.',
  certainty: 'certain: it was so. possible: times allow it, and nothing proves it.',
};

/** The meanings of the kinds of rows. */
export const ROWS = {
  process: 'All that a process did: its spans and counters, and its threads.',
  spans: 'Pairs of frames that belong together: from the first to the last.',
  thread: WORDS.thread,
  states: 'What the kernel did with the thread: green while it ran, orange while it waited for a CPU, red while it was blocked.',
  depth: 'Intervals of the thread. A row below has those that lie within.',
  moments: 'Frames of a kind that is no interval.',
  counter: 'A counter: its greatest value is at the top.',
};

/** All terms with their meanings. */
export const GLOSSARY = Object.entries(WORDS);

/** Shows a meaning next to a node while the pointer is on it or it has the focus. */
function tells(node, meaning) {
  const hover = document.getElementById('hover');
  const show = () => {
    const box = node.getBoundingClientRect();
    hover.textContent = meaning;
    hover.hidden = false;
    hover.style.left = `${Math.max(4, Math.min(box.left, innerWidth - hover.offsetWidth - 4))}px`;
    const below = box.bottom + 6;
    hover.style.top = `${below + hover.offsetHeight < innerHeight ? below : box.top - hover.offsetHeight - 6}px`;
  };
  const hide = () => { hover.hidden = true; };
  for (const name of ['pointerenter', 'focus']) node.addEventListener(name, show);
  for (const name of ['pointerleave', 'blur']) node.addEventListener(name, hide);
  // A panel may be replaced while a meaning is shown.
  node.addEventListener('keydown', (event) => { if (event.key === 'Escape') hide(); });
}

/** A term whose meaning shows on hover and with the focus. */
export function term(word, text = word) {
  const meaning = WORDS[word];
  if (!meaning) return make('span', '', text);
  const node = make('abbr', '', text);
  node.tabIndex = 0;
  tells(node, meaning);
  node.setAttribute('aria-label', `${text}: ${meaning}`);
  return node;
}
