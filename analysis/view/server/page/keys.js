// Every key, and what it does: the dialog shows this list, and so does docs/view.md.

export const KEYS = [
  ['w', 'zoom in', (page) => page.zoom(0.6)],
  ['s', 'zoom out', (page) => page.zoom(1 / 0.6)],
  ['a', 'move left', (page) => page.move(-0.3)],
  ['d', 'move right', (page) => page.move(0.3)],
  ['ArrowLeft', 'the frame before, in the chosen row', (page) => page.step(-1)],
  ['ArrowRight', 'the next frame, in the chosen row', (page) => page.step(1)],
  ['ArrowUp', 'the row above', (page) => page.stepRow(-1)],
  ['ArrowDown', 'the row below', (page) => page.stepRow(1)],
  ['Enter', 'fold or unfold the chosen row', (page) => page.foldRow()],
  ['p', 'pin the chosen row to the top, or let go of it', (page) => page.pinRow()],
  ['f', 'show the chosen frame', (page) => page.showPick()],
  ['z', 'zoom to what was marked on the axis', (page) => page.zoomToRange()],
  ['u', 'back to what was seen before', (page) => page.back()],
  ['0', 'show everything', (page) => page.showAll()],
  ['g', 'jump over the gap: to the next frames on the right', (page) => page.jump(1)],
  ['G', 'the same to the left', (page) => page.jump(-1)],
  ['/', 'find', () => document.getElementById('find').focus()],
  ['F', 'only the rows that have what is in the field', (page) => page.filter.toggle()],
  ['n', 'the next that was found (Enter in the field)', (page) => page.stepHit(1)],
  ['N', 'the one before (Shift-Enter in the field)', (page) => page.stepHit(-1)],
  ['[', 'go to the cause of the chosen frame', (page) => page.follow('causes')],
  [']', 'go to its effect', (page) => page.follow('effects')],
  ['.', 'arrows of one hop more', (page) => page.hop()],
  ['o', 'the other set of captures, where there are two', (page) => page.turn()],
  ['t', 'what is visible, as a table', (page) => page.asTable()],
  ['e', 'save what is seen or marked: a trace, a table, a picture', (page) => page.save()],
  ['y', 'copy the command that answers the same in a terminal', (page) => page.copyCommand()],
  ['l', 'copy a link to what is seen (without the token)', (page) => page.copyLink()],
  ['Escape', 'let go of what is marked, chosen or found', (page) => page.letGo()],
  ['?', 'this list', (page) => page.showKeys()],
];

/** Does what a key is for; false if it is for nothing. */
export function press(page, event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return false;
  const found = KEYS.find(([key]) => key === event.key);
  if (!found) return false;
  found[2](page);
  return true;
}
