// What the words of the page mean, for who meets them first here.

import { make } from './timeline.js';

const WORDS = {
  frame: 'A record of one event that the program wrote, with its fields.',
  interval: 'A frame that says when something began and when it ended.',
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

/** A word with its meaning, which shows on hover and when it has the focus. */
export function term(word, text = word) {
  const meaning = WORDS[word];
  if (!meaning) return make('span', '', text);
  const node = make('abbr', '', text);
  node.title = meaning;
  node.tabIndex = 0;
  node.setAttribute('aria-label', `${text}: ${meaning}`);
  return node;
}
