// Handles mouse, pen and fingers on the timeline.

const NEAR = 4;

/** Adds the handlers of the canvases. */
export function usePointers(page) {
  for (const pane of page.panes) cells(page, pane);
  axis(page);
  overview(page);
}

function cells(page, pane) {
  const { timeline } = page;
  const { canvas } = pane;
  const hover = document.getElementById('hover');
  const fingers = new Map();
  let moved = 0;
  /** The offset at which a mark begins. */
  let first;
  const place = (event) => {
    const box = canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  canvas.addEventListener('pointerdown', (event) => {
    if (event.button !== 0) return;
    page.activate(pane);
    canvas.setPointerCapture(event.pointerId);
    first = event.shiftKey ? timeline.offset(place(event)[0]) : undefined;
    fingers.set(event.pointerId, place(event));
    moved = 0;
    if (fingers.size === 1) page.span.remember();
  });
  canvas.addEventListener('pointermove', (event) => {
    const [x, y] = place(event);
    const before = fingers.get(event.pointerId);
    if (!before) {
      tell(page, pane, hover, event, x, y);
      return;
    }
    hover.hidden = true;
    moved += Math.abs(x - before[0]) + Math.abs(y - before[1]);
    if (first !== undefined) page.navigation.mark(first, timeline.offset(x));
    else if (fingers.size === 1) {
      if (moved > NEAR) {
        page.navigation.move((before[0] - x) / timeline.width);
        if (event.pointerType === 'mouse') timeline.scroller.scrollTop += before[1] - y;
      }
    } else if (fingers.size === 2) {
      const [other] = [...fingers].filter(([id]) => id !== event.pointerId).map(([, at]) => at);
      const [wide, now] = [Math.abs(before[0] - other[0]), Math.abs(x - other[0])];
      if (wide > 8 && now > 8) page.navigation.zoom(wide / now, timeline.offset((x + other[0]) / 2));
    }
    fingers.set(event.pointerId, [x, y]);
  });
  const end = (event) => {
    const was = fingers.delete(event.pointerId);
    if (was && moved <= NEAR && event.type === 'pointerup') page.selection.click(...place(event));
  };
  canvas.addEventListener('pointerup', end);
  canvas.addEventListener('pointercancel', end);
  canvas.addEventListener('pointerleave', () => { hover.hidden = true; });
  canvas.addEventListener('dblclick', (event) => page.navigation.zoomTo(...place(event)));
  canvas.addEventListener('wheel', (event) => {
    event.preventDefault();
    const unit = event.deltaMode === 1 ? 16 : 1;
    if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      page.navigation.move(((event.deltaX || event.deltaY) * unit) / timeline.width);
    } else page.navigation.zoom(Math.exp(Math.max(-100, Math.min(100, event.deltaY * unit)) / 300), timeline.offset(place(event)[0]));
  }, { passive: false });
}

function tell(page, pane, hover, event, x, y) {
  const text = page.timeline.words(x, y, pane);
  hover.hidden = text === '';
  if (text === '') return;
  hover.textContent = text;
  hover.style.left = `${Math.min(event.clientX + 14, innerWidth - 350)}px`;
  hover.style.top = `${Math.min(event.clientY + 16, innerHeight - 120)}px`;
}

/** Marks a range of time by dragging on the axis. */
function axis(page) {
  const canvas = page.timeline.axis;
  let first;
  /** The pane above which a mark began. */
  let pane;
  const { timeline } = page;
  const x = (event) => event.clientX - canvas.getBoundingClientRect().left;
  const offset = (event) => timeline.offset(x(event) - timeline.left(pane));
  canvas.addEventListener('pointerdown', (event) => {
    canvas.setPointerCapture(event.pointerId);
    pane = page.panes.findLast((one) => x(event) >= timeline.left(one)) ?? page.panes[0];
    first = offset(event);
  });
  canvas.addEventListener('pointermove', (event) => {
    if (first !== undefined) page.navigation.mark(first, offset(event));
  });
  canvas.addEventListener('pointerup', (event) => {
    if (first === undefined) return;
    const last = offset(event);
    const isClick = Math.abs(last - first) < (3 / page.timeline.width) * page.span.length;
    if (isClick) page.navigation.unmark();
    first = undefined;
  });
  canvas.addEventListener('dblclick', () => page.navigation.zoomToRange());
}

/** Moves the window by dragging on the overview. */
function overview(page) {
  const canvas = page.timeline.overview;
  let isHeld = false;
  const go = (event) => {
    const box = canvas.getBoundingClientRect();
    const at = ((event.clientX - box.left) / box.width) * page.span.whole.to;
    const half = page.span.length / 2;
    page.navigation.show(at - half, at + half);
  };
  canvas.addEventListener('pointerdown', (event) => {
    isHeld = true;
    page.span.remember();
    canvas.setPointerCapture(event.pointerId);
    go(event);
  });
  canvas.addEventListener('pointermove', (event) => { if (isHeld) go(event); });
  canvas.addEventListener('pointerup', () => { isHeld = false; });
  canvas.addEventListener('pointercancel', () => { isHeld = false; });
}
