// Mouse, fingers, keys and window.

let pointerInside = false;

// In a page the graph takes only keys that are meant for it.
function takesKeys() {
  return standalone || pointerInside || root.contains(document.activeElement);
}

const ACTIONS = {
  '/': () => startSearch(),
  '?': openHelp,
  '0': reset,
  i: flip,
  o: reorder,
  d: turnSides,
  t: colourBy,
  u: undo,
  Backspace: undo,
  n: () => walkMatches(1),
  N: () => walkMatches(-1),
  Enter: zoomTo,
  ' ': zoomTo,
  c: copyName,
  C: copyStack,
  h: hideCell,
  f: focusOn,
  a: lookAround,
  s: searchName,
  m: cell => {
    const box = boxFor(cell).getBoundingClientRect(), at = root.getBoundingClientRect();
    openMenu(cell, box.left - at.left, box.bottom - at.top);
  },
};
// These act on the selected box.
const ON_BOX = ['Enter', ' ', 'c', 'C', 'h', 'f', 'a', 's', 'm'];

function startSearch() {
  input.focus();
  input.select();
}

function onKey(event) {
  if (!takesKeys() || event.defaultPrevented) return;
  const { key, target } = event, control = event.ctrlKey || event.metaKey;
  if (panel) keyInPanel(event);
  else if ((control && key === 'f') || key === 'F3') {
    // A second time asks for the browser's own search.
    const whole = input.selectionStart === 0 && input.selectionEnd === input.value.length;
    if (document.activeElement === input && whole) return;
    startSearch();
  } else if (control && key === 'i') toggleCase();
  else if (key === 'Escape') escape();
  else if (target === input) {
    if (key !== 'Enter') return;
    if (control) keepSearch(); else walkMatches(event.shiftKey ? -1 : 1);
  } else if (control || event.altKey) return;
  else if ((key === 'Enter' || key === ' ') && target.getAttribute && target.getAttribute('role') === 'button') {
    target.dispatchEvent(new MouseEvent('click', { bubbles: true }));
  } else if (key.startsWith('Arrow') || key === 'Home') walk(key);
  else if (!(key in ACTIONS)) return;
  else if (!ON_BOX.includes(key)) ACTIONS[key]();
  else if (selected || hovered) ACTIONS[key](selected || hovered);
  else return;
  event.preventDefault();
}

function keyInPanel(event) {
  const { key } = event;
  if (key === 'Escape') closePanel();
  else if (key === 'ArrowDown' || key === 'ArrowUp') stepInPanel(key === 'ArrowDown' ? 1 : -1);
  else if (key === 'Enter' || key === ' ') event.target.dispatchEvent(new MouseEvent('click', { bubbles: true }));
  else if (key !== 'Tab') {
    closePanel();
    return;
  }
  event.preventDefault();
}

function escape() {
  if (state.pattern || state.pinned.length || input.value) resetSearch();
  else if (state.zoom || filtered() || state.around) reset();
  else {
    input.blur();
    deselect();
    hint();
  }
}

// The box under the pointer.
let hovered = null;

function onHover(event) {
  hovered = cellAt(event.target);
  link(hovered);
  showDetails();
}

function onClick(event) {
  const cell = cellAt(event.target);
  if (panel && !panel.contains(event.target)) {
    closePanel();
    return;
  }
  // A link is followed, unless with the control key.
  const link = event.target.closest && event.target.closest('a');
  if (!cell || (link && !event.ctrlKey && !event.metaKey)) return;
  if (link) event.preventDefault();
  if (event.altKey) hideCell(cell);
  // The first tap of a finger shows the numbers.
  else if (byFinger && cell !== selected) select(cell);
  else zoomTo(cell);
}

function onMenu(event) {
  const cell = cellAt(event.target);
  // With a modifier it is the browser's.
  if (!cell || event.shiftKey || event.ctrlKey) return;
  event.preventDefault();
  const at = root.getBoundingClientRect();
  openMenu(cell, event.clientX - at.left, event.clientY - at.top);
}

// A long press opens the menu where the browser does not make one of it.
let pressing = 0, pressed = false, byFinger = false;
function onTouch(event) {
  clearTimeout(pressing);
  pressed = false;
  const cell = cellAt(event.target), touch = event.touches[0];
  if (!cell || event.touches.length !== 1) return;
  hovered = cell;
  link(cell);
  tellOf(cell);
  const at = root.getBoundingClientRect(), x = touch.clientX - at.left, y = touch.clientY - at.top;
  pressing = setTimeout(() => {
    pressed = true;
    openMenu(cell, x, y);
  }, 500);
}

function onTouchEnd(event) {
  clearTimeout(pressing);
  // The click that would follow is not one.
  if (pressed && event.cancelable) event.preventDefault();
  pressed = false;
}

function listen() {
  // Before whoever needs the tree.
  for (const type of WAKING) root.addEventListener(type, wake, { capture: true, once: true });
  window.addEventListener('keydown', wake, { capture: true, once: true });
  root.addEventListener('click', onClick);
  root.addEventListener('contextmenu', onMenu);
  root.addEventListener('mouseover', onHover);
  root.addEventListener('touchstart', onTouch, { passive: true });
  root.addEventListener('touchmove', () => clearTimeout(pressing), { passive: true });
  root.addEventListener('touchend', onTouchEnd);
  root.addEventListener('focusin', event => {
    const cell = cellOf.get(event.target);
    if (cell && cell !== selected) select(cell);
  });
  root.addEventListener('mouseenter', () => { pointerInside = true; });
  root.addEventListener('mouseleave', () => {
    pointerInside = false;
    hovered = null;
    link(null);
    showDetails();
  });
  button.unzoom.addEventListener('click', reset);
  button.undo.addEventListener('click', undo);
  button.flip.addEventListener('click', flip);
  button.by.addEventListener('click', colourBy);
  button.another.addEventListener('click', keepSearch);
  button.previous.addEventListener('click', () => walkMatches(-1));
  button.next.addEventListener('click', () => walkMatches(1));
  button.ignorecase.addEventListener('click', toggleCase);
  for (const [key, open] of [['order', chooseOrder], ['sides', chooseSides], ['help', openHelp]]) {
    button[key].addEventListener('click', event => {
      event.stopPropagation();
      if (panel) closePanel(); else open();
    });
  }
  root.addEventListener('pointerdown', event => { byFinger = event.pointerType === 'touch'; });
  input.addEventListener('input', () => go({ pattern: input.value }, true));
  window.addEventListener('keydown', onKey);
  window.addEventListener('scroll', pin, { passive: true });
  window.addEventListener('resize', follow);
  if (standalone) window.addEventListener('popstate', comeBack);
  if (window.ResizeObserver) new ResizeObserver(follow).observe(root);
}

// Follows the width of the window, or of whatever holds the graph.
function follow() {
  const found = Math.floor(root.getBoundingClientRect().width);
  if (found >= 200 && found !== width) {
    wake();
    width = found;
    forget();
    showRun({ ...view, exact: true });
    mark();
    placeFooter();
    placeHeader();
    placeStatus();
  }
  if (moved) openAtRoot(); else pin();
}
