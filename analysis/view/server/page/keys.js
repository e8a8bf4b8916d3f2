// All keys with their actions. The dialog and docs/view.md show this list.

export const KEYS = [
  ['w', 'zoom in', (page) => page.navigation.zoom(0.6)],
  ['s', 'zoom out', (page) => page.navigation.zoom(1 / 0.6)],
  ['a', 'move left', (page) => page.navigation.move(-0.3)],
  ['d', 'move right', (page) => page.navigation.move(0.3)],
  ['ArrowLeft', 'the frame before, in the chosen row', (page) => page.selection.step(-1)],
  ['ArrowRight', 'the next frame, in the chosen row', (page) => page.selection.step(1)],
  ['ArrowUp', 'the row above', (page) => page.cursor.stepRow(-1)],
  ['ArrowDown', 'the row below', (page) => page.cursor.stepRow(1)],
  ['Enter', 'fold or unfold the chosen row', (page) => page.cursor.foldRow()],
  ['p', 'pin the chosen row to the top, or let go of it', (page) => page.cursor.pinRow()],
  ['f', 'show the chosen frame', (page) => page.selection.showPick()],
  ['z', 'zoom to what was marked on the axis', (page) => page.navigation.zoomToRange()],
  ['u', 'back to what was seen before', (page) => page.navigation.back()],
  ['0', 'show everything', (page) => page.navigation.showAll()],
  ['g', 'jump over the gap: to the next frames on the right', (page) => page.navigation.jump(1)],
  ['G', 'the same to the left', (page) => page.navigation.jump(-1)],
  ['/', 'find', () => document.getElementById('find').focus()],
  ['F', 'only threads and bars that have what is in the field', (page) => page.filter.toggle()],
  ['n', 'the next that was found (Enter in the field)', (page) => page.stepHit(1)],
  ['N', 'the one before (Shift-Enter in the field)', (page) => page.stepHit(-1)],
  ['[', 'go to the cause of the chosen frame', (page) => page.selection.follow('causes')],
  [']', 'go to its effect', (page) => page.selection.follow('effects')],
  ['1', 'go to the first cause or effect in the list of Frame; 2 to 9 to the others', (page, key) => page.selection.followNumber(Number(key))],
  ['.', 'arrows of one hop more', (page) => page.selection.hop()],
  ['o', 'the other set of captures, where there are two', (page) => page.turn()],
  ['t', 'what is visible, as a table', (page) => page.asTable()],
  ['e', 'save what is seen or marked: a trace, a table, a picture', (page) => page.save()],
  ['y', 'copy the command that answers the same in a terminal', (page) => page.copyCommand()],
  ['l', 'copy a link to what is seen (without the token)', (page) => page.copyLink()],
  ['Escape', 'let go of what is marked, chosen or found', (page) => page.letGo()],
  ['?', 'this list', (page) => page.showKeys()],
];

/** Runs the action of a key. False if it has none. */
export function press(page, event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return false;
  const pressed = /^[2-9]$/.test(event.key) ? '1' : event.key;
  const found = KEYS.find(([key]) => key === pressed);
  if (!found) return false;
  found[2](page, event.key);
  return true;
}
