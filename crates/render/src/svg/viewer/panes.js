// What stands around the boxes of two profiles: headings, columns under what vanished, and the same
// frame in the other panes.

function headText(at) {
  const pane = panes[at], text = diff.heads[pane.name];
  return at ? text : `${text}; colours: change of ${state.by}`;
}

function drawAround() {
  if (!diff) return;
  byId('heads').replaceChildren(...panes.map((pane, at) => {
    const room = Math.floor(pane.width * 10 / data.footerSize);
    const heading = element('g', {}), y = paneTop(at) - headRoom() - 6;
    // Hides the boxes that are behind it while the page scrolls.
    heading.append(element('rect', { class: 'bar', x: pane.left / 100, y, width: pane.width / 100, height: headRoom() + 5, fill: '#fff' }));
    heading.append(element('text', { x: pane.left / 100, y: paneTop(at) - data.headGap }, cutEnd(headText(at), room)));
    return heading;
  }));
  byId('strips').replaceChildren(...strips().map(({ pane, left, right, level }) => {
    const lowest = depth[view.first], y = rowTop(pane, icicle ? lowest : level);
    const height = (level - lowest + 1) * data.row - 1;
    return element('rect', { x: left / 100, y, width: (right - left) / 100, height, fill: 'url(#gone-below)' });
  }));
  settleSoon(0);
}

// Where paths that vanished stand on frames that are still there: the room that they take below
// them is not of what is.
function strips() {
  const found = [];
  for (const cell of cells) {
    const { node, pane, left, right } = cell, above = parent[node], level = depth[node] - 1;
    if (panes[pane].name !== 'union' || cell.faded || level < depth[view.first]) continue;
    if (isGone(above) || !isGoneRun(cell)) continue;
    const before = found[found.length - 1];
    if (before && before.above === above && before.right === left) before.right = right;
    else found.push({ above, pane, left, right, level });
  }
  return found.filter(strip => strip.right - strip.left >= data.thinnestStrip);
}

// The boxes that show the same frame as the one that is pointed at.
let linked = [];
function link(cell) {
  for (const box of linked) box.removeAttribute('data-linked');
  linked = [];
  if (!cell || panes.length < 2) return;
  finishDrawing();
  for (const other of cells) {
    const same = other.node === cell.node || (other.thin && other.node <= cell.node && cell.node < other.last);
    if (same && other.pane !== cell.pane) linked.push(boxFor(other));
  }
  for (const box of linked) box.setAttribute('data-linked', '');
}
