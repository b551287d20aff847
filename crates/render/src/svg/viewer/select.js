// The box that the keys act on.

let selected = null;

function select(cell, focus) {
  finishDrawing();
  deselect();
  selected = cell;
  const box = boxFor(cell);
  outline(box, cell);
  // What is focused is read out at once.
  describeBox(box, cell);
  box.setAttribute('tabindex', '0');
  box.setAttribute('aria-selected', 'true');
  if (focus) box.focus({ preventScroll: true });
  bringIntoView(box);
  link(cell);
  tellOf(cell);
  placeStatus();
}

function deselect() {
  const box = selected && boxFor(selected);
  const before = selected;
  selected = null;
  if (!box || cellOf.get(box) !== before) return;
  box.removeAttribute('tabindex');
  box.removeAttribute('aria-selected');
  outline(box, before);
}

// The edge of a box: whoever cannot tell the colours sees what matches and what is selected. A
// narrow match would be nothing but edge, which has its colour.
function outline(box, cell) {
  const rect = rectOf(box), narrow = cell.right - cell.left < data.roundFrom;
  const stroke = cell === selected || (cell.mark && !narrow) ? '#1f2328' : cell.mark || edgeOf(cell);
  if (stroke) rect.setAttribute('stroke', stroke); else rect.removeAttribute('stroke');
  if (cell === selected) rect.setAttribute('stroke-width', '2');
  else if (cell.mark) rect.setAttribute('stroke-width', '.7');
  else rect.removeAttribute('stroke-width');
}

// Scrolls as little as it takes; header and details cover the edges of the window.
function bringIntoView(box) {
  if (!standalone) return;
  const { top, bottom } = box.getBoundingClientRect(), lowest = window.innerHeight - data.status - statusExtra - 4;
  const highest = headHigh + headRoom();
  if (top < highest) window.scrollBy(0, top - highest);
  else if (bottom > lowest) window.scrollBy(0, bottom - lowest);
}

// Where an arrow leads from the selected box; without one, to the root of the view.
function neighbour(key) {
  if (!selected) return cells.find(cell => !cell.faded);
  const { at, node } = selected;
  const outwards = growsDown(selected.pane) ? 'ArrowUp' : 'ArrowDown', level = depth[node];
  // Between callers and callees stands the function, which is drawn with the callees.
  if (isAround() && key === outwards && level < 2) return cells.find(cell => isCaller(cell) ? !node : !cell.node);
  if (key === outwards) {
    return cells.slice(0, at).reverse().find(cell => depth[cell.node] < level);
  }
  if (key === 'ArrowUp' || key === 'ArrowDown') {
    const next = cells[at + 1];
    return next && depth[next.node] > level ? next : null;
  }
  if (key === 'ArrowLeft') {
    return cells.slice(0, at).reverse().find(cell => depth[cell.node] === level);
  }
  return cells.slice(at + 1).find(cell => depth[cell.node] === level);
}

function walk(key) {
  const next = key === 'Home' ? cells[0] : neighbour(key);
  if (next) select(next, true);
}

function zoomTo(cell) {
  go({ zoom: pathOfRun(cell.node, cell.last) });
}
